"""What a log looks like: the histograms of a log, real beside synthetic, and the picture on a card.

The histograms are those that Vie, Rigaux and Minn (2022, Figure 3) compare, and what learners do next. Those of a real
log are internal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.core.files.words import listed
from understudy.core.pages.charts import Drawing, Look, Panels, colour_and_shape, panels
from understudy.core.pages.figures import ACCENT, INK, data
from understudy.logs.description import attempts_of_pairs
from understudy.logs.detail_histograms import COLUMN, column_histograms, time_histograms, week_maps
from understudy.logs.interactions import IntArray, Interactions, common_vocabulary, pair_codes, totals
from understudy.logs.utility import learning_curve

Floats = NDArray[np.float64]

Bin = dict[str, Any]
"""One place of a histogram: `at` along the axis, and how high it is in each log by the log's name."""
Histograms = dict[str, list[Bin]]

REAL, SYNTHETIC = "real", "synthetic"
LOOKS = {REAL: Look("#8795a3"), SYNTHETIC: Look(ACCENT)}

# More would not be legible.
MOST_ACTIONS, MOST_STEPS, MOST_REPEATS = 60, 40, 8
# Actions with their names on the picture of a card.
MOST_NAMED = 8
HEIGHT = 170


def histograms(real: Interactions, synthetic: Interactions) -> Histograms:
    """How both logs are distributed, as JSON has it; actions and steps by their rank in the real log."""
    logs = dict(zip((REAL, SYNTHETIC), common_vocabulary(real, synthetic), strict=True))
    judged = all(log.outcome is not None for log in logs.values())
    repeats = {name: np.minimum(attempts_of_pairs(log)[1], MOST_REPEATS) for name, log in logs.items()}
    return {
        "actions": _ranked({name: action_shares(log) for name, log in logs.items()}, MOST_ACTIONS),
        "lengths": _binned({name: log.lengths for name, log in logs.items()}),
        "repeats": [
            {
                "at": _last(n, MOST_REPEATS),
                **{name: float(np.mean(n == found)) for name, found in repeats.items()},
            }
            for n in range(1, max(int(found.max(initial=1)) for found in repeats.values()) + 1)
        ],
        **({"success": _curves({name: learning_curve(log) for name, log in logs.items()})} if judged else {}),
        "steps": _ranked(dict(zip(logs, _steps(*logs.values()), strict=True)), MOST_STEPS),
        **time_histograms(logs),
        **column_histograms(logs),
    }


def action_shares(log: Interactions) -> Floats:
    """Share of each action among the attempts."""
    shares: Floats = np.bincount(log.action, minlength=log.n_actions) / max(log.n_rows, 1)
    return shares


def compared(log: Interactions) -> str:
    """What the comparison shows of a log."""
    shown = [
        "how often actions are attempted",
        "which steps learners take",
        "how many attempts they make in all and at one action",
    ]
    if log.outcome is not None:
        shown.append("how often the first to the sixth attempt at an action succeeds")
    if log.has_times:
        shown.append("at which hours of the week they work, how much time passes and who is still active")
    if log.columns:
        shown.append("what the declared columns hold")
    return f"Real (grey) beside synthetic (blue): {listed(shown)}."


def comparison_figure(found: Histograms) -> Panels:
    """Panels, real beside synthetic; internal."""
    drawings = {
        "Shares of actions": _ranks(found["actions"], "actions, most frequent first", "share of attempts"),
        "Steps from action to action": _ranks(found["steps"], "steps, most frequent first", "share of steps"),
        "Lengths": _bars(found["lengths"], "attempts of a learner", "share of learners"),
        "Repeats of an action": _bars(
            found["repeats"], "attempts of a learner at an action", "share of learners and actions"
        ),
    }
    if "hours" in found:
        drawings |= week_maps(
            found["hours"],
            {REAL: "When learners work: real", SYNTHETIC: "When learners work: synthetic"},
        )
    if "success" in found:
        success = _lines(found["success"], "attempt at an action", "share that succeed")
        drawings["Success by attempt"] = success
    if "hours" in found:
        drawings["Time between rows"] = _bars(
            found["gaps"], "time since the row before, up to", "share of rows"
        )
        drawings["Learners still active"] = _lines(found["active"], "week", "share of learners")
    for name, bins in found.items():
        if name.startswith(COLUMN):
            drawings[name.removeprefix(COLUMN)] = _bars(bins, "", "share")
    words = " ".join(f"{title}: {drawing.words}." for title, drawing in drawings.items())
    headed = [drawing.headed(title) for title, drawing in drawings.items()]
    return panels(headed, f"Real beside synthetic. {words}", columns=2)


def portrait(synthetic: Interactions) -> Panels:
    """The picture on a card: the most frequent actions, with their successes if there are outcomes, and lengths."""
    shares = action_shares(synthetic)
    successes = synthetic.outcome
    order = [int(code) for code in np.argsort(-shares, kind="stable")[:MOST_NAMED] if shares[code] > 0]
    names = [synthetic.actions[code] for code in order]
    succeeded = (
        None
        if successes is None
        else totals(synthetic.action, successes, synthetic.n_actions)[order] / max(synthetic.n_rows, 1)
    )
    actions = _named_bars(names, shares[order], succeeded)
    binned = _binned({SYNTHETIC: synthetic.lengths})
    lengths = _bars(
        [{"at": place["at"], "": round(place[SYNTHETIC] * synthetic.n_learners)} for place in binned],
        "attempts of a learner",
        "learners",
        looks={"": Look()},
        height=_NAMED_ROW * len(names),
    ).headed("How much learners do")
    words = f"The most frequent actions: {actions.words}. Attempts of a learner: {lengths.words}."
    drawings = [actions, lengths]
    times = time_histograms({SYNTHETIC: synthetic})
    if times:
        (week,) = week_maps(times["hours"], {SYNTHETIC: "When learners work"}).values()
        active = _lines(times["active"], "week", "share of learners", looks={SYNTHETIC: Look()})
        drawings += [week.headed("When learners work"), active.headed("Learners still active")]
        words += f" When learners work: {week.words}. Learners still active by week: {active.words}."
    return panels(drawings, words, columns=2, shares=(1.25, 1.0))


# A name and the bar below it, in pixels.
_NAMED_ROW = 34
SUCCEEDED, FAILED = "succeeded", "failed"


def _named_bars(names: Sequence[str], shares: Floats, succeeded: Floats | None) -> Drawing:
    """Bars with their names above them, which leaves telephones the whole width."""
    import altair as alt

    looks = {SUCCEEDED: Look(shape="square"), FAILED: Look("#a9c9d4", "square")}
    parts = {"": shares} if succeeded is None else {SUCCEEDED: succeeded, FAILED: shares - succeeded}
    rows = [
        {
            "at": place,
            "name": name,
            "series": series,
            "value": float(part[place]),
            "order": int(series == FAILED),
        }
        for place, name in enumerate(names)
        for series, part in parts.items()
    ]
    colour, _ = (
        colour_and_shape({"": Look(shape="square")}, None)
        if succeeded is None
        else colour_and_shape(looks, "bottom")
    )
    y = alt.Y("at:O", title=None, axis=None, scale=alt.Scale(paddingInner=0.66, paddingOuter=0.7))
    x = alt.X("value:Q", title="share of attempts", stack="zero", axis=alt.Axis(format=".0%", tickCount=4))
    bars = alt.Chart(data(rows)).mark_bar().encode(x=x, y=y, color=colour, order=alt.Order("order:Q"))
    text = (
        alt.Chart(data([{"at": place, "name": name} for place, name in enumerate(names)]))
        .mark_text(align="left", dy=-14, fontSize=12, limit=300, color=INK)
        .encode(x=alt.value(0), y=y, text="name:N")
    )
    words = "; ".join(
        f"{name}: {shares[place]:.1%}"
        + ("" if succeeded is None else f", of which {succeeded[place] / shares[place]:.0%} succeeded")
        for place, name in enumerate(names)
    )
    chart = alt.layer(bars, text).properties(height=_NAMED_ROW * len(names))
    return Drawing(chart, words).headed("What learners do")


def _ranked(shares: dict[str, Floats], most: int) -> list[Bin]:
    order = np.argsort(-shares[REAL], kind="stable")[:most]
    return [
        {"at": rank + 1, **{name: float(share[code]) for name, share in shares.items()}}
        for rank, code in enumerate(order)
    ]


def _binned(lengths: dict[str, IntArray]) -> list[Bin]:
    """Shares of learners by their attempts, in bins that double: 1, 2, 3 to 4, 5 to 8."""
    longest = max(int(found.max(initial=1)) for found in lengths.values())
    # Learners without a row are there only if the method made some.
    ends = [0] if any((found == 0).any() for found in lengths.values()) else []
    ends += [2**power for power in range(int(np.ceil(np.log2(max(longest, 1)))) + 1)]
    starts = [before + 1 for before in (-1 if ends[0] == 0 else 0, *ends[:-1])]
    return [
        {
            "at": str(last) if first == last else f"{first}–{last}",
            **{
                name: float(np.mean((found >= first) & (found <= last))) if len(found) else 0.0
                for name, found in lengths.items()
            },
        }
        for first, last in zip(starts, ends, strict=True)
    ]


def _last(n: int, most: int) -> str:
    return f"{n}+" if n == most else str(n)


def _curves(rates: dict[str, Floats]) -> list[Bin]:
    """Attempts that neither log has are left out; one that a log lacks is None there."""
    return [
        {
            "at": attempt + 1,
            **{
                name: None if np.isnan(rate[attempt]) else float(rate[attempt])
                for name, rate in rates.items()
            },
        }
        for attempt in range(len(next(iter(rates.values()))))
        if not all(np.isnan(rate[attempt]) for rate in rates.values())
    ]


def _steps(real: Interactions, synthetic: Interactions) -> list[Floats]:
    """Shares of the steps of both logs, each step at one place."""
    found = []
    for log in (real, synthetic):
        follows = log.learner[1:] == log.learner[:-1]
        step = pair_codes(log.action[:-1][follows], log.action[1:][follows], log.n_actions)
        found.append(np.unique(step, return_counts=True))
    keys = np.union1d(found[0][0], found[1][0])
    shares = []
    for key, count in found:
        share = np.zeros(len(keys))
        share[np.searchsorted(keys, key)] = count / max(int(count.sum()), 1)
        shares.append(share)
    return shares


def _long(found: Sequence[Bin]) -> list[dict[str, Any]]:
    return [
        {"at": place["at"], "series": series, "value": value}
        for place in found
        for series, value in place.items()
        if series != "at" and value is not None
    ]


def _share_axis(rows: Sequence[dict[str, Any]]) -> Any:
    import altair as alt

    # Shares below 4 % would all be the same whole percents.
    small = max((row["value"] for row in rows), default=1.0) < 0.04
    return alt.Axis(format=".1%" if small else ".0%", tickCount=4)


def _ranks(found: Sequence[Bin], along: str, up: str) -> Drawing:
    """Shares by rank: an area for the real log, a line for the synthetic one."""
    import altair as alt

    rows = _long(found)
    # A step ends where the next begins: the last one too.
    ends = [{**row, "at": row["at"] + 1} for row in rows if row["at"] == len(found)]
    colour, _ = colour_and_shape(LOOKS, "bottom")
    base = alt.Chart(data(rows + ends)).encode(
        x=alt.X(
            "at:Q",
            title=along,
            scale=alt.Scale(domain=[1, len(found) + 1], nice=False),
            axis=alt.Axis(format="d", tickMinStep=1, tickCount=5, grid=False),
        ),
        y=alt.Y("value:Q", title=up, axis=_share_axis(rows)),
        color=colour,
    )
    area = base.transform_filter(f"datum.series == '{REAL}'").mark_area(interpolate="step-after", opacity=0.5)
    line = base.transform_filter(f"datum.series == '{SYNTHETIC}'").mark_line(
        interpolate="step-after", strokeWidth=2
    )
    first = "; ".join(
        f"number {place['at']}: {place[REAL]:.1%} real, {place[SYNTHETIC]:.1%} synthetic"
        for place in found[:3]
    )
    distance = 0.5 * sum(abs(place[REAL] - place[SYNTHETIC]) for place in found)
    words = f"{first}; these {len(found)} differ by {distance:.1%} in all" if found else "none"
    return Drawing(alt.layer(area, line).properties(height=HEIGHT), words)


# Letters of all labels that fit side by side below bars.
_LETTERS_ACROSS = 24


def _bars(
    found: Sequence[Bin], along: str, up: str, *, looks: dict[str, Look] = LOOKS, height: int = HEIGHT
) -> Drawing:
    """Bars beside each other, one per log; the bins have whole numbers."""
    import altair as alt

    rows = _long(found)
    colour, _ = colour_and_shape(looks, "bottom")
    x = alt.X(
        "at:N",
        title=along or None,
        sort=[place["at"] for place in found],
        axis=alt.Axis(
            labelAngle=-45 if len(found) * max(len(place["at"]) for place in found) > _LETTERS_ACROSS else 0,
            labelOverlap=False,
            grid=False,
        ),
        scale=alt.Scale(paddingInner=0.2),
    )
    counts = all(isinstance(row["value"], int) for row in rows)
    axis = alt.Axis(format="d", values=_whole_ticks(rows)) if counts else _share_axis(rows)
    y = alt.Y("value:Q", title=up, axis=axis)
    chart = alt.Chart(data(rows)).mark_bar().encode(x=x, y=y, color=colour)
    if len(looks) > 1:
        chart = chart.encode(xOffset=alt.XOffset("series:N", sort=list(looks)))
    number = "d" if counts else ".0%"
    words = "; ".join(
        f"{place['at']}: " + ", ".join(f"{place[name]:{number}} {name}".strip() for name in looks)
        for place in found
    )
    return Drawing(chart.properties(height=height), words)


def _whole_ticks(rows: Sequence[dict[str, Any]]) -> list[int]:
    """Whole numbers for an axis, about four: Vega puts halves between 0 and 2, whatever its smallest step."""
    highest = max((int(row["value"]) for row in rows), default=0)
    step = next(step for step in (m * 10**k for k in range(9) for m in (1, 2, 5)) if highest <= 5 * step)
    return list(range(0, highest + step, step))


def _lines(found: Sequence[Bin], along: str, up: str, *, looks: dict[str, Look] = LOOKS) -> Drawing:
    """Rates by attempt or by week, a line per log."""
    import altair as alt

    colour, _ = colour_and_shape(looks, "bottom" if len(looks) > 1 else None)
    x = alt.X("at:O", title=along, axis=alt.Axis(labelAngle=0, grid=False, labelOverlap=True))
    y = alt.Y("value:Q", title=up, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format=".0%", tickCount=5))
    base = alt.Chart(data(_long(found))).encode(x=x, y=y, color=colour)
    words = "; ".join(
        f"{place['at']}: "
        + ", ".join(f"{place[name]:.0%} {name}" for name in looks if place[name] is not None)
        for place in found
    )
    chart = alt.layer(base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=50, opacity=1))
    return Drawing(chart.properties(height=HEIGHT), words)
