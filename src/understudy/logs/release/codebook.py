"""The codebook: what each column of a synthetic log and of its table of learners means, in a file for machines.

It states what was declared and what can be seen in the synthetic data alone.
"""

from __future__ import annotations

import csv
import io

import numpy as np
import polars as pl

from understudy.core.files.times import counts_from_a_start
from understudy.logs.declared.columns import OTHER, Column, Kind
from understudy.logs.declared.term import RESOLUTIONS
from understudy.logs.interactions import Interactions

FIELDS = ("column", "type", "meaning", "values", "file", "unit")
_TYPES = {Kind.category: "category", Kind.flag: "yes/no", Kind.number: "number", Kind.time: "time"}


def codebook(synthetic: Interactions, keeps_rows: bool) -> str:
    """A row per column, as CSV; a method may have kept rows of real learners.

    Files and units are named where there is more than one of them to name.
    """
    who = "A real learner under a new number" if keeps_rows else "A synthetic learner"
    number = "is arbitrary." if keeps_rows else "is arbitrary and belongs to no real learner."
    in_both = "synthetic, learners" if synthetic.learner_columns else "synthetic"
    names, size = f"{who}. The number {number}", f"{synthetic.n_learners} different values"
    attempted = "What the learner attempted; rows of a learner are in order."
    lines: list[tuple[str, ...]] = [
        FIELDS,
        ("learner", "text", names, size, in_both, ""),
        ("action", "text", attempted, f"{n_occurring(synthetic)} different names", "synthetic", ""),
    ]
    if synthetic.outcome is not None:
        lines.append(
            ("outcome", "integer", "Whether the attempt succeeded.", "1 success, 0 failure", "synthetic", "")
        )
    lines += [_of_times(synthetic)] if synthetic.has_times else []
    lines += [_of_column(column, synthetic, keeps_rows) for column in synthetic.columns]
    n_fields = len(FIELDS) if synthetic.has_times or synthetic.columns else len(FIELDS) - 2
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(line[:n_fields] for line in lines)
    return text.getvalue()


def n_occurring(synthetic: Interactions) -> int:
    """Actions that occur. The vocabulary may have more, but that would be a fact about the real log."""
    return len(set(synthetic.action.tolist()))


def _of_times(synthetic: Interactions) -> tuple[str, ...]:
    assert synthetic.term is not None
    term, times = synthetic.term, pl.Series(synthetic.time)
    words = {seconds: name for name, seconds in RESOLUTIONS.items()}
    steps = words.get(term.resolution, f"multiple of {term.resolution:g} seconds")
    meaning = f"When it happened, to the {steps}; a pause of {term.session_minutes:g} minutes ends a session."
    if counts_from_a_start(times):
        return "time", "number", meaning, "counted from a start", "synthetic", "seconds"
    first, last = (
        (term.first, term.last)
        if term.declared
        else times.dt.date()
        .to_frame("day")
        .select(pl.col("day").min().alias("first"), pl.col("day").max().alias("last"))
        .row(0)
    )
    values = "" if first is None else f"{first} to {last}"
    return "time", "time", meaning, values, "synthetic", ""


def _of_column(column: Column, synthetic: Interactions, keeps_rows: bool) -> tuple[str, ...]:
    declared = column.declared
    of_row = declared.of == "row"
    meaning = "Of the attempt" if of_row else "Of the learner"
    if not keeps_rows:
        outcome = "" if synthetic.outcome is None else " and outcome"
        meaning += (
            f", drawn by its action{outcome}, apart from the learner's other rows"
            if of_row
            else ", drawn by what the learner did and by other columns, apart from times"
        )
    meaning += "." if declared.at is None else ". Only some actions have one."
    if declared.coded:
        names = declared.names
        values = ", ".join(names if _occurs(column, len(names) - 1) or OTHER not in names else names[:-1])
        if declared.kind is Kind.category:
            meaning += f" What is none of the declared values is '{OTHER}'."
    elif declared.bounds is None:
        values = ""
    elif declared.kind is Kind.time:
        ends = np.array(declared.bounds, dtype="datetime64[s]").astype("datetime64[D]")
        values = f"{ends[0]} to {ends[1]}"
    else:
        values = "{:g} to {:g}".format(*declared.bounds)
    if declared.step is not None:
        values += f" in steps of {declared.step:g}"
    return (
        declared.name,
        _TYPES[declared.kind],
        f"{meaning} Empty cells are missing.",
        values,
        "synthetic" if of_row else "learners",
        declared.unit,
    )


def _occurs(column: Column, code: int) -> bool:
    return bool((column.cells == code).any())
