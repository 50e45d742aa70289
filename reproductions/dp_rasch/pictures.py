"""Figures 1 and 6 of the paper, our own: the workflow as boxes, and probabilities of students who never existed."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

from reproductions.dp_rasch.figures import COMPARED, LABELS, equality_line
from reproductions.dp_rasch.study import REAL_EPSILON
from reproductions.dp_rasch.trials import METHODS, NOISELESS, chances, child, way_of
from understudy.core.files.writing import write_bytes, write_text
from understudy.core.pages.charts import Drawing, heading, panels
from understudy.core.pages.figures import ACCENT, INK, WARNING, Figure, data
from understudy.exams.simulate import Exam

# The sizes of Figure 6, and its class: as many students and questions as EPM has.
SCATTER_SIZES = (21, 42, 62)
SCATTER_ITEMS = 16
# The part of the study's random numbers.
_SCATTER = 103


@dataclass(frozen=True)
class _Box:
    """A box of the workflow: its place in pixels, its title, and what happens in it."""

    x: int
    y: int
    width: int
    height: int
    title: str
    colour: str
    lines: tuple[str, ...]


_BOXES = (
    _Box(
        10, 34, 196, 118, "Answers of a class", INK, ("right and wrong,", "a row per student;", "never leave")
    ),
    _Box(
        242,
        34,
        196,
        118,
        "Noisy totals",
        ACCENT,
        ("how many solved each item,", "plus noise: the epsilon", "is charged"),
    ),
    _Box(
        474,
        34,
        196,
        118,
        "Difficulties",
        ACCENT,
        ("how hard each item is,", "with its error:", "public, with a guarantee"),
    ),
    _Box(10, 206, 196, 98, "A student's own answers", INK, ("stay on the student's", "own device")),
    _Box(474, 206, 196, 98, "Ability and chances", WARNING, ("computed there,", "seen by the student alone")),
)
_ARROWS = ((206, 93, 242, 93), (438, 93, 474, 93), (572, 152, 572, 206), (206, 255, 474, 255))
_AREAS = ((2, 6, 444, 154, "at the school"), (2, 178, 676, 134, "at home"))


def workflow() -> str:
    """The paper's Figure 1 as we understand it, as SVG: only difficulties leave the school, only the student joins."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 316" width="680" height="316" role="img" '
        'font-family="system-ui, sans-serif">',
        "<title>The workflow: noisy totals of a class give public difficulties; a student joins them with their own "
        "answers at home.</title>",
        '<rect width="680" height="316" fill="#ffffff"/>',
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M0 0 L8 4 L0 8 z" fill="{INK}"/></marker></defs>',
    ]
    for x, y, width, height, words in _AREAS:
        parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="#f4f4f2"/>'
            f'<text x="{x + 10}" y="{y + 18}" font-size="13" fill="#666666">{words}</text>'
        )
    for box in _BOXES:
        middle = box.x + box.width / 2
        parts.append(
            f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="6" fill="#ffffff" '
            f'stroke="{box.colour}" stroke-width="1.5"/>'
            f'<text x="{middle:g}" y="{box.y + 28}" font-size="15" font-weight="600" text-anchor="middle" '
            f'fill="{box.colour}">{escape(box.title)}</text>'
        )
        parts += [
            f'<text x="{middle:g}" y="{box.y + 54 + 20 * place}" font-size="13" text-anchor="middle" '
            f'fill="{INK}">{escape(line)}</text>'
            for place, line in enumerate(box.lines)
        ]
    parts += [
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{INK}" stroke-width="1.5" marker-end="url(#tip)"/>'
        for x1, y1, x2, y2 in _ARROWS
    ]
    return "\n".join([*parts, "</svg>", ""])


def save_workflow(folder: Path) -> None:
    """Write `workflow.svg` and `workflow.png`."""
    import vl_convert

    drawn = workflow()
    write_text(folder / "workflow.svg", drawn)
    write_bytes(folder / "workflow.png", vl_convert.svg_to_png(drawn, scale=2))


def scatter(seed: int = 1, sizes: tuple[int, ...] = SCATTER_SIZES) -> Figure:
    """Figure 6 of the paper with simulated students: a point per student and item, private against noiseless."""
    import altair as alt

    parts = []
    for method in COMPARED:
        for size in sizes:
            rng = child(seed, _SCATTER, size)
            responses = Exam(size, SCATTER_ITEMS).simulate(rng).responses
            fitted = METHODS[method].fit(
                responses, REAL_EPSILON, child(seed, _SCATTER, size, COMPARED.index(method))
            )
            exact = NOISELESS[str(METHODS[method].noiseless)][0](responses)
            private, noiseless = (
                chances(found, responses.correct, way_of(method)).ravel() for found in (fitted, exact)
            )
            values = [
                {"x": round(float(x), 4), "y": round(float(y), 4)}
                for x, y in zip(noiseless, private, strict=True)
            ]
            scale = alt.Scale(domain=[0, 1], nice=False)
            axis = alt.Axis(values=[0, 0.5, 1], format=".1~f", grid=False)
            bottom, left = method == COMPARED[-1], size == sizes[0]
            x = alt.X("x:Q", scale=scale, axis=axis, title="without noise" if bottom else None)
            y = alt.Y("y:Q", scale=scale, axis=axis, title=LABELS[method] if left else None)
            points = alt.Chart(data(values)).mark_circle(size=14, opacity=0.3, color=ACCENT).encode(x=x, y=y)
            chart = alt.layer(points, equality_line(scale)).properties(height=170)
            if method == COMPARED[0]:
                chart = chart.properties(title=heading(f"{size} students"))
            parts.append(Drawing(chart, ""))
    words = (
        "Success probabilities of simulated students, private against those of the same fit without noise, epsilon "
        f"{REAL_EPSILON:g}, {SCATTER_ITEMS} items, {', '.join(map(str, sizes))} students. The line is equality; the "
        "points draw close to it as the class grows."
    )
    return panels(parts, words, columns=len(sizes), stacked=False)
