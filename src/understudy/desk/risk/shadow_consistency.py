"""Check for code that behaves differently on shadows, which hold learners twice, so that its price looks small.

To first order, a statistic on a shadow is T plus the sum over learners of (how often they are in it - 1) times
their influence, T - T_i: what leaving out each learner showed predicts what the shadows give, and how much they
scatter (the jackknife's standard error). Code that recognises a shadow, by its double rows, does not follow that.
Learners who were left out in blocks are compared as blocks, each as if all learners in it were alike: the prediction is
then coarser by the square root of their size.

A statistic that bends or jumps, such as a p value near 1, does not follow it either. What distinguishes it is that it
does not care for copies: on the same shadows with every copy of a learner blurred a little (`blurred_copies`) it gives
nearly the same. An answer that does not follow its leave-outs is held unless it stands this test, and then a reviewer
looks at it.

The check cannot see code that recognises shadows by something else than equal or nearly equal rows, in a number that
bends; and where no column can be blurred, a number that bends is held.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from understudy.desk.disclosure.influences import Influences
from understudy.desk.domain.results import Check, Floats, Results
from understudy.desk.risk.pricing import BESIDE, SAME, ShadowAnswers
from understudy.desk.risk.shadows import ShadowBank

# Two parts differ by at least this share of the larger, by so many standard errors, and by this share of the number's
# spread over shadows. What moves a number by less than that is not seen: about as much in mu.
MIN_DIFFERENCE = 0.5
MIN_DIFFERENCE_IN_ERRORS = 5.0
MIN_DIFFERENCE_IN_SPREADS = 0.3


def parts_differ(answers: Floats, bank: ShadowBank, full: float, without_one: Floats) -> bool:
    """Whether a learner's part in a number is different on the shadows from that in the data.

    `answers` are those on shadows, `full` is the answer on the data and `without_one` those without each learner, or
    without each of so many blocks of neighbours; NaN where there is none. With fewer shadows than two for each block
    neighbouring blocks are taken together: what one learner adds is in the sum.
    """
    there, kept = np.isfinite(answers), np.isfinite(without_one)
    n_groups = min(len(without_one), int(there.sum()) // 2)
    if n_groups < 3 or kept.sum() < 3 or not np.isfinite(full):
        return False
    group = np.repeat(np.arange(n_groups), _sizes(len(without_one), n_groups))
    group_of_learner = np.repeat(group, _sizes(bank.n_learners, len(without_one)))
    sizes = np.bincount(group_of_learner, minlength=n_groups)
    steps = np.bincount(group, np.where(kept, full - without_one, 0.0), n_groups)
    known = np.bincount(group, ~kept, n_groups) == 0
    # Also without one learner fewer are left, which moves a total: alike for all, and not on shadows.
    steps = steps - sizes * (steps[known].sum() / max(int(sizes[known].sum()), 1))
    away = answers[there] - answers[there].mean()
    counts = _summed(bank.counts[there].astype(np.float64) - 1.0, sizes)
    # What a group adds for each time that one of its learners is in, as if all of them were alike.
    effects = np.linalg.solve(counts.T @ counts + np.diag(sizes.astype(np.float64)), counts.T @ away)
    parts = effects * sizes
    error = (away - counts @ effects).std() * np.sqrt(sizes / (there.sum() - n_groups))
    enough = MIN_DIFFERENCE * np.maximum(np.abs(steps), np.abs(parts)) + MIN_DIFFERENCE_IN_ERRORS * error
    return bool(
        (known & (np.abs(steps - parts) > np.maximum(enough, MIN_DIFFERENCE_IN_SPREADS * away.std()))).any()
    )


def _sizes(n: int, n_parts: int) -> NDArray[np.int64]:
    """How many of n are in each part, as `np.array_split` does it."""
    return np.array([len(part) for part in np.array_split(np.arange(n), n_parts)])


def _summed(counts: Floats, sizes: NDArray[np.int64]) -> Floats:
    """Columns of neighbours added up."""
    return np.asarray(np.add.reduceat(counts, np.concatenate([[0], np.cumsum(sizes)[:-1]]), axis=1))


# Standard deviation over shadows, in standard errors of the jackknife: it is 1 for means, whoever is far out. Below the
# first a number stands still, below the second it moves too little.
MAX_SPREAD_WHEN_STILL = 0.02
MIN_SPREAD = 0.25
# Correlation with the prediction; answers that have nothing to do with it scatter around 0 by 1 / sqrt(n_shadows).
MIN_CORRELATION = 0.3
# With blurred copies: a number is another one if it is so many standard deviations of shadows away, and may be that on
# this share of the shadows.
MAX_DIFFERENCE_WHEN_BLURRED = 0.25
MAX_SHARE_APART = 0.2
# In these scatters: below, a correlation cannot be distinguished from chance.
MIN_CORRELATION_IN_SCATTERS = 3.0


def shadow_consistency(
    influences: Influences,
    shadows: ShadowAnswers,
    bank: ShadowBank,
    answer: Results,
    on_blurred: Callable[[], Floats],
) -> Check:
    """Whether the answers on shadows are those of the same code as the answers without single learners.

    `on_blurred` gives the numbers on the first few shadows with blurred copies; it is asked for where the verdict
    depends on it.
    """
    check, probes = Check.about("shadows", influences.shown), influences.probes
    values = shadows.values[:, : len(influences.names)]
    failed = float(np.isnan(values).all(axis=1).mean()) if values.size else 0.0
    if failed > 0.5 and not probes.failed.any():
        return check.fails(
            f"The analysis gave no answer on {failed:.0%} of the shadows, and always gave one when single learners "
            "were left out: its price was not measured."
        )
    if n_still := _n_still(influences, shadows, answer):
        return check.fails(
            f"{n_still} texts, rows or names change when single learners are left out and never on the shadows: the "
            "code seems to recognise shadows, and its price cannot be relied on."
        )
    still, unpredicted, other_parts = _unlike(influences, values, bank)
    if still:
        return check.fails(
            f"'{influences.shown[still[0]]}' moves when single learners are left out and hardly on the shadows: the "
            "code seems to recognise shadows, and its price cannot be relied on.",
            still,
        )
    if unlike := [*unpredicted, *other_parts]:
        what = (
            f"What '{influences.shown[unlike[0]]}' is on the shadows has little to do with what leaving out single "
            "learners predicts"
            if unpredicted
            else f"A learner's part in '{influences.shown[unlike[0]]}' is different on the shadows than in the data"
        )
        if not _same_on_blurred(values[:, unlike], on_blurred()[:, unlike]):
            return check.fails(
                f"{what}: the code seems to recognise learners who are in twice, and its price cannot be relied on.",
                unlike,
            )
        return check.asks(
            f"{what}. It is nearly the same when copies of learners are blurred, so that the code does not seem to "
            "look for them: statistics that bend or jump do that. See in the code whether it is one.",
            unlike,
        )
    if bank.n_learners and _min_correlation(influences) < MIN_CORRELATION_IN_SCATTERS / np.sqrt(
        bank.n_shadows
    ):
        return check.asks(
            f"With {influences.n_learners:,} learners, left out in {probes.n_blocks:,} blocks, {bank.n_shadows:,} "
            "shadows are too few to compare: see in the code whether it counts learners or looks for equal rows."
        )
    return check.passes("Answers on the shadows are as leaving out single learners predicts.")


def _same_on_blurred(values: Floats, blurred: Floats) -> bool:
    """Whether numbers are nearly the same on shadows (rows) with blurred copies, for most of the shadows."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(values[: len(blurred)] - blurred) > MAX_DIFFERENCE_WHEN_BLURRED * np.nanstd(
            values, axis=0
        )
    apart |= np.isnan(values[: len(blurred)]) != np.isnan(blurred)
    return bool(len(blurred) and (apart.mean(axis=0) <= MAX_SHARE_APART).all())


def _n_still(influences: Influences, shadows: ShadowAnswers, answer: Results) -> int:
    """How many texts, rows and names a learner's absence changes, which are always the same on shadows."""
    probes = influences.probes
    if not probes.entries:
        return 0
    n_alone = probes.differs[1 : 1 + probes.n_blocks].sum(axis=0, dtype=np.int64)
    moving = {name.removeprefix(SAME) for name in shadows.names if name.startswith(SAME)}
    moving.update(
        name for name, column in zip(shadows.names, shadows.values.T, strict=True) if np.isnan(column).any()
    )
    return sum(
        entry not in moving if entry in answer.form else BESIDE not in shadows.names
        for entry, n in zip(probes.entries, n_alone.tolist(), strict=True)
        if n
    )


def _min_correlation(influences: Influences) -> float:
    return MIN_CORRELATION / float(np.sqrt(influences.n_learners / max(influences.probes.n_blocks, 1)))


def _unlike(
    influences: Influences, values: Floats, bank: ShadowBank
) -> tuple[list[int], list[int], list[int]]:
    """Numbers that hardly move on shadows, that do not follow the prediction, and of which learners' parts differ."""
    sizes = _sizes(bank.n_learners, max(influences.probes.n_blocks, 1))
    predicted = (_summed(bank.counts.astype(np.float64) - 1.0, sizes) / sizes) @ influences.steps
    # Blocks of unequal sizes move a total unequally, which no shadow does.
    errors = np.sqrt(
        ((influences.steps - np.outer(sizes, influences.steps.sum(axis=0) / sizes.sum())) ** 2).sum(axis=0)
    )
    least = _min_correlation(influences)
    still, unpredicted, other_parts = [], [], []
    for j in range(len(influences.names)):
        there = ~np.isnan(values[:, j])
        error = float(errors[j])
        if error <= 0 or not influences.moved[:, j].any() or there.sum() < 20:
            continue
        spread = float(values[there, j].std())
        if spread < MAX_SPREAD_WHEN_STILL * error:
            still.append(j)
        elif spread < MIN_SPREAD * error or _rank_correlation(values[there, j], predicted[there, j]) < least:
            unpredicted.append(j)
        elif parts_differ(values[:, j], bank, influences.probes.full[j], influences.probes.without_one[:, j]):
            other_parts.append(j)
    return still, unpredicted, other_parts


def _rank_correlation(values: Floats, predicted: Floats) -> float:
    """Of ranks: a p value bends, and goes the same way."""
    found = float(np.corrcoef(rankdata(values), rankdata(predicted))[0, 1])
    return 0.0 if np.isnan(found) else found
