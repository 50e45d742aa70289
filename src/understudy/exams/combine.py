"""combine_difficulties(): the private difficulties of several schools on one scale; no answers move.

What is computed from releases is post-processing: nothing is charged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import understudy
from understudy.core.files.words import counted
from understudy.core.files.writing import check_new_json, write_json
from understudy.core.options import settled
from understudy.core.pages.notebook import notebook_table
from understudy.core.privacy.guarantee import Guarantee
from understudy.errors import DataError, UsageError
from understudy.exams.combined_guarantee import combined_guarantee, in_all_schools, refuse_shared_learners
from understudy.exams.common_scale import check_comparable, refuse_unlinked
from understudy.exams.estimators.chances import FURTHEST, Answering, chance_curve
from understudy.exams.estimators.evidence import Likelihood
from understudy.exams.estimators.linking import Found, Joint, link_schools, without_prior
from understudy.exams.estimators.noisy_totals import Prior
from understudy.exams.ranking import in_words, rank_items
from understudy.exams.released_file import Ability, Difficulties, Item
from understudy.exams.totals_in_file import TotalsInFile

Floats = NDArray[np.float64]

Release = Difficulties | Path | str

METHOD = "combined"


@dataclass(frozen=True)
class CombineOptions:
    """How releases are combined."""

    may_overlap: Annotated[
        bool,
        "A learner may be in several of the files: state the sum of their epsilons, not the largest of them.",
    ] = False
    ledger: Annotated[
        Path | None,
        "The ledger of these releases: files about learners who count together in it are refused. Without it, and for "
        "releases of other ledgers, only a caveat says that a learner is in one file.",
    ] = None
    title: Annotated[str, "What the students see as the exam's name."] = ""


@dataclass(frozen=True)
class School:
    """One of the combined releases: its mean ability on the joint scale, with its standard error."""

    name: str
    n_learners: int
    n_items: int
    n_common: int
    ability: float
    standard_error: float
    ability_sd: float
    guarantee: Guarantee
    cards: tuple[str, ...]

    def content(self) -> dict[str, Any]:
        """As it stands in the file."""
        return {
            "name": self.name,
            "learners": self.n_learners,
            "items": self.n_items,
            "common_items": self.n_common,
            "ability": round(self.ability, 6),
            "standard_error": round(self.standard_error, 6),
            "ability_sd": self.ability_sd,
            "epsilon": self.guarantee.epsilon if self.guarantee.formal else None,
            "delta": self.guarantee.delta if self.guarantee.formal else None,
            "cards": list(self.cards),
        }


@dataclass(frozen=True)
class Deviation:
    """How much harder (above 0) or easier an item is in a school than in the others, at equal ability.

    `misfit` says that it is more than chance explains, all tests taken together.
    """

    item: str
    school: str
    deviation: float
    standard_error: float
    p_value: float
    misfit: bool

    def content(self) -> dict[str, Any]:
        """As it stands in the file."""
        numbers = {
            "deviation": self.deviation,
            "standard_error": self.standard_error,
            "p_value": self.p_value,
        }
        return {
            "item": self.item,
            "school": self.school,
            **{name: float(f"{value:.6g}") for name, value in numbers.items()},
            "misfit": self.misfit,
        }


@dataclass(frozen=True)
class CombinedDifficulties:
    """The joint difficulties, the schools on their scale, and which items behave differently where.

    `between` is the standard deviation of an item's difficulty between schools, at most `between_high`.
    """

    difficulties: Difficulties
    schools: tuple[School, ...]
    deviations: tuple[Deviation, ...]
    between: float
    between_high: float
    notes: tuple[str, ...] = ()
    out: Path | None = None

    @property
    def misfits(self) -> list[Deviation]:
        """Items that behave differently in a school, the clearest first; of two schools the one where it is harder."""
        in_schools = Counter(each.item for each in self.deviations)
        found = (each for each in self.deviations if each.misfit)
        named = (each for each in found if in_schools[each.item] > 2 or each.deviation > 0)
        return sorted(named, key=lambda each: each.p_value)

    def to_json(self) -> dict[str, Any]:
        """The content of the file, and how it came about."""
        return {
            "out": None if self.out is None else str(self.out),
            "charged": 0,
            "notes": list(self.notes),
            **self.difficulties.content(),
        }

    def lines(self) -> list[str]:
        """What holds for the schools together, for people."""
        misfits = self.misfits
        clear = (
            [f"Differs: {_in_words(each)}." for each in misfits[:_MOST_MISFITS]]
            if misfits
            else ["No item is clearly harder in one school than in another, at equal ability."]
        )
        if len(misfits) > _MOST_MISFITS:
            clear.append(f"... and {len(misfits) - _MOST_MISFITS} more; the file has all of them.")
        return [
            f"Between schools an item's difficulty differs by {self.between:.2f} (standard deviation, at most "
            f"{self.between_high:.2f}); the standard errors include it.",
            *clear,
            *self.difficulties.lines(),
            "Nothing was charged: this is computed from releases that were.",
        ]

    def to_frame(self) -> pl.DataFrame:
        """A row per item, from easy to hard."""
        return self.difficulties.to_frame()

    def plot(self) -> Any:
        """The joint difficulties with their 95 % intervals, as an altair chart."""
        return self.difficulties.plot()

    def _repr_html_(self) -> str:
        return notebook_table(" ".join(self.lines()), self.to_frame())


_MOST_MISFITS = 10


def _in_words(each: Deviation) -> str:
    harder = "harder" if each.deviation > 0 else "easier"
    reach = 1.96 * each.standard_error
    size = abs(each.deviation)
    return (
        f"'{each.item}' is {harder} in {each.school} than elsewhere, by {size:.2f} log-odds "
        f"({size - reach:.2f} to {size + reach:.2f})"
    )


def combine_difficulties(
    releases: Mapping[str, Release] | Sequence[Release],
    options: CombineOptions = CombineOptions(),  # noqa: B008 (frozen)
    *,
    out: Path | str | None = None,
    **settings: Any,
) -> CombinedDifficulties:
    """The difficulties of several schools with common items on one scale, written to a file if `out` is given.

    Schools are named by the keys of a mapping, or by their files. The settings of `CombineOptions` may be given as
    keywords.
    """
    options = settled(options, settings)
    out = None if out is None else Path(out)
    if out is not None:
        check_new_json(out)
    schools = _named(releases)
    notes = check_comparable(schools)
    if options.ledger is not None and not options.may_overlap:
        notes += refuse_shared_learners(schools, Path(options.ledger))
    found = _combined(schools, options, tuple(notes), out)
    if out is not None:
        write_json(out, found.difficulties.content())
    return found


def _named(releases: Mapping[str, Release] | Sequence[Release]) -> dict[str, Difficulties]:
    if isinstance(releases, Mapping):
        pairs = list(releases.items())
    else:
        stems = [
            (release.title or f"school {place + 1}")
            if isinstance(release, Difficulties)
            else Path(release).stem
            for place, release in enumerate(releases)
        ]
        twice = {name for name, times in Counter(stems).items() if times > 1}
        pairs = [
            (f"{name} ({place + 1})" if name in twice else name, release)
            for place, (name, release) in enumerate(zip(stems, releases, strict=True))
        ]
    if len(pairs) < 2:
        raise UsageError(
            f"{counted(len(pairs), 'file')} of difficulties cannot be combined.",
            hint="give two or more files.",
        )
    return {name: Difficulties.of(release) for name, release in pairs}


def _combined(
    schools: dict[str, Difficulties], options: CombineOptions, notes: tuple[str, ...], out: Path | None
) -> CombinedDifficulties:
    names = tuple(dict.fromkeys(item.name for school in schools.values() for item in school.items))
    row = {name: place for place, name in enumerate(names)}
    measured = [_Measured.of(name, school, row) for name, school in schools.items()]
    places = np.zeros((len(names), len(schools)))
    for column, school in enumerate(measured):
        places[school.rows, column] = np.nan_to_num(school.difficulty)
    sizes = np.array([school.provenance["learners"] for school in schools.values()], dtype=np.float64)
    known = np.isfinite(_measure(measured, sizes, places).difficulty)
    common = known & (known.sum(axis=1) > 1)[:, None]
    refuse_unlinked(list(schools), common)
    spreads = np.array([school.ability.sd for school in schools.values()])
    share = sizes / sizes.sum()
    joint = link_schools(
        lambda places: _measure(measured, sizes, places), places, float(share**2 @ (spreads**2 / sizes))
    )
    described = tuple(
        School(
            name,
            int(sizes[place]),
            len(school.items),
            int(common[:, place].sum()),
            float(joint.ability[place]),
            float(joint.ability_error[place]),
            school.ability.sd,
            school.guarantee,
            tuple(school.own_cards),
        )
        for place, (name, school) in enumerate(schools.items())
    )
    deviations = _deviations(names, list(schools), joint)
    given = list(schools.values())
    sd = math.sqrt(float(share @ (spreads**2 + joint.ability**2)))
    difficulties = Difficulties(
        _items(names, joint, given, share, spreads),
        tuple(
            tuple(names[place] for place in step)
            for step in rank_items(joint.difficulty, joint.order_error).steps
        ),
        Ability(0.0, round(sd, 6), "of all schools together"),
        combined_guarantee(given, may_overlap=options.may_overlap),
        _provenance(given, described, deviations, joint),
        options.title or _common_title(given),
    )
    return CombinedDifficulties(
        difficulties, described, deviations, joint.between, joint.between_high, notes, out
    )


@dataclass(frozen=True, eq=False)
class _Measured:
    """What a school's file says about its items, which are `rows` of all items."""

    rows: list[int]
    difficulty: Floats
    variance: Floats
    log_sd_error: float
    likelihood: Likelihood | None

    @classmethod
    def of(cls, name: str, school: Difficulties, row: dict[str, int]) -> _Measured:
        n_learners = school.provenance["learners"]
        rows, sd = [row[item.name] for item in school.items], school.ability.sd
        mean = np.array([math.nan if item.difficulty is None else item.difficulty for item in school.items])
        error = np.array(
            [math.nan if item.standard_error is None else item.standard_error for item in school.items]
        )
        # Which learners were there moves all items of a school together: its shift takes that up.
        variance = np.maximum(error**2 - sd**2 / n_learners, 1e-6)
        guess = np.array([item.guess for item in school.items])
        answering = Answering(guess, float(school.provenance.get("discrimination_spread") or 0.0))
        if (given := school.provenance.get("totals")) is not None:
            found = TotalsInFile.read(given, name, len(rows))
            likelihood = Likelihood(*found.arrays(n_learners), n_learners, sd, answering)
            # However well it was measured, the spread of a sample differs from that of all by so much.
            doubt = max(found.log_sd_error, 1.0 / math.sqrt(2.0 * n_learners)) if found.log_sd_error else 0.0
            return cls(rows, mean, variance, doubt, likelihood)
        if (prior := _prior(school)) is not None:
            mean, variance = without_prior(mean, variance, prior)
        return cls(rows, mean, variance, 0.0, None)

    def at(self, places: Floats) -> tuple[Floats, Floats, Floats]:
        """Difficulty, variance and stretch, if items lie about there on the school's own scale."""
        if self.likelihood is None:
            return self.difficulty, self.variance, np.zeros_like(places)
        difficulty, variance = self.likelihood.linearised(places)
        return difficulty, variance, self.log_sd_error * self.likelihood.stretch(places)

    def log_density(self, places: Floats, between: Floats) -> Floats:
        """The likelihood of all items at these points of the school's own scale; 0 for items that it does not have."""
        value = np.zeros_like(places)
        if self.likelihood is not None:
            value[self.rows] = self.likelihood.log_density(places[self.rows], between[self.rows])
        else:
            away = (places[self.rows] - self.difficulty[:, None]) ** 2
            value[self.rows] = np.nan_to_num(-0.5 * away / (self.variance + between[self.rows])[:, None])
        return value


def _measure(schools: list[_Measured], sizes: Floats, places: Floats) -> Found:
    difficulty, variance, stretch = np.full((3, *places.shape), np.nan)
    for column, school in enumerate(schools):
        found = school.at(places[school.rows, column])
        for array, values in zip((difficulty, variance, stretch), found, strict=True):
            array[school.rows, column] = values
    return Found(
        difficulty,
        variance,
        np.nan_to_num(stretch),
        sizes,
        lambda places, between, school: schools[school].log_density(places, between),
    )


def _prior(school: Difficulties) -> Prior | None:
    """The prior of the school's own estimates."""
    given = school.provenance.get("difficulties_prior")
    if given is None:
        return None
    try:
        return Prior(float(given["mean"]), float(given["sd"]))
    except (KeyError, TypeError, ValueError):
        raise DataError("a file does not state the prior of its difficulties.", code="damaged-file") from None


def _deviations(names: tuple[str, ...], schools: list[str], joint: Joint) -> tuple[Deviation, ...]:
    misfit = joint.misfit
    return tuple(
        Deviation(
            names[row],
            schools[column],
            float(misfit.deviation[row, column]),
            float(misfit.standard_error[row, column]),
            float(misfit.p_value[row, column]),
            bool(misfit.flagged[row, column]),
        )
        for row, column in zip(*np.nonzero(np.isfinite(misfit.p_value)), strict=True)
    )


def _items(
    names: tuple[str, ...], joint: Joint, schools: list[Difficulties], share: Floats, spreads: Floats
) -> tuple[Item, ...]:
    guess = {item.name: item.guess for school in schools for item in school.items}
    order = rank_items(joint.difficulty, joint.order_error)
    place = np.clip(joint.difficulty[:, None] - joint.ability, -FURTHEST, FURTHEST)
    # A learner drawn from all schools: each school has its own abilities.
    know = sum(
        part * np.clip(chance_curve(float(sd))(place[:, school]), 0.0, 1.0)
        for school, (part, sd) in enumerate(zip(share, spreads, strict=True))
    )
    items = []
    for row, name in enumerate(names):
        chance = guess[name] + (1.0 - guess[name]) * float(np.asarray(know)[row])
        items.append(
            Item(
                name,
                round(float(joint.difficulty[row]), 6),
                round(float(joint.standard_error[row]), 6),
                round(chance, 6),
                in_words(chance),
                int(order.rank_from[row]),
                int(order.rank_to[row]),
                guess=guess[name],
            )
        )
    return tuple(items)


def _provenance(
    given: list[Difficulties], schools: tuple[School, ...], deviations: tuple[Deviation, ...], joint: Joint
) -> dict[str, Any]:
    def same(key: str) -> Any:
        values = [school.provenance.get(key) for school in given]
        return values[0] if all(value == values[0] for value in values) else None

    shares = [school.provenance.get("pass_share") for school in given]
    return {
        "method": METHOD,
        "learners": sum(school.n_learners for school in schools),
        "items": len({item.name for school in given for item in school.items}),
        "missing": same("missing"),
        "difficulties_prior": {
            "mean": round(joint.prior.mean, 4),
            "sd": round(joint.prior.spread, 4),
            "source": "estimated from all schools",
        },
        "simulated": all(school.provenance.get("simulated") is True for school in given),
        "pass_share": next((share for share in shares if share is not None), None),
        "discrimination_spread": same("discrimination_spread"),
        "schools": [school.content() for school in schools],
        "between_schools": {"sd": round(joint.between, 6), "at_most": round(joint.between_high, 6)},
        "deviations": [each.content() for each in deviations],
        "in_all_schools": in_all_schools(given) if all(school.guarantee.formal for school in given) else None,
        "earlier_cards": list(dict.fromkeys(card for school in given for card in school.earlier_cards)),
        "card": None,
        "made": datetime.now(UTC).date().isoformat(),
        "understudy": understudy.__version__,
    }


def _common_title(given: list[Difficulties]) -> str:
    titles = {school.title for school in given}
    return titles.pop() if len(titles) == 1 else ""
