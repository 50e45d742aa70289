"""Who works more in the three weeks before the exam than in the rest of the term?"""

import numpy as np
import pandas as pd
from scipy.stats import ttest_1samp


def analyze(data):
    """Log-ratio of minutes a week, last three weeks against those before, by achievement."""
    weeks = sorted({name.rsplit("_", 1)[1] for name in data.filter(regex="_[0-9]+$")})
    minutes = np.column_stack([data.filter(regex=f"_{week}$").sum(axis=1) for week in weeks])
    rise = np.log1p(minutes[:, -3:].mean(axis=1)) - np.log1p(minutes[:, :-3].mean(axis=1))
    rows = []
    for name in ("low", "average", "high"):
        group = rise[data["achievement"] == name]
        rows.append({"achievement": name, "rise": group.mean(), "p": ttest_1samp(group, 0).pvalue})
    return {"rise before the exam": pd.DataFrame(rows)}
