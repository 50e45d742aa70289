"""The cells of an exam sheet: right, wrong, not answered, or a problem that an error can name."""

from __future__ import annotations

from fractions import Fraction

import polars as pl

from understudy.core.files.outcomes import (
    FALSE_WORDS,
    MISSING_WORDS,
    ROUNDING,
    TRUE_WORDS,
    PassMark,
    number_in,
    percentage_in,
    words_of,
)
from understudy.errors import UsageError
from understudy.exams.formats.sheet_header import Heading
from understudy.exams.responses import MOST_STEPS, NOT_ANSWERED

# What the matrix holds while it is checked, besides -1 and steps from 0 on.
FIRST_PROBLEM = MOST_STEPS + 1
_OTHER_NUMBER, _TOO_MANY, _NEGATIVE, _UNREADABLE, _BETWEEN = range(FIRST_PROBLEM, FIRST_PROBLEM + 5)
PROBLEMS = {
    _OTHER_NUMBER: "holds a number other than 0 and 1, and its header gives no maximum of points,",
    _TOO_MANY: "holds more points than the maximum in its header",
    _NEGATIVE: "holds a negative number of points",
    _UNREADABLE: "holds something that is neither a number nor true or false",
    _BETWEEN: "holds points between the declared steps",
}
_NOTATION = (
    "if these are points, declare the maximum of each item: in a table of the items (csv) with the columns item and "
    "points, or in the header, as in 'Q1 (15 points)' or 'Q1 /15.00'. An answer counts as correct from half of it on, "
    "or from another share. Columns that the table does not list are not read. For grades, or points without a "
    "maximum, declare the number up to which they are right ('<=4') or from which on ('>=50')."
)
# Problems of points without a maximum, where the share that counts as correct matters.
NEED_A_MAXIMUM = (_OTHER_NUMBER,)
HINTS = {
    _OTHER_NUMBER: _NOTATION,
    _TOO_MANY: "correct the points or the maximum.",
    _NEGATIVE: "write what was lost as fewer points, 0 at the least; leave a cell empty if there is no answer.",
    _UNREADABLE: "an answer is 0 or 1 (also true/false, yes/no, richtig/falsch, vrai/faux), a percentage or a number "
    "of points; leave the cell empty if there is none. If the column is not an item, list the items without it.",
    _BETWEEN: "declare the step of the marking scheme, such as 0.5, not what the sheet shows; or correct the points.",
}
_TRUE = tuple(word for word in TRUE_WORDS if word.isalpha())
_FALSE = tuple(word for word in FALSE_WORDS if word.isalpha())


def n_steps(item: Heading, step: float | None) -> int:
    """How many steps an item's points have; one if it is right or wrong, as all items are without a `step`."""
    if step is None or item.maximum is None:
        return 1
    steps = Fraction(str(item.maximum)) / Fraction(str(step))
    if steps.denominator > 1 or steps > MOST_STEPS:
        raise UsageError(
            f"the {item.maximum:g} points of item '{item.title}' are {float(steps):g} steps of {step:g}.",
            hint=f"declare a step that divides the points of every item into at most {MOST_STEPS}.",
            code="bad-step",
            settings=("points",),
        )
    return int(steps)


def code_of(values: pl.Series, item: Heading, mark: PassMark, step: float | None = None) -> pl.Expr:
    """Each cell of a column as steps, -1 or the problem that it is; under the column's name.

    Without a `step` of points, 1 is right and 0 wrong.
    """
    return _code(values, item, mark, step).alias(values.name)


def _code(values: pl.Series, item: Heading, mark: PassMark, step: float | None) -> pl.Expr:
    cell = pl.col(values.name)
    if values.dtype == pl.Boolean:
        return (cell.cast(pl.Int8) * n_steps(item, step)).cast(pl.Int8).fill_null(NOT_ANSWERED)
    if values.dtype.is_numeric():
        missing = cell.is_null() | cell.is_nan() if values.dtype.is_float() else cell.is_null()
        return pl.when(missing).then(_lit(NOT_ANSWERED)).otherwise(_scored(cell, item, mark, step))
    if values.dtype == pl.Null:
        return pl.repeat(NOT_ANSWERED, pl.len(), dtype=pl.Int8)
    if values.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return pl.when(cell.is_null()).then(_lit(NOT_ANSWERED)).otherwise(_lit(_UNREADABLE))
    # A column has few different texts, so that these are understood once and then looked up.
    texts = values.unique()
    return cell.replace_strict(texts, _code_of_texts(texts, item, mark, step), return_dtype=pl.Int8)


def _code_of_texts(texts: pl.Series, item: Heading, mark: PassMark, step: float | None) -> pl.Series:
    word = words_of(texts).alias("word").to_frame()
    number, percent = number_in(pl.col("word")), percentage_in(pl.col("word"))
    assert mark.share is not None  # an exam has one in any case
    return word.select(
        pl.when(pl.col("word").is_null() | pl.col("word").is_in(MISSING_WORDS))
        .then(_lit(NOT_ANSWERED))
        .when(pl.col("word").is_in(_TRUE))
        .then(_lit(n_steps(item, step)))
        .when(pl.col("word").is_in(_FALSE))
        .then(_lit(0))
        .when(percent.is_not_null())
        .then(
            mark.passes(percent / 100, mark.share)
            if step is None
            else _in_steps(percent / 100 * (item.maximum or 1.0), item, step)
        )
        .when(number.is_not_null())
        .then(_scored(number, item, mark, step))
        .otherwise(_lit(_UNREADABLE))
    ).to_series()


def _scored(number: pl.Expr, item: Heading, mark: PassMark, step: float | None) -> pl.Expr:
    if step is not None and item.maximum is not None:
        return _in_steps(number.cast(pl.Float64), item, step)
    if mark.points is not None:
        return mark.passes(number.cast(pl.Float64), mark.points)
    if item.maximum is None:
        return (
            pl.when(number == 0).then(_lit(0)).when(number == 1).then(_lit(1)).otherwise(_lit(_OTHER_NUMBER))
        )
    assert mark.share is not None  # an exam has one in any case
    margin, number = ROUNDING * item.maximum, number.cast(pl.Float64)
    return (
        pl.when(number < 0)
        .then(_lit(_NEGATIVE))
        .when(number > item.maximum + margin)
        .then(_lit(_TOO_MANY))
        .when(number >= mark.share * item.maximum - margin)
        .then(_lit(1))
        .otherwise(_lit(0))
    )


def _in_steps(number: pl.Expr, item: Heading, step: float) -> pl.Expr:
    """Points as steps."""
    most = n_steps(item, step)
    size = step if item.maximum is not None else 1.0
    steps = number / size
    nearest = steps.round()
    return (
        pl.when(number < 0)
        .then(_lit(_NEGATIVE))
        .when(steps > most + ROUNDING * most)
        .then(_lit(_TOO_MANY))
        .when((steps - nearest).abs() > ROUNDING * most)
        .then(_lit(_BETWEEN))
        .otherwise(nearest.clip(0, most).cast(pl.Int8, strict=False))
    )


def _lit(code: int) -> pl.Expr:
    return pl.lit(code, dtype=pl.Int8)


def holds_answers(codes: pl.Series, item: Heading) -> bool:
    """Whether a column is an item. With a maximum it is; without, at most half of its cells may be unreadable.

    One wrong cell is an error to repair. A column of names or remarks is no item at all, and
    neither is an empty column without a name, which comes from separators at the ends of lines.
    """
    if item.maximum is not None:
        return True
    filled = len(codes) - int((codes == NOT_ANSWERED).sum())
    if not filled:
        return not item.unnamed
    return 2 * int((codes == _UNREADABLE).sum()) < filled
