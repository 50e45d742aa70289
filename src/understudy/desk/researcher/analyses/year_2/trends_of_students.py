"""Do students learn more and more, or less and less, during the term?"""

import numpy as np
import pandas as pd
from scipy.stats import ttest_1samp

WINDOWS = ["morning", "afternoon", "evening", "overnight"]


def analyze(data):
    """Mean slope of the log-minutes over the weeks, by window, and whether it differs from 0."""
    rows = []
    for window in WINDOWS:
        logs = np.log1p(data.filter(like=f"{window}_").to_numpy())
        week = np.arange(logs.shape[1]) - (logs.shape[1] - 1) / 2
        slopes = logs @ week / (week @ week)
        rows.append({"window": window, "slope": slopes.mean(), "p": ttest_1samp(slopes, 0).pvalue})
    return {"trends": pd.DataFrame(rows)}
