"""From a request to its price: the analysis on every shadow, then the game alone and beside all that was released."""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from understudy.core.files.source import keeping_values_inside
from understudy.core.files.storage.arrays import read_arrays
from understudy.desk.disclosure.rounding import round_vector
from understudy.desk.domain.analysis import Analysis, RunsJobs
from understudy.desk.domain.learners import LearnerTable
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Check, Results
from understudy.desk.risk.game import N_STEPS, IntervalEstimate, Price, farthest, judged_mu, most_mu, price
from understudy.desk.risk.released_summary import StageOne
from understudy.desk.risk.shadows import N_BLURRED, N_SHADOWS, ShadowBank, columns_to_blur, draw_shadows
from understudy.errors import UsageError

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]

# Shadows that are in memory at once: so many, or so many bytes of tables, but enough for every worker.
CHUNK = 200
CHUNK_BYTES = 64 * 1024 * 1024
LEAST_CHUNK = 8
BESIDE = "entries beside these"
# Before the name of an entry of the form: a column that says on which shadows it is that of the answer.
SAME = "as in the answer: "
_RUN_AGAIN = "run the request again."
NOT_A_BOUND = "published, not a bound"


@dataclass(frozen=True, eq=False)
class ShadowAnswers:
    """What a request answers on every shadow (row) for every name (column), rounded like the answer that is released.

    Numbers come first, then what says whether a text or another entry of the form is that of the answer.
    NaN where a shadow does not give a number. `bank` distinguishes banks, so that answers on the shadows of other
    learners are not priced together. About single learners as much as the data is: it never leaves.
    """

    names: tuple[str, ...]
    values: Floats
    bank: str = ""

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != len(self.names):
            raise UsageError(
                f"{len(self.names)} names were given for answers of the shape {self.values.shape}.",
                hint="give a row for each shadow and a column for each name.",
            )

    def to_bytes(self) -> bytes:
        """For the store."""
        words = json.dumps([self.bank, *self.names]).encode()
        sink = io.BytesIO()
        np.savez_compressed(sink, words=np.frombuffer(words, dtype=np.uint8), values=self.values)
        return sink.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> ShadowAnswers:
        """As `to_bytes` wrote it."""
        damaged = "stored answers on shadows cannot be read: they are damaged."
        stored = read_arrays(content, damaged, hint=_RUN_AGAIN)
        with keeping_values_inside(damaged, hint=_RUN_AGAIN):
            bank, *names = json.loads(stored["words"].tobytes())
            return cls(tuple(names), np.asarray(stored["values"], dtype=np.float64), bank)


@dataclass(frozen=True)
class Published:
    """The figures that section IV-E of Ito et al. (2026) reports, shown next to the price under `label`.

    `requests_mu` takes all numbers of all requests as independent (equation 16). `product_mu` multiplies that
    with stage one's trade-off function (Proposition 9), `corollary_mu` is the square root of the squares of stage one
    and of every request (Corollary 10). Both stages look at the same learners, so neither holds (findings, section 5).
    """

    stage_one_mu: float | None
    requests_mu: float
    product_mu: float
    corollary_mu: float
    label: str = NOT_A_BOUND
    private_mu: float = 0.0
    """Not of that paper: what private answers released so far guarantee together. The price of everything has it."""


@dataclass(frozen=True)
class Prices:
    """What a request costs: alone, and with stage one and everything that was released before; lower bounds both."""

    own: Price
    together: Price
    published: Published

    def to_json(self) -> dict[str, Any]:
        """For the store and pages. Prices depend on the data: for reviewers only."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Prices:
        """As `to_json` wrote it."""
        return cls(
            Price.from_json(content["own"]),
            Price.from_json(content["together"]),
            Published(**content["published"]),
        )


def bank_for(table: LearnerTable, seed: int, n_shadows: int = N_SHADOWS) -> ShadowBank:
    """The shadows of a table. The same seed and learners give the same ones; other learners or values, others."""
    content = hashlib.sha256(table.rows.write_csv().encode())
    content.update(np.ascontiguousarray(table.starts, dtype="<i8").tobytes())
    entropy = [seed, int.from_bytes(content.digest(), "little")]
    return draw_shadows(table.n_learners, np.random.default_rng(entropy), n_shadows)


def shadow_answers(
    analysis: Analysis,
    table: LearnerTable,
    bank: ShadowBank,
    answer: Results,
    units: Mapping[str, float],
    sandbox: RunsJobs,
    progress: Progress | None = None,
) -> ShadowAnswers:
    """The analysis on every shadow: the numbers of the answer's names, rounded to its units, and what else it says.

    First come the numbers in the answer's order. Then, for every text, row and other entry of its form that is not
    the same on all shadows, a column says on which it is that of the answer. Entries that only shadows give are
    counted in one more column, if there are any: that the answer has none reveals something too. A run that fails is a
    row of NaN: an attacker who was given an answer knows that it did not fail. `progress` hears how many of
    how many runs are done; what it raises ends the runs.
    """
    if table.n_learners != bank.n_learners:
        raise UsageError(
            f"the table is about {table.n_learners} learners, the shadows about {bank.n_learners}.",
            hint="draw the shadows of this table.",
        )
    names = tuple(answer.numbers)
    # Whether a number is there has its own column.
    said = {name: what for name, what in answer.form.items() if name not in answer.numbers}
    values = np.full((bank.n_shadows, len(names)), np.nan)
    same = np.full((bank.n_shadows, len(said)), np.nan)
    beside = np.zeros(bank.n_shadows)
    size = max(1, len(table.whole()))
    chunk = max(LEAST_CHUNK, min(CHUNK, CHUNK_BYTES // size))
    for start in range(0, bank.n_shadows, chunk):
        shadows = range(start, min(start + chunk, bank.n_shadows))
        counted = None if progress is None else _counted_from(progress, start, bank.n_shadows)
        answers = analysis.answers(sandbox, [table.of(bank.learners(shadow)) for shadow in shadows], counted)
        for shadow, found in zip(shadows, answers, strict=True):
            if isinstance(found, Results):
                values[shadow] = found.vector(names)
                same[shadow] = [found.form.get(name) == what for name, what in said.items()]
                beside[shadow] = len(_entries(found) - _entries(answer))
    values = round_vector(values, np.array([units.get(name, 0.0) for name in names]))
    for name, column in zip(said, same.T, strict=True):
        if len(np.unique(column[~np.isnan(column)])) > 1:
            names, values = (*names, SAME + name), np.column_stack([values, column])
    if beside.any():
        names, values = (*names, BESIDE), np.column_stack([values, beside])
    return ShadowAnswers(names, values, bank_name(bank))


def answers_on_blurred(
    analysis: Analysis,
    table: LearnerTable,
    bank: ShadowBank,
    answer: Results,
    units: Mapping[str, float],
    sandbox: RunsJobs,
    rng: np.random.Generator,
) -> Floats:
    """The numbers on the first few shadows with copies of learners blurred, rounded as on the shadows themselves.

    None at all where there is nothing to blur: shadows that are the same speak for no code.
    """
    names = tuple(answer.numbers)
    if not columns_to_blur(table):
        return np.empty((0, len(names)))
    tables = [bank.blurred_copies(shadow, table, rng) for shadow in range(min(N_BLURRED, bank.n_shadows))]
    found = [
        given.vector(names) if isinstance(given, Results) else np.full(len(names), np.nan)
        for given in analysis.answers(sandbox, tables)
    ]
    return round_vector(np.array(found), np.array([units.get(name, 0.0) for name in names]))


def _entries(answer: Results) -> set[str]:
    return answer.form.keys() | answer.numbers.keys()


def _counted_from(progress: Progress, start: int, total: int) -> Progress:
    return lambda done, _: progress(start + done, total)


def bank_name(bank: ShadowBank) -> str:
    """What distinguishes a bank from others."""
    return hashlib.sha256(np.ascontiguousarray(bank.counts, dtype="<i2").tobytes()).hexdigest()[:32]


def price_of(
    new: ShadowAnswers,
    released: Sequence[ShadowAnswers],
    bank: ShadowBank,
    rng: np.random.Generator,
    stage_one: StageOne | None = None,
    progress: Progress | None = None,
    before: Price | None = None,
    private_mu: float = 0.0,
) -> Prices:
    """The price of a new answer, alone and in one game with stage one and all that was released.

    An attacker may leave some of it aside, so the price of all together is never said to be less than the new
    answer's own, nor than what all was worth `before` it, if that is given. Private answers are mu-Gaussian DP with
    `private_mu` together; what is measured is composed with them. The same `rng` gives the same prices.
    """
    _refuse_other_banks([new, *released], bank)
    total = 2 * N_STEPS

    def counted_from(start: int) -> Progress | None:
        return None if progress is None else _counted_from(progress, start, total)

    own = price(new.values, bank, rng, progress=counted_from(0))
    everything = np.hstack([new.values, *(one.values for one in released)])
    together = own
    if released or stage_one is not None:
        sums = None if stage_one is None else stage_one.on(bank, rng)
        joint = price(everything, bank, rng, sums, counted_from(N_STEPS))
        together = _strongest([joint, own])
    together = _beside_private(together, private_mu)
    if before is not None:
        together = _strongest([together, before])
    published = replace(_published(own, released, everything, bank, stage_one), private_mu=private_mu)
    if progress is not None:
        progress(total, total)
    return Prices(own, together, published)


def with_private(prices: Prices, private_mu: float) -> Prices:
    """Prices beside private answers with this mu together, of which the first may be counted in them already."""
    counted = prices.published.private_mu
    since = math.sqrt(max(0.0, private_mu**2 - counted**2))
    return replace(
        prices,
        together=_beside_private(prices.together, since),
        published=replace(prices.published, private_mu=max(counted, private_mu)),
    )


def _beside_private(price: Price, mu: float) -> Price:
    """A price together with a mechanism that is mu-Gaussian DP and draws its noise for itself.

    Mus compose as a root of squares. Of advantages, what is left to one is multiplied: whatever the measured curve is,
    1 - TV of both is at least the product of each one's.
    """
    left = 2.0 * float(ndtr(-mu / 2.0))

    def each(figure: IntervalEstimate, change: Callable[[float], float]) -> IntervalEstimate:
        return IntervalEstimate(change(figure.value), change(figure.low), change(figure.high))

    return replace(
        price,
        mu=each(price.mu, lambda value: math.hypot(value, mu)),
        advantage=each(price.advantage, lambda value: 1.0 - (1.0 - value) * left),
    )


def reach(policy: Policy) -> tuple[Check, ...]:
    """Whether the limit of mu can be reached with so many shadows; nothing to say if it can."""
    most = most_mu(policy.n_shadows)
    if policy.mu_limit <= most:
        return ()
    return (
        Check.about("price").asks(
            f"The policy's limit of mu is {policy.mu_limit:g}, and {policy.n_shadows:,} shadows show at most about "
            f"{most:.1f}, however much an answer reveals: the limit holds nothing back. Look at the advantage instead, "
            "and ask the custodian for a lower limit or more shadows.",
        ),
    )


def _strongest(prices: Sequence[Price]) -> Price:
    """The best of several lower bounds, as a bound on what the first is about, with the farthest upper end."""
    best = max(prices, key=lambda one: one.mu.value)
    return replace(
        best,
        mu=farthest([one.mu for one in prices]),
        advantage=farthest([one.advantage for one in prices]),
        largest_mu=max(one.largest_mu for one in prices),
        largest_mu_by_chance=prices[0].largest_mu_by_chance,
        largest_advantage=max(one.largest_advantage for one in prices),
        n_outputs=prices[0].n_outputs,
        n_learners=prices[0].n_learners,
        attacks=prices[0].attacks,
    )


def _published(
    own: Price,
    released: Sequence[ShadowAnswers],
    everything: Floats,
    bank: ShadowBank,
    stage_one: StageOne | None,
) -> Published:
    first = 0.0 if stage_one is None else stage_one.mu
    alone = own.attacks["independent"].mu.value
    others = [judged_mu(one.values, bank) for one in released]
    requests = judged_mu(everything, bank) if released else alone
    return Published(
        None if stage_one is None else stage_one.mu,
        requests,
        math.hypot(first, requests),
        math.hypot(first, alone, *others),
    )


def _refuse_other_banks(answers: Sequence[ShadowAnswers], bank: ShadowBank) -> None:
    name = bank_name(bank)
    for one in answers:
        if len(one.values) != bank.n_shadows or (one.bank and one.bank != name):
            raise UsageError(
                "some answers are on the shadows of other learners, and cannot be priced together with these.",
                hint="run the released requests again on the shadows of the learners who are in now.",
            )
