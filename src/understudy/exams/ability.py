"""ability(): a student's ability and chances, from their own answers and the released difficulties alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit

from understudy.core.files.outcomes import PassMark, has_direction
from understudy.core.files.words import counted
from understudy.core.files.writing import check_not_input, check_parent, write_with
from understudy.core.options import settled
from understudy.core.pages.charts import Point, dots
from understudy.core.pages.notebook import notebook_table
from understudy.core.privacy.guarantee import Guarantee
from understudy.errors import UsageError
from understudy.exams.estimators.joint import PENALTY, estimate_ability
from understudy.exams.formats.own_answers import Answers, read_answers
from understudy.exams.formats.own_points import read_points
from understudy.exams.mechanisms.totals import Missing
from understudy.exams.posterior import PASS_MARK, Abilities, abilities, at_least, matched, n_needed, usable
from understudy.exams.released_file import Difficulties
from understudy.exams.responses import Responses

# How an ability is found from answers and difficulties.
Estimate = Literal["posterior", "published"]


@dataclass(frozen=True)
class AbilityOptions:
    """How answers are counted, and when a test is passed."""

    missing: Annotated[
        Missing | None,
        "A blank answer is wrong or was skipped (default: as in the difficulties; what a list of learner, item and "
        "correct lacks is skipped). It also says how the rest went that one student's own list does not name: before "
        "that, or before all of it is entered, no verdict is given.",
    ] = None
    pass_share: Annotated[
        float | str | None,
        "Share of an item's points from which on it counts as right, or '<=4' for grades (default: as in the "
        "difficulties).",
    ] = None
    pass_mark: Annotated[float, "Share of the items that must be right to pass."] = PASS_MARK
    estimate: Annotated[
        Estimate,
        "posterior: the mean ability under the file's distribution, with an interval; published: re-estimated as in "
        "Steiner, Nyrnberg and Hansen (2019), for comparison, without one.",
    ] = "posterior"
    penalty: Annotated[
        float | None,
        f"For the published estimate, lambda of its penalty (default: that of the difficulties, else {PENALTY:g}).",
    ] = None

    def __post_init__(self) -> None:
        if self.penalty is not None and self.estimate != "published":
            raise UsageError(
                "a penalty was given, but only the published estimate of an ability has one.",
                hint="ask for that estimate, or leave the penalty out.",
                settings=("estimate", "penalty"),
            )
        if self.penalty is not None and not 1e-4 <= self.penalty <= 100:
            raise UsageError(
                f"a penalty of {self.penalty:g} was asked for.",
                hint=f"it is a number from 0.0001 to 100; {PENALTY:g} is the published program's.",
                settings=("penalty",),
            )


@dataclass(frozen=True, eq=False)
class AbilityReport:
    """Abilities with the names of the students: it belongs to them.

    `given` are their answers to `abilities.items`, and `counted_as` what these count as, which differs where a
    blank is wrong; `reason` is the end of a sentence that says why. As long as one student's own answers are not
    complete (`n_to_enter`), no verdict is given, as on the student's page: whoever enters only what was right would be
    told too much. `penalty` is that of published estimates, which have no intervals, and None for posterior means.
    """

    abilities: Abilities
    students: tuple[str, ...]
    given: NDArray[np.int8]
    counted_as: NDArray[np.int8]
    n_blank: int
    blanks_are_wrong: bool
    reason: str
    guarantee: Guarantee
    notes: tuple[str, ...]
    out: Path | None
    n_to_enter: int = 0
    penalty: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The report for machines."""
        found = self.abilities
        content: dict[str, Any] = {
            "guarantee_of_difficulties": str(self.guarantee),
            "estimate": "posterior" if self.penalty is None else "published",
            "penalty": self.penalty,
            "items": len(found.items),
            "left_out": list(found.left_out),
            "needed_to_pass": found.needed,
            "still_to_be_entered": self.n_to_enter,
            "missing_answers": {
                "count": self.n_blank,
                "counted_as": "wrong" if self.blanks_are_wrong else "skipped",
            },
            "students": self.to_frame().to_dicts(),
        }
        return {**content, "chances": self.chances()} if len(self.students) == 1 else content

    def chances(self) -> list[dict[str, Any]]:
        """The chance of the first student at each item in another sitting, and the answers that stand out."""
        found = self.abilities
        if self.n_to_enter:
            return []
        return [
            {
                "item": name,
                **self._expected(k),
                "stands_out": ("should have passed" if found.points is None else "less than expected")
                if found.should_have[0, k]
                else ("surprisingly passed" if found.points is None else "more than expected")
                if found.surprising[0, k]
                else None,
            }
            for k, name in enumerate(found.items)
        ]

    def _expected(self, item: int) -> dict[str, Any]:
        """The first student's chance at an item, or its points."""
        found = self.abilities
        chance, by_others = float(found.chances[0, item]), float(found.by_others[0, item])
        if found.points is None:
            return {"chance": chance, "chance_by_other_answers": None if np.isnan(by_others) else by_others}
        most = found.maxima[item]
        return {
            "points": most,
            "expected_points": most * chance,
            "expected_points_by_other_answers": most * by_others,
        }

    def lines(self) -> list[str]:
        """What holds for the report as a whole, for people."""
        found = self.abilities
        lines = (
            []
            if self.out is None
            else [f"{self.out}: abilities of {counted(len(self.students), 'student')}."]
        )
        if n_out := len(found.left_out):
            has, is_ = ("has", "is") if n_out == 1 else ("have", "are")
            n_items = counted(n_out + len(found.items), "item")
            lines.append(f"{n_out} of {n_items} {has} no finite difficulty and {is_} left out.")
        if self.n_to_enter:
            lines.append(
                f"Still to be entered: {self.n_to_enter} of {len(found.items)}. Where you stand is shown once every "
                "item is entered, the wrong ones too."
            )
            return lines
        what = f"{found.needed:g} of {len(found.items)} items right"
        if found.points is not None:
            what = f"{found.needed:g} of {sum(found.maxima):g} points"
        lines.append(
            f"Passing: at least {what} in another sitting. "
            + (
                "Intervals hold the ability with 95 % certainty."
                if self.penalty is None
                else f"Abilities are re-estimated as published, with a penalty of {self.penalty:g}: without intervals, "
                "and as if the difficulties had no errors."
            )
        )
        if len(self.students) > 1 and found.points is None and self.penalty is None:
            lines.append(
                "The same number right can be a slightly different ability: uncertain difficulties count less."
            )
        return lines

    def about_blanks(self) -> str:
        """How blank answers count, and why; empty without any."""
        if not self.n_blank:
            return ""
        wrong, out = ("counts", "is") if self.n_blank == 1 else ("count", "are")
        verb = f"{wrong} as wrong" if self.blanks_are_wrong else f"{out} left out"
        return f"{counted(self.n_blank, 'missing answer')} {verb}{self.reason}."

    def to_frame(self) -> pl.DataFrame:
        """A row per student, with their names."""
        found = self.abilities
        verdict = {
            "ability": found.ability,
            "sd": found.sd,
            "low": found.low,
            "high": found.high,
            "pass_chance": found.passing,
        }
        counts = {"right": found.n_right} if found.points is None else {"points": found.points}
        if found.points is not None:
            verdict["expected_points"] = found.chances @ np.array(found.maxima)
        table = pl.DataFrame({"learner": self.students, "answered": found.n_answered, **counts, **verdict})
        if self.n_to_enter:
            table = table.with_columns(pl.lit(None, pl.Float64).alias(name) for name in verdict)
        # The published estimate has no intervals.
        return table.with_columns(pl.col("sd", "low", "high").fill_nan(None))

    def plot(self) -> Any:
        """The abilities with their intervals, as an altair chart; numbered, not named."""
        points = [
            Point(str(k + 1), row["ability"], row["low"], row["high"])
            for k, row in enumerate(self.to_frame().to_dicts())
            if not self.n_to_enter
        ]
        return dots(points, "ability, in log-odds").figure("Abilities of the students").chart

    def _repr_html_(self) -> str:
        # A notebook is shared more easily than a file: it shows a class's abilities only when it is asked to.
        shown = pl.DataFrame(self.chances()) if len(self.students) == 1 else self.to_frame().head(0)
        return notebook_table(
            f"Abilities of {counted(len(self.students), 'student')}. {self.lines()[-1]}", shown
        )


def ability(
    difficulties: Difficulties | Path | str,
    answers: Responses | Path | str,
    options: AbilityOptions = AbilityOptions(),  # noqa: B008 (frozen)
    *,
    out: Path | str | None = None,
    **settings: Any,
) -> AbilityReport:
    """The abilities and chances of students, written as a table if `out` is given.

    Difficulties and answers are values or files. The settings of `AbilityOptions` may be given as keywords.
    Nothing of a budget is spent: the difficulties were paid for when they were released.
    """
    options = settled(options, settings)
    out = None if out is None else Path(out)
    if out is not None:
        if out.suffix.lower() != ".csv":
            raise UsageError(
                f"asked to write {out.name}; abilities are written as .csv.", hint="choose a name with .csv."
            )
        check_parent(out)
        check_not_input(
            out, *(Path(given) for given in (difficulties, answers) if isinstance(given, Path | str))
        )
    released = Difficulties.of(difficulties)
    if isinstance(answers, Responses):
        given = Answers.of(answers)
    elif released.has_points:
        if options.pass_share is not None:
            raise UsageError(
                "a share of points that counts as right was given, but this exam counts points as they are.",
                hint="leave it out.",
                settings=("pass_share",),
            )
        given = read_points(Path(answers), {item.name: item.points for item in released.items})
    else:
        share = options.pass_share if options.pass_share is not None else pass_share(released) or 0.5
        given = read_answers(Path(answers), share)
    responses = matched(released, given.responses)
    n_to_enter = 0
    if given.layout == "own":
        # Of one student everything is asked for; of a class, students may have had other tasks.
        names = [item.name for item in usable(released)]
        missing = [name for name in names if name not in responses.items]
        if options.missing is None:
            n_to_enter = len(missing)
        else:
            responses = responses.with_items([*responses.items, *missing])
    if released.has_points:
        known = {item.name: item.points for item in released.items}
        responses = replace(responses, points=tuple(known[name] for name in responses.items))
    wrong, reason = _blanks(options, released, given)
    counted_as = responses.missing_as_wrong() if wrong else responses
    penalty = _penalty(options, released)
    if penalty is None:
        found = abilities(released, counted_as, options.pass_mark)
    else:
        found = reestimated(released, counted_as, penalty, options.pass_mark)
    report = AbilityReport(
        found,
        given.students,
        responses.with_items(found.items).correct,
        counted_as.with_items(found.items).correct,
        responses.n_missing,
        wrong,
        reason,
        released.guarantee,
        given.notes,
        out,
        n_to_enter,
        penalty,
    )
    if out is not None:
        table = report.to_frame()
        write_with(out, lambda temporary: table.write_csv(temporary, float_precision=6))
    return report


def reestimated(
    difficulties: Difficulties, responses: Responses, penalty: float, pass_mark: float = PASS_MARK
) -> Abilities:
    """Abilities as the paper re-estimates them (section 3): equation 6 minimised in the ability alone.

    Chances are those of the Rasch model at these abilities, as if neither they nor the difficulties had errors. Nothing
    is said about intervals, nor about answers that stand out.
    """
    items = usable(difficulties)
    if difficulties.has_points or any(item.guess or item.discrimination != 1.0 for item in items):
        raise UsageError(
            "the published estimate of an ability was asked for, but the difficulties are those of items that are "
            "guessed, have points or differ in how well they distinguish learners, which it does not know.",
            hint="ask for the posterior, which does.",
            settings=("estimate",),
        )
    needed = n_needed(pass_mark, len(items))
    names = tuple(item.name for item in items)
    correct = matched(difficulties, responses).with_items(names).correct
    centres = np.array([item.difficulty for item in items], dtype=np.float64)
    ability = estimate_ability(correct, centres, penalty=penalty)
    chances = np.asarray(expit(ability[:, None] - centres))
    unknown, none = np.full(len(ability), np.nan), np.zeros(correct.shape, dtype=np.bool_)
    return Abilities(
        items=names,
        left_out=tuple(item.name for item in difficulties.items if item.difficulty is None),
        n_answered=np.count_nonzero(correct >= 0, axis=1),
        n_right=np.count_nonzero(correct > 0, axis=1),
        ability=ability,
        sd=unknown,
        low=unknown,
        high=unknown,
        chances=chances,
        by_others=np.full(correct.shape, np.nan),
        should_have=none,
        surprising=none,
        passing=at_least(chances, needed),
        needed=needed,
    )


def _penalty(options: AbilityOptions, released: Difficulties) -> float | None:
    """The penalty of the published estimate: as given, that of the difficulties, or the program's."""
    if options.estimate == "posterior":
        return None
    if options.penalty is not None:
        return options.penalty
    fitted = released.provenance.get("penalty")
    value = fitted.get("value") if isinstance(fitted, dict) else None
    return float(value) if isinstance(value, int | float) and 1e-4 <= value <= 100 else PENALTY


def _blanks(options: AbilityOptions, released: Difficulties, given: Answers) -> tuple[bool, str]:
    """Whether blanks are wrong, and why."""
    if options.missing is not None:
        return options.missing == "wrong", ", as asked"
    if not blanks_are_wrong(released):
        return False, ""
    if given.lists_blanks:
        return True, ", as in the difficulties"
    return False, ": a list does not tell who left a task blank"


def blanks_are_wrong(difficulties: Difficulties) -> bool:
    """Whether the difficulties are those of tasks where a missing answer is a wrong one."""
    return difficulties.provenance.get("missing") == "counted as wrong"


def pass_share(difficulties: Difficulties) -> float | str | None:
    """From which share of an item's points, or which grade, the difficulties count it as right; None without points."""
    share = difficulties.provenance.get("pass_share")
    if isinstance(share, str):
        try:
            return str(PassMark.of(share)) if has_direction(share) else None
        except UsageError:
            return None
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        return None
    return float(share)
