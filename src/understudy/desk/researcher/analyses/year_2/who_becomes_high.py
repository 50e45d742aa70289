"""Which habits distinguish high achievers from all others when they are looked at together?"""

import numpy as np
import pandas as pd
import statsmodels.api as sm

WINDOWS = ["morning", "afternoon", "evening", "overnight"]


def analyze(data):
    """Logistic regression of being a high achiever on the standardised log-minutes in each window."""
    habits = pd.DataFrame(
        {window: np.log1p(data.filter(like=f"{window}_").mean(axis=1)) for window in WINDOWS}
    )
    scaled = sm.add_constant((habits - habits.mean()) / habits.std())
    fit = sm.Logit((data["achievement"] == "high").astype(int), scaled).fit(disp=False)
    table = pd.DataFrame({"window": WINDOWS, "log odds": fit.params[1:], "p": fit.pvalues[1:]})
    return {"regression": table}
