"""Last year's private summary as prior information for this year's: less noise at the same price.

Both summaries are private already, and they are about different learners: combining them is
post-processing, and each year's learners keep the guarantee that they have. What two years have in
common is not assumed but estimated: per learner, this year's number is last year's plus a drift with
the variance tau^2 (habits that change, and other learners), and the two released numbers differ by
the drift and by both noises. tau^2 is its posterior mean with a flat prior on tau, for each group of
like cells, and the two are weighted by their precision, 1 / sd^2 and 1 / (last sd^2 + tau^2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.schema import Schema
from understudy.cohorts.summary import caveats
from understudy.cohorts.summary.summary_file import PrivateSummary, Statistic, _mechanism_token
from understudy.core.privacy.guarantee import Caveat
from understudy.errors import DataError

Floats = NDArray[np.float64]

# Points of the grid over tau, and how many times the largest difference it reaches.
_N_GRID = 200
# An earlier year counts as at most this many times as precise (in standard deviations) as this one, so
# that a file cannot state less noise than its number of years allows: `least_noise`.
_MOST_PRECISE = 4.0
# What a context may differ in without being about something else.
_OWN = frozenset(
    {
        *("n_learners", "years", "measured_sd", "validated_cells"),
        *("centre_active", "scale_active", "centre_l", "scale_l"),
    }
)


def with_previous(
    summary: PrivateSummary, previous: PrivateSummary, *, charged: bool = False
) -> PrivateSummary:
    """This year's summary with last year's as prior information, where both measured the same.

    The noise scale of a combined number holds the drift. `previous` may itself be combined, so that
    a third year builds on two. Never give two summaries of the same learners: their noise scales
    would be right, but the file would hold both measurements and state the epsilon of one. Only the
    ledger knows which learners they are: see `Ledger.same_learners`. `charged` means that a ledger knows that
    `previous` was paid for; without it the statement calls that a claim.
    """
    check_previous(summary.schema, previous)
    if _card(summary) is not None and _card(summary) == _card(previous):
        raise DataError("the two summaries are the same one.", hint="give last year's.")
    statistics = {
        name: _combined(
            name,
            statistic,
            summary.n_learners,
            previous.statistics[name],
            previous.n_learners,
            summary.schema.n_weeks,
        )
        if name in previous.statistics
        else statistic
        for name, statistic in summary.statistics.items()
    }
    return remade(
        summary, statistics, {"previous": cards(previous)}, *previous_caveats(previous, charged=charged)
    )


def previous_caveats(previous: PrivateSummary, *, charged: bool) -> tuple[Caveat, ...]:
    """The caveats of a summary that holds an earlier one, with those of the earlier one that pass on to it."""
    stated = previous.guarantee.caveats
    # One claim in a chain of years makes a claim of the whole.
    known = charged and caveats.PREVIOUS_CLAIMED not in stated
    from_file = caveats.FROM_FILE in stated or caveats.EARLIER_FROM_FILE in stated
    return (
        caveats.PREVIOUS if known else caveats.PREVIOUS_CLAIMED,
        *((caveats.EARLIER_FROM_FILE,) if from_file else ()),
        *((caveats.FEEDBACK,) if caveats.FEEDBACK in stated else ()),
    )


def check_previous(schema: Schema, previous: PrivateSummary) -> None:
    """Refuse a summary of something else; only the words about a cohort (title, context) may differ.

    A number means the same in two years only if windows, bounds, weeks and labels are the same: even
    the bound of a window is in it, since l is measured in shares of the bound's.
    """
    found = _differences(schema, previous.schema)
    if found:
        raise DataError(
            f"last year's summary was declared with {' and '.join(found)}, so its numbers mean something else.",
            hint="only summaries of the same declaration can be combined (its title and context may differ): build "
            "this year's cohort with last year's toml, or leave the earlier summary out.",
            settings=("previous",),
        )


def _differences(now: Schema, before: Schema) -> list[str]:
    """What two declarations differ in, in words."""
    windows, old = ({feature.name: feature for feature in schema.features} for schema in (now, before))
    found = []
    if list(windows) != list(old):
        found.append(f"other windows ({', '.join(old)}; this year {', '.join(windows)})")
    else:
        for what in ("hours", "high", "unit"):
            differing = [name for name in windows if getattr(windows[name], what) != getattr(old[name], what)]
            if differing:
                words = {"hours": "other hours", "high": "another bound", "unit": "another unit"}[what]
                found.append(f"{words} of {', '.join(differing)}")
    for words, new, earlier in (
        ("weeks", now.n_weeks, before.n_weeks),
        ("a label", now.label, before.label),
        ("labels", list(now.labels), list(before.labels)),
        ("cuts", _listed(now.cuts), _listed(before.cuts)),
        ("bounds of the scores", _listed(now.score_bounds), _listed(before.score_bounds)),
        ("learners without events", now.without_events, before.without_events),
    ):
        if new != earlier:
            found.append(f"other {words} ({earlier}; this year {new})".replace("other a ", "another "))
    return found


def _listed(numbers: tuple[float, ...] | None) -> str:
    return "none" if numbers is None else ", ".join(f"{number:g}" for number in numbers)


def best_gain(plan_noise: Mapping[str, float], n_learners: int, previous: PrivateSummary) -> dict[str, float]:
    """What is left of the noise of each statistic if nothing changed since last year: the most it can help.

    From public numbers alone: the noise that is planned, and that of the earlier file.
    """
    found = {}
    for name, noise in plan_noise.items():
        if name in previous.statistics:
            own = noise / n_learners
            statistic = previous.statistics[name]
            sd = (
                np.diagonal(statistic.noise_sd)
                if name == "habits" and np.ndim(statistic.noise_sd) == 2
                else statistic.noise_sd
            )
            old = float(np.mean(sd)) / previous.n_learners
            found[name] = float(1.0 / np.sqrt(1.0 + (own / old) ** 2))
    return found


def remade(
    summary: PrivateSummary, statistics: Mapping[str, Statistic], more: Mapping[str, Any], *beside: Caveat
) -> PrivateSummary:
    """The summary after post-processing: other numbers, the same guarantee, stated with what else went in."""
    return PrivateSummary._made(
        _mechanism_token(),
        summary.schema,
        summary.guarantee.with_caveats(*beside) if summary.guarantee.formal else summary.guarantee,
        summary.n_learners,
        statistics,
        {**summary.provenance, **more},
    )


def cards(summary: PrivateSummary) -> list[str]:
    """Everything that was paid for and is in a summary, by its card: its own first, then earlier ones."""
    own = _card(summary)
    return [*([] if own is None else [own]), *summary.provenance.get("previous", [])]


def own_noise(statistic: Statistic) -> float:
    """The noise of the statistic's own measurement, also after something was combined with it."""
    if "measured_sd" in statistic.context:
        return float(statistic.context["measured_sd"])
    # The diagonal of products has the noise that was drawn; the other cells are means of two.
    return float(np.max(statistic.noise_sd))


def least_noise(measured: Floats, years: int) -> Floats:
    """The least noise that a number can have that was measured with `measured` and combined over `years`."""
    return np.asarray(measured / np.sqrt(1.0 + (years - 1) * _MOST_PRECISE**2))


def _card(summary: PrivateSummary) -> str | None:
    card = summary.provenance.get("card")
    return None if card is None else str(card)


def _combined(
    name: str, now: Statistic, n_now: int, before: Statistic, n_before: int, n_weeks: int
) -> Statistic:
    if not _alike(now, before):
        return now
    value, sd = now.values / n_now, np.broadcast_to(now.noise_sd, now.values.shape) / n_now
    old, old_sd = before.values / n_before, np.broadcast_to(before.noise_sd, before.values.shape) / n_before
    if name == "habits":
        old, old_sd = recentred(old, old_sd, before, now, n_weeks)
    combined, combined_sd = np.array(value), np.array(sd)
    years_before = int(before.context.get("years", 1))
    old_sd = np.maximum(old_sd, sd / (_MOST_PRECISE * np.sqrt(years_before)))
    for cells in _groups(name, now):
        drift = drift_variance(value[cells] - old[cells], sd[cells] ** 2 + old_sd[cells] ** 2)
        fresh, known = 1.0 / np.maximum(sd[cells], 1e-12) ** 2, 1.0 / (old_sd[cells] ** 2 + drift)
        combined[cells] = (fresh * value[cells] + known * old[cells]) / (fresh + known)
        combined_sd[cells] = 1.0 / np.sqrt(fresh + known)
    return replace(
        now,
        values=combined * n_now,
        noise_sd=combined_sd * n_now,
        context={**now.context, "measured_sd": own_noise(now), "years": years_before + 1},
    )


def _alike(now: Statistic, before: Statistic) -> bool:
    """Whether two statistics mean the same, whatever noisy centres they were measured around."""

    def public(statistic: Statistic) -> dict[str, Any]:
        return {key: value for key, value in statistic.context.items() if key not in _OWN}

    return (now.axes, now.names, public(now)) == (before.axes, before.names, public(before))


def drift_variance(differences: Floats, noise: Floats) -> float:
    """Posterior mean of tau^2 from differences of variance `noise` + tau^2, with a flat prior on tau.

    With few cells it stays above 0 even where the differences are no larger than their noise.
    """
    reach = 2.0 * float(np.sqrt((differences**2 + noise).mean()))
    tau = np.linspace(0.0, reach, _N_GRID)
    total = noise.ravel()[None, :] + tau[:, None] ** 2
    log_likelihood = -0.5 * (np.log(total) + differences.ravel()[None, :] ** 2 / total).sum(axis=1)
    weight = np.exp(log_likelihood - log_likelihood.max())
    return float((weight * tau**2).sum() / weight.sum())


def _groups(name: str, statistic: Statistic) -> list[NDArray[np.bool_]]:
    """Cells that may be expected to drift alike."""
    shape = statistic.values.shape
    if name == "habits":
        # Means drift with the level of activity; products with the label and with each other hardly do.
        means, label = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        means[0, :] = means[:, 0] = True
        label[-1, :] = label[:, -1] = True
        label &= ~means
        return [means, label, ~means & ~label]
    if statistic.axes and statistic.axes[-1] == "what":
        places = np.broadcast_to(np.arange(shape[-1]), shape)
        return [places == place for place in range(shape[-1])]
    return [np.ones(shape, dtype=bool)]


def recentred(
    old: Floats, old_sd: Floats, before: Statistic, now: Statistic, n_weeks: int
) -> tuple[Floats, Floats]:
    """Last year's matrix of products around this year's centres and scales.

    z' = (z scale + centre - centre') / scale' is linear in u = (constant, z, label), so u' = A u and the
    matrix becomes A M A'. Sizes of values are shrunk by `prior_weeks`, so that a learner with w active
    weeks has w / (w + prior_weeks) of the shift; here all have that of the mean w, and the error of
    this is part of the drift.
    """
    constant = float(now.context["constant"])
    scale, centre = (
        np.array(before.context[f"{what}_active"] + before.context[f"{what}_l"]) for what in _TWO
    )
    new_scale, new_centre = (
        np.array(now.context[f"{what}_active"] + now.context[f"{what}_l"]) for what in _TWO
    )
    n = len(scale)
    change = np.eye(n + 2)
    change[1 : n + 1, 1 : n + 1] = np.diag(scale / new_scale)
    weeks = n_weeks * np.array(before.context["centre_active"])
    kept = np.concatenate([np.ones(n // 2), weeks / (weeks + float(now.context["prior_weeks"]))])
    change[1 : n + 1, 0] = kept * (centre - new_centre) / new_scale / constant
    variance = np.zeros(old.shape)
    for k in range(n + 2):
        for m in range(k, n + 2):
            part = np.outer(change[:, k], change[:, m])
            # Both halves of the matrix carry the same noise.
            part = part if k == m else part + part.T
            variance += part**2 * old_sd[k, m] ** 2
    return change @ old @ change.T, np.sqrt(variance)


_TWO = ("scale", "centre")
