"""Does evening work raise achievement, or does achievement lead to evening work?"""

import pandas as pd
from lingam import DirectLiNGAM


def analyze(data):
    """DirectLiNGAM on the minutes by day, in the evening, and achievement: both directions."""
    habits = pd.DataFrame(
        {
            "day": data.filter(regex="^(morning|afternoon)_").mean(axis=1),
            "evening": data.filter(like="evening_").mean(axis=1),
            "achievement": data["achievement"].map({"low": 0, "average": 1, "high": 2}),
        }
    )
    model = DirectLiNGAM(random_state=0).fit((habits - habits.mean()) / habits.std())
    effects = model.adjacency_matrix_
    return {"evening on achievement": float(effects[2, 1]), "achievement on evening": float(effects[1, 2])}
