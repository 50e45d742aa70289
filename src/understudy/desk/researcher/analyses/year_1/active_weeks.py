"""Do students who learn in more weeks achieve more, and in which windows of the day?"""

import pandas as pd
from scipy.stats import spearmanr

WINDOWS = ["morning", "afternoon", "evening", "overnight"]


def analyze(data):
    """Number of weeks with any work in a window: its mean, and its rank correlation with achievement."""
    achievement = data["achievement"].map({"low": 0, "average": 1, "high": 2})
    rows = []
    for window in WINDOWS:
        weeks = (data.filter(like=f"{window}_") > 0).sum(axis=1)
        rho, p = spearmanr(weeks, achievement)
        rows.append({"window": window, "mean weeks": weeks.mean(), "rho": rho, "p": p})
    return {"active weeks": pd.DataFrame(rows)}
