"""The worst neighbours known for every mechanism, and what telling them apart costs: exactly, without chance.

Claimed and measured stand in the table of docs/explanation/audits.md; `tests/privacy/test_audits.py` compares them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
from dp_accounting import NeighboringRelation
from dp_accounting.pld import privacy_loss_distribution as PrivacyLossDistribution
from scipy.optimize import brentq
from scipy.stats import norm

from tests.desk.support.private_tables import SCHEMA
from tests.desk.support.private_tables import table as learners
from tests.privacy.support.transcripts import costs, total, transcripts
from understudy.cohorts.cohort import Cohort
from understudy.cohorts.cuts import private_cuts
from understudy.cohorts.schema import Schema
from understudy.cohorts.summary.budget import propose
from understudy.cohorts.summary.mechanism import noisy_summary
from understudy.core.privacy.composition import mu_to_delta
from understudy.core.privacy.private_training import LATTICE, calibrated, lattice_contributions
from understudy.desk import private
from understudy.desk.private.mechanism import answer_privately
from understudy.exams.compare import CompareOptions, fit_comparison
from understudy.exams.difficulties import DifficultiesOptions as Options
from understudy.exams.difficulties import fit_difficulties
from understudy.exams.plan import plan
from understudy.exams.responses import Points, Responses
from understudy.keystrokes.digraph_statistics import Declaration, Release, release_statistics
from understudy.keystrokes.keystrokes import Keystrokes
from understudy.logs.declared.columns import Column, Declared, Kind
from understudy.logs.declared.term import Term
from understudy.logs.generators.budget import budget
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.private_sums import RESOLUTION
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.interactions import POOLED, Interactions

Pair = list[Any]


@dataclass(frozen=True)
class Audited:
    """A mechanism, and what its worst neighbours show of what it claims: mu, the epsilon of a pure one, or a delta."""

    mechanism: str
    measure: str
    claimed: float
    measured: float
    """On the worst neighbours that are known."""

    @property
    def share(self) -> float:
        """How much of the claim is seen."""
        return self.measured / self.claimed

    def row(self) -> str:
        """The row of the table."""
        form = ".2e" if self.measure == "delta" else ".3f"
        figures = f"{self.claimed:{form}} | {self.measured:{form}} | {100 * self.share:.0f} %"
        return f"| {self.mechanism} | {self.measure} | {figures} |"


# ---- logs


def logs(longest: int = 1000) -> Pair:
    """Neighbouring logs on which nearly every sum moves as far as it can, at the same time.

    Four thousand learners have one row each, on one of four actions: norms are clipped at about 1. The
    last learner either fails at two of these actions in turn and succeeds at a rare one (14 rows), or
    succeeds at the two others as long as possible and fails at the rare one. So starts, lengths, norms, rows, runs
    and jumps have nothing in common; slopes are opposite, since the rare action's weight is the largest.
    """
    sequences = [[i % 4] for i in range(4000)]
    outcomes = [[i // 4 % 2] for i in range(4000)]
    short = ([0, 1] * 6 + [4] * 2, [0] * 12 + [1] * 2)
    long = ([2, 3] * 10 + [2] * (longest - 22) + [4] * 2, [1] * (longest - 2) + [0] * 2)
    actions = [f"action {i}" for i in range(100)]
    return [
        Interactions.from_sequences([*sequences, walk], [*outcomes, results], actions=actions)
        for walk, results in (short, long)
    ]


def with_columns(pair: Pair, *, found: bool = False) -> Pair:
    """The pair with two columns of rows and two of learners, in which the last learner has nothing in common either.

    Where categories are found, each of them is that of many learners.
    """
    values = ("a", "b", "c")
    device = Declared("device", Kind.category, "row", values=values, found=found)
    seconds = Declared("seconds", Kind.number, "row", low=0.0, high=1000.0)
    group = Declared("group", Kind.category, "learner", values=values, found=found)
    score = Declared("score", Kind.number, "learner", low=0.0, high=100.0, step=1.0)
    columns = []
    for log, last in zip(pair, (1, 2), strict=True):
        n = log.n_learners
        of_rows = np.where(log.learner == n - 1, last, log.learner % 3)
        of_learners = np.append(np.arange(n - 1) % 3, last)
        columns.append(
            (
                Column(device, of_rows),
                Column(seconds, 300.0 * of_rows + 1.0),
                Column(group, of_learners),
                Column(score, 40.0 * of_learners + 5.0),
            )
        )
    return [replace(log, columns=own) for log, own in zip(pair, columns, strict=True)]


def logs_with_shared_names() -> Pair:
    """Neighbouring logs like those above when names are not public: every name is used by enough learners to be told.

    The rare action is one of 70 that sixty learners have. Before the long walk comes to it, it passes 64 others,
    as many as count when names are looked for, so the two walks share no name there.
    """
    n_common, n_rare, rare, passed = 8000, 4200, 4, list(range(5, 67))
    sequences = [[i % 4] for i in range(n_common)] + [[rare + i % 70] for i in range(n_rare)]
    outcomes = [[i // 4 % 2] for i in range(n_common)] + [[i // 70 % 2] for i in range(n_rare)]
    short = ([0, 1] * 20 + [0] + [rare] * 8, [0] * 41 + [1] * 8)
    long = ([2, 3] * 10 + passed + [2] * 910 + [rare] * 8, [1] * 992 + [0] * 8)
    actions = [f"action {i}" for i in range(74)]
    return [
        Interactions.from_sequences([*sequences, walk], [*outcomes, results], actions=actions)
        for walk, results in (short, long)
    ]


def random_logs(rng: np.random.Generator) -> Pair:
    """Neighbours of any kind: the last learner has no row, a few, or more than count."""
    n_actions = int(rng.integers(1, 8))
    lengths = np.append(rng.integers(0, 12, int(rng.integers(2, 30))), rng.choice([0, 1, 5, 50, 1200], 2))
    walks = [rng.integers(0, n_actions, length) for length in lengths]
    outcomes = [(rng.random(length) < rng.random()).astype(int) for length in lengths]
    actions = [f"action {i}" for i in range(n_actions)]
    return [
        Interactions.from_sequences(
            [*walks[:-2], walks[last]], [*outcomes[:-2], outcomes[last]], actions=actions
        )
        for last in (-2, -1)
    ]


def timed_logs() -> Pair:
    """The neighbouring logs above with times, whose sums move nearly as far as they can, too.

    Learners with one row have it at ten in the morning, in one of two years, so counts are clipped at small norms. The
    short walk is seven quick sessions of two rows on one morning of the first year, the long one is sessions of four
    rows, slowly and at eight in the evening, in the second. The learner who is replaced has others on both sides.
    """
    first = np.datetime64("2024-01-01T00:00:00", "us")
    second, hour = np.timedelta64(1, "s"), np.timedelta64(3600, "s")
    term = Term(date(2024, 1, 1), date(2025, 12, 31))
    pair = []
    for log, slow in zip(logs(), (False, True), strict=True):
        others = (24 * 365 * (np.arange(4000) % 2) + 24 * 60 * (np.arange(4000) // 8 % 5) + 10) * hour
        row = np.arange(log.lengths[-1])
        own = row // 2 * (1815 * second) + row % 2 * second
        if slow:
            own = (400 + row // 4) * (24 * hour) + 20 * hour + row % 4 * (890 * second)
        timed = replace(log.declare(), time=first + np.concatenate([others, own]), term=term)
        pair.append(timed.select(np.insert(np.arange(4000), 2000, 4000)))
    return pair


def random_timed_logs(rng: np.random.Generator, term: Term) -> Pair:
    """Neighbours of any kind with times in and out of the term, equal ones and ones that run backwards among them."""
    pair = [log.declare() for log in random_logs(rng)]
    order = rng.permutation(pair[0].n_learners)
    start = np.datetime64(term.first or date(1971, 3, 4), "s").astype(np.int64)
    logs = []
    step = np.concatenate([rng.integers(0, 3, 3000), rng.integers(0, 90_000, 3000)])
    for log in pair:
        # The learners who stay have the same times in both.
        own = np.random.default_rng(5)
        parts = []
        for length in log.lengths:
            kind = own.integers(5)
            begin = start + own.integers(-(10**7), 10**7)
            parts.append(
                {
                    0: np.full(length, begin),
                    1: begin + np.cumsum(own.choice(step, length)),
                    2: start + own.integers(-(2**33), 2**33, length),
                    3: begin + np.arange(length),
                    4: begin + 90_000 * np.arange(length),
                }[int(kind)]
            )
        seconds = np.concatenate([np.empty(0, dtype=np.int64), *parts])
        logs.append(replace(log, time=seconds.astype("datetime64[s]").astype("datetime64[us]"), term=term))
    return [log.select(order) for log in logs]


class _FixedCounts:
    """Noise that puts every count of the first draw, that of names, at one value, and leaves all other sums alone."""

    secret = False

    def __init__(self, count: int) -> None:
        self._count, self.sigma = count, 0.0

    def discrete_gaussian(self, values: Any, sigma: float) -> Any:
        if self.sigma:
            return values
        self.sigma = sigma
        return np.full_like(values, self._count)


def own_name_chance(epsilon: float, delta: float) -> float:
    """The chance that a name is told which one learner has alone, at the worst number of such names.

    The threshold is found from outside, by halving. A learner with m names of their own adds 1 / sqrt(m) to each.
    """
    log = Interactions.from_sequences([[0], [0, 1]], [[1], [0, 1]])

    def told(count: int) -> tuple[bool, float]:
        noise: Any = _FixedCounts(count)
        fitted = MarkovDP(epsilon, delta=delta, longest=10).fit(log, np.random.default_rng(0), noise)
        return set(fitted.actions_) != {POOLED}, noise.sigma

    low, high = 0, 2**40
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if told(middle)[0] else (middle, high)
    own, sigma = np.arange(1, 65), told(high)[1]
    return -float(np.expm1(own * norm.logcdf((high - RESOLUTION / np.sqrt(own)) / sigma)).min())


def released_log(
    log: Interactions,
    noise: Any,
    *,
    kind: type[MarkovDP] = MarkovDP,
    epsilon: float = 8.0,
    delta: float = 1e-6,
    longest: int = 1000,
) -> Any:
    """Everything that a fit of a private generator keeps, and a sample of it."""
    rng = np.random.default_rng(0)
    fitted = kind(epsilon, delta=delta, longest=longest).fit(log, rng, noise)
    drawn = fitted.sample(20, np.random.default_rng(0))
    told = (drawn.action, drawn.outcome, drawn.offsets, drawn.actions, drawn.time, drawn.columns)
    return vars(fitted).copy(), *told


def _markov_dp(epsilon: float, declared: bool) -> Audited:
    delta = 1e-6
    pair = [log.declare() for log in logs()] if declared else logs_with_shared_names()
    found = transcripts(lambda log, noise: released_log(log, noise, epsilon=epsilon), pair)
    names = "names public" if declared else "names found"
    return Audited(
        f"`markov-dp`, epsilon {epsilon:g}, {names}",
        "mu",
        # Finding the names takes half of delta, and its share of epsilon.
        math.sqrt(
            2 * (budget(epsilon, delta) if declared else budget(epsilon + math.log1p(-delta / 2), delta / 2))
        ),
        math.sqrt(2 * total(costs(*found)).rho),
    )


def _timed(days: bool) -> Audited:
    epsilon, delta = 8.0, 1e-6
    pair = timed_logs()
    if not days:
        pair = [replace(log, term=Term()) for log in pair]
    found = transcripts(lambda log, noise: released_log(log, noise, epsilon=epsilon), pair)
    return Audited(
        f"`markov-dp` with times, days of the term {'public' if days else 'found'}",
        "mu",
        math.sqrt(2 * budget(epsilon, delta)),
        math.sqrt(2 * total(costs(*found)).rho),
    )


def _columns() -> Audited:
    epsilon, delta = 8.0, 1e-6
    pair = with_columns([log.declare() for log in logs()])
    found = transcripts(lambda log, noise: released_log(log, noise, epsilon=epsilon), pair)
    return Audited(
        f"`markov-dp`, epsilon {epsilon:g}, four columns",
        "mu",
        math.sqrt(2 * budget(epsilon, delta)),
        math.sqrt(2 * total(costs(*found)).rho),
    )


def _runs_dp() -> Audited:
    epsilon, delta = 8.0, 1e-6
    pair = [log.declare() for log in logs()]
    found = transcripts(lambda log, noise: released_log(log, noise, kind=RunsDP, epsilon=epsilon), pair)
    claimed = math.sqrt(2 * budget(epsilon, delta))
    return Audited(
        f"`runs-dp`, epsilon {epsilon:g}, names public",
        "mu",
        claimed,
        math.sqrt(2 * total(costs(*found)).rho),
    )


def _own_names() -> Audited:
    epsilon, delta = 8.0, 1e-6
    return Audited(
        "`markov-dp`, a name that one learner has alone", "delta", delta / 2, own_name_chance(epsilon, delta)
    )


# ---- exams


def _difficulties(name: str, request: Options, *rows: list[int], n_learners: int = 10) -> Audited:
    """Learners with some answers right, and one more who is replaced."""
    rest = np.arange((n_learners - 1) * len(rows[0])).reshape(n_learners - 1, -1) % 2
    settled = plan(request, len(rows[0]), n_learners)

    def release(matrix: Any, noise: Any) -> Any:
        responses = Responses(matrix, tuple(f"q{i}" for i in range(matrix.shape[1])), declared=True)
        return fit_difficulties(responses, settled, noise, np.random.default_rng(7)).content()

    pair = [np.vstack([rest, row]).astype(np.int8) for row in rows]
    cost = total(costs(*transcripts(release, pair)))
    if request.method == "gaussian":
        assert settled.measurement is not None
        rho = settled.measurement.guarantee.rho
        assert rho is not None
        return Audited(name, "mu", math.sqrt(2 * rho), math.sqrt(2 * cost.rho))
    return Audited(name, "epsilon", settled.guarantee.epsilon, cost.epsilon)


def _points(name: str, request: Options, *rows: list[int]) -> Audited:
    """Nine learners with parts of the points of three items, and one more who has all and then none of them."""
    points = (Points(1), Points(2), Points(4))
    rest = np.arange(27).reshape(9, 3) % [2, 3, 5]
    settled = plan(request, 3, 10, "wide", points)

    def release(matrix: Any, noise: Any) -> Any:
        responses = Responses(matrix, ("q1", "q2", "q3"), declared=True, points=points)
        return fit_difficulties(responses, settled, noise, np.random.default_rng(7)).content()

    cost = total(costs(*transcripts(release, [np.vstack([rest, row]).astype(np.int8) for row in rows])))
    return Audited(name, "epsilon", settled.guarantee.epsilon, cost.epsilon)


def _groups(name: str, method: str) -> Audited:
    """Nine learners of two groups, and one more who has everything right, in one group and then in the other."""
    request = CompareOptions(epsilon=1.0, method=method, delta=1e-6, ability_sd=1.0)
    measurement = request.measurement(2, 4, 10, 1.0)
    rest = np.arange(36).reshape(9, 4) % 2

    def release(group: int, noise: Any) -> Any:
        responses = Responses(
            np.vstack([rest, [1] * 4]).astype(np.int8),
            ("q1", "q2", "q3", "q4"),
            declared=True,
            groups=("A", "B"),
            group_of=np.array([1, 2, 0] * 3 + [group], dtype=np.int8),
        )
        return fit_comparison(responses, measurement, request, noise).content()

    cost = total(costs(*transcripts(release, [1, 2])))
    if method == "gaussian":
        assert measurement.guarantee.rho is not None
        return Audited(name, "mu", math.sqrt(2 * measurement.guarantee.rho), math.sqrt(2 * cost.rho))
    return Audited(name, "epsilon", measurement.guarantee.epsilon, cost.epsilon)


# ---- cohorts

# Shares of the bound on the scale of the logarithm, a row per window of the day and a column per week: found by
# search, so that labels, levels, sketch, rhythm, persistence, spread and habits are all far apart.
ONE_LEARNER = np.array(
    [
        [0, 0, 0, 0, 0, 0, 0, 0],
        [0, 0.21, 0, 0.26, 0, 0.25, 0, 0.23],
        [1, 1, 0, 1, 1, 1, 1, 1],
        [0, 0, 0, 0.1, 0.75, 0.37, 0.05, 0.03],
    ]
)
OTHER_LEARNER = np.array(
    [
        [0.44, 1, 1, 1, 1, 1, 1, 1],
        [0.03, 0.05, 0.01, 0, 0, 0, 0, 0],
        [0, 0, 0.13, 0, 0, 0, 0, 0],
        [0.21, 0, 0.21, 0, 0.21, 0, 0.21, 0],
    ]
)


def cohorts() -> Pair:
    """Three hundred learners who are active every other week, and the two learners above with different labels."""
    schema = Schema(n_weeks=ONE_LEARNER.shape[1])
    usual = np.where(np.arange(schema.n_weeks) % 2, 0.6, 0.0) * np.ones((schema.n_features, 1))
    label = np.append(np.arange(299) % schema.n_labels, 0)
    found = []
    for last, code in ((ONE_LEARNER, 0), (OTHER_LEARNER, schema.n_labels - 1)):
        share = np.stack([*([usual] * 299), last])
        values = np.expm1(share * np.log1p(schema.highs)[None, :, None])
        label[-1] = code
        found.append(Cohort(values, label.astype(np.int8), schema))
    return found


def _summary() -> Audited:
    pair = cohorts()
    settled = propose(pair[0].schema, pair[0].n_learners, 3.0, 1e-3)
    found = transcripts(lambda cohort, noise: noisy_summary(cohort, settled, noise).statistics, pair)
    return Audited(
        "summary of a cohort, all default statistics",
        "mu",
        math.sqrt(2 * settled.rho),
        math.sqrt(2 * total(costs(*found)).rho),
    )


def _cuts() -> Audited:
    """Two learners just below the last cut; the third moves from below all cuts to above."""
    pair = [np.array([99.2, 99.2, score]) for score in (0.0, 100.0)]
    release = lambda scores, noise: private_cuts(scores, (0.0, 100.0), 3, epsilon=1.0, noise=noise)  # noqa: E731
    return Audited(
        "cuts between labels (exponential mechanism)",
        "epsilon",
        1.0,
        total(costs(*transcripts(release, pair))).epsilon,
    )


# ---- the deep baseline


def _private_steps(rate: float) -> Audited:
    """Two learners with opposite gradients beyond the clipping norm, in every step that they take part in."""
    epsilon, delta, n_steps = 3.0, 1e-3, 20
    steps = calibrated(epsilon, delta, rate, n_steps, 1.0, n_parameters=300)
    cells = lattice_contributions(np.array([[5.0] * 300, [-5.0] * 300]), steps.clip).astype(np.float64)
    half = float(np.linalg.norm(cells[0] - cells[1])) / LATTICE / 2
    if rate >= 1:
        claimed = brentq(lambda mu: mu_to_delta(mu, epsilon) - delta, 1e-3, 10.0)
        measured = 2 * half * math.sqrt(n_steps) / steps.noise_multiplier
        return Audited("deep baseline, all learners in every step", "mu", claimed, measured)
    losses = PrivacyLossDistribution.from_gaussian_mechanism(
        steps.noise_multiplier,
        sensitivity=half,
        pessimistic_estimate=False,
        value_discretization_interval=1e-3,
        sampling_prob=rate,
        use_connect_dots=False,
        neighboring_relation=NeighboringRelation.REPLACE_ONE,
    ).self_compose(n_steps)
    found = float(losses.get_epsilon_for_delta(delta))
    return Audited("deep baseline, learners sampled", "epsilon", epsilon, found)


# ---- the private network


def _gru_dp() -> Audited:
    """Two learners with opposite gradients, every part of them beyond its norm, in every step of a fit."""
    import torch

    from understudy.logs.generators.gru_dp import GruDP
    from understudy.logs.models.private_recurrent import Shape, contributions

    epsilon, delta, n_steps = 8.0, 1e-6, 3
    generator = GruDP(epsilon, delta, longest=10, units=3, embedding=2, steps=n_steps)
    log = Interactions.from_sequences([[0, 1], [1]], [[0, 1], [1]]).declare()
    (draws,) = transcripts(lambda log, noise: generator.fit(log, np.random.default_rng(0), noise), [log])
    shape = Shape(log.n_actions, 3, 2, 10)
    gradient = torch.full((1, shape.n_weights), 100.0, dtype=torch.float64)
    one, other = contributions(shape, torch.cat([gradient, -gradient])).astype(np.float64)
    measured = math.sqrt(sum(float(((one - other) ** 2).sum()) / draw.scale**2 for draw in draws))
    claimed = brentq(lambda mu: mu_to_delta(mu, epsilon) - delta, 1e-3, 10.0)
    return Audited("`gru-dp`, all learners in every step", "mu", claimed, measured)


# ---- keystrokes

LOW, HIGH = 100.0, 300.0
FAST = [("a", "a", LOW)] * 2 + [("a", "b", LOW)] * 2
SLOW = [("a", "a", HIGH)] * 2 + [("a", "b", HIGH)] * 2


def keystrokes_of(*learners: list[tuple[str, str, float]]) -> Keystrokes:
    """Each learner is a list of (pair of keys, latency in ms), each pair typed on its own."""
    pairs = [pair for learner in learners for pair in learner]
    key = ["abc".index(sign) for first, second, _ in pairs for sign in (first, second)]
    time = [moment for *_, latency in pairs for moment in (0.0, latency)]
    zero = np.zeros(len(key), dtype=np.int32)
    return Keystrokes(
        np.array(key, dtype=np.int32),
        (np.array(time, dtype=np.float64) * 1_000_000).astype(np.int64),
        np.array([False, True] * len(pairs), dtype=bool),
        np.concatenate([[0], np.cumsum([2 * len(learner) for learner in learners])]),
        ("a", "b", "c"),
        zero,
        zero,
    )


def typing() -> Pair:
    """A fast learner of one group, or a slow one of another, beside one who stays."""
    other = [("a", "b", 150.0)] * 3
    return [(keystrokes_of(other, FAST), np.array([0, 0])), (keystrokes_of(other, SLOW), np.array([0, 1]))]


def _digraphs() -> Audited:
    declared = Declaration(("a → a", "a → b"), ("A", "B"), LOW, HIGH, 2)
    release = Release(declared, 2, 8.0, 1e-6)
    found = transcripts(lambda data, noise: release_statistics(*data, release, noise).to_json(), typing())
    return Audited(
        "digraph statistics", "mu", math.sqrt(2 * release.rho), math.sqrt(2 * total(costs(*found)).rho)
    )


# ---- private answers of the desk


def _private_answers(name: str, analyze: Callable[[Any], Any]) -> Audited:
    """Forty learners and one more: all numbers at upper bounds in one school, or at lower ones in another."""
    ends = (("south", 600.0, 100.0, True), ("west", 0.0, 0.0, False))
    rest = learners(40).drop("hours")
    schema = private.Schema(tuple(one for one in SCHEMA.columns if one.name != "hours"), SCHEMA.complete)
    plan = private.propose(private.questions_of(analyze), schema, 41, 1.0, 1e-6)
    pair = []
    for school, minutes, grade, passed in ends:
        row = {"learner": "the last", "minutes": minutes, "grade": grade, "school": school, "passed": passed}
        pair.append(rest.vstack(type(rest)([row], schema=rest.schema)))
    release = lambda rows, noise: answer_privately(plan, private.read_records(rows, schema), noise)  # noqa: E731
    cost = total(costs(*transcripts(release, pair)))
    return Audited(f"private answers: {name}", "mu", math.sqrt(2 * plan.rho), math.sqrt(2 * cost.rho))


def _tables_and_means(ask: Any) -> None:
    ask.count("school", "passed")
    ask.quantiles("minutes")
    ask.mean("grade", by="school")


def _models(ask: Any) -> None:
    ask.correlations("minutes", "grade")
    ask.linear("grade", on=["minutes", "school"])


# ---- all of them

AUDITS: dict[str, Callable[[], Audited]] = {
    "markov-dp, 1": lambda: _markov_dp(1.0, declared=True),
    "markov-dp, 8": lambda: _markov_dp(8.0, declared=True),
    "markov-dp, names found": lambda: _markov_dp(8.0, declared=False),
    "markov-dp, columns": _columns,
    "runs-dp": _runs_dp,
    "times": lambda: _timed(days=True),
    "times, term found": lambda: _timed(days=False),
    "names of one learner": _own_names,
    "gru-dp": _gru_dp,
    "cube": lambda: _difficulties("difficulties: cube", Options(epsilon=1.0), [0, 0, 0], [1, 1, 1]),
    "hexagon": lambda: _difficulties(
        "difficulties: hexagon", Options(epsilon=1.0, missing="skipped"), [-1, -1, -1], [1, 1, 1]
    ),
    "laplace": lambda: _difficulties(
        "difficulties: Laplace, one answer of many items",
        Options(epsilon=1.0, missing="skipped", at_most=1),
        [1, *([-1] * 19)],
        [-1, 0, *([-1] * 18)],
    ),
    "gaussian": lambda: _difficulties(
        "difficulties: Gaussian, 20 items", Options("gaussian", 1.0, 1e-6), [0] * 20, [1] * 20
    ),
    "gaussian, skipped": lambda: _difficulties(
        "difficulties: Gaussian, two answers",
        Options("gaussian", 1.0, 1e-6, missing="skipped", at_most=2),
        [0, 0, -1],
        [1, 1, -1],
    ),
    "agreement": lambda: _difficulties(
        "difficulties: Laplace, four answers and their agreement",
        Options(epsilon=1.0, missing="skipped", at_most=4),
        [1, 1, 1, 1, *([-1] * 36)],
        [-1, -1, -1, -1, 1, 1, 0, 0, *([-1] * 32)],
    ),
    "discriminations": lambda: _difficulties(
        "difficulties: cube, discriminations too",
        Options(epsilon=1.0, discriminations=True),
        [0, 0, 0],
        [1, 1, 1],
        n_learners=300,
    ),
    "points": lambda: _points(
        "difficulties: cube, shares of points", Options(epsilon=1.0), [0, 0, 0], [1, 2, 4]
    ),
    "choice": lambda: _difficulties(
        "difficulties: cube, spread of abilities chosen (exponential mechanism)",
        Options(epsilon=1.0, ability_sd="choose"),
        [0, 0, 0],
        [1, 1, 1],
        n_learners=60,
    ),
    "groups": lambda: _groups("groups compared: cube, a learner of another group", "knorm"),
    "groups, gaussian": lambda: _groups("groups compared: Gaussian, a learner of another group", "gaussian"),
    "summary": _summary,
    "cuts": _cuts,
    "deep": lambda: _private_steps(1.0),
    "deep, sampled": lambda: _private_steps(0.5),
    "digraphs": _digraphs,
    "private answers": lambda: _private_answers("counts, quantiles, means by group", _tables_and_means),
    "private models": lambda: _private_answers("correlations and linear regression", _models),
}


def audits() -> Iterator[Audited]:
    """What is claimed and measured, mechanism by mechanism."""
    for audited in AUDITS.values():
        yield audited()
