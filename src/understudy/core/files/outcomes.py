"""Outcomes in files: each cell is right or wrong by a fixed rule, so that no row decides how another one is read."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

# As people and spreadsheets write them in English, German, French, Spanish and Italian, in lower case. A "w" alone
# is "wahr" to some and "wrong" to others.
TRUE_WORDS = (
    *("1", "1.0", "true", "t", "correct", "right", "r", "yes", "y", "passed", "pass"),
    *("wahr", "richtig", "korrekt", "ja", "j", "bestanden", "vrai", "v", "juste", "oui", "réussi", "reussi"),
    *("verdadero", "correcto", "sí", "si", "s", "vero", "giusto", "sì"),
)
FALSE_WORDS = (
    *("0", "0.0", "false", "f", "incorrect", "wrong", "no", "n", "failed", "fail"),
    *("falsch", "inkorrekt", "nein", "faux", "non", "échoué", "echoue", "falso", "incorrecto", "sbagliato"),
)
# What a cell holds instead of an answer.
MISSING_WORDS = ("", "-", "–", "na", "n/a", "nan", "null", "none")
# Points are decimal fractions, which binary numbers (of 32 bits, too) miss by a little: 0.55 x 20 is reached by 11.
ROUNDING = 1e-6


@dataclass(frozen=True)
class PassMark:
    """The numbers from which on an outcome is a success, as declared; None where no number was declared."""

    points: float | None = None
    percent: float | None = None

    @classmethod
    def of(cls, number: float | None) -> PassMark:
        """A mark for points, grades and percentages alike; up to 1 it is a share, so that 0.5 and 50 % are one."""
        if number is None:
            return cls()
        return cls(number, number if number > 1 else 100 * number)


def words_of(cells: pl.Series) -> pl.Series:
    """Cells as words that can be compared: lower case, without blanks around them."""
    return cells.cast(pl.String).str.replace_all("[\u00a0\u202f]", " ").str.strip_chars().str.to_lowercase()


def number_in(word: pl.Expr) -> pl.Expr:
    """The number that a word is, with a decimal point or comma; null for other words and for what is not finite."""
    number = word.str.replace(r"^([+-]?\d*),(\d+)$", "${1}.$2").cast(pl.Float64, strict=False)
    return pl.when(number.is_finite()).then(number)


def percentage_in(word: pl.Expr) -> pl.Expr:
    """The number before a percent sign, from 0 to 100; null for other words."""
    number = number_in(word.str.extract(r"^(.*\d)\s*%$"))
    return pl.when(number.is_between(0, 100)).then(number)


def is_missing(cells: pl.Series) -> pl.Series:
    """Whether each cell is empty, or says that there is nothing."""
    words = words_of(cells)
    return words.is_null() | words.is_in(MISSING_WORDS)


def read_outcomes(cells: pl.Series, mark: PassMark = PassMark()) -> pl.Series:  # noqa: B008 (frozen)
    """Outcomes as 1 and 0, null where a cell is neither.

    Words count by the lists above. A number is 0 or 1, or at or above the mark for points; a percentage needs
    a mark, unless it is 0 or 100.
    """
    if cells.dtype == pl.Int8:  # read by a format's own rule
        return cells
    words = words_of(cells).alias("word").to_frame()
    word = pl.col("word")
    number, percent = number_in(word), percentage_in(word)
    numeric = pl.coalesce(_passed(number, mark.points, 1.0), _passed(percent, mark.percent, 100.0))
    return words.select(
        pl.when(number.is_not_null() | percent.is_not_null())
        .then(numeric)
        .when(word.is_in(TRUE_WORDS))
        .then(pl.lit(1, pl.Int8))
        .when(word.is_in(FALSE_WORDS))
        .then(pl.lit(0, pl.Int8))
        .alias("outcome")
    ).to_series()


def _passed(number: pl.Expr, mark: float | None, most: float) -> pl.Expr:
    """Whether a number reaches the mark; without one, nothing is a failure, `most` a success, and the rest neither."""
    if mark is None:
        return pl.when(number == 0).then(pl.lit(0, pl.Int8)).when(number == most).then(pl.lit(1, pl.Int8))
    return (number >= mark - ROUNDING * abs(mark)).cast(pl.Int8)
