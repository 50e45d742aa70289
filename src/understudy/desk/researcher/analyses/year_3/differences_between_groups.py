"""In which habits do low and high achievers differ most?"""

import pandas as pd
from scipy.stats import mannwhitneyu

WINDOWS = ["morning", "afternoon", "evening", "overnight"]


def analyze(data):
    """Chance that a high achiever has more minutes (or active weeks) than a low one, minus one half."""
    rows = []
    for window in WINDOWS:
        values = data.filter(like=f"{window}_")
        for habit, measure in (("minutes", values.sum(axis=1)), ("weeks", (values > 0).sum(axis=1))):
            low, high = (measure[data["achievement"] == name] for name in ("low", "high"))
            test = mannwhitneyu(high, low)
            effect = test.statistic / (len(high) * len(low)) - 0.5
            rows.append({"habit": f"{window} {habit}", "effect": effect, "p": test.pvalue})
    return {"differences": pd.DataFrame(rows)}
