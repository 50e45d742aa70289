"""How does the time spent learning develop over the term, for low, average and high achievers?"""

import pandas as pd


def analyze(data):
    """Mean minutes of each week by achievement, ready to be plotted."""
    weeks = sorted({name.rsplit("_", 1)[1] for name in data.filter(regex="_[0-9]+$")})
    total = pd.DataFrame({f"week {week}": data.filter(regex=f"_{week}$").sum(axis=1) for week in weeks})
    means = total.groupby(data["achievement"]).mean().reindex(["low", "average", "high"])
    return {"curves": means.T.rename_axis("week").reset_index()}
