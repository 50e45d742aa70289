"""Rows of a sheet that are no learners: averages, sums and maxima, as learning platforms and teachers write them.

Each row is judged by itself, and by its name: what other rows hold decides nothing about it.
"""

from __future__ import annotations

import re

import polars as pl

from understudy.core.files.tables import Sheet
from understudy.core.files.words import counted
from understudy.errors import DataError

# The rows below the learners in the exports of learning platforms.
_FOOTERS = (
    *("overall average", "group average", "average", "mean", "gesamtdurchschnitt", "gruppendurchschnitt"),
    *("durchschnitt", "mittelwert", "moyenne globale", "moyenne", "promedio general", "promedio"),
    *(
        "schnitt",
        "klassenschnitt",
        "klassendurchschnitt",
        "notendurchschnitt",
        "punktedurchschnitt",
        "ø",
        "∅",
        "⌀",
    ),
    *(
        "mittel",
        "klassenmittel",
        "median",
        "class average",
        "class mean",
        "moyenne de la classe",
        "médiane",
        "media",
    ),
    *("mediana", "promedio de la clase", "media de la clase"),
)
# Rows that sum up the learners in another way.
_SUMMARIES = (
    *("sum", "total", "totals", "count", "standard deviation", "std dev", "summe", "gesamt", "gesamtsumme"),
    *(
        "anzahl",
        "standardabweichung",
        "stabw",
        "somme",
        "nombre",
        "effectif",
        "écart type",
        "écart-type",
        "suma",
    ),
    *("número", "cantidad", "desviación estándar", "desviación típica"),
)
# A row of points that can be reached. "Max" alone may be a learner's name.
_MAXIMA = (
    *("maximum", "max points", "maximum points", "max score", "maximum score", "out of", "points possible"),
    *("maximalpunktzahl", "maximale punktzahl", "maximale punkte", "max. punkte", "erreichbare punkte"),
)
_NUMBER = re.compile(r"[\d.,\s]*")
# Words by which a row is known, and what it is.
KINDS = (
    (_FOOTERS, "of averages below the learners"),
    (_SUMMARIES, "of sums, counts or spreads below the learners"),
    (_MAXIMA, "of maxima"),
)


def _words(frame: pl.DataFrame) -> pl.DataFrame:
    """The cells of the columns of text, as they are compared."""
    return frame.drop("line").select(
        pl.col(pl.String).str.strip_chars().str.to_lowercase().str.strip_chars_end(":.").fill_null("")
    )


def rows_named(frame: pl.DataFrame, names: tuple[str, ...], learner: str | None) -> pl.Series:
    """Which rows are called so, each by itself, wherever it stands.

    A row that names a learner is that learner's, whatever its other cells hold: the number of learners is that of
    the learner column.
    """
    words = _words(frame)
    nobody = pl.col(learner).is_in(("", *names)) if learner in words.columns else pl.lit(learner is None)
    return (
        frame.select("line")
        .with_columns(words)
        .select(pl.any_horizontal(pl.lit(False), pl.col(words.columns).is_in(names)) & nobody)
        .to_series()
    )


def refuse_max(frame: pl.DataFrame, sheet: Sheet) -> None:
    """Refuse a first or last row that "max" alone names: it may be a row of maxima as well as a learner."""
    words = _words(frame)
    for at in {0, frame.height - 1} if words.height else ():
        if {word for word in words.row(at) if not _NUMBER.fullmatch(word)} == {"max"}:
            raise not_a_learner(sheet, int(frame["line"][at]), "of maxima")


def not_a_learner(sheet: Sheet, line: int, what: str) -> DataError:
    """The error about a row that is named like one that is no learner's."""
    return DataError(
        f"{sheet.file}: {sheet.place} {line} is named like a row {what}.",
        hint="delete it, and write maxima into the header, as in 'Q1 (15 points)'; if it is a learner, write their "
        "name in full.",
    )


def rows_left_out(n_rows: int, which: str) -> str:
    """The note on rows that were left out."""
    return f"{counted(n_rows, 'row')} {which} {'was' if n_rows == 1 else 'were'} left out."
