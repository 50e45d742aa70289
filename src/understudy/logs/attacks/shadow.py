"""`pairwise`, `joint-linear`, `shadow` and `stacked`: the attacks that learn from refits of the generator.

`shadow` is calibrated for each learner; the attacker's story is that of `core/attacks/shadows.py`, and the scores are
those of the other attacks that are cheap. `joint-linear` judges all learners together by the statistics that refits
release; its story is that of `core/attacks/linear.py`.

`pairwise` (RMIA, Zarifzadeh, Liu and Shokri 2024). The attacker's story: Ada's record may suit any log of this school.
So what counts is how much better it suits the released log than logs of refits, with her and without her; and it
counts against other learners, whose records the released log may suit better as well. With the density p of a
record under the chain of a log, and its mean over refits as p(Ada) (the geometric mean: of the products of hundreds of
chances the arithmetic one would be the largest alone), the score is the share of learners z with

    p(Ada | released) / p(Ada)  >=  p(z | released) / p(z)

`stacked`. The attacker's story: no single question is the best for every generator. On refits the attacker knows who
was in, so there a logistic regression learns how much each attack's score is worth, `joint` and `joint-linear`
included. The scores are put as normal quantiles of their ranks, since some have no scale and others no bounds. Refits
on which the regression learns do not calibrate the scores that it weighs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

from understudy.core.attacks.linear import LinearPosterior
from understudy.core.attacks.shadows import Shadow, ShadowCalibration, fit_score_weights
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.scores import detail_scores, scores_without_refits
from understudy.logs.attacks.steps import count_scores, rare_bag_scores, rare_scores, transition_scores
from understudy.logs.attacks.tracing import tracing_scores
from understudy.logs.interactions import Interactions

Floats = NDArray[np.float64]

N_SHADOWS = 64
# Refits on which `stacked` learns: on each of them every attack is run. A quarter of all if there are few.
N_STACKED = 4
# Ridge of its regression. The scores of four refits of few learners would be learned by heart without.
STACKING_PENALTY = 100.0

# The scores of the other attacks that are cheap to recompute; those of tracing, of times and of declared columns are
# added. `pairwise` compares the first.
CHEAP = (transition_scores, count_scores, rare_scores, rare_bag_scores)
REFITTING_ATTACKS = ("pairwise", "joint-linear", "shadow", "stacked")

# Makes a synthetic log from the log of some learners.
Generate = Callable[[Interactions, np.random.Generator], Interactions]


def fit_shadow(
    knowledge: Knowledge, generate: Generate, rng: np.random.Generator, *, stacked: bool = False
) -> Shadow:
    """Fit and sample on a random half; note every learner's cheap scores and the statistics of the sample.

    With `stacked` it notes the scores of all attacks that need no refits, too.
    """
    log = knowledge.population
    member = np.zeros(log.n_learners, dtype=bool)
    member[rng.permutation(log.n_learners)[: knowledge.n_training]] = True
    synthetic = generate(log.select(member), rng)
    return Shadow(
        member,
        cheap_scores(knowledge, synthetic),
        knowledge.statistics.of(synthetic),
        scores_without_refits(knowledge, synthetic) if stacked else None,
    )


def n_stacked(n_shadows: int) -> int:
    """How many of the refits `stacked` learns on."""
    return min(N_STACKED, n_shadows // 4)


def cheap_scores(knowledge: Knowledge, synthetic: Interactions) -> Floats:
    """One column per cheap attack."""
    others = tracing_scores(knowledge, synthetic) | detail_scores(knowledge, synthetic)
    return np.column_stack([*(score(knowledge, synthetic) for score in CHEAP), *others.values()])


class ShadowAttack:
    """The attacks that refits made ready, for any synthetic log made from as many learners."""

    def __init__(self, knowledge: Knowledge, shadows: Sequence[Shadow]) -> None:
        self._knowledge = knowledge
        judged = knowledge.judged
        whole = [shadow for shadow in shadows if shadow.all_scores is not None]
        others = Refits(knowledge, [shadow for shadow in shadows if shadow.all_scores is None])
        evidence = [
            normal_scores({**(shadow.all_scores or {}), **others.scores(shadow.scores, shadow.statistics)})
            for shadow in whole
        ]
        self._weights = fit_score_weights(
            np.array(evidence)[:, judged],
            np.array([shadow.member for shadow in whole])[:, judged],
            STACKING_PENALTY,
        )
        self._refits = Refits(knowledge, shadows)

    def scores(self, synthetic: Interactions, without_refits: Mapping[str, Floats]) -> dict[str, Floats]:
        """The scores of each attack: the higher, the likelier a member."""
        knowledge = self._knowledge
        scores = self._refits.scores(cheap_scores(knowledge, synthetic), knowledge.statistics.of(synthetic))
        return scores | {"stacked": normal_scores({**without_refits, **scores}) @ self._weights}


class Refits:
    """What refits teach about single scores and about statistics."""

    def __init__(self, knowledge: Knowledge, shadows: Sequence[Shadow]) -> None:
        self._calibration = ShadowCalibration(shadows, knowledge.judged)
        statistics = knowledge.statistics
        self._posterior = LinearPosterior.from_shadows(
            statistics.contributions,
            statistics.kind,
            knowledge.training_share,
            np.array([shadow.member for shadow in shadows]),
            np.array([shadow.statistics for shadow in shadows]),
        )

    def scores(self, cheap: Floats, statistics: Floats) -> dict[str, Floats]:
        """The scores of `pairwise`, `joint-linear` and `shadow` from what a log shows."""
        return {
            # `transitions` is log p(record | log) up to a term of the learner alone, which the difference takes out.
            "pairwise": pairwise_scores(cheap[:, 0] - self._calibration.laws_.middle[:, 0]),
            "joint-linear": self._posterior.scores(statistics),
            "shadow": self._calibration.log_odds(cheap),
        }


def pairwise_scores(log_ratio: Floats) -> Floats:
    """The share of learners whose ratio is not larger than the learner's own."""
    shares: Floats = rankdata(log_ratio, method="max") / len(log_ratio)
    return shares


def normal_scores(scores: Mapping[str, Floats]) -> Floats:
    """Normal quantiles of the ranks of each attack's scores: learners x attacks; ties share a quantile."""
    ranks = rankdata(np.column_stack(list(scores.values())), axis=0)
    quantiles: Floats = norm.ppf((ranks - 0.5) / len(ranks))
    return quantiles


def joint_linear_scores(knowledge: Knowledge, synthetic: Interactions) -> Floats:
    """`joint-linear` on a log of unknown making, which cannot be refitted."""
    statistics = knowledge.statistics
    released = statistics.of(synthetic)
    posterior = LinearPosterior.from_release(
        statistics.contributions,
        statistics.spread,
        statistics.kind,
        knowledge.training_share,
        statistics.real,
        released,
    )
    return posterior.scores(released)
