"""Do high achievers do a larger share of their work in the evening?"""

from scipy.stats import kruskal


def analyze(data):
    """The share of the evening by achievement, and whether it differs."""
    total = data.filter(regex="_[0-9]+$").sum(axis=1)
    share = data.filter(like="evening_").sum(axis=1) / total.where(total > 0)
    groups = {name: share[data["achievement"] == name].dropna() for name in ("low", "average", "high")}
    statistic, p = kruskal(*groups.values())
    return {
        "mean share": {name: float(group.mean()) for name, group in groups.items()},
        "high minus low": {"effect": float(groups["high"].mean() - groups["low"].mean()), "p": float(p)},
        "H": float(statistic),
    }
