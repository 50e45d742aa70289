"""ladder(): students and items on one scale, as a picture that a teacher can read (a Wright map).

The students are a curve of the model, with the mean and the spread of abilities in the file: no student is drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from understudy.core.files.words import counted
from understudy.core.files.writing import check_not_input, check_parent, write_text
from understudy.errors import DataError, UsageError
from understudy.exams.released_file import Difficulties, Item

# In units of the drawing, which is as wide as a telephone; larger screens scale it up.
_WIDTH, _LEFT, _RIGHT = 400, 134, 12
_ROW, _TOP, _CURVE = 20, 34, 70
_LONGEST_NAME = 16
# The scale is repeated, so that one is in sight wherever a long exam is scrolled to.
_ROWS_PER_SCALE = 30
_REACH = 1.96
# Closer ticks would touch; the first ones, in the middle and at the ends, are drawn.
_TICKS_APART = 15
# Bars that reach further beyond the dots and the students, in log-odds, are cut: others would have no room.
_MOST_BEYOND = 1.5

_STYLE = """
.ladder{--ink:#1f2933;--soft:#52606d;--line:#d5dbe1;--band:#f1f4f7;--dot:#0b6fb8;--crowd:#9fb3c8;--paper:#ffffff}
@media(prefers-color-scheme:dark){.ladder{--ink:#e4e9ee;--soft:#a9b4c0;--line:#3d4955;--band:#222c36;--dot:#6cb8f0;
--crowd:#486581;--paper:#161d24}}
.ladder text{font:14px system-ui,sans-serif;fill:var(--ink)}
.ladder .soft{fill:var(--soft);font-size:13px}
.ladder .line{stroke:var(--line);stroke-width:1}
.ladder .band{fill:var(--band)}
.ladder .dot{fill:var(--dot)}
.ladder .reach{stroke:var(--dot);stroke-width:2;opacity:.55}
.ladder .cut{fill:var(--dot);opacity:.8}
.ladder .crowd{fill:var(--crowd);opacity:.7}
.ladder .paper{fill:var(--paper)}
"""


@dataclass(frozen=True)
class Ladder:
    """The picture, and the page that holds it; `difficulties` are those that are drawn."""

    svg: str
    difficulties: Difficulties
    out: Path | None = None

    @property
    def html(self) -> str:
        """A page with the picture and what it says in words; it needs no connection and runs no program."""
        title = escape(self.difficulties.title or "Students and tasks on one scale")
        words = "".join(f"<p>{escape(line)}</p>" for line in _reading(self.difficulties))
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
            f"<title>{title}</title><style>:root{{color-scheme:light dark}}"
            "body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:46rem;padding:1rem;color:#1f2933;"
            "background:#fff}"
            "@media(prefers-color-scheme:dark){body{color:#e4e9ee;background:#161d24}}"
            "svg{display:block;width:100%;max-width:36rem;height:auto}small{color:inherit;opacity:.8}</style></head>"
            f"<body><h1>{title}</h1>{words}{self.svg}"
            f"<p><small>Guarantee of the difficulties: {escape(str(self.difficulties.guarantee))}.</small></p>"
            "</body></html>\n"
        )

    def to_json(self) -> dict[str, Any]:
        """What the picture is made from, for machines."""
        return {
            "out": None if self.out is None else str(self.out),
            "items": len(self.difficulties.items),
            "guarantee": self.difficulties.guarantee.to_json(),
        }

    def lines(self) -> list[str]:
        """What the picture is made from, for people."""
        where = "" if self.out is None else f"{self.out}: "
        return [
            f"{where}students and {counted(len(self.difficulties.items), 'item')} on one scale.",
            "The students are a curve of the model; none of them is drawn.",
            *self.difficulties.warnings(),
        ]

    def _repr_html_(self) -> str:
        return f'<div style="max-width:46rem">{self.svg}</div>'


def ladder(difficulties: Difficulties | Path | str, *, out: Path | str | None = None) -> Ladder:
    """The picture of students and items on one scale, written to a file if `out` is given.

    A name with .svg gets the picture, one with .html a page with it.
    """
    out = None if out is None else Path(out)
    if out is not None:
        if out.suffix.lower() not in (".svg", ".html", ".htm"):
            raise UsageError(
                f"asked to write {out.name}; a picture is written as .svg, and a page with it as .html.",
                hint="choose a name that ends in .svg or .html.",
                settings=("out",),
            )
        check_parent(out)
        if not isinstance(difficulties, Difficulties):
            check_not_input(out, Path(difficulties))
    released = Difficulties.of(difficulties)
    found = Ladder(ladder_svg(released), released)
    if out is not None:
        write_text(out, found.svg + "\n" if out.suffix.lower() == ".svg" else found.html)
    return replace(found, out=out)


def ladder_svg(difficulties: Difficulties) -> str:
    """The picture alone: a row per item from easy to hard, below the curve of abilities."""
    items = [item for item in difficulties.from_easy_to_hard() if item.difficulty is not None]
    if not items:
        raise DataError(
            "no item has a difficulty, so there is nothing to draw.",
            hint="release difficulties with an epsilon: then every item has one.",
            code="nothing-to-draw",
        )
    scale = _Scale.of(difficulties, items)
    left_out = [item.name for item in difficulties.items if item.difficulty is None]
    parts = [_crowd(difficulties, scale)]
    height = _TOP + _CURVE
    step_of = {name: number for number, step in enumerate(difficulties.steps) for name in step}
    for row, item in enumerate(items):
        if row % _ROWS_PER_SCALE == 0:
            height += 8 if row else 0
            parts.append(_ticks(scale, height))
            height += 40
        parts.append(_row(item, scale, height, banded=step_of.get(item.name, 0) % 2 == 0))
        height += _ROW
    height += 8
    if left_out:
        parts.append(
            f'<text class="soft" x="6" y="{height + 8}">{counted(len(left_out), "item")} without a difficulty</text>'
        )
        height += 16
    if not difficulties.guarantee.formal:
        parts.append(f'<text x="6" y="{height + 8}">Not private: keep this picture inside.</text>')
        height += 16
    title = escape(difficulties.title or "Students and tasks on one scale")
    alternative = escape(" ".join(_reading(difficulties)))
    return (
        f'<svg class="ladder" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" role="img" aria-labelledby="ladder-title ladder-description">'
        f'<title id="ladder-title">{title}</title><desc id="ladder-description">{alternative}</desc>'
        f'<style>{_STYLE}</style><rect class="paper" width="{_WIDTH}" height="{height}"/>{"".join(parts)}</svg>'
    )


@dataclass(frozen=True)
class _Scale:
    """Log-odds to places of the drawing, and the abilities that so many of ten students exceed.

    How many solve an item that stands there depends on guessing, points and discrimination; who is more able does not.
    """

    low: float
    high: float
    ticks: tuple[tuple[str, float], ...]

    @classmethod
    def of(cls, difficulties: Difficulties, items: list[Item]) -> _Scale:
        ability = difficulties.ability
        places = [float(item.difficulty or 0.0) for item in items]
        low = min(ability.mean - 2.6 * ability.sd, min(places) - 0.3)
        high = max(ability.mean + 2.6 * ability.sd, max(places) + 0.3)
        ends = [end for item in items for end in _ends(item)]
        low = max(min(low, *ends), low - _MOST_BEYOND)
        high = min(max(high, *ends), high + _MOST_BEYOND)
        ticks = [
            (str(tenths), ability.mean + ability.sd * NormalDist().inv_cdf(1.0 - tenths / 10))
            for tenths in (5, 9, 1, 7, 3)
        ]
        return cls(low, high, tuple(ticks))

    def cuts(self, item: Item) -> tuple[bool, bool]:
        """Whether the item's bar goes on beyond the left and the right side."""
        low, high = _ends(item)
        return low < self.low, high > self.high

    def __call__(self, value: float) -> float:
        inside = min(max(value, self.low), self.high)
        return _LEFT + (inside - self.low) / (self.high - self.low) * (_WIDTH - _LEFT - _RIGHT)


def _ends(item: Item) -> tuple[float, float]:
    """Between which values the difficulty lies, with 95 % confidence."""
    place, reach = float(item.difficulty or 0.0), _REACH * (item.standard_error or 0.0)
    return place - reach, place + reach


def _crowd(difficulties: Difficulties, scale: _Scale) -> str:
    """The abilities of the model as a hill, with its middle."""
    ability, base = difficulties.ability, _TOP + _CURVE - 6
    points = []
    for place in np.linspace(scale.low, scale.high, 81):
        rise = math.exp(-0.5 * ((float(place) - ability.mean) / ability.sd) ** 2)
        points.append(f"{scale(float(place)):.1f},{base - rise * (_CURVE - 22):.1f}")
    middle = scale(ability.mean)
    return (
        f'<text x="6" y="16">Students</text>'
        f'<text class="soft" x="6" y="32">as in the model</text>'
        f'<text class="soft" x="{_LEFT}" y="16">less able</text>'
        f'<text class="soft" x="{_WIDTH - _RIGHT}" y="16" text-anchor="end">more able</text>'
        f'<polygon class="crowd" points="{_LEFT},{base} {" ".join(points)} {_WIDTH - _RIGHT},{base}"/>'
        f'<line class="line" x1="{middle:.1f}" x2="{middle:.1f}" y1="{_TOP}" y2="{base}"/>'
    )


def _ticks(scale: _Scale, top: float) -> str:
    parts = [
        f'<text class="soft" x="6" y="{top + 14}">of 10 students,</text>'
        f'<text class="soft" x="6" y="{top + 29}">so many beyond</text>'
        f'<line class="line" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{top + 34}" y2="{top + 34}"/>'
    ]
    drawn: list[float] = []
    for text, place in scale.ticks:
        x = scale(place)
        if any(abs(x - other) < _TICKS_APART for other in drawn):
            continue
        drawn.append(x)
        parts.append(
            f'<line class="line" x1="{x:.1f}" x2="{x:.1f}" y1="{top + 27}" y2="{top + 34}"/>'
            f'<text class="soft" x="{x:.1f}" y="{top + 22}" text-anchor="middle">{text}</text>'
        )
    return "".join(parts)


def _row(item: Item, scale: _Scale, top: float, *, banded: bool) -> str:
    middle, place = top + _ROW / 2, float(item.difficulty or 0.0)
    name = item.name if len(item.name) <= _LONGEST_NAME else item.name[: _LONGEST_NAME - 1] + "…"
    low, high = _ends(item)
    known = "" if item.standard_error is None else f", between {low:.2f} and {high:.2f}"
    about = escape(f"{item.name}: {item.reading}; difficulty {place:.2f}{known}")
    parts = [f"<g><title>{about}</title>"]
    if banded:
        parts.append(f'<rect class="band" x="0" y="{top}" width="{_WIDTH}" height="{_ROW}"/>')
    parts.append(f'<text x="6" y="{middle + 4}">{escape(name)}</text>')
    if high > low:
        ends = scale(low), scale(high)
        parts.append(
            f'<line class="reach" x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{middle}" y2="{middle}"/>'
        )
        for cut, end, way in zip(scale.cuts(item), ends, (-1, 1), strict=True):
            if cut:
                parts.append(
                    f'<path class="cut" d="M{end + 5 * way:.1f} {middle}l{-8 * way} -4.5v9z">'
                    "<title>The bar goes on beyond the frame.</title></path>"
                )
    parts.append(f'<circle class="dot" cx="{scale(place):.1f}" cy="{middle}" r="3.5"/></g>')
    return "".join(parts)


def _reading(difficulties: Difficulties) -> list[str]:
    """What the picture says, in words: on its page, and for those who do not see it."""
    items = [item for item in difficulties.from_easy_to_hard() if item.difficulty is not None]
    easiest, hardest = items[0], items[-1]
    n_ties = sum(len(step) for step in difficulties.steps if len(step) > 1)
    ties = (
        f"Tasks in one band cannot be put in order at this precision ({n_ties} of {len(items)} have such neighbours)."
        if n_ties
        else "No two neighbours are ties."
    )
    if not difficulties.has_errors:
        bars, ties = (
            "no standard errors are stated, so there are no bars.",
            "The order is that of the dots alone.",
        )
    else:
        bars = "the bar holds its difficulty with 95 % confidence."
        scale = _Scale.of(difficulties, items)
        if any(any(scale.cuts(item)) for item in items):
            bars += " An arrow marks a bar that goes on beyond the frame."
    more = (
        "gets more than half of its points on average"
        if difficulties.has_points
        else "knows it more often than not"
    )
    guessing = "; lucky guesses are added to that" if any(item.guess for item in items) else ""
    return [
        "The hill shows how able students are, as the model has them; no student is drawn. Each task is a dot below "
        f"it, further right if it is harder; {bars}",
        f"A student who stands to the right of a task's dot {more}{guessing}. The numbers above the tasks say how many "
        "of 10 students stand further right.",
        f"{counted(len(items), 'task')} from '{easiest.name}' ({easiest.reading}) to '{hardest.name}' "
        f"({hardest.reading}). {ties}",
    ]
