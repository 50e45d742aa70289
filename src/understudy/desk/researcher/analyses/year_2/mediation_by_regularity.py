"""Does evening work lead to achievement because it makes students work regularly?"""

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy.stats import norm


def analyze(data):
    """Mediation by two regressions: evening minutes, active weeks as mediator, achievement; Sobel's test."""
    evening = data.filter(like="evening_")
    frame = pd.DataFrame(
        {
            "minutes": np.log1p(evening.mean(axis=1)),
            "weeks": (evening > 0).sum(axis=1),
            "achievement": data["achievement"].map({"low": 0, "average": 1, "high": 2}),
        }
    )
    frame = (frame - frame.mean()) / frame.std()
    first = sm.OLS(frame["weeks"], frame[["minutes"]]).fit()
    second = sm.OLS(frame["achievement"], frame[["minutes", "weeks"]]).fit()
    a, b = first.params["minutes"], second.params["weeks"]
    error = np.hypot(a * second.bse["weeks"], b * first.bse["minutes"])
    return {
        "direct": {"effect": float(second.params["minutes"]), "p": float(second.pvalues["minutes"])},
        "through regularity": {"effect": float(a * b), "p": float(2 * norm.sf(abs(a * b) / error))},
    }
