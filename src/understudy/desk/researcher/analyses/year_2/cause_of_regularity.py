"""Does regular work cause achievement, or do both follow from the amount of work?"""

import pandas as pd
from lingam import DirectLiNGAM


def analyze(data):
    """DirectLiNGAM on amount, active weeks, largest week and achievement: direct effects on achievement."""
    evening = data.filter(like="evening_")
    habits = pd.DataFrame(
        {
            "amount": evening.mean(axis=1),
            "active weeks": (evening > 0).sum(axis=1),
            "largest week": evening.max(axis=1),
            "achievement": data["achievement"].map({"low": 0, "average": 1, "high": 2}),
        }
    )
    model = DirectLiNGAM(random_state=0).fit((habits - habits.mean()) / habits.std())
    on_achievement = dict(zip(habits, model.adjacency_matrix_[3], strict=True))
    place = [habits.columns[one] for one in model.causal_order_].index("achievement")
    del on_achievement["achievement"]
    return {
        "on achievement": {k: float(v) for k, v in on_achievement.items()},
        "place in the order": place + 1,
    }
