"""How large is the total effect of each habit on achievement, through all other habits?"""

import numpy as np
import pandas as pd
from lingam import DirectLiNGAM

WINDOWS = ["morning", "afternoon", "evening", "overnight"]


def analyze(data):
    """Total effects on achievement in the causal model that DirectLiNGAM finds."""
    habits = pd.DataFrame({window: data.filter(like=f"{window}_").mean(axis=1) for window in WINDOWS})
    habits["achievement"] = data["achievement"].map({"low": 0, "average": 1, "high": 2})
    direct = DirectLiNGAM(random_state=0).fit((habits - habits.mean()) / habits.std()).adjacency_matrix_
    # Direct effects, those through one other habit, through two, and so on.
    total = np.linalg.inv(np.eye(len(direct)) - direct)
    return {
        "on achievement": {name: float(effect) for name, effect in zip(WINDOWS, total[4, :4], strict=True)}
    }
