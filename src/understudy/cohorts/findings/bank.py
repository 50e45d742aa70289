"""The bank: analyses with a name, a kind and a question, and the findings they return."""

from __future__ import annotations

import importlib.util
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.findings.evidence import Evidence
from understudy.cohorts.findings.habits import Habits, habits_of
from understudy.cohorts.schema import Schema
from understudy.cohorts.summary.statistics import MEASURES
from understudy.cohorts.summary.suggestions import Habit
from understudy.errors import DataError, UsageError

# What most papers on learning habits call significant, per test and without correction. Fixed before
# any generator was looked at: a stricter level or a correction would flatter precision.
ALPHA = 0.05

Kind = Literal[
    "correlation",
    "group difference",
    "regression",
    "time of day",
    "cluster",
    "trend",
    "mediation",
    "persistence",
    "inequality",
    "causal discovery",
]
_ORDER = {kind: place for place, kind in enumerate(get_args(Kind))}

# Kinds become column names and labels of a figure.
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9 -]{0,39}")

# How to make a cohort in which there is nothing to find; see `without_effect`.
Null = Literal["labels", "weeks", "learners", "windows"]


@dataclass(frozen=True)
class Finding:
    """The result of one test of an analysis: an effect, its direction, and whether it is significant."""

    name: str
    direction: Literal[-1, 0, 1]
    significant: bool
    p_value: float
    effect: float

    @classmethod
    def of(cls, name: str, test: Evidence, *, directed: bool = True) -> Finding:
        """The finding of a test at the level `ALPHA`; without direction where the effect has none."""
        sign = int(np.sign(test.effect)) if directed else 0
        direction: Literal[-1, 0, 1] = 1 if sign > 0 else -1 if sign < 0 else 0
        return cls(name, direction, test.p_value < ALPHA, test.p_value, test.effect)

    def to_json(self) -> dict[str, Any]:
        """The finding for a machine."""
        return dict(vars(self))


Function = Callable[[Cohort], list[Finding]]


@dataclass(frozen=True)
class Analysis:
    """A question that a researcher asks of a cohort, and the function that answers it.

    For a given schema the function returns the same names, whatever the learners did. `null` is
    the way to break the relation it looks for, which is how its false alarms are counted; an analysis
    of one's own may leave it out. `rests_on` names the statistics of a private summary that have to be
    right for its findings to hold: feedback on them moves the budget of those. `label_effects` are
    the habits of a window whose relation to the label a finding shows.
    """

    name: str
    kind: str
    question: str
    function: Function
    null: Null | None = None
    method: str = ""
    rests_on: tuple[str, ...] = ()
    label_effects: tuple[Habit, ...] = ()

    @property
    def about_outcome(self) -> bool:
        """Whether it relates habits to the outcome; an analysis without `null` counts as one that does."""
        return self.null in (None, "labels")

    def findings(self, cohort: Cohort) -> list[Finding]:
        """The findings on a cohort, with the analysis before their names."""
        return [replace(finding, name=f"{self.name}: {finding.name}") for finding in self.function(cohort)]


def as_given(habits: Habits, samples: Any) -> Any:
    """Design: the samples as they are."""
    return samples


class Test(NamedTuple):
    """A statistical test, and the design that makes its samples from habits."""

    evidence: Callable[..., Any]
    design: Callable[[Habits, Any], Mapping[Any, Any]] = as_given
    directed: bool = True


class Declared(NamedTuple):
    """An analysis of the bank as a row of a table: a test, habits and a question.

    `columns` gives the habits that the test's design takes: for each finding its name and one number per
    learner. Where one fit gives several findings they have a tuple of names, and a place without a name is left out.
    """

    name: str
    test: Test
    columns: Callable[[Habits], Mapping[Any, Any]]
    question: str
    method: str
    null: Null = "labels"
    rests_on: tuple[str, ...] = ("habits",)
    label_effects: tuple[Habit, ...] = ()

    def findings(self, cohort: Cohort) -> list[Finding]:
        """The findings on a cohort."""
        habits = habits_of(cohort)
        found = []
        for names, samples in self.test.design(habits, self.columns(habits)).items():
            evidence = self.test.evidence(*samples)
            named = [(names, evidence)] if isinstance(names, str) else zip(names, evidence, strict=True)
            found += [
                Finding.of(name, evidence, directed=self.test.directed)
                for name, evidence in named
                if name is not None
            ]
        return found


_BANK: dict[str, Analysis] = {}


def add_analysis(
    name: str,
    kind: str,
    question: str,
    function: Function,
    null: Null | None = None,
    *,
    method: str = "",
    rests_on: Sequence[str] = (),
    label_effects: Sequence[Habit] = (),
) -> Analysis:
    """Add an analysis of one's own to the bank; `compare_findings` then runs it with the others.

    `function(cohort)` returns findings, best made with `Finding.of(name, Evidence(effect, p_value))`.
    It draws no random numbers, or has a fixed seed, and returns the same names for every cohort of
    a schema. `method` describes the test: by default the first line of the function's docstring.
    """
    if not _KIND.fullmatch(kind):
        raise UsageError(
            f"the kind of the analysis '{name}' is not a few plain words.", hint='such as "my own".'
        )
    if name in _BANK:
        raise UsageError(f"there is already an analysis '{name}'.", hint="give yours another name.")
    if not set(rests_on) <= set(MEASURES):
        raise UsageError(
            f"the analysis '{name}' rests on a statistic that no summary holds.",
            hint="known: " + ", ".join(MEASURES) + ".",
        )
    described = method or (function.__doc__ or "").strip().split("\n")[0].rstrip(".")
    _BANK[name] = Analysis(
        name, kind, question, function, null, described, tuple(rests_on), tuple(label_effects)
    )
    return _BANK[name]


def remove_analysis(name: str) -> None:
    """Take an analysis out of the bank."""
    if name not in _BANK:
        raise UsageError(
            f"there is no analysis '{name}'.", hint="docs/explanation/findings.md lists all analyses."
        )
    del _BANK[name]


def register(
    kind: Kind | str, question: str, null: Null | None = None, *, rests_on: Sequence[str] = ()
) -> Callable[[Function], Function]:
    """The decorator that adds an analysis to the bank: the function's name is the analysis' name."""

    def added(function: Function) -> Function:
        add_analysis(function.__name__, kind, question, function, null, rests_on=rests_on)
        return function

    return added


def declare(kind: Kind, *rows: Declared) -> None:
    """Add the analyses of a table to the bank."""
    for row in rows:
        add_analysis(
            row.name,
            kind,
            row.question,
            row.findings,
            row.null,
            method=row.method,
            rests_on=row.rests_on,
            label_effects=row.label_effects,
        )


def bank() -> tuple[Analysis, ...]:
    """All analyses: ours kind by kind, then those that were added."""
    return tuple(sorted(_BANK.values(), key=lambda analysis: _ORDER.get(analysis.kind, len(_ORDER))))


def bank_table(analyses: Sequence[Analysis] | None = None) -> str:
    """The analyses as a Markdown table: what docs/explanation/findings.md shows."""
    lines = ["| analysis | kind | question | test | null | rests on |", "|---|---|---|---|---|---|"]
    for analysis in bank() if analyses is None else analyses:
        lines.append(
            f"| `{analysis.name}` | {analysis.kind} | {analysis.question} | {analysis.method} "
            f"| {analysis.null or 'not declared'} | {', '.join(analysis.rests_on) or 'not declared'} |"
        )
    return "\n".join(lines) + "\n"


def run_bank(cohort: Cohort, analyses: Sequence[Analysis] | None = None) -> dict[str, Finding]:
    """The findings of all analyses on a cohort, by name."""
    found: dict[str, Finding] = {}
    for analysis in bank() if analyses is None else analyses:
        for finding in analysis.findings(cohort):
            if finding.name in found:
                raise UsageError(
                    f"two findings are called '{finding.name}'.",
                    hint="give the findings of an analysis different names.",
                )
            found[finding.name] = finding
    return found


def finding_names(schema: Schema) -> dict[str, list[str]]:
    """What each analysis tests with a schema, by analysis: its findings on noise."""
    rng = np.random.default_rng(0)
    n = 40 * schema.n_labels
    values = rng.exponential(0.2, (n, schema.n_features, schema.n_weeks)) * schema.highs[None, :, None]
    values *= rng.random(values.shape) < 0.7
    noise = Cohort(values, (np.arange(n) % schema.n_labels).astype(np.int8), schema, simulated=True)
    return {analysis.name: [finding.name for finding in analysis.function(noise)] for analysis in bank()}


def without_effect(cohort: Cohort, null: Null, rng: np.random.Generator) -> Cohort:
    """A cohort in which the relation that an analysis looks for is broken, and little else.

    `labels`: the labels are dealt out anew. `weeks`: each learner's weeks are shuffled, in each
    window separately. `learners`: each column of the table is shuffled among the learners, so that
    nothing a learner does goes with anything else. `windows`: each learner's windows are swapped.
    """
    values, label = cohort.values, cohort.label
    if null == "labels":
        label = rng.permutation(label)
    elif null == "weeks":
        values = rng.permuted(values, axis=2)
    elif null == "learners":
        values = rng.permuted(values, axis=0)
    else:
        order = rng.permuted(np.broadcast_to(np.arange(values.shape[1]), values.shape[:2]), axis=1)
        values = np.take_along_axis(values, order[:, :, None], axis=1)
    return replace(cohort, values=values, label=label)


def add_analyses(path: Path) -> tuple[Analysis, ...]:
    """Add the analyses of a file to the bank; none of them on an error."""
    return tuple(add_analysis(**vars(analysis)) for analysis in read_analyses(path))


def read_analyses(path: Path) -> tuple[Analysis, ...]:
    """The analyses that a Python file declares (`register` or `add_analysis`), without adding them to the bank."""
    if not path.is_file() or path.suffix != ".py":
        raise UsageError(
            f"there is no Python file {path}.", hint="docs/explanation/findings.md has an example of one."
        )
    path = path.resolve()
    before = {analysis.name for analysis in bank()}
    specification = importlib.util.spec_from_file_location("analyses_of_ones_own", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
        added = [analysis for analysis in bank() if analysis.name not in before]
    except UsageError:
        raise
    except Exception as error:
        raise DataError(
            f"the file of analyses {_ended(error, path)}.", hint="run it with Python to see more."
        ) from None
    finally:
        _forget(before)
    if not added:
        raise UsageError(
            f"{path.name} adds no analysis.",
            hint='write @register("my kind", "My question?") above a function that returns findings.',
        )
    # Their errors name the file and never a learner's value.
    return tuple(
        replace(analysis, function=_guarded(analysis.name, analysis.function, path)) for analysis in added
    )


def _forget(before: set[str]) -> None:
    for analysis in bank():
        if analysis.name not in before:
            remove_analysis(analysis.name)


def _guarded(
    name: str, function: Callable[[Cohort], list[Finding]], path: Path
) -> Callable[[Cohort], list[Finding]]:
    def findings(cohort: Cohort) -> list[Finding]:
        try:
            found = list(function(cohort))
        except Exception as error:
            raise DataError(
                f"the analysis '{name}' {_ended(error, path)}.",
                hint="it has to work for the real cohort and for synthetic ones, also where there is nothing to find.",
            ) from None
        if not all(isinstance(finding, Finding) for finding in found):
            raise DataError(
                f"the analysis '{name}' of {path.name} returned something other than findings.",
                hint="return a list of Finding.of(name, Evidence(effect, p_value)).",
            )
        return found

    return findings


def _ended(error: Exception, path: Path) -> str:
    """The kind of an error and the line of the file; its message may quote a value."""
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path
    ]
    line = lines[-1] if lines else getattr(error, "lineno", None)
    where = f" in line {line}" if line else ""
    return f"ended with {type(error).__name__}{where} of {path.name}"
