"""Is it the regularity or the amount of learning that goes with achievement?"""

import numpy as np
import pandas as pd
import statsmodels.api as sm


def analyze(data):
    """Linear regression of achievement (0, 1, 2) on standardised amount, active weeks and variability."""
    weeks = sorted({name.rsplit("_", 1)[1] for name in data.filter(regex="_[0-9]+$")})
    minutes = np.column_stack([data.filter(regex=f"_{week}$").sum(axis=1) for week in weeks])
    habits = pd.DataFrame(
        {
            "log minutes": np.log1p(minutes.mean(axis=1)),
            "active evenings": (data.filter(like="evening_") > 0).sum(axis=1),
            "variability": minutes.std(axis=1) / np.maximum(minutes.mean(axis=1), 1e-9),
        }
    )
    achievement = data["achievement"].map({"low": 0, "average": 1, "high": 2})
    fit = sm.OLS(achievement, sm.add_constant((habits - habits.mean()) / habits.std())).fit()
    table = pd.DataFrame({"term": list(habits), "coefficient": fit.params[1:], "p": fit.pvalues[1:]})
    return {"regression": table, "R squared": float(fit.rsquared)}
