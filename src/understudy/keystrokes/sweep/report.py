"""The page of a sweep of coarsenings, with its figures and its advice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from understudy.core.files.writing import write_json, write_text
from understudy.core.pages.render import render
from understudy.keystrokes.sweep.figures import WORDS_OF_LEVEL, figures
from understudy.keystrokes.sweep.results import (
    AVERAGES,
    BY_COURSE,
    BY_TEXT,
    EVENTS,
    IDENTIFICATION,
    INFERENCE,
    PUBLISHED,
    STRONGEST,
    Advice,
    Row,
    advise,
    select,
)
from understudy.keystrokes.sweep.sweep import WAYS, Course, SweepPlan, table_of

# Sizes of the thesis's tables.
TABLE_SIZES = (0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0)


def all_advice(rows: Sequence[Row], plan: SweepPlan) -> list[Advice]:
    """The advice for every level and way, with the most guesses that were tried."""
    k = max(plan.guesses)
    return [advise(rows, level, way, k) for level in (EVENTS, AVERAGES) for way in WAYS]


def write_results(folder: Path, rows: list[Row], course: Course, plan: SweepPlan, label: str | None) -> None:
    """Write `results.csv`, `advice.json`, every figure, and `report.html`."""
    k = max(plan.guesses)
    found = figures(rows, k)
    for name, figure in found.items():
        figure.save(folder, name)
    write_text(folder / "results.csv", table_of(rows))
    advice = all_advice(rows, plan)
    write_json(folder / "advice.json", {"internal": True, "advice": [one.to_json() for one in advice]})
    page = render(
        "keystrokes/sweep.html",
        figures=found,
        plan=plan,
        course=course,
        label=label,
        k=k,
        advice=advice,
        levels=WORDS_OF_LEVEL,
        tables=[(level, way, table(rows, level, way, k)) for level in (EVENTS, AVERAGES) for way in WAYS],
        courses=select(rows, measure=BY_COURSE),
        text=next(iter(select(rows, measure=BY_TEXT, k=k)), None),
        chance=min(1.0, k / course.keystrokes.n_learners),
    )
    write_text(folder / "report.html", page)


def table(rows: Sequence[Row], level: str, way: str, k: int) -> list[dict[str, Row | float | None]]:
    """A row per size of the thesis's tables that was fully tried."""
    wanted: dict[str, dict[str, object]] = {
        "strongest": {"measure": IDENTIFICATION, "name": STRONGEST, "k": k},
        "published": {"measure": IDENTIFICATION, "name": PUBLISHED, "k": k},
        "forest": {"measure": INFERENCE, "name": "random-forest"},
        "bayes": {"measure": INFERENCE, "name": "naive-bayes"},
        "forest_all": {"measure": INFERENCE, "name": "random-forest, all digraphs"},
        "forest_outside": {"measure": INFERENCE, "name": "random-forest, selected outside"},
        "order": {"name": "order of learners"},
        "unique": {"name": "unique"},
    }
    lines = {
        name: {row.size: row for row in select(rows, level=level, way=way, **conditions)}
        for name, conditions in wanted.items()
    }
    tried = sorted(lines["strongest"])
    sizes = [size for size in tried if size in TABLE_SIZES] or tried
    return [{"size": size, **{name: line.get(size) for name, line in lines.items()}} for size in sizes]
