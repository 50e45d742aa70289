"""The audit of private difficulties: what each mechanism claims, and what can be shown against it.

The auditor's story: two classes differ in one student. They know everything else, see one release,
and ask how much more likely it was under one class than under the other. A mechanism that claims
epsilon may never let the logarithm of that ratio exceed epsilon.

Where the ratio can be computed it is (the published methods, seed dp-rasch: objective
perturbation, sufficient statistics, the private choice of the penalty), and then one pair of
classes settles the matter. Where it is proved to be small (the K-norm mechanisms and the Gaussian
one) the code is run many times on a worst pair, and a lower confidence bound of the loss is
compared with the claim. A bound above the claim is a bug; a bound below it proves nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from scipy.stats import laplace

from reproductions.dp_rasch.density import ObjectiveLoss, objective_draws, objective_loss
from reproductions.dp_rasch.worst_pairs import CONFIDENCE, Empirical, empirical_audit
from understudy.core.privacy.noise import Noise
from understudy.exams.estimators.joint import PENALTY, PRINTED_PENALTY

Floats = npt.NDArray[np.float64]

BREAKS = "breaks its claim"
HOLDS = "holds as far as shown"


# ---- what can be computed


def choice_loss(
    n_items: int = 20,
    n_candidates: int = 10,
    epsilon: float = 1.0,
    *,
    n_validation: int = 1,
    divide: bool = False,
) -> float:
    """The largest loss of equation 7, P(candidate i) proportional to exp(-epsilon z_i / 2); exact.

    z_i counts the errors that candidate i makes on the responses of `n_validation` learners, so
    0 <= z_i <= n_validation * I =: n I, and replacing a learner moves each z_i by up to I, in
    either direction, not by 1. (All of this is reached: a learner who gets right exactly the
    items that candidate i calls hard has I errors under it, none under a candidate with the
    order reversed, and the learner with the opposite answers has it the other way round.)
    With `divide` the errors are divided by I, and then no score moves by more than 1.

    For candidate i let W = sum over j != i of exp(-epsilon (z_j - z_i) / 2), so that
    P(i) = 1 / (1 + W). Then W' <= W e^(epsilon I), and log((1 + W') / (1 + W)) is largest when
    that is an equality and W' as large as it gets: z_i from (n-1) I to n I, every other z_j from
    I to 0, which gives W' = (m-1) e^(epsilon n I / 2) for m candidates. The limit of many
    learners is epsilon I (epsilon, when the errors are divided).
    """
    if n_items < 1 or n_candidates < 1 or n_validation < 1 or not epsilon > 0:
        raise ValueError(
            "a choice needs items, candidates and learners to judge them, and epsilon above 0; got "
            f"{n_items}, {n_candidates}, {n_validation} and {epsilon}"
        )
    if n_candidates == 1:
        return 0.0
    moved = epsilon * (1 if divide else n_items)
    log_after = math.log(n_candidates - 1) + n_validation * moved / 2
    return float(np.logaddexp(0.0, log_after) - np.logaddexp(0.0, log_after - moved))


def statistics_loss(n_items: int, epsilon: float = 1.0) -> float:
    """The largest loss when r and s are both released with Laplace noise of scale I / epsilon: 2 epsilon; exact.

    Replacing learner n changes r_n by a and the I entries of s by vectors of total absolute
    change c, both at most I, and nothing else. The log-ratio of the Laplace densities is at most
    (a + c) epsilon / I, with equality where every noisy number lies beyond both of its values on
    the same side. A learner with everything right for one with everything wrong has a = c = I.

    This is about r and s released together (the abilities need r). The difficulties computed from
    both are post-processing, so 2 epsilon is proved for them, and epsilon is not.
    """
    right, wrong = np.ones(n_items), np.zeros(n_items)
    score_change = abs(right.sum() - wrong.sum())
    totals_change = np.abs(right - wrong).sum()
    return float((score_change + totals_change) * epsilon / n_items)


def clamped_statistics_loss(n_items: int, n_learners: int, epsilon: float = 1.0) -> float:
    """The loss of one release of r clamped to [0, I] and s clamped to [0, N], as in the authors' program; exact.

    The release in which every number is clamped at its upper end has a chance of its own, the product of Laplace
    tails. One learner has everything right before and everything wrong after the change, the others nothing. Clamping
    is post-processing, so no release loses more than `statistics_loss`; this one loses as much.
    """
    scale = n_items / epsilon

    def log_chance(score: float, total: float) -> float:
        of_score, of_total = (
            float(laplace.logsf(missing, scale=scale)) for missing in (n_items - score, n_learners - total)
        )
        return of_score + n_items * of_total

    return log_chance(n_items, 1.0) - log_chance(0.0, 0.0)


def revealed_scores(ability: npt.ArrayLike, difficulty: npt.ArrayLike, penalty: float) -> Floats:
    """Every learner's number of right answers, from abilities and difficulties released together.

    The objective is perturbed in the difficulties alone, so at its optimum the derivative by
    ability n says: right answers = sum over items of sigma(ability_n - difficulty_i) + penalty
    ability_n. No noise is in it.
    """
    abilities, difficulties = np.asarray(ability, dtype=float), np.asarray(difficulty, dtype=float)
    chance = expit(abilities[:, None] - difficulties[None, :])
    return np.asarray(chance.sum(axis=1) + penalty * abilities, dtype=np.float64)


# ---- everything


@dataclass(frozen=True)
class Finding:
    """What was found about one claim. `found` is in the claim's `measure`, epsilon or mu."""

    mechanism: str
    setting: str
    claimed: float
    found: float
    verdict: str
    story: str
    measure: str = "epsilon"

    def to_json(self) -> dict[str, Any]:
        """The finding for a machine; an infinite loss becomes null."""
        return asdict(self) | {"found": self.found if math.isfinite(self.found) else None}


def to_json(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """All findings for a machine."""
    return [finding.to_json() for finding in findings]


def run_audit(
    *,
    epsilon: float = 1.0,
    penalties: Sequence[float] = (PENALTY, PRINTED_PENALTY),
    items: Sequence[int] = (3, 6, 9),
    learners: Sequence[int] = (1, 2),
    exams: Sequence[int] = (40, 200),
    n_audited: int = 5,
    n_runs: int = 20_000,
    confidence: float = CONFIDENCE,
    noise: Noise | None = None,
    rng: np.random.Generator | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[Finding]:
    """Audit the published methods and this package's own mechanisms; `progress` hears what comes next.

    No records are needed: the worst pairs are made here. `penalties` are those of equation 6: that of the
    authors' program, and the printed one. `exams` are the sizes of classes in which
    objective perturbation is run as published, to see what usual releases lose. `rng` serves the searches and the
    simulation of the published method; the audited mechanisms draw from `noise`, by default the
    real one.
    """
    rng = rng if rng is not None else np.random.default_rng(0)
    say = progress if progress is not None else _silent
    findings = []
    for penalty in penalties:
        for n_items in items:
            for n_learners in learners:
                say(f"objective perturbation, penalty {penalty:g}, {n_items} items, {_learners(n_learners)}")
                worst = objective_loss(n_items, n_learners, epsilon, penalty, rng=rng)
                findings.append(_objective_finding(worst, epsilon, penalty, rng))
        for n_learners in exams:
            say(f"objective perturbation, penalty {penalty:g}, an exam of 20 items, {_learners(n_learners)}")
            findings.append(_exam_finding(n_learners, epsilon, penalty, rng))
    say("what can be computed exactly")
    findings += _exact_findings(epsilon)
    for mechanism, factor in (
        ("statistics", 1.0),
        ("cube", 1.0),
        ("hexagon", 1.0),
        ("gaussian", 1.0),
        ("cube", 0.5),
        ("hexagon", 0.5),
        ("gaussian", 0.5),
    ):
        say(f"{mechanism}{_planted(factor)}, {n_runs:,} runs on each of two neighbours")
        # With few items all of the noisy statistics lie beyond their values often enough to be seen.
        n_items = min(items) if mechanism == "statistics" else n_audited
        audited = empirical_audit(
            mechanism,
            n_items=n_items,
            epsilon=epsilon,
            n_runs=n_runs,
            confidence=confidence,
            noise=noise,
            noise_factor=factor,
        )
        findings.append(_empirical_finding(audited, factor))
    return findings


def _silent(_: str) -> None:
    pass


def _planted(factor: float) -> str:
    return "" if factor == 1 else f" with {factor:.0%} of its noise (planted bug)"


def _objective_finding(
    worst: ObjectiveLoss, epsilon: float, penalty: float, rng: np.random.Generator
) -> Finding:
    n_learners, n_items = worst.responses.shape
    draws = objective_draws(worst.responses, worst.neighbour, epsilon, penalty, rng=rng)
    return Finding(
        mechanism="objective perturbation (published, Algorithm 1)",
        setting=f"{n_items} items, {_learners(n_learners)}, penalty {penalty:g}",
        claimed=epsilon,
        found=worst.loss,
        verdict=_verdict(worst.loss > epsilon),
        story=(
            f"One learner's answers {_answers(worst.responses[-1])} replaced by "
            f"{_answers(worst.neighbour[-1])}{_others(worst.responses[:-1])}: difficulties near "
            f"{worst.difficulty.mean():.0f} are e^{worst.loss:.1f} times as likely before as after. "
            f"The noise behind them has norm {worst.noise_norm:.1f}, where {n_items**1.5 / epsilon:.1f} "
            f"is the mean. Of all releases before the change, {draws.share:.0%} lose more than "
            f"epsilon ({draws.n_draws:,} draws). Theorem 1 takes the replaced learner's ability as "
            "fixed; it is optimised too."
        ),
    )


def _exam_finding(n_learners: int, epsilon: float, penalty: float, rng: np.random.Generator) -> Finding:
    """Usual releases of a usual class: the seed's simulation (section 4), with one learner at the extremes."""
    n_items, n_draws = 20, 1000
    ability, difficulty = rng.normal(size=(n_learners, 1)), 2.0 * rng.normal(size=n_items)
    responses = (rng.random((n_learners, n_items)) < expit(ability - difficulty)).astype(np.float64)
    neighbour = responses.copy()
    responses[-1], neighbour[-1] = 1.0, 0.0
    draws = objective_draws(responses, neighbour, epsilon, penalty, n_draws=n_draws, rng=rng)
    return Finding(
        mechanism="objective perturbation (published, Algorithm 1), run on a simulated exam",
        setting=f"{n_items} items, {_learners(n_learners)}, penalty {penalty:g}, {n_draws:,} releases",
        claimed=epsilon,
        found=draws.largest,
        verdict=_verdict(draws.largest > epsilon),
        story=(
            "A class as in the publication's own simulation, one learner with everything right replaced by "
            f"one with everything wrong: {draws.share:.1%} of the releases lose more than epsilon, the worst "
            f"of them {draws.largest:.1f}. The worst case does not fade with the size of the class, but "
            "how often it occurs does."
        ),
    )


def _exact_findings(epsilon: float) -> list[Finding]:
    spent, clamped = statistics_loss(20, epsilon), clamped_statistics_loss(20, 40, epsilon)
    one, many = choice_loss(epsilon=epsilon), choice_loss(epsilon=epsilon, n_validation=10)
    divided = choice_loss(epsilon=epsilon, n_validation=10, divide=True)
    return [
        Finding(
            "objective perturbation with the abilities released too",
            "any class",
            epsilon,
            math.inf,
            BREAKS,
            "The proof of Theorem 1 is written for both. But every learner's number of right answers is "
            "sum sigma(ability - difficulty) + penalty * ability, exactly: no noise is on it.",
        ),
        Finding(
            "sufficient statistics (published)",
            "20 items, r and s together",
            epsilon,
            spent,
            _verdict(spent > epsilon),
            "Both vectors get noise for a change of I, and one learner changes both by I: everything "
            "right replaced by everything wrong loses twice epsilon wherever all noisy numbers are high.",
        ),
        Finding(
            "sufficient statistics (published), clamped as in the authors' program",
            "20 items, 40 learners, r and s together",
            epsilon,
            clamped,
            _verdict(clamped > epsilon),
            "Clamping r to [0, I] and s to [0, N] changes what is released, not what it loses: the release with "
            "every number at its upper end is e^(2 epsilon) times as likely before as after.",
        ),
        Finding(
            "private choice of the penalty (published, equation 7)",
            "20 items, 10 candidates, 1 learner to judge them",
            epsilon,
            one,
            _verdict(one > epsilon),
            "A learner changes up to I errors of each candidate, not one: from 0 to 20 for one candidate "
            "and from 20 to 0 for the others.",
        ),
        Finding(
            "private choice of the penalty (published, equation 7)",
            "20 items, 10 candidates, 10 learners to judge them",
            epsilon,
            many,
            _verdict(many > epsilon),
            "With more learners the candidate can start far behind the others, and the loss approaches "
            "epsilon times the number of items.",
        ),
        Finding(
            "private choice of the penalty, errors divided by the number of items",
            "20 items, 10 candidates, 10 learners to judge them",
            epsilon,
            divided,
            _verdict(divided > epsilon),
            "No score moves by more than 1, so the exponential mechanism's proof holds.",
        ),
    ]


def _empirical_finding(audited: Empirical, factor: float) -> Finding:
    pure = audited.epsilon is not None
    measure = "epsilon" if pure else "mu"
    names = {
        "cube": "K-norm over the cube",
        "hexagon": "K-norm over hexagons",
        "gaussian": "discrete Gaussian",
        "statistics": "sufficient statistics (published), run",
    }
    bound = f" (and mu at least {audited.mu.lower:.2f}, of {audited.claimed_mu:.2f})" if pure else ""
    return Finding(
        mechanism=names[audited.mechanism] + _planted(factor),
        setting=f"{audited.n_items} items, {audited.mu.n_runs:,} runs on each of two neighbours",
        claimed=audited.claimed,
        found=audited.found,
        verdict=_verdict(audited.breaks),
        story=(
            f"A learner with everything right replaced by one with nothing right: {measure} is at least "
            f"{audited.found:.2f}{bound}, with a false-alarm rate of {1 - audited.mu.confidence:.0e}."
        ),
        measure=measure,
    )


def _verdict(breaks: bool) -> str:
    return BREAKS if breaks else HOLDS


def _learners(n: int) -> str:
    return "1 learner" if n == 1 else f"{n} learners"


def _answers(row: Floats) -> str:
    return "".join("1" if answer else "0" for answer in row)


def _others(rows: Floats) -> str:
    return f" (each other learner: {_answers(rows[0])})" if len(rows) else ""
