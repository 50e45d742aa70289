"""Do students spend more time in the morning than in the evening, and who does?"""

import pandas as pd
from scipy.stats import wilcoxon


def analyze(data):
    """Mean difference of minutes a week, morning minus evening, by achievement."""
    difference = data.filter(like="morning_").mean(axis=1) - data.filter(like="evening_").mean(axis=1)
    rows = []
    for name in ("low", "average", "high"):
        group = difference[data["achievement"] == name]
        rows.append({"achievement": name, "difference": group.mean(), "p": wilcoxon(group).pvalue})
    return {"morning minus evening": pd.DataFrame(rows)}
