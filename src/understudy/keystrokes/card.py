"""The card that goes with coarsened events: how they were made, what was tried on them, what they do not hide."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from understudy.core.pages.card import (
    FIGURES_PUBLISHED,
    guarantee_in_words,
    protection_verdict,
    with_caveats,
)
from understudy.core.pages.render import render
from understudy.core.privacy.guarantee import Guarantee
from understudy.errors import DataError, UsageError
from understudy.keystrokes.coarsening import Classing, Coarsening
from understudy.keystrokes.released_events import Keys, ReleasedColumns

GUARANTEE = Guarantee.none(
    "coarsening has no proof: what it hides depends on the other learners and on the attacker"
)
MEASURED = "These figures were computed from the real data, and no guarantee covers them."
NOT_TRIED = (
    "No attack was run on this coarsening, or the custodian did not publish what was found. "
    "A sweep of the data runs attacks and gives figures for this card."
)
HOLD_UNSEEN = "No attack saw hold times, which alone identified nearly all learners of a simulation."
# What the card says about an attack, and the column of results.csv that has it.
_FIGURES = {
    "attack": "name",
    "k": "k",
    "rate": "value",
    "low": "low",
    "high": "high",
    "chance": "baseline",
    "n_learners": "n_learners",
}


def card_content(
    table: pl.DataFrame,
    coarsening: Coarsening,
    columns: ReleasedColumns,
    provenance: dict[str, Any],
    attacks: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Everything on the card. `attacks` are estimates of identification with attack, k, rate, low, high, chance.

    The table counts learners and keys, which are those of the original file: the card says nothing that
    the table does not.
    """
    low, high = coarsening.typing_range()
    guarantee = guarantee_of(attacks)
    n_learners = table["learner"].n_unique()
    return {
        "title": f"Coarsened keystrokes {provenance['card'][:6]}",
        "verdict": with_caveats(
            f"The key presses in this file are {'simulated' if provenance['simulated'] else 'real'}, under new names, "
            f"and {protection_verdict(guarantee)}",
            guarantee,
        ),
        "provenance": provenance,
        "n_learners": n_learners,
        "n_rows": table.height,
        "coarsening": str(coarsening),
        "typing_range_ms": [low, high],
        "longest_pause_ms": columns.longest_pause,
        "keys": str(columns.keys),
        "guarantee": guarantee.to_json(),
        "headline": guarantee_in_words(guarantee)["headline"],
        "made": _made(coarsening, columns),
        "does_not_hide": _does_not_hide(coarsening, columns),
        "how_to_count": f"Count latencies from {low:g} to {high:g} ms as typing: here the 10 to 750 ms of the "
        "original are there, with some pauses just above. Rows are in the order of the keys, also where two "
        "have the same time.",
        "columns": [{"column": name, "meaning": _MEANINGS[name]} for name in table.columns],
        "attacks": [_rounded(attack) for attack in attacks],
        "attacks_note": _attacks_note(attacks, columns, n_learners),
    }


def guarantee_of(attacks: Sequence[dict[str, Any]]) -> Guarantee:
    """What is proved about coarsened events: nothing; and whether measured figures are published with them."""
    return GUARANTEE.with_caveats(FIGURES_PUBLISHED) if attacks else GUARANTEE


def card_page(content: dict[str, Any]) -> str:
    """The card as a page."""
    return render("keystrokes/card.html", card=content)


def read_attacks(path: Path, coarsening: Coarsening, n_learners: int) -> list[dict[str, Any]]:
    """What a sweep's results.csv says about attacks on events with this coarsening.

    A sweep leaves out learners who typed too little, so it may have fewer than the `n_learners` of the file, but
    not more.
    """
    if not path.is_file():
        raise UsageError(
            f"there is no file {path}.", hint="give results.csv of a sweep.", settings=("attacks",)
        )
    try:
        # Each cell by itself: what one row holds must not make words of a column into numbers.
        rows = pl.read_csv(path, infer_schema=False)
    except (pl.exceptions.PolarsError, OSError):
        raise DataError(f"{path.name} is not a table.", hint="give results.csv of the sweep.") from None
    if missing := {*_FIGURES.values(), "level", "way", "size", "measure"} - set(rows.columns):
        raise DataError(
            f"{path.name} has no column {', '.join(sorted(missing))}.", hint="give results.csv of the sweep."
        )
    name, _, size = str(coarsening).partition(":")
    found = rows.filter(
        (pl.col("level") == "events")
        & (pl.col("measure") == "identification")
        & (pl.col("way") == name)
        & (pl.col("size").cast(pl.Float64, strict=False) == _size(size))
    )
    numbers = ("value", "low", "high", "baseline")
    found = found.with_columns(
        pl.col(numbers).cast(pl.Float64, strict=False),
        pl.col("k", "n_learners").cast(pl.Float64, strict=False).cast(pl.Int64, strict=False),
    )
    # The strongest first: a reader of one line reads that one.
    found = found.sort(["k", "value", "name"], descending=[True, True, False])
    if not found.height:
        raise DataError(
            f"{path.name} has no attack on events with {coarsening}.",
            hint="run the sweep with this size, or leave its results out.",
            settings=("attacks",),
        )
    swept = found["n_learners"].to_list()
    if (
        any(number is None or number < 1 for number in swept)
        or found[["k", "value"]].null_count().sum_horizontal()[0]
    ):
        raise DataError(
            f"{path.name} does not say what was measured, or on how many learners.",
            hint="give results.csv as the sweep wrote it.",
        )
    if max(swept) > n_learners:
        raise DataError(
            f"{path.name} is a sweep of {max(swept)} learners, and the file has {n_learners}.",
            hint="give results.csv of a sweep of this data, or leave its results out.",
            settings=("attacks",),
        )
    return [{name: row[column] for name, column in _FIGURES.items()} for row in found.iter_rows(named=True)]


def _attacks_note(attacks: Sequence[dict[str, Any]], columns: ReleasedColumns, n_learners: int) -> str:
    unseen = [HOLD_UNSEEN] if columns.hold else []
    if not attacks:
        return " ".join([NOT_TRIED, *unseen])
    counts = sorted({int(attack["n_learners"]) for attack in attacks})
    measured = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
    about = f"Measured on {measured} of {n_learners} learners"
    about += "; a sweep leaves out learners who typed too little." if counts[0] < n_learners else "."
    if columns.keys is Keys.classes:
        unseen.append("The attacks knew which keys were pressed, and not only their classes.")
    return " ".join([MEASURED, about, *unseen])


def _size(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")  # of delays, which a sweep over sizes does not try


def _rounded(figures: dict[str, Any]) -> dict[str, Any]:
    return {
        name: round(figures[name], 2) if isinstance(figures[name], float) else figures[name]
        for name in _FIGURES
    }


def _made(coarsening: Coarsening, columns: ReleasedColumns) -> list[str]:
    kind = str(coarsening).partition(":")[0]
    steps = [
        _KINDS[kind].format(value=str(coarsening).partition(":")[2]),
        f"Pauses count as {columns.longest_pause:g} ms at most, before they are made coarse. So does the gap before a "
        "key that follows none, such as after a paste.",
        "Every session starts at 0; dates are gone."
        if columns.session
        else "Every learner starts at 0; dates are gone, and sessions follow one another.",
        *(["Hold times count as 750 ms at most, before they are made coarse."] if columns.hold else []),
        "Learners have fresh random names and are in random order. Of the original file only the columns below were "
        "kept.",
    ]
    if columns.keys is Keys.classes:
        return [
            *steps,
            "Of each key only its class is here: letter, digit, space, symbol, backspace or other. A class that fewer "
            f"than {columns.fewest} learners pressed is given as other.",
        ]
    return [
        *steps,
        f"Keys that fewer than {columns.fewest} learners pressed are given by their class, and if so few pressed keys "
        "of this class, as other.",
    ]


def _does_not_hide(coarsening: Coarsening, columns: ReleasedColumns) -> list[str]:
    left = [
        "What was typed: it can be read letter by letter, and names in it too. Text content is a separate "
        "identifier: the way a learner writes programs points at them. Coarse times change nothing about it."
        if columns.keys is Keys.all
        else "The pattern of letters, digits and symbols. A reader who has the text can find its typist. Text content "
        "is a separate identifier.",
        "How much each learner typed, how often they deleted, and when they paused.",
        "Averages over many keys. Every latency is coarse, but the mean of many coarse latencies is not, and it is "
        "what attacks on typing use.",
    ]
    if columns.hold:
        left.append(f"For how long keys were held. {HOLD_UNSEEN}")
    if isinstance(coarsening, Classing):
        left.append(
            "All learners' latencies, a little: the limits and medians of the classes were computed from them."
        )
    return left


_KINDS = {
    "round": "Latencies were rounded to the nearest multiple of {value} ms; halves went up.",
    "bucket": "Latencies were put into buckets of {value} ms, and are given by the upper end of their bucket.",
    "shift": "Latencies were put into buckets of {value} ms, and are given by a random place in their bucket.",
    "delay": "Every key press came late by a random {value} ms, without overtaking another.",
    "classes": "Latencies of each pair of keys were put into {value} classes from fast to slow, and are given by "
    "the median of their class.",
}
_MEANINGS = {
    "learner": "a fresh random name",
    "session": "number of the sitting, from 0",
    "week": "week of the course, from 0",
    "time_ms": "milliseconds since the start, rebuilt from coarse latencies",
    "key": "the key that was pressed, or its class",
    "hold_ms": "milliseconds for which the key was down, coarse in the same way",
}
