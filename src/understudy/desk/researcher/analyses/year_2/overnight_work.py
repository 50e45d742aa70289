"""Is work after midnight a sign of low achievement?"""

from scipy.stats import fisher_exact


def analyze(data):
    """Share of students who worked overnight in two weeks or more, and the odds of low against high achievers."""
    often = (data.filter(like="overnight_") > 0).sum(axis=1) >= 2
    low, high = often[data["achievement"] == "low"], often[data["achievement"] == "high"]
    counts = [[low.sum(), (~low).sum()], [high.sum(), (~high).sum()]]
    return {
        "share": {"low": float(low.mean()), "high": float(high.mean())},
        "low minus high": {
            "effect": float(low.mean() - high.mean()),
            "p": float(fisher_exact(counts).pvalue),
        },
    }
