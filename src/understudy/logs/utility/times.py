"""Utility of times: gaps, hours of the week, sessions, how long learners stay, and when they leave."""

from __future__ import annotations

from understudy.logs.utility.comparison import Comparison, Metric, kolmogorov_smirnov, total_variation


def gap_ks(comparison: Comparison) -> float:
    """Kolmogorov-Smirnov distance of the gaps between two rows of a learner."""
    real, synthetic = comparison.real.schedule, comparison.schedule
    return kolmogorov_smirnov(real.gap[~real.first], synthetic.gap[~synthetic.first])


def gap_kind_ks(comparison: Comparison) -> float:
    """The largest such distance of any kind of step: to the same or another action, after failure or success."""
    real, synthetic = comparison.real.schedule, comparison.schedule
    distances = [0.0]
    for kind in range(min(real.n_step_kinds, synthetic.n_step_kinds)):
        wanted = real.gap[~real.first & (real.step_kind == kind)]
        found = synthetic.gap[~synthetic.first & (synthetic.step_kind == kind)]
        if len(wanted):
            distances.append(kolmogorov_smirnov(wanted, found))
    return max(distances)


def hour_tv(comparison: Comparison) -> float:
    """Total variation of the shares of rows by hour of the week."""
    return total_variation(comparison.real.schedule.hour_shares - comparison.schedule.hour_shares)


def session_ks(comparison: Comparison) -> float:
    """Kolmogorov-Smirnov distance of the number of sessions of a learner."""
    real, synthetic = comparison.real.schedule, comparison.schedule
    return kolmogorov_smirnov(real.n_sessions, synthetic.n_sessions)


def span_ks(comparison: Comparison) -> float:
    """Kolmogorov-Smirnov distance of the time from a learner's first row to the last."""
    return kolmogorov_smirnov(comparison.real.schedule.span, comparison.schedule.span)


def dropout_gap(comparison: Comparison) -> float:
    """Largest difference, over weeks, of the shares of learners who have left by then.

    That is the Kolmogorov-Smirnov distance of the weeks of last rows.
    """
    real, synthetic = comparison.real.schedule, comparison.schedule
    return kolmogorov_smirnov(real.week[real.stops], synthetic.week[synthetic.stops])


def start_gap(comparison: Comparison) -> float:
    """Largest difference, over weeks, of the shares of learners who have begun by then."""
    real, synthetic = comparison.real.schedule, comparison.schedule
    return kolmogorov_smirnov(real.week[real.starts], synthetic.week[synthetic.starts])


TIME_METRICS: tuple[Metric, ...] = (
    Metric(
        "gap_ks",
        "largest gap between the distributions of times from row to row",
        0.0,
        "lower",
        gap_ks,
        about="times",
    ),
    Metric(
        "gap_kind_ks",
        "the same of the kind of step that is furthest off: same or another action, after failure or success",
        0.0,
        "lower",
        gap_kind_ks,
        about="times",
    ),
    Metric(
        "hour_tv",
        "share of rows at another hour of the week than they should be",
        0.0,
        "lower",
        hour_tv,
        about="times",
    ),
    Metric(
        "session_ks",
        "largest gap between the distributions of sessions of a learner",
        0.0,
        "lower",
        session_ks,
        about="times",
    ),
    Metric(
        "span_ks",
        "largest gap between the distributions of times from a learner's first row to the last",
        0.0,
        "lower",
        span_ks,
        about="times",
    ),
    Metric(
        "start_gap",
        "how far off the share of learners is, in any week, who have begun by then",
        0.0,
        "lower",
        start_gap,
        about="times",
    ),
    Metric(
        "dropout_gap",
        "how far off the share of learners is, in any week, who have left by then",
        0.0,
        "lower",
        dropout_gap,
        about="times",
    ),
)
