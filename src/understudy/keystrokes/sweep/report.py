"""The page of a sweep of coarsenings, with its figures and its advice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from understudy.core.files.writing import write_json, write_text
from understudy.core.pages.figures import ACCENT, MUTED, WARNING, Figure, data
from understudy.core.pages.render import render
from understudy.keystrokes.sweep.results import (
    AVERAGES,
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

HEIGHT = 270
WORDS_OF_LEVEL = {AVERAGES: "averages of profiles", EVENTS: "every latency"}
NAMED_PUBLISHED = "published attack"
NAMED_STRONGEST = "strongest attack"
GUESSING = "guessing who"
MAJORITY = "majority label"
LABEL_FOREST = "label by forest"
LABEL_LINEAR = "label by discriminant"
COLOURS = {
    NAMED_STRONGEST: WARNING,
    NAMED_PUBLISHED: "#d99a7c",
    GUESSING: MUTED,
    LABEL_FOREST: ACCENT,
    LABEL_LINEAR: "#6fb3c6",
    MAJORITY: "#9aa7b3",
}


def figures(rows: Sequence[Row], k: int) -> dict[str, Figure]:
    """All figures that the rows allow, by the name of their files."""
    found: dict[str, Figure] = {}
    for level in (AVERAGES, EVENTS):
        for way in WAYS:
            if any(row.size > 0 for row in select(rows, level=level, way=way)):
                found[f"{way}-{level}"] = tradeoff(rows, level, way, k)
    if found:
        found["attacks"] = attacks(rows, k)
    return found


def tradeoff(rows: Sequence[Row], level: str, way: str, k: int) -> Figure:
    """Identification and inference against the size, in one picture (the thesis's Figures 8 and 9)."""
    import altair as alt

    lines = {
        NAMED_STRONGEST: select(rows, level=level, way=way, k=k, measure=IDENTIFICATION, name=STRONGEST),
        NAMED_PUBLISHED: select(rows, level=level, way=way, k=k, measure=IDENTIFICATION, name=PUBLISHED),
        LABEL_FOREST: select(rows, level=level, way=way, measure=INFERENCE, name="random-forest"),
        LABEL_LINEAR: select(rows, level=level, way=way, measure=INFERENCE, name="linear-discriminant"),
    }
    values: list[dict[str, Any]] = [
        {"what": what, "size": row.size, "value": row.value, "low": row.low, "high": row.high}
        for what, line in lines.items()
        for row in line
    ]
    levels = {
        GUESSING: lines[NAMED_PUBLISHED][:1],
        MAJORITY: lines[LABEL_FOREST][:1],
    }
    largest = max((value["size"] for value in values), default=750)
    values += [
        {"what": what, "size": end, "value": row.baseline, "low": row.baseline, "high": row.baseline}
        for what, line in levels.items()
        for row in line
        for end in (0, largest)
    ]
    shown = [what for what in COLOURS if any(value["what"] == what for value in values)]
    scale = alt.Scale(domain=shown, range=[COLOURS[what] for what in shown])
    x = alt.X(
        "size:Q",
        title=f"size of the {'buckets' if way == 'bucket' else 'rounding'} (ms), on {WORDS_OF_LEVEL[level]}",
        scale=alt.Scale(domain=[0, largest], nice=False),
        axis=alt.Axis(tickCount=6, grid=False),
    )
    unit = alt.Scale(domain=[0, 1], nice=False)
    y = alt.Y("value:Q", title="share of learners", scale=unit, axis=alt.Axis(format="%", tickCount=6))
    colour = alt.Color(
        "what:N", scale=scale, legend=alt.Legend(title=None, orient="top", columns=2, labelLimit=240)
    )
    base = alt.Chart(data(values))
    measured = alt.FieldOneOfPredicate("what", [w for w in shown if w not in levels])
    flat = alt.FieldOneOfPredicate("what", list(levels))
    bands = (
        base.transform_filter(measured)
        .mark_area(opacity=0.15)
        .encode(x=x, y=alt.Y("low:Q", scale=unit), y2="high:Q", color=colour)
    )
    curves = base.transform_filter(measured).mark_line(strokeWidth=2).encode(x=x, y=y, color=colour)
    # Between its points the strongest attack was not measured; the line must not pretend that it was.
    strong = alt.FieldEqualPredicate("what", NAMED_STRONGEST)
    dots = (
        base.transform_filter(strong)
        .mark_point(filled=True, size=40, opacity=1)
        .encode(x=x, y=y, color=colour)
    )
    dashes = (
        base.transform_filter(flat)
        .mark_line(strokeWidth=1.5, strokeDash=[5, 4])
        .encode(x=x, y=y, color=colour)
    )
    chart = alt.layer(bands, dashes, curves, dots).properties(height=HEIGHT)
    return Figure.of(chart, _words(lines, way, level, k))


def _words(lines: dict[str, list[Row]], way: str, level: str, k: int) -> str:
    ends = "; ".join(
        f"{what}: {line[0].value:.0%} at {line[0].size:g} ms, {line[-1].value:.0%} at {line[-1].size:g} ms"
        for what, line in lines.items()
        if line
    )
    return (
        f"Share of learners named with {k} guesses, and share whose label is inferred, against the size of the "
        f"{way}ing of {WORDS_OF_LEVEL[level]}. {ends}."
    )


def attacks(rows: Sequence[Row], k: int) -> Figure:
    """Every attack at the sizes that the thesis recommends, beside none, with intervals."""
    import altair as alt

    wanted = [
        (AVERAGES, "bucket", 0.0, "as typed"),
        (AVERAGES, "bucket", 300.0, "buckets of 300 ms, averages"),
        (AVERAGES, "round", 500.0, "rounded to 500 ms, averages"),
        (EVENTS, "bucket", 300.0, "buckets of 300 ms, events"),
        (EVENTS, "round", 500.0, "rounded to 500 ms, events"),
    ]
    values: list[dict[str, Any]] = []
    chance = 0.0
    for level, way, size, words in wanted:
        for row in select(rows, level=level, way=way, size=size, k=k, measure=IDENTIFICATION):
            if row.name != STRONGEST:
                chance = row.baseline
                values.append(
                    {
                        "attack": row.name,
                        "release": words,
                        "value": row.value,
                        "low": row.low,
                        "high": row.high,
                    }
                )
    order = list(dict.fromkeys(value["release"] for value in values))
    colours = [MUTED, "#e0a98f", WARNING, ACCENT, "#0a3d4d"][: len(order)]
    scale = alt.Scale(domain=[0, 1], nice=False)
    x = alt.X("value:Q", title=f"share named with {k} guesses", scale=scale, axis=alt.Axis(format="%"))
    y = alt.Y("attack:N", title=None, sort=None, axis=alt.Axis(domain=False, ticks=False))
    offset = alt.YOffset("release:N", sort=order)
    colour = alt.Color(
        "release:N",
        scale=alt.Scale(domain=order, range=colours),
        legend=alt.Legend(title=None, orient="top", columns=1, labelLimit=240),
    )
    base = alt.Chart(data(values))
    rules = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", scale=scale), x2="high:Q", y=y, yOffset=offset, color=colour
    )
    dots = base.mark_point(filled=True, size=50, opacity=1).encode(x=x, y=y, yOffset=offset, color=colour)
    guess = (
        alt.Chart(data([{"value": chance}]))
        .mark_rule(color=MUTED, strokeDash=[5, 4])
        .encode(x=alt.X("value:Q", scale=scale))
    )
    chart = alt.layer(guess, rules, dots).properties(height=alt.Step(11))
    words = (
        f"Share of learners named with {k} guesses by every attack; guessing names {chance:.1%}. "
        + "; ".join(f"{value['attack']}, {value['release']}: {value['value']:.0%}" for value in values)
    )
    return Figure.of(chart, words + ".")


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
        "linear": {"measure": INFERENCE, "name": "linear-discriminant"},
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
