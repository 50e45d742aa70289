"""statistics(): how fast groups of learners type digraphs, charged to the learners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.files.documents import read_text
from understudy.core.files.words import counted
from understudy.core.files.writing import check_new_json, write_json
from understudy.core.options import settled
from understudy.core.pages.charts import Look, Point, dots
from understudy.core.pages.figures import ACCENT, MUTED, WARNING
from understudy.core.pages.notebook import notebook_table
from understudy.core.privacy.composition import default_delta
from understudy.core.privacy.confirmation import Doubt
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.core.privacy.risk import ByRisk, StatedRisk, explained_epsilons
from understudy.core.privacy.spending import Account, Charge, Spending
from understudy.errors import RefusedError, UsageError
from understudy.keystrokes.digraph_statistics import (
    MIN_SIGNAL,
    Declaration,
    DigraphStatistics,
    Release,
    release_statistics,
)
from understudy.keystrokes.formats.reading import KeystrokeSource
from understudy.keystrokes.latencies import ARROW, LONGEST, SHORTEST, shown
from understudy.keystrokes.profiles import MIN_OCCURRENCES
from understudy.keystrokes.statistics_risk import StatisticsRisk, statistics_risk

# What an explanation shows besides what was asked.
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
COLOURS = (ACCENT, WARNING, MUTED)


@dataclass(frozen=True)
class StatisticsOptions(ByRisk, Spending):
    """What is declared about digraph statistics, and how they are charged."""

    groups: Annotated[
        str | None,
        "The groups, declared: values of the label with commas. Other learners count in none. "
        "Without labels: one group of all.",
    ] = None
    usual_epsilon: ClassVar[float | None] = 2.0
    epsilon: Annotated[float | None, "The privacy loss allowed (default: 2, or what a risk allows)."] = None
    delta: Annotated[
        float | None,
        "The small chance beyond it (default: 1e-6, or one over the squared number of learners).",
    ] = None
    shortest: Annotated[float, "Latencies below so many milliseconds are left out."] = SHORTEST
    longest: Annotated[
        float, "Latencies above so many milliseconds are left out; closer bounds mean less noise."
    ] = LONGEST
    least: Annotated[int, "A learner counts for a digraph from so many occurrences on."] = MIN_OCCURRENCES
    anyway: Annotated[bool, "Go on although little would be learned from the result."] = False


@dataclass(frozen=True)
class StatisticsPlan:
    """What statistics would cost, and how exact they would be; nothing is spent."""

    release: Release
    account: Account
    risk: StatisticsRisk | None = None
    """What was measured inside; None for too few learners."""

    @property
    def typical_group(self) -> float:
        """The learners of a group, if all groups are of one size."""
        return self.release.n_learners / len(self.release.declaration.groups)

    @property
    def mostly_noise(self) -> bool:
        """Whether no mean would stand out from the noise even if every learner typed every digraph."""
        return self.typical_group < MIN_SIGNAL * self.release.noise_sd

    def check_worth(self, *, anyway: bool) -> tuple[Doubt, ...]:
        """Refuse to pay for noise, unless `anyway`; it follows from public numbers alone."""
        if not self.mostly_noise or self.account.simulated:
            return ()
        release = self.release
        sentence = (
            f"At epsilon {release.epsilon:g} little but noise is to be expected: a mean is given where about "
            f"{MIN_SIGNAL * release.noise_sd:.0f} learners of a group typed the digraph, and a group has about "
            f"{self.typical_group:.0f}."
        )
        if anyway:
            return (Doubt(sentence),)
        raise RefusedError(
            f"{sentence} Nothing was spent.",
            hint="declare fewer digraphs or groups, wait for more learners, or ask for a larger epsilon. Or go on all "
            "the same.",
            code="mostly-noise",
            settings=("groups", "epsilon", "anyway"),
            epsilon=release.epsilon,
            needed=MIN_SIGNAL * release.noise_sd,
            learners=self.typical_group,
        )

    def others(self) -> list[Release]:
        """The same release at other epsilons, and at those of usual risks."""
        epsilons = explained_epsilons(
            lambda epsilon: replace(self.release, epsilon=epsilon).guarantee,
            {*EPSILONS, self.release.epsilon},
        )
        return [replace(self.release, epsilon=epsilon) for epsilon in epsilons]

    def to_json(self) -> dict[str, Any]:
        """The plan for machines."""
        return {
            "spent": 0,
            "internal": self.risk is not None,
            "others": [
                {
                    **vars(StatedRisk.of(other.guarantee)),
                    "count_noise_sd": other.noise_sd,
                    "mean_noise_sd_ms": other.expected_error(self.typical_group),
                }
                for other in self.others()
            ],
            "epsilon": self.release.epsilon,
            "delta": self.release.delta,
            "n_learners": self.release.n_learners,
            "count_noise_sd": self.release.noise_sd,
            "mean_noise_sd_ms": self.release.expected_error(self.typical_group),
            "mostly_noise": self.mostly_noise,
            "guarantee": self.release.guarantee.to_json(),
            "risk": None if self.risk is None else self.risk.to_json(),
        }

    def lines(self) -> list[str]:
        """The plan for people."""
        release, declared = self.release, self.release.declaration
        return [
            f"{counted(len(declared.digraphs), 'digraph')} in {counted(len(declared.groups), 'group')} at epsilon "
            f"{release.epsilon:g}, delta {release.delta:.1e}: every count +- {release.noise_sd:.1f} learners; a mean "
            f"+- {release.expected_error(self.typical_group):.0f} ms where {self.typical_group:.0f} learners of a "
            f"group typed the digraph, and none is given below {MIN_SIGNAL * release.noise_sd:.0f}.",
            *(
                ["So no mean is to be expected: little but noise would be paid for."]
                if self.mostly_noise
                else []
            ),
            *([] if self.risk is None else self.risk.lines()),
            "Fewer digraphs and closer bounds mean less noise. Nothing was spent.",
        ]


@dataclass(frozen=True, eq=False, repr=False)
class Statistics:
    """Digraph statistics that were charged; they may be given away as far as their guarantee says."""

    found: DigraphStatistics
    charge: Charge
    out: Path | None = None

    @property
    def guarantee(self) -> Guarantee:
        """What is proved about them."""
        return self.found.guarantee

    @property
    def lost(self) -> list[tuple[str, str]]:
        """Digraphs and groups whose count does not stand out from its noise, so that no mean is given."""
        frame = self.to_frame().filter(pl.col("mean_ms").is_null())
        return list(zip(frame["digraph"], frame["group"], strict=True))

    def to_json(self) -> dict[str, Any]:
        """The charge for machines; the file has the figures."""
        return {
            "out": None if self.out is None else str(self.out),
            **self.charge.to_json(),
            "noise_sd": self.found.release.noise_sd,
            "lost_in_noise": [{"digraph": digraph, "group": group} for digraph, group in self.lost],
            "guarantee": self.guarantee.to_json(),
        }

    def lines(self) -> list[str]:
        """The charge for people."""
        lines = [
            "+- is one standard deviation of the noise; the variation between learners is added to it.",
            f"Guarantee: {self.guarantee}.",
            self.charge.sentence(),
        ]
        return lines if self.out is None else [*lines, f"Written: {self.out}."]

    def to_frame(self) -> pl.DataFrame:
        """A row per digraph and group: the noisy count, and the mean where it stands out from the noise."""
        declared = self.found.release.declaration
        mean, error = self.found.means
        return pl.DataFrame(
            [
                {
                    "digraph": digraph,
                    "group": group,
                    "count": float(self.found.count[g, j]),
                    "mean_ms": float(mean[g, j]),
                    "mean_noise_sd": float(error[g, j]),
                }
                for j, digraph in enumerate(declared.digraphs)
                for g, group in enumerate(declared.groups)
            ]
        ).with_columns(pl.col("mean_ms", "mean_noise_sd").fill_nan(None))

    def plot(self) -> Any:
        """The means by group with 95 % intervals of their noise, as an altair chart."""
        points = [
            Point(digraph, mean, mean - 1.96 * noise, mean + 1.96 * noise, group)
            for digraph, group, _, mean, noise in self.to_frame().drop_nulls().iter_rows()
        ]
        groups = self.found.release.declaration.groups
        looks = {group: Look(colour) for group, colour in zip(groups, cycle(COLOURS), strict=False)}
        return (
            dots(points, "mean latency (ms)", looks=looks).figure("Mean latencies by digraph and group").chart
        )

    def _repr_html_(self) -> str:
        return notebook_table(" ".join(self.lines()), self.to_frame())


def statistics(
    source: KeystrokeSource,
    digraphs: Sequence[str] | Path | str | None,
    options: StatisticsOptions = StatisticsOptions(),  # noqa: B008 (frozen)
    *,
    out: Path | str | None = None,
    noise: Noise | None = None,
    **settings: Any,
) -> Statistics:
    """Charge the ledger, add up, draw the noise, and write a file if `out` is given.

    `digraphs` are declared, as a list (`["i n", "Space a"]`) or as a file with one per line. The settings of
    `StatisticsOptions` may be given as keywords.
    """
    out = None if out is None else Path(out)
    if out is not None:
        check_new_json(out)
    options = settled(options, settings)
    plan = _planned(source, digraphs, options)
    release = plan.release
    plan.account.check(release.guarantee)
    doubts = plan.check_worth(anyway=options.anyway)
    with plan.account.charge(
        "keystrokes statistics",
        "discrete Gaussian",
        release.guarantee,
        out=out,
        noise=noise,
        doubts=doubts,
    ) as charge:
        found = release_statistics(source.keystrokes, _group_of(source, release), release, charge.noise)
        if out is not None:
            write_json(
                out, {**found.to_json(), "card": charge.card, "simulated": bool(plan.account.simulated)}
            )
    return Statistics(found, charge, out)


def plan_statistics(
    source: KeystrokeSource,
    digraphs: Sequence[str] | Path | str | None,
    options: StatisticsOptions = StatisticsOptions(),  # noqa: B008 (frozen)
    **settings: Any,
) -> StatisticsPlan:
    """What `statistics` would cost with the same arguments, and what it would risk; refuses what it would refuse.

    The risk is measured on these learners, and no guarantee covers it: it stays inside.
    """
    plan = _planned(source, digraphs, settled(options, settings))
    # A seed that is always the same: asking again must not average the noise away.
    rng = np.random.default_rng(1)
    risk = statistics_risk(source.keystrokes, _group_of(source, plan.release), plan.release, rng)
    return replace(plan, risk=risk)


def _planned(
    source: KeystrokeSource, digraphs: Sequence[str] | Path | str | None, options: StatisticsOptions
) -> StatisticsPlan:
    if digraphs is None:
        raise UsageError(
            "no digraphs were declared.",
            hint="name them in a file, one per line, such as `i n`, chosen from the task or from other data: the most "
            "common ones of this data would reveal something about its learners.",
            settings=("digraphs",),
        )
    named = read_digraphs(Path(digraphs)) if isinstance(digraphs, Path | str) else parse_digraphs(digraphs)
    groups = _groups(options.groups, source.labels is not None)
    declaration = Declaration(named, groups, options.shortest, options.longest, options.least)
    n_learners = source.n_learners
    delta = default_delta(n_learners) if options.delta is None else options.delta

    def planned(options: StatisticsOptions) -> Release:
        assert options.epsilon is not None  # settled by `by_risk`
        return Release(declaration, n_learners, options.epsilon, delta)

    options = options.by_risk(lambda tried: planned(tried).guarantee)
    release = planned(options)
    return StatisticsPlan(
        release, Account.open(options, source.origin, simulated=source.keystrokes.simulated)
    )


def _group_of(source: KeystrokeSource, release: Release) -> NDArray[np.int64]:
    """Each learner's place among the declared groups."""
    names = release.declaration.groups
    if source.labels is None:
        return np.zeros(source.keystrokes.n_learners, dtype=np.int64)
    return declared_groups(names, source.label_names, source.labels)


def _groups(groups: str | None, labelled: bool) -> tuple[str, ...]:
    """The declared groups; what the labels hold must not decide them."""
    if not labelled:
        if groups is not None:
            raise UsageError(
                "groups were declared, but no labels given.",
                hint="name the file of labels.",
                settings=("labels",),
            )
        return ("all",)
    if groups is None:
        raise UsageError(
            "the groups were not declared.",
            hint="name them, such as none,some: which labels occur would reveal something about learners.",
            settings=("groups",),
        )
    return tuple(name.strip() for name in groups.split(",") if name.strip())


def read_digraphs(path: Path) -> tuple[str, ...]:
    """Declared digraphs of a file, one per line."""
    try:
        text = read_text(path, hint="give a file with one digraph per line.")
    except UsageError as error:
        error.settings = ("digraphs",)
        raise
    return parse_digraphs(text.splitlines(), f" of {path}")


def parse_digraphs(lines: Sequence[str], place: str = "") -> tuple[str, ...]:
    """Declared digraphs: `i n`, `in` or `i → n`; keys without a sign by name: `Space`, `Enter`."""
    found: list[str] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            continue
        keys = text.split(ARROW.strip()) if ARROW.strip() in text else text.split()
        keys = list(text) if len(keys) == 1 and len(text) == 2 else [key.strip() for key in keys]
        if len(keys) != 2 or not all(keys):
            raise UsageError(
                f"line {number}{place} is not a digraph.",
                hint="write two keys, such as `i n` or `Space a`.",
                settings=("digraphs",),
            )
        found.append(ARROW.join(shown(key) for key in keys))
    return tuple(found)


def declared_groups(
    names: Sequence[str], label_names: Sequence[str], labels: NDArray[np.integer[Any]]
) -> NDArray[np.int64]:
    """Each learner's position among the declared groups, -1 for a missing label or one that was not declared."""
    place = {_plain(name): g for g, name in enumerate(names)}
    codes = np.array([place.get(_plain(name), -1) for name in label_names] + [-1], dtype=np.int64)
    return np.asarray(codes[np.where(np.asarray(labels) >= 0, labels, -1)])


def _plain(name: str) -> str:
    """A label as it is compared: numbers by their value, since a table may write 1 as 1.0."""
    try:
        return f"{float(name):.12g}"
    except ValueError:
        return name.strip()
