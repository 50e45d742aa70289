"""What does a typical week look like in each part of the term: how many work, at which time of day?"""

import pandas as pd

# Overnight only a few work in a week: their share would tell who they are.
WINDOWS = ["morning", "afternoon", "evening"]


def analyze(data):
    """Share of students who worked, for each window and week: a heat map given as data."""
    weeks = sorted({name.rsplit("_", 1)[1] for name in data.filter(regex="_[0-9]+$")})
    rows = [
        {"week": f"week {week}", **{window: (data[f"{window}_{week}"] > 0).mean() for window in WINDOWS}}
        for week in weeks
    ]
    return {"share who worked": pd.DataFrame(rows)}
