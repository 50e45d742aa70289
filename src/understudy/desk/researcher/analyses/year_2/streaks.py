"""Are long streaks of weeks with homework related to achievement?"""

import numpy as np
from scipy.stats import spearmanr


def longest(active):
    """The longest run of True."""
    best = run = 0
    for worked in active:
        run = run + 1 if worked else 0
        best = max(best, run)
    return best


def analyze(data):
    """Longest streak of weeks with work in the afternoon or evening: mean by achievement, rank correlation."""
    afternoon, evening = (data.filter(like=f"{window}_").to_numpy() for window in ("afternoon", "evening"))
    streak = np.array([longest(row) for row in afternoon + evening > 0])
    rho, p = spearmanr(streak, data["achievement"].map({"low": 0, "average": 1, "high": 2}))
    return {
        "mean streak": {
            name: float(streak[data["achievement"] == name].mean()) for name in ("low", "average", "high")
        },
        "correlation": {"rho": float(rho), "p": float(p)},
    }
