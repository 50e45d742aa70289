"""Does a week with work make work in the next week more likely, and for whom?"""

import pandas as pd

# Overnight work is too rare for a share by achievement.
WINDOWS = ["morning", "afternoon", "evening"]


def analyze(data):
    """Chance to work in a week after a week with work, minus the chance after one without; by achievement."""
    rows = []
    for window in WINDOWS:
        active = (data.filter(like=f"{window}_") > 0).to_numpy()
        row = {"window": window}
        for name in ("low", "average", "high"):
            chosen = active[data["achievement"] == name]
            before, after = chosen[:, :-1].ravel(), chosen[:, 1:].ravel()
            row[name] = after[before].mean() - after[~before].mean()
        rows.append(row)
    return {"persistence": pd.DataFrame(rows)}
