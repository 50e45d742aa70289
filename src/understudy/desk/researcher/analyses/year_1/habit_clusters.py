"""Which types of learning habits are there, and how do their members achieve?"""

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

# Two clusters of what many do: a third one would be a handful of students who work overnight.
WINDOWS = ["morning", "afternoon", "evening"]


def analyze(data):
    """Two clusters of log-minutes by window, from the less to the more active."""
    minutes = pd.DataFrame({window: data.filter(like=f"{window}_").mean(axis=1) for window in WINDOWS})
    logs = np.log1p(minutes)
    scaled = (logs - logs.mean()) / logs.std()
    cluster = KMeans(2, n_init=5, random_state=0).fit_predict(scaled)
    by_activity = scaled.mean(axis=1).groupby(cluster).mean().sort_values().index
    score = data["achievement"].map({"low": 0, "average": 1, "high": 2})
    rows = []
    for name, one in zip(["less", "more"], by_activity, strict=True):
        members = cluster == one
        means = {**minutes[members].mean(), "achievement": score[members].mean()}
        rows.append({"active": name, "share": members.mean(), **means})
    return {"clusters": pd.DataFrame(rows)}
