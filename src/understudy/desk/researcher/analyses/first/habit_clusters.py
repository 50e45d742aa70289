"""Which types of learning habits are there, and how do their members achieve?"""

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

WINDOWS = ["morning", "afternoon", "evening", "overnight"]


def analyze(data):
    """Three clusters of log-minutes by window, from the least to the most active."""
    minutes = pd.DataFrame({window: data.filter(like=f"{window}_").mean(axis=1) for window in WINDOWS})
    logs = np.log1p(minutes)
    scaled = (logs - logs.mean()) / logs.std()
    cluster = KMeans(3, n_init=5, random_state=0).fit_predict(scaled)
    by_activity = scaled.mean(axis=1).groupby(cluster).mean().sort_values().index
    rows = []
    for name, one in zip(["least", "middle", "most"], by_activity, strict=True):
        members = cluster == one
        high = (data["achievement"][members] == "high").mean()
        rows.append({"active": name, "share": members.mean(), **minutes[members].mean(), "high": high})
    return {"clusters": pd.DataFrame(rows)}
