"""The posterior of a student's ability: sums over a grid, the same ones that the student's page computes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from understudy.core.files.words import counted
from understudy.errors import DataError, UsageError
from understudy.exams.points_posterior import PointTables, bounds, steps_needed
from understudy.exams.released_file import Difficulties, Item
from understudy.exams.responses import Responses, item_spelling

Floats = NDArray[np.float64]

# An answer stands out when it had less than this chance, judged by all the others.
SURPRISING = 0.2

PASS_MARK = 0.5

# The points of the grid are at most a tenth of the narrowest posterior apart. The sums are then exact
# to rounding, and a credible limit, read off a straight line between two points, to 1/400 of a
# standard deviation. Nine deviations beyond the outermost mode leave out less than 1e-18.
_POINTS_PER_SD = 10
_FEWEST = 401
_REACH = 9.0

# Students at a time: their posteriors stay in the cache.
_BLOCK = 512


@dataclass(frozen=True)
class Grid:
    """Equally spaced abilities; the student's page repeats the sums over the same ones."""

    low: float
    high: float
    n_points: int

    @property
    def points(self) -> Floats:
        """The abilities."""
        step = (self.high - self.low) / (self.n_points - 1)
        return np.asarray(self.low + step * np.arange(self.n_points), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Abilities:
    """What follows from the answers of each student; arrays by student, or by student and item.

    `low` and `high` bound the central 95 % credible interval. `chances` are those of each item
    in another sitting, `passing` that of passing. `by_others` is the chance of each item judged by
    the student's answers to all other items, `should_have` and `surprising` what follows from it.
    `items` are those that have a difficulty; `left_out` names the others.

    Where answers have points, `chances` and `by_others` are expected shares of an item's points, `n_right` counts items
    with all their points, `points` are each student's own, out of `maxima`, and `needed` is a number of points.
    """

    items: tuple[str, ...]
    left_out: tuple[str, ...]
    n_answered: NDArray[np.int64]
    n_right: NDArray[np.int64]
    ability: Floats
    sd: Floats
    low: Floats
    high: Floats
    chances: Floats
    by_others: Floats
    should_have: NDArray[np.bool_]
    surprising: NDArray[np.bool_]
    passing: Floats
    needed: float
    points: Floats | None = None
    maxima: tuple[float, ...] = ()


def usable(difficulties: Difficulties) -> tuple[Item, ...]:
    """The items that have a difficulty: those that an ability can be computed from."""
    items = tuple(item for item in difficulties.items if item.difficulty is not None)
    if not items:
        raise DataError(
            f"none of the {len(difficulties.items)} items has a finite difficulty, so nothing can be computed.",
            hint="release the difficulties of a test that some passed and some failed.",
        )
    return items


def n_needed(pass_mark: float, n_items: int) -> int:
    """How many of the items must be right to pass."""
    if not 0 < pass_mark <= 1:
        raise UsageError(
            f"the pass mark is a share of the items above 0 and up to 1; got {pass_mark:g}.",
            hint="it is 0.5 when half of the items must be right.",
            settings=("pass_mark",),
        )
    # 0.07 * 100 is a little above 7 to a computer.
    return math.ceil(pass_mark * n_items - 1e-9)


def slope(item: Item) -> float:
    """How much an ability counts at an item whose difficulty d is known up to its standard error s.

    The chance is that of the Rasch model averaged over d ~ N(difficulty, s^2), and a logistic
    function averaged over a normal law is nearly one again, flatter by 1 / sqrt(1 + pi s^2 / 8)
    (MacKay 1992, "The evidence framework applied to classification networks", section 4). An item's
    discrimination multiplies both.
    """
    doubt = item.discrimination * (item.standard_error or 0.0)
    return item.discrimination / math.sqrt(1.0 + math.pi * doubt**2 / 8.0)


def grid_of(difficulties: Difficulties) -> Grid:
    """The abilities to sum over: they reach past all that any pattern of answers makes likely.

    Beyond the modes of a student with everything wrong and of one with everything right, a posterior falls
    at least as fast as the prior does from there on. That a right answer may be a guess weakens its pull,
    so these two modes are taken without guesses.
    """
    items, prior = usable(difficulties), difficulties.ability
    if difficulties.has_points:
        low, high, narrowest = bounds(items, prior.mean, prior.sd, _REACH)
        return Grid(low, high, max(_FEWEST, 1 + math.ceil((high - low) * _POINTS_PER_SD / narrowest)))
    slopes = np.array([slope(item) for item in items])
    centres = np.array([item.difficulty for item in items], dtype=np.float64)
    low = _mode(prior.mean, prior.sd, centres, slopes, right=False) - _REACH * prior.sd
    high = _mode(prior.mean, prior.sd, centres, slopes, right=True) + _REACH * prior.sd
    # The curvature of log(chance) is at most slope^2 / 4, with guesses too: with q the share of right answers that
    # are known, its first derivative is q (1 - sigma) slope, and q rises with the ability.
    narrowest = 1.0 / math.sqrt(1.0 / prior.sd**2 + float(np.sum(slopes**2)) / 4.0)
    n_points = max(_FEWEST, 1 + math.ceil((high - low) * _POINTS_PER_SD / narrowest))
    return Grid(low, high, n_points)


def _mode(mean: float, sd: float, centres: Floats, slopes: Floats, *, right: bool) -> float:
    """The most likely ability when every answer is right, or every one wrong."""
    sign = 1.0 if right else -1.0
    near, far = 0.0, sd**2 * float(slopes.sum())
    for _ in range(100):
        middle = (near + far) / 2
        ability = mean + sign * middle
        pull = float(np.sum(slopes * np.exp(_log_chance(sign * slopes * (centres - ability)))))
        near, far = (middle, far) if pull > middle / sd**2 else (near, middle)
    return mean + sign * far


def _log_chance(logit: Floats) -> Floats:
    return -np.logaddexp(0.0, -logit)


def at_least(chances: Floats, needed: int) -> Floats:
    """The chance of at least `needed` successes, for each row of independent chances.

    The Poisson binomial law by its recursion: after each item, `exactly[:, k]` is the chance of k
    successes so far.
    """
    n_rows, n_items = chances.shape
    exactly = np.zeros((n_rows, n_items + 1))
    exactly[:, 0] = 1.0
    for item in range(n_items):
        chance = chances[:, item : item + 1]
        exactly[:, 1 : item + 2] = exactly[:, 1 : item + 2] * (1 - chance) + exactly[:, : item + 1] * chance
        exactly[:, 0] *= 1 - chance[:, 0]
    return np.asarray(exactly[:, needed:].sum(axis=1))


def abilities(difficulties: Difficulties, responses: Responses, pass_mark: float = PASS_MARK) -> Abilities:
    """Abilities as posterior means under the file's ability distribution.

    Only answered items count. The chance of item i at ability b is g_i + (1 - g_i) sigma(k_i (b - d_i)),
    with the item's chance g_i of a guess and k_i = `slope` of its standard error: the errors of two
    items, and of two sittings of one, count as independent. Passing means at least `n_needed` of all
    items right in a new sitting.

    An answer stands out by leaving it out: with the ability judged by all OTHER answers, a wrong
    answer at a chance above 0.8 "should have" been right, a right one below 0.2 is "surprising".
    With no other answers the student is judged as one drawn from the ability distribution.
    """
    items = usable(difficulties)
    needed = n_needed(pass_mark, len(items))
    responses = matched(difficulties, responses)
    if difficulties.has_points:
        return _by_points(difficulties, items, responses, pass_mark)
    grid = grid_of(difficulties)
    points = grid.points
    correct = responses.with_items([item.name for item in items]).correct
    slopes = np.array([slope(item) for item in items])
    centres = np.array([item.difficulty for item in items], dtype=np.float64)
    logits = (points[:, None] - centres) * slopes
    guess = np.array([item.guess for item in items])
    with np.errstate(divide="ignore"):
        log_right = np.logaddexp(np.log(guess), np.log1p(-guess) + _log_chance(logits))
    log_wrong = np.log1p(-guess) + _log_chance(-logits)
    right = np.exp(log_right)
    tables = _Tables(
        points=points,
        log_prior=-0.5 * ((points - difficulties.ability.mean) / difficulties.ability.sd) ** 2,
        log_right=log_right,
        log_wrong=log_wrong,
        right=right,
        per_right=np.exp(-log_right),
        per_wrong=np.exp(-log_wrong),
        odds=np.exp(log_right - log_wrong),
        passing=at_least(right, needed),
    )
    blocks = [tables.judge(correct[k : k + _BLOCK]) for k in range(0, max(1, len(correct)), _BLOCK)]
    measured = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    by_others = measured["by_others"]
    return Abilities(
        items=tuple(item.name for item in items),
        left_out=tuple(item.name for item in difficulties.items if item.difficulty is None),
        n_answered=np.count_nonzero(correct >= 0, axis=1),
        n_right=np.count_nonzero(correct > 0, axis=1),
        should_have=(correct == 0) & (by_others > 1 - SURPRISING),
        surprising=(correct == 1) & (by_others < SURPRISING),
        needed=needed,
        **measured,  # type: ignore[arg-type]
    )


def _by_points(
    difficulties: Difficulties, items: tuple[Item, ...], responses: Responses, pass_mark: float
) -> Abilities:
    """Abilities where answers have points: an answer stands out if so few, or so many, had a chance below 0.2."""
    names = [item.name for item in items]
    steps = responses.with_items(names).correct
    most = np.array([item.points.steps for item in items])
    if responses.points is None or (steps > most).any():
        raise DataError(
            "the items of the exam have points, but the answers have none, or more than an item gives.",
            hint="read the answers with the points of the exam.",
            code="other-points",
        )
    grid = grid_of(difficulties).points
    needed, needed_points = steps_needed(items, pass_mark)
    tables = PointTables(difficulties, items, grid, needed)
    blocks = [_judge(tables, steps[k : k + _BLOCK]) for k in range(0, max(1, len(steps)), _BLOCK)]
    found = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    so_few, so_many = found.pop("so_few"), found.pop("so_many")
    return Abilities(
        items=tuple(names),
        left_out=tuple(item.name for item in difficulties.items if item.difficulty is None),
        n_answered=np.count_nonzero(steps >= 0, axis=1),
        n_right=np.count_nonzero(steps == most, axis=1),
        should_have=so_few < SURPRISING,
        surprising=so_many < SURPRISING,
        needed=needed_points,
        points=np.maximum(steps, 0) @ np.array([item.unit for item in items]),
        maxima=tuple(item.points.maximum for item in items),
        **found,
    )


def _judge(tables: PointTables, steps: NDArray[np.int8]) -> dict[str, Floats]:
    weight = tables.weights(steps)
    share, so_few, so_many = tables.by_others(weight, steps)
    return {
        **_located(weight, tables.points),
        "passing": weight @ tables.passing,
        "chances": np.stack([weight @ table for table in tables.shares], axis=1),
        "by_others": share,
        "so_few": so_few,
        "so_many": so_many,
    }


def _located(weight: Floats, points: Floats) -> dict[str, Floats]:
    """Mean, standard deviation and limits of each posterior, by their names in `Abilities`.

    The limits are the 2.5 % and 97.5 % points: straight lines between the sums of trapezoids.
    """
    ability = weight @ points
    sd = np.sqrt(np.einsum("sg,sg->s", weight, (points[None, :] - ability[:, None]) ** 2))
    below = np.cumsum((weight[:, 1:] + weight[:, :-1]) / 2, axis=1)
    below = np.concatenate([np.zeros((len(below), 1)), below], axis=1) / below[:, -1:]
    low, high = (np.array([np.interp(share, row, points) for row in below]) for share in (0.025, 0.975))
    return {"ability": ability, "sd": sd, "low": low, "high": high}


def matched(difficulties: Difficulties, responses: Responses) -> Responses:
    """The responses with their items called as in the exam; case and spaces do not matter where that is certain."""
    exam = [item.name for item in difficulties.items]
    known = set(exam)
    alike: dict[str, list[str]] = {}
    for name in exam:
        alike.setdefault(item_spelling(name), []).append(name)
    given = Counter(item_spelling(name) for name in responses.items)
    names, unknown = [], []
    for name in responses.items:
        candidates = alike.get(item_spelling(name), [])
        if name in known:
            names.append(name)
        elif len(candidates) == 1 and given[item_spelling(name)] == 1:
            names.append(candidates[0])
        else:
            unknown.append(name)
    if unknown:
        has = "has" if len(unknown) == 1 else "have"
        raise DataError(
            f"{len(unknown)} of the {counted(len(responses.items), 'item')} of the answers {has} no released "
            f"difficulty: {_listed(unknown, 5)}. The items of the exam: {_listed(exam, 10)}.",
            hint="spell the items as in the exam, and leave out those of another one. One student's own answers "
            "are two columns named item,correct, a line per item; a sheet has a row per student.",
        )
    return replace(responses, items=tuple(names))


def _listed(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f"'{name}'" for name in names[:most]) + more


@dataclass(frozen=True, eq=False)
class _Tables:
    """Everything that does not depend on the answers, by point of the grid (and item)."""

    points: Floats
    log_prior: Floats
    log_right: Floats
    log_wrong: Floats
    right: Floats
    per_right: Floats
    per_wrong: Floats
    odds: Floats
    passing: Floats

    def judge(self, correct: NDArray[np.int8]) -> dict[str, Floats]:
        """What is measured for each student, by its name in `Abilities`."""
        was_right, was_wrong = (correct == 1).astype(np.float64), (correct == 0).astype(np.float64)
        weight = self.log_prior + was_right @ self.log_right.T + was_wrong @ self.log_wrong.T
        weight -= weight.max(axis=1, keepdims=True)
        np.exp(weight, out=weight)
        # The ends of trapezoids count half; here they hold next to nothing, so the plain sum will do.
        weight /= weight.sum(axis=1, keepdims=True)
        chances = weight @ self.right
        return {
            **_located(weight, self.points),
            "passing": weight @ self.passing,
            "chances": chances,
            "by_others": self._by_others(weight, chances, correct),
        }

    def _by_others(self, weight: Floats, chances: Floats, correct: NDArray[np.int8]) -> Floats:
        """Each item's chance under the posterior without that item's own answer.

        Dividing the posterior by the answer's likelihood takes it out: after a right answer the
        chance is 1 / E(1 / p), after a wrong one E(p / (1 - p)) / E(1 / (1 - p)).
        """
        after_right = 1.0 / (weight @ self.per_right)
        after_wrong = (weight @ self.odds) / (weight @ self.per_wrong)
        return np.asarray(np.where(correct == 1, after_right, np.where(correct == 0, after_wrong, chances)))
