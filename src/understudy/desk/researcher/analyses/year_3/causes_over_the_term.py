"""Does early evening work cause later evening work, and which of them causes achievement?"""

import pandas as pd
from lingam import DirectLiNGAM


def analyze(data):
    """DirectLiNGAM on evening minutes in three parts of the term and achievement: direct effects."""
    evening = data.filter(like="evening_")
    parts = {"early": evening.iloc[:, :6], "middle": evening.iloc[:, 6:12], "late": evening.iloc[:, 12:]}
    habits = pd.DataFrame({name: weeks.mean(axis=1) for name, weeks in parts.items()})
    habits["achievement"] = data["achievement"].map({"low": 0, "average": 1, "high": 2})
    effects = DirectLiNGAM(random_state=0).fit((habits - habits.mean()) / habits.std()).adjacency_matrix_
    return {
        "early on middle": float(effects[1, 0]),
        "middle on late": float(effects[2, 1]),
        "early on achievement": float(effects[3, 0]),
        "middle on achievement": float(effects[3, 1]),
        "late on achievement": float(effects[3, 2]),
    }
