"""Do students who work more in the evening achieve more?

The first line is your research question. The desk runs `analyze` on the synthetic data first, and after a
review on the real data. Try it at home:

    understudy desk try analysis.py synthetic.parquet
"""

from scipy.stats import spearmanr

# pandas, numpy, scipy, statsmodels, sklearn and lingam are there. There is no network and no file to read or write.


def analyze(data):
    """`data` is a pandas frame with the columns of the synthetic table; `learner` names the learner of a row.

    Return named numbers, tables (frames) or plots as the numbers they would draw, in a dict. Ask for little: every
    number costs some of the learners' privacy, so a rank correlation may leave where a table of means may not.
    Numbers about few learners are held back, and digits beyond what the sample supports are rounded away. If you
    need chance, take a parameter `rng` (a numpy generator that the desk seeds): the same request then gives the same
    answer.
    """
    evening = data.filter(like="evening_").sum(axis=1)
    achievement = data["achievement"].map({"low": 0, "average": 1, "high": 2})
    rho, p = spearmanr(evening, achievement)
    return {"evening and achievement": {"rho": rho, "p": p}}
