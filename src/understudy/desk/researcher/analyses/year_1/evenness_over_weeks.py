"""Is work spread more evenly over the term among high achievers?"""

import numpy as np
from scipy.stats import f_oneway


def analyze(data):
    """Entropy of a student's minutes over the weeks, 1 being every week alike, by achievement."""
    weeks = sorted({name.rsplit("_", 1)[1] for name in data.filter(regex="_[0-9]+$")})
    minutes = np.column_stack([data.filter(regex=f"_{week}$").sum(axis=1) for week in weeks])
    share = minutes / np.maximum(minutes.sum(axis=1, keepdims=True), 1e-9)
    logs = np.log(share, where=share > 0, out=np.zeros_like(share))
    evenness = -(share * logs).sum(axis=1) / np.log(len(weeks))
    groups = [evenness[data["achievement"] == name] for name in ("low", "average", "high")]
    statistic, p = f_oneway(*groups)
    return {
        "mean evenness": {
            name: float(group.mean()) for name, group in zip(("low", "average", "high"), groups, strict=True)
        },
        "high minus low": {"effect": float(groups[2].mean() - groups[0].mean()), "p": float(p)},
        "F": float(statistic),
    }
