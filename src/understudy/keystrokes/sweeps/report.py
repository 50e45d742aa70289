"""The page of a sweep of coarsenings, with its figures and its advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from understudy.core.files.writing import results_csv, write_json, write_text
from understudy.core.pages.charts import Look, Point, curves, dots
from understudy.core.pages.figures import ACCENT, MUTED, WARNING, Figure
from understudy.core.pages.render import render
from understudy.keystrokes.sweeps.course import Course, SweepOptions
from understudy.keystrokes.sweeps.measures import WAYS
from understudy.keystrokes.sweeps.results import (
    AVERAGES,
    BY_TEXT,
    COLUMNS,
    EVENTS,
    IDENTIFICATION,
    INFERENCE,
    MATCHED,
    PUBLISHED,
    STRONGEST,
    Advice,
    Row,
    advise,
    select,
)

HEIGHT = 270
WORDS_OF_LEVEL = {AVERAGES: "averages of profiles", EVENTS: "every latency"}
NAMED_PUBLISHED = "published attack"
NAMED_STRONGEST = "strongest attack"
GUESSING = "guessing who"
MAJORITY = "majority label"
LABEL_FOREST = "label by forest"
LABEL_LINEAR = "label by discriminant"
# Between its points the strongest attack was not measured: dots show where it was. Two bands can be read, four cannot:
# the intervals of the others are in the tables.
LOOKS = {
    NAMED_STRONGEST: Look(WARNING),
    NAMED_PUBLISHED: Look("#6f4e9c", dots=False, band=False),
    GUESSING: Look(MUTED, dashed=True),
    LABEL_FOREST: Look(ACCENT, dots=False),
    LABEL_LINEAR: Look("#4d8f4a", dots=False, band=False),
    MAJORITY: Look("#9aa7b3", dashed=True),
}


def legend(course: Course, k: int, label: str | None) -> list[tuple[str, str]]:
    """What the lines in the figures are, those that are drawn."""
    what = label or "the label"
    lines = [
        (NAMED_STRONGEST, f"learners whom the best attack at this size names with {k} guesses"),
        (NAMED_PUBLISHED, "the same for the attack of Leinonen (2016): the nearest profile"),
        (GUESSING, f"what {k} blind guesses name"),
    ]
    if course.labels is not None:
        lines += [
            (LABEL_FOREST, f"learners whose {what} a random forest infers from how they type"),
            (LABEL_LINEAR, "the same for a linear discriminant"),
            (MAJORITY, f"what always saying the most frequent {what} gets right"),
        ]
    return lines


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
    """Identification and inference against the size, in one picture (Figures 8 and 9 of Leinonen 2016)."""
    lines = {
        NAMED_STRONGEST: select(rows, level=level, way=way, k=k, measure=IDENTIFICATION, name=STRONGEST),
        NAMED_PUBLISHED: select(rows, level=level, way=way, k=k, measure=IDENTIFICATION, name=PUBLISHED),
        LABEL_FOREST: select(rows, level=level, way=way, measure=INFERENCE, name="random-forest"),
        LABEL_LINEAR: select(rows, level=level, way=way, measure=INFERENCE, name="linear-discriminant"),
    }
    points = [
        Point(row.size, row.value, row.low, row.high, what) for what, line in lines.items() for row in line
    ]
    largest = max((float(point.at) for point in points), default=750.0)
    for what, line in ((GUESSING, lines[NAMED_PUBLISHED]), (MAJORITY, lines[LABEL_FOREST])):
        points += [Point(end, row.baseline, series=what) for row in line[:1] for end in (0.0, largest)]
    what = "buckets" if way == "bucket" else "rounding"
    drawing = curves(
        points,
        f"size of the {what} (ms), on {WORDS_OF_LEVEL[level]}",
        "share of learners",
        looks=LOOKS,
        domain=[0.0, 1.0],
        axis="%",
        number=".0%",
        bands=True,
        height=HEIGHT,
    )
    return drawing.figure(
        f"Share of learners named with {k} guesses, and share whose label is inferred, against the size of the "
        f"{way}ing of {WORDS_OF_LEVEL[level]}, in ms"
    )


# The sizes that Leinonen (2016) recommends, and as typed.
_COMPARED = [
    (AVERAGES, "bucket", 0.0, "as typed"),
    (AVERAGES, "bucket", 300.0, "averages, 300 ms buckets"),
    (AVERAGES, "round", 500.0, "averages, 500 ms steps"),
    (EVENTS, "bucket", 300.0, "events, 300 ms buckets"),
    (EVENTS, "round", 500.0, "events, 500 ms steps"),
]


def compared_sizes(rows: Sequence[Row], k: int) -> list[str]:
    """Those of the sizes above that were tried, in words."""
    return [
        words
        for level, way, size, words in _COMPARED
        if select(rows, level=level, way=way, size=size, k=k, measure=IDENTIFICATION)
    ]


def attacks(rows: Sequence[Row], k: int) -> Figure:
    """Every attack at the sizes that Leinonen (2016) recommends and as typed, with intervals."""
    colours = (MUTED, "#e0a98f", WARNING, ACCENT, "#0a3d4d")
    looks = {words: Look(colour) for (*_, words), colour in zip(_COMPARED, colours, strict=True)}
    points, chance = [], 0.0
    for level, way, size, words in _COMPARED:
        for row in select(rows, level=level, way=way, size=size, k=k, measure=IDENTIFICATION):
            if row.name != STRONGEST:
                chance = row.baseline
                points.append(Point(row.name, row.value, row.low, row.high, words))
    drawing = dots(
        points,
        f"share named with {k} guesses",
        looks=looks,
        domain=[0.0, 1.0],
        axis="%",
        number=".0%",
        reference=chance,
    )
    title = f"Share of learners named with {k} guesses by every attack; guessing names {chance:.1%}"
    return drawing.figure(title)


# Sizes of the tables of Leinonen (2016).
TABLE_SIZES = (0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0)


def all_advice(rows: Sequence[Row], options: SweepOptions) -> list[Advice]:
    """The advice for every level and way, with the most guesses that were tried."""
    k = options.most_guesses
    return [advise(rows, level, way, k) for level in (EVENTS, AVERAGES) for way in WAYS]


def write_results(
    folder: Path, rows: list[Row], course: Course, options: SweepOptions, label: str | None
) -> None:
    """Write `results.csv`, `advice.json`, every figure, and `report.html`."""
    k = options.most_guesses
    found = figures(rows, k)
    for name, figure in found.items():
        figure.inside().save(folder, name)
    write_text(folder / "results.csv", results_csv(map(asdict, rows), COLUMNS))
    advice = all_advice(rows, options)
    write_json(folder / "advice.json", {"internal": True, "advice": [one.to_json() for one in advice]})
    page = render(
        "keystrokes/sweep.html",
        figures=found,
        legend=legend(course, k, label),
        compared=compared_sizes(rows, k),
        options=options,
        course=course,
        label=label,
        k=k,
        advice=advice,
        levels=WORDS_OF_LEVEL,
        tables=[(level, way, table(rows, level, way, k)) for level in (EVENTS, AVERAGES) for way in WAYS],
        text=next(iter(select(rows, measure=BY_TEXT, k=k)), None),
        chance=min(1.0, k / course.keystrokes.n_learners),
        together=together(rows, options.numbers_of_guesses),
    )
    write_text(folder / "report.html", page)


def together(rows: Sequence[Row], guesses: Sequence[int]) -> list[dict[str, object]]:
    """What naming everybody at once adds: a row per way and size of events, as typed once.

    `named` has, for the fewest and the most guesses, the best rate of likelihoods person by person and matched.
    """
    found: list[dict[str, object]] = []
    for way in WAYS:
        tried = {row.size for row in select(rows, level=EVENTS, way=way, measure=IDENTIFICATION)}
        for size in sorted(tried & set(TABLE_SIZES)):
            if size == 0 and found:
                continue
            named = []
            for k in sorted({min(guesses), max(guesses)}):
                of_k = select(rows, level=EVENTS, way=way, size=size, k=k, measure=IDENTIFICATION)
                joint = [row for row in of_k if row.name.endswith(MATCHED)]
                single = [row for row in of_k if f"{row.name}{MATCHED}" in {one.name for one in joint}]
                if joint:
                    named.append([max(part, key=lambda row: row.value) for part in (single, joint)])
            if named:
                found.append({"way": way, "size": size, "named": named})
    return found


def table(rows: Sequence[Row], level: str, way: str, k: int) -> list[dict[str, Row | float | None]]:
    """A row per size of the published tables that was fully tried."""
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
