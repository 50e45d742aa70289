"""profile(): typing profiles, average latencies per digraph (Leinonen 2016, sections 4.1, 4.2 and 4.4.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.files.writing import check_not_input, check_parent, write_with
from understudy.core.options import settled
from understudy.core.pages.notebook import notebook_table
from understudy.errors import DataError, UsageError
from understudy.keystrokes.coarsening import parse_coarsening
from understudy.keystrokes.formats.reading import KeystrokeSource
from understudy.keystrokes.keystrokes import Keystrokes
from understudy.keystrokes.latencies import Kind, Totals, count_latencies, in_order

N_FEATURES = 25
MIN_OCCURRENCES = 5  # of a feature, for its average to count
MIN_CHARACTERS = 2000  # in the first week, for a learner to take part

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Profiles:
    """One row per owner: average milliseconds per feature, and last the average speed.

    `missing` marks averages that rest on too few occurrences and were replaced by the speed.
    """

    features: tuple[str, ...]
    values: Floats
    missing: NDArray[np.bool_]

    def __post_init__(self) -> None:
        if self.values.shape != self.missing.shape or self.values.shape[1] != len(self.features) + 1:
            raise DataError("profiles need a value per feature and the speed.")

    @property
    def n_owners(self) -> int:
        """How many profiles there are."""
        return len(self.values)

    def to_frame(self) -> pl.DataFrame:
        """A row per profile, numbered from 1, in milliseconds."""
        names = [*self.features, "average speed"]
        numbers = pl.DataFrame({"learner": range(1, self.n_owners + 1)})
        return numbers.hstack(pl.DataFrame(self.values.round(1), schema=names))


def most_common(parts: list[Totals], n_features: int = N_FEATURES) -> NDArray[np.int64]:
    """The features that learners typed most: by the median count over learners, the smallest of all parts.

    Leinonen (2016) sorts by the median "in both the training and the test set"; a feature must be common in
    each of them, so the smaller of the medians decides. Ties go to the one listed first.
    """
    median = np.min([np.median(part.count, axis=0) for part in parts], axis=0)
    order = np.argsort(-median, kind="stable")[:n_features]
    return np.asarray(order[median[order] > 0], dtype=np.int64)


def build_profiles(totals: Totals, least: int = MIN_OCCURRENCES) -> Profiles:
    """Average latencies; where an owner typed a feature fewer than `least` times, their average speed."""
    missing = totals.count < least
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(missing, totals.speed[:, None], totals.total / totals.count)
    speed = totals.speed[:, None]
    return Profiles(
        totals.features, np.hstack([values, speed]), np.hstack([missing, np.zeros_like(speed, dtype=bool)])
    )


@dataclass(frozen=True)
class Split:
    """Two stretches of every learner's typing: one that the attacker knows, one to be identified.

    `known` and `unknown` hold, row for row, the learner or -1.
    """

    known: NDArray[np.int32]
    unknown: NDArray[np.int32]


def by_weeks(keystrokes: Keystrokes, n_weeks: int | None = None) -> Split:
    """The last week is to be identified from the weeks before it (the last `n_weeks` of these, if given)."""
    weeks = np.unique(keystrokes.week[keystrokes.week >= 0])
    if len(weeks) < 2:
        raise DataError(
            f"identifying the last week from earlier ones needs two weeks; found {len(weeks)}.",
            hint="split by sessions instead.",
            settings=("split",),
        )
    last = weeks[-1]
    first = weeks[0] if n_weeks is None else weeks[max(0, len(weeks) - 1 - n_weeks)]
    learner = keystrokes.learner
    known = (keystrokes.week >= first) & (keystrokes.week < last)
    return Split(np.where(known, learner, -1), np.where(keystrokes.week == last, learner, -1))


def by_sessions(keystrokes: Keystrokes, share: float = 0.5) -> Split:
    """Each learner's later sessions are to be identified from their earlier ones."""
    learner = keystrokes.learner
    n_sessions = np.zeros(keystrokes.n_learners, dtype=np.int64)
    np.maximum.at(n_sessions, learner, keystrokes.session + 1)
    if not (n_sessions >= 2).any():
        raise DataError(
            "identifying later sessions from earlier ones needs two sessions of a learner; found one each.",
            hint="name the column of sessions, or give a file that holds more than one sitting.",
            settings=("session",),
        )
    early = keystrokes.session < np.ceil(n_sessions * share)[learner]
    return Split(np.where(early, learner, -1), np.where(early, -1, learner))


def enough_typed(
    keystrokes: Keystrokes, least: int = MIN_CHARACTERS, first_week_only: bool = True
) -> NDArray[np.int64]:
    """Positions of the learners who typed enough: in the first week when there are weeks, else in all."""
    week = keystrokes.week
    no_week = np.iinfo(np.int32).max
    first = int(week.min(where=week >= 0, initial=no_week)) if first_week_only else no_week
    characters = []
    for part in keystrokes.parts():
        counted: Any = slice(None) if first == no_week else part.week == first
        characters.append(np.bincount(part.learner[counted], minlength=part.n_learners))
    return np.flatnonzero(np.concatenate(characters) >= least)


@dataclass(frozen=True)
class ProfileSize:
    """Whose profiles are built, and how many digraphs they have."""

    digraphs: Annotated[int, "How many of the most common digraphs a profile has."] = N_FEATURES
    min_characters: Annotated[int, "Leave out learners who typed less in the first week (or in all)."] = (
        MIN_CHARACTERS
    )


@dataclass(frozen=True)
class ProfileOptions(ProfileSize):
    """What typing profiles hold."""

    kinds: Annotated[str, "What a profile averages: digraph, trigraph, key, hold; several with commas."] = (
        "digraph"
    )
    coarsen: Annotated[str | None, "Make the averages coarse: bucket:500, round:700."] = None

    def __post_init__(self) -> None:
        if any(name not in set(Kind) for name in self.kinds.split(",")) or self.digraphs < 1:
            raise UsageError(
                f"asked for {self.digraphs} features of the kinds '{self.kinds}'.",
                hint="give 1 or more, and kinds among " + ", ".join(Kind) + ".",
                settings=("digraphs", "kinds"),
            )
        if self.coarsen is not None:
            parse_coarsening(self.coarsen)


@dataclass(frozen=True, eq=False, repr=False)
class LearnerProfiles:
    """A profile per learner who typed enough, in random order and without names. A profile identifies its typist."""

    profiles: Profiles
    options: ProfileOptions
    n_left_out: int
    left_out: dict[str, int]
    out: Path | None = None

    @property
    def internal(self) -> bool:
        """Whether the averages are as fine as they were typed."""
        return self.options.coarsen is None

    @property
    def missing_share(self) -> float:
        """The share of averages that rest on too few occurrences."""
        return float(self.profiles.missing.mean())

    def to_json(self) -> dict[str, Any]:
        """The facts for machines, without the profiles."""
        return {
            "out": None if self.out is None else str(self.out),
            "internal": self.internal,
            "guarantee": "no formal guarantee",
            "n_learners": self.profiles.n_owners,
            "features": list(self.profiles.features),
            "missing_share": self.missing_share,
            "learners_left_out": self.n_left_out,
            "left_out": self.left_out,
        }

    def lines(self) -> list[str]:
        """The facts for people."""
        lines = [
            f"{self.profiles.n_owners} profiles of {len(self.profiles.features)} features; "
            f"{self.missing_share:.1%} of the averages rest on too few occurrences."
        ]
        if self.n_left_out:
            lines.append(
                f"{self.n_left_out} learners typed less than {self.options.min_characters} characters and are left out."
            )
        if self.out is not None:
            lines.append(f"Written: {self.out}.")
        if self.internal:
            return [*lines, "Internal: a profile identifies its typist; do not share it."]
        return [*lines, "No formal guarantee: a sweep measures who can still be identified at this size."]

    def to_frame(self) -> pl.DataFrame:
        """The profiles, a row each."""
        return self.profiles.to_frame()

    def _repr_html_(self) -> str:
        return notebook_table(" ".join(self.lines()), self.to_frame())


def _totals(typing: Keystrokes, chosen: NDArray[np.int64], kinds: tuple[Kind, ...]) -> Totals:
    """The totals of the chosen learners, for the features that half of them typed; no others are common.

    A part of the learners at a time: all features that occur would be too many for all learners at once.
    """

    def parts(kinds: tuple[Kind, ...]) -> Iterator[Totals]:
        is_chosen = np.zeros(typing.n_learners, dtype=bool)
        is_chosen[chosen] = True
        for part in typing.parts():
            own, is_chosen = np.split(is_chosen, [part.n_learners])
            owner = np.where(own, np.cumsum(own) - 1, -1)
            yield count_latencies(part, owner[part.learner], int(own.sum()), kinds)

    features: list[str] = []
    for kind in kinds:
        typists: Counter[str] = Counter()
        for totals in parts((kind,)):
            typists.update(dict(zip(totals.features, (totals.count > 0).sum(axis=0).tolist(), strict=True)))
        wanted = [name for name, number in typists.items() if 2 * number >= len(chosen)]
        features += in_order(wanted, kind, typing.keys)
    return Totals.of_all([totals.named(tuple(features)) for totals in parts(kinds)])


def profile(
    source: KeystrokeSource,
    options: ProfileOptions = ProfileOptions(),  # noqa: B008 (frozen)
    *,
    out: Path | str | None = None,
    **settings: Any,
) -> LearnerProfiles:
    """Build typing profiles; with `out`, write them as a csv that only its owner may read.

    The settings of `ProfileOptions` may be given as keywords.
    """
    options = settled(options, settings)
    out = None if out is None else Path(out)
    if out is not None:
        check_parent(out)
        check_not_input(out, source.path)
        if out.suffix != ".csv":
            raise UsageError(f"asked to write {out}; profiles are written as csv.", hint="end it with .csv.")
    source.require_rhythm()
    typing = source.keystrokes
    chosen = enough_typed(typing, options.min_characters)
    if not len(chosen):
        raise DataError(
            f"none of {typing.n_learners} learners typed {options.min_characters} characters.",
            hint="ask for fewer.",
            settings=("min_characters",),
        )
    rng = np.random.default_rng()
    kinds = tuple(Kind(name) for name in options.kinds.split(","))
    totals = _totals(typing, chosen, kinds).owners(rng.permutation(len(chosen)))
    common = most_common([totals], options.digraphs)
    if not len(common):
        raise DataError(
            f"{source.path.name}: no feature of the kinds '{options.kinds}' is typed by half of the learners.",
            hint="check the unit of the times (latencies count from 10 to 750 ms), or ask for learners with more text.",
            settings=("unit", "min_characters"),
        )
    profiles = build_profiles(totals.of(common))
    if options.coarsen is not None:
        values = parse_coarsening(options.coarsen).averages(profiles.values, rng)
        profiles = replace(profiles, values=values)
    n_left_out = source.keystrokes.n_learners - len(chosen)
    found = LearnerProfiles(profiles, options, n_left_out, source.left_out, out)
    if out is not None:
        write_with(out, found.to_frame().write_csv)
        out.chmod(0o600)
    return found
