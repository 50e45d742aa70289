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
from scipy.special import betaincinv, expit

from reproductions.dp_rasch.density import ObjectiveLoss, objective_draws, objective_loss
from understudy.core.privacy import mechanisms
from understudy.core.privacy.audit import MuEstimate, mu_lower_bound
from understudy.core.privacy.composition import mu_from_pure
from understudy.core.privacy.noise import IntArray, Noise, os_noise

MECHANISMS = ("cube", "hexagon", "gaussian", "statistics")

# A correct mechanism is called broken less than once in this many audits: its true loss is the
# claim itself, so at 95 % every twentieth audit would raise a false alarm.
CONFIDENCE = 1 - 1e-4
_N_THRESHOLDS = 200
# The threshold is chosen by stricter bounds than it is judged by, as in `privacy.audit`.
_CHOICE_ERROR = 1e-7


@dataclass(frozen=True)
class EpsilonEstimate:
    """A lower confidence bound of epsilon: an event that is `rate` / `other_rate` times as likely.

    `rate` is a lower confidence bound of the event's probability on one data set, `other_rate` an
    upper one on the other; together they hold with probability `confidence`.
    """

    lower: float
    confidence: float
    n_runs: int
    rate: float
    other_rate: float


@dataclass(frozen=True)
class Empirical:
    """One mechanism run on two worst-case neighbours; epsilon only where the claim is pure."""

    mechanism: str
    n_items: int
    claimed_epsilon: float | None
    claimed_mu: float
    epsilon: EpsilonEstimate | None
    mu: MuEstimate

    @property
    def claimed(self) -> float:
        """The claim in its own currency: epsilon, or mu of a Gaussian."""
        return self.claimed_mu if self.claimed_epsilon is None else self.claimed_epsilon

    @property
    def found(self) -> float:
        """The lower bound in the same currency."""
        return self.mu.lower if self.epsilon is None else self.epsilon.lower

    @property
    def breaks(self) -> bool:
        """Whether the bound is above the claim."""
        return self.found > self.claimed


def epsilon_lower_bound(
    unchanged: npt.ArrayLike, changed: npt.ArrayLike, confidence: float = 0.95
) -> EpsilonEstimate:
    """A lower bound of epsilon from scores of runs on two neighbours, in the order they were made.

    Pure epsilon-DP allows no event to be more than e^epsilon times as likely on one data set as
    on the other. The event is "score at least a threshold" or "at most"; half of the runs choose
    it, Clopper-Pearson bounds on the other half judge it, each at half of the allowed error.
    """
    low, high = (np.asarray(scores, dtype=np.float64) for scores in (unchanged, changed))
    if low.ndim != 1 or low.shape != high.shape or low.size < 4:
        raise ValueError(f"an audit takes two score vectors of one length, not {low.shape}, {high.shape}")
    if not 0.5 <= confidence < 1:
        raise ValueError(f"confidence has to be in [0.5, 1), not {confidence}")
    error = (1 - confidence) / 2
    half = low.size // 2
    # "At least" favours the changed data, "at most" the unchanged; a score may point either way.
    tests = [(sign * one, sign * other) for sign in (1, -1) for one, other in ((low, high), (high, low))]
    best, chosen = -math.inf, (low, high, 0.0)
    for rare, common in tests:
        pooled = np.concatenate([rare[:half], common[:half]])
        thresholds = np.unique(np.quantile(pooled, np.linspace(0, 1, _N_THRESHOLDS), method="lower"))
        rates = _rates(rare[:half], common[:half], thresholds, min(error, _CHOICE_ERROR))
        bounds = np.log(np.maximum(rates[0], 1e-300)) - np.log(rates[1])
        place = int(np.argmax(bounds))
        if bounds[place] > best:
            best, chosen = float(bounds[place]), (rare, common, float(thresholds[place]))
    rare, common, threshold = chosen
    rate, other = _rates(rare[half:], common[half:], np.array([threshold]), error)
    lower = math.log(rate[0] / other[0]) if rate[0] > 0 else 0.0
    return EpsilonEstimate(max(0.0, lower), confidence, low.size, float(rate[0]), float(other[0]))


def _rates(rare: Floats, common: Floats, thresholds: Floats, error: float) -> tuple[Floats, Floats]:
    """Of the events "score at least the threshold": lower bounds of their rates in `common`, upper in `rare`."""
    n, m = common.size, rare.size
    hits = n - np.searchsorted(np.sort(common), thresholds, side="left")
    alarms = m - np.searchsorted(np.sort(rare), thresholds, side="left")
    lower = np.where(hits > 0, betaincinv(np.maximum(hits, 1), n - hits + 1.0, error), 0.0)
    upper = np.where(alarms < m, betaincinv(alarms + 1.0, np.maximum(m - alarms, 1), 1 - error), 1.0)
    return lower, upper


def empirical_audit(
    mechanism: str,
    *,
    n_items: int = 5,
    epsilon: float = 1.0,
    rho: float = 0.5,
    n_runs: int = 20_000,
    confidence: float = CONFIDENCE,
    noise: Noise | None = None,
    noise_factor: float = 1.0,
) -> Empirical:
    """Run a mechanism on two worst-case neighbours and bound its loss from below.

    One learner has everything right, and is replaced by one with everything wrong (for the
    hexagon: by one who answered nothing): the totals move by one in every cell, as far as they
    can. The score of a run is the exact log-likelihood ratio, the best there is. "cube",
    "hexagon" and "statistics" claim `epsilon`, "gaussian" claims mu = sqrt(2 rho) (it is
    rho-zCDP, and on a lattice this fine no test can tell it from a Gaussian).

    `noise_factor` below 1 plants a bug, noise that much too small, to see that the audit catches it.
    """
    if mechanism not in MECHANISMS:
        raise ValueError(f"no mechanism is called {mechanism!r}; there are {', '.join(MECHANISMS)}")
    source = noise or os_noise()
    run = _RUNS[mechanism]
    claim = rho if mechanism == "gaussian" else epsilon
    scores = [run(n_items, claim, changed, n_runs, source, noise_factor) for changed in (False, True)]
    mu = mu_lower_bound(scores[0], scores[1], confidence)
    if mechanism == "gaussian":
        return Empirical(mechanism, n_items, None, math.sqrt(2 * rho), None, mu)
    bound = epsilon_lower_bound(scores[0], scores[1], confidence)
    return Empirical(mechanism, n_items, epsilon, mu_from_pure(epsilon), bound, mu)


def _cube_scores(
    n_items: int, epsilon: float, changed: bool, n_runs: int, noise: Noise, factor: float
) -> Floats:
    totals = np.full(n_items, int(changed), dtype=np.int64)
    drawn = [mechanisms.knorm_cube(totals, epsilon=epsilon / factor, noise=noise) for _ in range(n_runs)]
    released = np.array(drawn)
    return np.asarray(epsilon * (np.abs(released).max(axis=1) - np.abs(released - 1).max(axis=1)))


def _hexagon_scores(
    n_items: int, epsilon: float, changed: bool, n_runs: int, noise: Noise, factor: float
) -> Floats:
    totals = np.full((n_items, 2), int(changed), dtype=np.int64)
    drawn = [mechanisms.knorm_hexagon(totals, epsilon=epsilon / factor, noise=noise) for _ in range(n_runs)]
    released = np.array(drawn)
    return np.asarray(epsilon * (_hexagon_norm(released) - _hexagon_norm(released - 1)))


def _hexagon_norm(pairs: IntArray) -> IntArray:
    correct, answered = pairs[..., 0], pairs[..., 1]
    sizes = np.maximum(np.maximum(np.abs(correct), np.abs(answered)), np.abs(correct - answered))
    return np.asarray(sizes.max(axis=-1))


def _gaussian_scores(
    n_items: int, rho: float, changed: bool, n_runs: int, noise: Noise, factor: float
) -> Floats:
    totals = np.full((n_runs, n_items), int(changed), dtype=np.int64)
    sensitivity = math.sqrt(n_items)
    released = mechanisms.gaussian(totals, sensitivity=factor * sensitivity, rho=rho, noise=noise)
    # (|y|^2 - |y - 1|^2) / (2 sigma^2)
    return np.asarray((2 * released.sum(axis=1) - n_items) * rho / n_items, dtype=np.float64)


def _statistics_scores(
    n_items: int, epsilon: float, changed: bool, n_runs: int, noise: Noise, factor: float
) -> Floats:
    """The replaced learner's score and the totals, each with noise for sensitivity I, as published."""
    move = np.array([n_items] + [1] * n_items)
    values = np.broadcast_to(move * int(changed), (n_runs, n_items + 1))
    released = mechanisms.laplace(values, sensitivity=n_items, epsilon=epsilon / factor, noise=noise)
    return np.asarray((np.abs(released) - np.abs(released - move)).sum(axis=1) * epsilon / n_items)


_RUNS: dict[str, Callable[[int, float, bool, int, Noise, float], Floats]] = {
    "cube": _cube_scores,
    "hexagon": _hexagon_scores,
    "gaussian": _gaussian_scores,
    "statistics": _statistics_scores,
}


__all__ = [
    "BREAKS",
    "HOLDS",
    "MECHANISMS",
    "Empirical",
    "EpsilonEstimate",
    "Finding",
    "choice_loss",
    "empirical_audit",
    "epsilon_lower_bound",
    "objective_loss",
    "revealed_scores",
    "run_audit",
    "statistics_loss",
    "to_json",
]

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
    penalty: float = 0.01,
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

    No records are needed: the worst pairs are made here. `exams` are the sizes of classes in which
    objective perturbation is run as published, to see what usual releases lose. `rng` serves the searches and the
    simulation of the published method; the audited mechanisms draw from `noise`, by default the
    real one.
    """
    rng = rng if rng is not None else np.random.default_rng(0)
    say = progress if progress is not None else _silent
    findings = []
    for n_items in items:
        for n_learners in learners:
            say(f"objective perturbation, {n_items} items, {_learners(n_learners)}")
            worst = objective_loss(n_items, n_learners, epsilon, penalty, rng=rng)
            findings.append(_objective_finding(worst, epsilon, penalty, rng))
    for n_learners in exams:
        say(f"objective perturbation, an exam of 20 items, {_learners(n_learners)}")
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
    spent = statistics_loss(20, epsilon)
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
