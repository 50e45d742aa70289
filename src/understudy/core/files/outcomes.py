"""Outcomes in files: each cell is right or wrong by a fixed rule, so that no row decides how another one is read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from understudy.errors import UsageError

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


# What names of columns say that hold grades, of which 1 may be the best; parts of names in lower case.
_GRADES = ("note", "zensur", "grade", "nota")
_BEST_GRADE, _WORST_GRADE = 1, 6
# What to declare where numbers are neither 0 nor 1.
NEEDS_MARK = (
    "for points, grades and percentages, declare the number from which on they are a success, such as 50; where a low "
    "number is good, the one up to which they are, such as '<=4'"
)
NEEDS_LOW_MARK = (
    "these may be grades from 1 to 6. If 1 is the best, declare the one up to which they are a success, such as '<=4'; "
    "if 6 is the best, the one from which on they are, such as '>=4'"
)


@dataclass(frozen=True)
class PassMark:
    """The numbers from which on an outcome is a success, as declared; None where no number was declared.

    `points` is about numbers and `share` about percentages. With `low_is_good` a success is a number up to the mark, as
    for grades of which 1 is the best. `setting` is the parameter that declares it.
    """

    points: float | None = None
    share: float | None = None
    low_is_good: bool = False
    setting: str = "pass_from"

    @classmethod
    def of(cls, declared: float | str | None, setting: str = "pass_from") -> PassMark:
        """A mark for points, grades and percentages alike: 50 and '>=50', or '<=4' where a low number is good.

        Up to 1 it is a share, so that 0.5 and 50 % are one.
        """
        if declared is None:
            return cls(setting=setting)
        written = re.fullmatch(r"\s*(<=|≤|>=|≥)?\s*(\S+)\s*", str(declared))
        try:
            number = float(written[2].replace(",", ".")) if written else math.nan
        except ValueError:
            number = math.nan
        if not written or not math.isfinite(number):
            raise _not_a_mark(declared, setting)
        low_is_good = written[1] in ("<=", "≤")
        return cls(number, number / 100 if number > 1 else number, low_is_good, setting)

    def passes(self, number: pl.Expr, mark: float) -> pl.Expr:
        """Whether each number reaches a mark in the declared direction."""
        margin = ROUNDING * abs(mark)
        passed = number <= mark + margin if self.low_is_good else number >= mark - margin
        return passed.cast(pl.Int8)

    def to_fill_in(self, low_is_good: bool) -> str:
        """What stands in a suggested command until the user puts a number in its place."""
        points = self.setting == "pass_from"
        return "<=NUMBER" if low_is_good else "NUMBER" if points else ">=NUMBER"

    def in_words(self) -> str:
        """From or up to which number an outcome is a success."""
        return f"up to {self.points:g}" if self.low_is_good else f"from {self.points:g} on"

    def __str__(self) -> str:
        return f"{'<=' if self.low_is_good else '>='}{self.points:g}"


def has_direction(declared: float | str) -> bool:
    """Whether a mark is written with its direction, as '<=4' is."""
    return isinstance(declared, str) and bool(re.match(r"\s*[<>≤≥]", declared))


def _not_a_mark(declared: float | str, setting: str) -> UsageError:
    return UsageError(
        f"a pass mark is a number such as 50, or '<=4' where a low number is good, not '{declared}'.",
        hint="write the number from which on it is a success, or <= and the number up to which it is one, in "
        "quotation marks.",
        code="not-a-pass-mark",
        settings=(setting,),
    )


def seem_low_grades(cells: pl.Series, name: str | None = None) -> bool:
    """Whether numbers look like grades of which 1 may be the best: a question to the user, never an answer.

    Where much else may be from 1 to 6, the `name` of the column has to say that it holds grades.
    """
    if name is not None and not any(part in name.casefold() for part in _GRADES):
        return False
    words = words_of(cells.filter(~is_missing(cells))).alias("word").to_frame()
    numbers = words.select(number_in(pl.col("word"))).to_series()
    return bool(numbers.is_between(_BEST_GRADE, _WORST_GRADE).fill_null(False).all())


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


def as_percentage(share: float) -> str:
    """A share of the points as a cell that a pass mark decides about; below nothing is nothing."""
    return f"{100 * min(max(share, 0), 1):.10g} %"


def is_missing(cells: pl.Series) -> pl.Series:
    """Whether each cell is empty, or says that there is nothing."""
    return _once_per_text(cells, _are_missing, pl.Boolean)


def _are_missing(texts: pl.Series) -> pl.Series:
    words = words_of(texts)
    return words.is_null() | words.is_in(MISSING_WORDS)


def _once_per_text(
    cells: pl.Series, read: Callable[[pl.Series], pl.Series], dtype: type[pl.DataType]
) -> pl.Series:
    """What `read` makes of each cell: a column has few different texts, so each of them is read once."""
    texts = cells.cast(pl.String)
    different = texts.unique()
    if not len(different):
        return read(texts)  # of nothing, polars keeps the type of the texts
    return texts.replace_strict(different, read(different), return_dtype=dtype)


def read_outcomes(cells: pl.Series, mark: PassMark = PassMark()) -> pl.Series:  # noqa: B008 (frozen)
    """Outcomes as 1 and 0, null where a cell is neither.

    Words count by the lists above. A number is 0 or 1, or is compared with the mark for points; a percentage needs
    a mark, unless it is 0 or 100.
    """
    if cells.dtype == pl.Int8:  # read by a format's own rule
        return cells
    return _once_per_text(cells, lambda texts: _read_texts(texts, mark), pl.Int8).alias("outcome")


def _read_texts(texts: pl.Series, mark: PassMark) -> pl.Series:
    words = words_of(texts).alias("word").to_frame()
    word = pl.col("word")
    number, percent = number_in(word), percentage_in(word)
    numeric = pl.coalesce(_passed(number, mark, mark.points), _passed(percent / 100, mark, mark.share))
    return words.select(
        pl.when(number.is_not_null() | percent.is_not_null())
        .then(numeric)
        .when(word.is_in(TRUE_WORDS))
        .then(pl.lit(1, pl.Int8))
        .when(word.is_in(FALSE_WORDS))
        .then(pl.lit(0, pl.Int8))
        .alias("outcome")
    ).to_series()


def _passed(number: pl.Expr, mark: PassMark, at: float | None) -> pl.Expr:
    """Whether a number reaches the mark; without one, 0 is a failure, 1 a success, and the rest neither."""
    if at is None:
        return pl.when(number == 0).then(pl.lit(0, pl.Int8)).when(number == 1).then(pl.lit(1, pl.Int8))
    return mark.passes(number, at)
