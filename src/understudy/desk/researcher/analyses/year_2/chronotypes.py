"""Are students who learn mostly after school found more often among high achievers?"""

import pandas as pd
from scipy.stats import chi2_contingency


def analyze(data):
    """Students by when they spend most minutes and by achievement, in cells that hold enough of them, and a test."""
    windows = ["morning", "afternoon", "evening"]
    minutes = pd.DataFrame({window: data.filter(like=f"{window}_").sum(axis=1) for window in windows})
    when = (minutes.idxmax(axis=1) == "morning").map({True: "in school", False: "after school"})
    high = (data["achievement"] == "high").map({True: "high", False: "low or average"})
    counts = pd.crosstab(when, high)
    counts = counts.reindex(
        index=["in school", "after school"], columns=["low or average", "high"], fill_value=0
    )
    statistic, p, _, _ = chi2_contingency(counts + 0.5)
    shares = (counts / counts.sum()).loc["after school"]
    return {
        "counts": counts.rename_axis("most minutes").reset_index(),
        "after school, high minus others": {
            "effect": float(shares["high"] - shares["low or average"]),
            "p": float(p),
        },
        "chi2": float(statistic),
    }
