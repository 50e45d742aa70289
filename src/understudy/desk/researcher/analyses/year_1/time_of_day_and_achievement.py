"""How is the time of day at which students learn related to their achievement?"""

import pandas as pd
from scipy.stats import spearmanr

WINDOWS = ["morning", "afternoon", "evening", "overnight"]


def analyze(data):
    """Rank correlation of the minutes in each window with achievement."""
    achievement = data["achievement"].map({"low": 0, "average": 1, "high": 2})
    rows = []
    for window in WINDOWS:
        rho, p = spearmanr(data.filter(like=f"{window}_").sum(axis=1), achievement)
        rows.append({"window": window, "rho": rho, "p": p})
    return {"correlations": pd.DataFrame(rows)}
