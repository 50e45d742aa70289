"""What is the causal relationship between learning habits and learning outcome?"""

import pandas as pd
from lingam import DirectLiNGAM

WINDOWS = ["morning", "afternoon", "evening", "overnight"]


def analyze(data):
    """DirectLiNGAM on the minutes in the four windows and achievement: direct effects, cause by effect."""
    habits = pd.DataFrame({window: data.filter(like=f"{window}_").mean(axis=1) for window in WINDOWS})
    habits["achievement"] = data["achievement"].map({"low": 0, "average": 1, "high": 2})
    scaled = (habits - habits.mean()) / habits.std()
    model = DirectLiNGAM(random_state=0).fit(scaled)
    effects = pd.DataFrame(model.adjacency_matrix_.T, columns=[f"on {name}" for name in habits])
    effects.insert(0, "cause", list(habits))
    return {"effects": effects}
