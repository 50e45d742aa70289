"""Are morning, afternoon and evening learners found equally often among low and high achievers?"""

import pandas as pd
from scipy.stats import chi2_contingency


def analyze(data):
    """Students by the window in which they spend most minutes and by achievement, and a test of independence."""
    windows = ["morning", "afternoon", "evening"]
    minutes = pd.DataFrame({window: data.filter(like=f"{window}_").sum(axis=1) for window in windows})
    counts = pd.crosstab(minutes.idxmax(axis=1), data["achievement"])
    counts = counts.reindex(index=windows, columns=["low", "average", "high"], fill_value=0)
    statistic, p, _, _ = chi2_contingency(counts + 0.5)
    shares = counts / counts.sum()
    evening = shares.loc["evening", "high"] - shares.loc["evening", "low"]
    return {
        "counts": counts.rename_axis("most minutes in the").reset_index(),
        "evening learners, high minus low": {"effect": float(evening), "p": float(p)},
        "chi2": float(statistic),
    }
