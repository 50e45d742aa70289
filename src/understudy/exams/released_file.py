"""Released difficulties, and their file: what a student's side needs, and all that it needs."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import polars as pl
from annotated_types import Interval, MaxLen, MinLen

from understudy.core.files.documents import ContractError, checked, contract, parse_json
from understudy.core.pages.charts import Point, dots
from understudy.core.pages.notebook import notebook_table
from understudy.core.privacy.guarantee import Caveat, Guarantee
from understudy.core.privacy.spending import Account, Charge
from understudy.errors import DataError, RefusedError
from understudy.exams.estimators.noisy_totals import Prior
from understudy.exams.responses import MOST_STEPS, Points

FORMAT = "understudy difficulties"
VERSION = 1

# Of an earlier exam that went into the difficulties: one that this ledger charged, and one that it does not know.
EARLIER_EXAM = Caveat(
    "earlier-exam",
    "this epsilon covers these learners, through this exam only; the difficulties also hold those of an earlier exam, "
    "whose learners were charged for it, and whoever is in both bears both",
)
EARLIER_EXAM_CLAIMED = Caveat(
    "earlier-exam-claimed",
    "this epsilon covers these learners, through this exam only; the difficulties also hold those of an earlier exam, "
    "which no ledger here knows: that its learners were other ones is as its user claims",
)

# Of releases that were combined.
ONE_SCHOOL_EACH = Caveat(
    "one-school-each",
    "this epsilon covers a learner who is in one of the combined files; whoever is in several of them bears the sum of "
    "their epsilons",
)

# No item has log-odds beyond these: a chance of e^-100 never happens. They also bound the work of
# integrating over abilities.
LogOdds = Annotated[float, Interval(ge=-100.0, le=100.0)]
Share = Annotated[float, Interval(ge=0.0, le=1.0)]


@dataclass(frozen=True)
class Item:
    """One item: its difficulty on the scale of log-odds, and how sure it is.

    `difficulty` is None where the fit has no finite one (every learner was right, or none was,
    in a fit that is not private); `unbounded` then is "easy" or "hard". `chance` is that of a
    student drawn from the ability distribution. `rank_from` and `rank_to` are the places,
    from the easiest on, that the item may have at this precision. `guess` is the chance of a right answer
    without knowing it. At ability b the log-odds of a right answer are `discrimination` (b - difficulty).

    An item with points has `credits`, one for each number of steps of `unit` points: k steps have a chance
    proportional to exp(discrimination k (b - difficulty) + credits[k]). Its difficulty is the ability at which half of
    the points are expected, and `chance` is their expected share.
    """

    __pydantic_config__: ClassVar = contract(name="item")

    name: Annotated[str, MinLen(1)]
    difficulty: LogOdds | None
    standard_error: Annotated[float, Interval(ge=0.0, le=1000.0)] | None
    chance: Share
    reading: str
    rank_from: int
    rank_to: int
    unbounded: Literal["easy", "hard"] | None = None
    guess: Annotated[float, Interval(ge=0.0, le=0.9)] = 0.0
    discrimination: Annotated[float, Interval(ge=0.01, le=20.0)] = 1.0
    credits: Annotated[tuple[Annotated[float, Interval(ge=-1e4, le=1e4)], ...], MaxLen(MOST_STEPS + 1)] = ()
    unit: Annotated[float, Interval(gt=0.0, le=1000.0)] = 1.0

    @property
    def points(self) -> Points:
        """How it gives points; one step if it is right or wrong."""
        return Points(max(len(self.credits) - 1, 1), self.unit)

    def content(self) -> dict[str, Any]:
        """Its part of the file; what only some items have is left out of others."""
        content = {"item": self.name, **{name: value for name, value in vars(self).items() if name != "name"}}
        if self.discrimination == 1.0:
            del content["discrimination"]
        if not self.credits:
            del content["credits"], content["unit"]
        return content


@dataclass(frozen=True)
class Ability:
    """The distribution of abilities that the difficulties refer to: the prior of a student's ability."""

    __pydantic_config__: ClassVar = contract()

    mean: LogOdds
    sd: Annotated[float, Interval(ge=0.01, le=20.0)]
    source: str = "fixed"


@dataclass(frozen=True)
class Difficulties:
    """Items with their difficulties, the guarantee they carry, and how they came about.

    `steps` groups the items from the easiest on; the order within a group is not known. `charge` and `out`
    are those of a release that was just made; the file does not hold them.
    """

    items: tuple[Item, ...]
    steps: tuple[tuple[str, ...], ...]
    ability: Ability
    guarantee: Guarantee
    provenance: dict[str, Any] = field(default_factory=dict)
    title: str = ""
    charge: Charge | None = field(default=None, repr=False, compare=False)
    out: Path | None = field(default=None, repr=False, compare=False)

    def content(self) -> dict[str, Any]:
        """The content of the file."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "title": self.title,
            "items": [item.content() for item in self.items],
            "steps": [list(step) for step in self.steps],
            "ability": {
                "mean": self.ability.mean,
                "sd": self.ability.sd,
                "source": self.ability.source,
            },
            "guarantee": self.guarantee.to_json(),
            "provenance": self.provenance,
        }

    def to_json(self) -> dict[str, Any]:
        """The difficulties for machines: the content of the file, and what was charged for a new release."""
        if self.charge is None:
            return self.content()
        out = None if self.out is None else str(self.out)
        return {"out": out, **self.charge.to_json(), **self.content()}

    def lines(self) -> list[str]:
        """What holds for the difficulties as a whole, for people."""
        n_ties = sum(len(step) for step in self.steps if len(step) > 1)
        return [
            f"{n_ties} items are ties: their order is not known at this precision (see the places)."
            if n_ties
            else "No two neighbours are ties.",
            f"Guarantee: {self.guarantee}.",
            *([] if self.charge is None else [self.charge.sentence()]),
        ]

    def warnings(self) -> list[str]:
        """What the teacher must know before the difficulties leave, for people."""
        if not self.guarantee.formal:
            return ["NOT PRIVATE: keep it inside; the method knorm with an epsilon makes it private."]
        found = []
        if str(self.provenance.get("discriminations") or "").startswith("taken as alike"):
            found.append(f"Discriminations were not measured and are {self.provenance['discriminations']}.")
        errors = [item.standard_error for item in self.items if item.standard_error is not None]
        if errors and statistics.median_high(errors) > 1.0:
            found.append(
                "With so few learners and this epsilon nearly everything is noise: half of the items have a standard "
                "error above 1."
            )
        if below := self.provenance.get("items_below_guess"):
            found.append(
                f"{below} items were solved clearly less often than guessing alone would: the declared chance of "
                "guessing does not fit, and causes extreme difficulties with large errors."
            )
        return found

    @property
    def has_points(self) -> bool:
        """Whether answers have points; else they are right or wrong."""
        return any(item.credits for item in self.items)

    def from_easy_to_hard(self) -> list[Item]:
        """The items in the order of the steps; those without a place come last."""
        place = {name: number for number, name in enumerate(name for step in self.steps for name in step)}
        return sorted(self.items, key=lambda item: place.get(item.name, len(place)))

    def to_frame(self) -> pl.DataFrame:
        """A row per item, from easy to hard."""
        return pl.DataFrame([vars(item) for item in self.from_easy_to_hard()], infer_schema_length=None)

    def plot(self) -> Any:
        """The difficulties with their 95 % intervals, as an altair chart."""
        points = []
        for item in self.from_easy_to_hard():
            if item.difficulty is not None:
                reach = 1.96 * (item.standard_error or 0.0)
                points.append(
                    Point(item.name, item.difficulty, item.difficulty - reach, item.difficulty + reach)
                )
        return dots(points, "difficulty, in log-odds").figure("Difficulties of the items").chart

    def _repr_html_(self) -> str:
        return notebook_table(" ".join((*self.lines(), *self.warnings())), self.to_frame())

    def as_prior(self) -> Prior:
        """What these difficulties of an earlier exam let expect of another: their mean, and their own spread.

        Errors make estimates spread differently from true difficulties: private ones, which are
        posterior means, are drawn together by the mean squared error, others driven apart by it.
        """
        known = [item for item in self.items if item.difficulty is not None]
        if len(known) < 2:
            raise DataError(
                f"a prior takes at least 2 items with a difficulty; the earlier exam has {len(known)}.",
                hint="give a mean and a standard deviation, or leave the prior out.",
                settings=("prior",),
            )
        values = [float(item.difficulty or 0.0) for item in known]
        error = statistics.fmean((item.standard_error or 0.0) ** 2 for item in known)
        spread = statistics.pvariance(values) + (error if self.guarantee.formal else -error)
        return Prior(statistics.fmean(values), math.sqrt(max(spread, 0.01)))

    @property
    def own_cards(self) -> list[str]:
        """The release of these, or those that were combined."""
        given = self.provenance.get("card"), *_parts(self.provenance.get("schools"))
        return [card for card in given if isinstance(card, str)]

    @property
    def earlier_cards(self) -> list[str]:
        """The releases of earlier exams that went into these as a prior, and into that as its prior, and so on."""
        given = self.provenance.get("earlier_cards")
        return [card for card in given if isinstance(card, str)] if isinstance(given, list) else []

    @property
    def cards(self) -> list[str]:
        """All releases that these are made from."""
        return list(dict.fromkeys((*self.own_cards, *self.earlier_cards)))

    def caveats_as_prior(self, account: Account) -> tuple[Caveat, ...]:
        """What is stated with difficulties that these go into; refused if they are about the same learners.

        Both releases are charged, but the new file would state the epsilon of one of them and hold both. Simulated
        learners bear nothing, but what holds real ones still does when it has gone through them.
        """
        cards, stated = self.cards, self.guarantee.caveats
        holds_earlier = bool(self.earlier_cards) or EARLIER_EXAM in stated or EARLIER_EXAM_CLAIMED in stated
        if account.simulated:
            if self.provenance.get("simulated") is True and not holds_earlier:
                return ()
        elif (same := account.same_learners(cards)) is not None:
            raise RefusedError(
                f"the earlier exam is about the same learners, according to the ledger: it was charged to '{same}', "
                f"and this would be charged to '{account.population}'. The difficulties would hold both and state the "
                "epsilon of one.",
                hint="leave the earlier exam out: what to expect is then found from the noisy totals, at no cost.",
                code="same-learners",
                settings=("prior",),
            )
        # Files of before do not name the releases that went into them.
        unnamed = EARLIER_EXAM_CLAIMED in stated or (holds_earlier and not self.earlier_cards)
        charged = bool(cards) and not unnamed and account.has_cards(cards)
        return (EARLIER_EXAM if charged else EARLIER_EXAM_CLAIMED,)

    @classmethod
    def of(cls, given: Difficulties | Path | str) -> Difficulties:
        """The difficulties themselves, or those of a file."""
        return given if isinstance(given, Difficulties) else cls.read(given)

    @classmethod
    def read(cls, path: Path | str) -> Difficulties:
        """The difficulties of a file that `understudy difficulties` wrote."""
        text, content = parse_json(Path(path), hint=_GIVE_THE_FILE)
        return cls.from_json(content, source=Path(path).name, text=text)

    @classmethod
    def from_json(cls, content: Any, *, source: str = "the difficulties", text: str = "") -> Difficulties:
        """The difficulties of a file's content; errors name `source`, and the line of `text`."""
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise DataError(
                f'{source} is not a file of difficulties: it has no "format": "{FORMAT}".',
                hint=_GIVE_THE_FILE,
                code="other-format",
            )
        if content.get("version") != VERSION or isinstance(content["version"], bool):
            raise DataError(
                f"{source} is of another version than {VERSION}, the one that is understood here.",
                hint="use the version of understudy that wrote it, or a newer one.",
                code="other-version",
            )
        try:
            # Text cannot hold a lone surrogate, and JSON no infinite number: neither could be written again.
            json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8")
            file = checked(content, _File, source, text)
            guarantee = Guarantee.from_json(
                file.guarantee, source, caveats=(EARLIER_EXAM, EARLIER_EXAM_CLAIMED, ONE_SCHOOL_EACH)
            )
        except ContractError as error:
            raise DataError(error.message, hint=_ASK_AGAIN, code=_DAMAGED, **error.fields) from None
        except (ValueError, RecursionError):
            message = f"{source}: it holds a number or a text that no such file holds."
            raise DataError(message, hint=_ASK_AGAIN, code=_DAMAGED) from None
        return cls(
            items=file.items,
            steps=file.steps,
            ability=file.ability,
            guarantee=guarantee,
            provenance=file.provenance,
            title=file.title,
        )


def _parts(schools: Any) -> list[Any]:
    """The cards of combined releases, in a provenance that is not checked otherwise."""
    lists = (
        [school.get("cards") for school in schools if isinstance(school, dict)]
        if isinstance(schools, list)
        else []
    )
    return [card for cards in lists if isinstance(cards, list) for card in cards]


_GIVE_THE_FILE = "give the JSON file that `understudy difficulties` wrote."
_ASK_AGAIN = "get the file again from the teacher who released the difficulties; it must not be edited."
_DAMAGED = "damaged-file"


@dataclass(frozen=True)
class _File:
    """What a file has to hold."""

    __pydantic_config__: ClassVar = contract()

    format: str
    version: int
    title: str
    items: Annotated[tuple[Item, ...], MinLen(1)]
    steps: tuple[Annotated[tuple[str, ...], MinLen(1)], ...]
    ability: Ability
    guarantee: dict[str, Any]
    provenance: dict[str, Any]

    def __post_init__(self) -> None:
        names = [item.name for item in self.items]
        placed = [name for step in self.steps for name in step]
        faults = {
            "an item has no name": not all(name.strip() for name in names),
            "an item has one number of steps only": any(len(item.credits) == 1 for item in self.items),
            "two items have the same name": len(set(names)) < len(names),
            f"the places of an item are not between 1 and {len(names)}": any(
                not 1 <= item.rank_from <= item.rank_to <= len(names) for item in self.items
            ),
            "a step names something that is none of the items": not set(placed) <= set(names),
            "an item stands on two steps": len(set(placed)) < len(placed),
            "an item with a difficulty stands on no step": bool(
                {item.name for item in self.items if item.difficulty is not None} - set(placed)
            ),
        }
        for fault, found in faults.items():
            if found:
                raise ContractError(f"{fault}.", key="steps" if "step" in fault else "items")
