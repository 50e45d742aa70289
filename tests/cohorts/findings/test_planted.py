"""An effect is planted in an otherwise empty cohort: the analysis that looks for it finds it, with its direction.

For the analyses that are not compared with independent code in tests/cohorts/findings/test_bank_oracle.py, which
also counts the false alarms of all. The effects are large: a miss is a fault, not bad luck.
"""

import numpy as np
import pytest

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.findings import bank, run_bank
from understudy.cohorts.simulate import SCHEMA

N = 300
WINDOWS = [feature.name for feature in SCHEMA.features]
MORNING, AFTERNOON, EVENING, OVERNIGHT = range(4)
WEEKS = SCHEMA.n_weeks
LATE = np.arange(WEEKS) >= WEEKS - WEEKS // 2


def labels_by(score):
    """Low, average and high thirds of a score."""
    order = np.argsort(np.argsort(score))
    return (3 * order // len(order)).astype(np.int8)


def empty(rng, learner_sd=0.3):
    """Log-minutes without any effect: a learner's level and independent weeks."""
    level = rng.normal(3.0, learner_sd, (N, 1, 1))
    return level + rng.normal(0.0, 0.4, (N, len(WINDOWS), WEEKS))


def cohort(log_minutes, label):
    highs = np.asarray(SCHEMA.highs)[None, :, None]
    return Cohort(np.clip(np.expm1(np.clip(log_minutes, 0.0, 20.0)), 0.0, highs), label, SCHEMA)


def any_label(rng):
    return rng.integers(0, 3, N).astype(np.int8)


def busy(rng):
    log = empty(rng)
    return cohort(log, labels_by(log.mean(axis=(1, 2)) + rng.normal(0, 0.1, N)))


def middling(rng):
    log = empty(rng)
    return cohort(log, labels_by(-np.abs(log.mean(axis=(1, 2)) - 3.0)))


def uneven_low(rng):
    label = any_label(rng)
    log = empty(rng, 0.0) + rng.normal(0, 1.0, (N, 1, 1)) * np.array([1.2, 0.6, 0.2])[label][:, None, None]
    return cohort(log, label)


def regular_pays(rng):
    """Work pays for regular learners and harms irregular ones."""
    level, regular = rng.normal(0, 0.5, N), rng.random(N) < 0.5
    log = (
        3.0
        + level[:, None, None]
        + rng.normal(0, 1, (N, 4, WEEKS)) * np.where(regular, 0.1, 0.9)[:, None, None]
    )
    return cohort(log, labels_by(np.where(regular, level, -level) + rng.normal(0, 0.1, N)))


def later_hours(rng, who=None):
    label = any_label(rng)
    chosen = np.ones(N, dtype=bool) if who is None else label == who
    log = empty(rng)
    log[np.ix_(chosen, [OVERNIGHT], LATE)] += 1.5
    return cohort(log, label)


def evening_pays(rng):
    log = empty(rng)
    more = rng.normal(0, 0.7, N)
    log[:, EVENING] += more[:, None]
    return cohort(log, labels_by(more + rng.normal(0, 0.1, N)))


def overnight_harms(rng):
    often = rng.random(N)
    log = empty(rng)
    log[:, OVERNIGHT] = np.where(rng.random((N, WEEKS)) < often[:, None], log[:, OVERNIGHT], 0.0)
    return cohort(log, labels_by(-often + rng.normal(0, 0.1, N)))


def late_pace(rng):
    late = rng.choice([-0.8, 0.0, 0.8], N)
    log = empty(rng) + late[:, None, None] * np.where(LATE, 1, -1)
    return cohort(log, labels_by(late + rng.normal(0, 0.1, N)))


def active(rng):
    often = rng.uniform(0.2, 1.0, N)
    log = np.where(rng.random((N, 4, WEEKS)) < often[:, None, None], empty(rng), 0.0)
    return cohort(log, labels_by(often + rng.normal(0, 0.05, N)))


def chains(rng, strength):
    """Weeks that follow the week before, by `strength` of each learner."""
    log = rng.normal(0, 1, (N, 4, WEEKS))
    for week in range(1, WEEKS):
        log[:, :, week] = strength[:, None] * log[:, :, week - 1] + log[:, :, week] * np.sqrt(
            1 - strength[:, None] ** 2
        )
    return np.where(log > -0.3, 3.0 + 0.5 * log, 0.0)


def persistent(rng):
    return cohort(chains(rng, np.full(N, 0.6)), any_label(rng))


def persistent_pays(rng):
    strength = rng.uniform(0.0, 0.95, N)
    return cohort(chains(rng, strength), labels_by(strength))


def trade_off(rng):
    log = empty(rng)
    log[:, EVENING] -= log[:, MORNING] - log[:, MORNING].mean(axis=1, keepdims=True)
    return cohort(log, any_label(rng))


def leads(rng):
    log = empty(rng)
    log[:, EVENING, 1:] += 0.8 * (log[:, MORNING, :-1] - 3.0)
    return cohort(log, any_label(rng))


def causes(rng):
    """Half of the learners work more in the evening, which causes the outcome.

    Two-valued on purpose: an outcome of three levels turns many other causes round (docs/explanation/findings.md).
    """
    log = empty(rng, 0.0)
    more = rng.choice([-1.0, 1.0], N)
    log[:, EVENING] += more[:, None]
    return cohort(log, labels_by(more + rng.normal(0, 0.3, N)))


def minutes_pay(rng):
    """Active weeks add up to minutes, and the minutes pay."""
    often = rng.uniform(0.2, 1.0, N)
    log = np.where(rng.random((N, 4, WEEKS)) < often[:, None, None], empty(rng), 0.0)
    return cohort(log, labels_by(log[:, EVENING].mean(axis=1) + rng.normal(0, 0.1, N)))


PLANTED = [
    ("busy_learners_by_group: above the median", busy, 1),
    ("amount_profiles: busier profile", busy, 1),
    ("main_component: component", busy, 1),
    ("curvature_of_total: square", middling, -1),
    ("spread_by_group: log minutes", uneven_low, -1),
    ("inequality_by_group: minutes", uneven_low, -1),
    ("total_times_regularity: product", regular_pays, 1),
    ("shift_of_hours: second half", later_hours, 1),
    ("shift_of_hours_by_group: second half", lambda rng: later_hours(rng, who=2), 1),
    ("share_given_total: evening", evening_pays, 1),
    ("time_profiles: later profile", evening_pays, 1),
    ("latest_window_and_outcome: often against rarely", overnight_harms, -1),
    ("pace_profiles: later pace", late_pace, 1),
    ("activity_profiles: more active profile", active, 1),
    ("outcome_on_activity_and_intensity: active weeks", active, 1),
    ("minutes_persist: all windows", persistent, 1),
    ("activity_persists: evening", persistent, 1),
    ("persistence_and_outcome: minutes", persistent_pays, 1),
    ("windows_within_learners: morning and evening", trade_off, -1),
    ("one_week_leads_to_next: morning to evening", leads, 1),
    ("causes_of_outcome: evening on outcome", causes, 1),
    ("time_mediates_activity: evening", minutes_pay, 1),
]


@pytest.mark.parametrize(("name", "made", "direction"), PLANTED, ids=[one[0] for one in PLANTED])
def test_a_planted_effect_is_found_with_its_direction(name, made, direction):
    (analysis,) = [one for one in bank() if one.name == name.partition(":")[0]]
    found = run_bank(made(np.random.default_rng(11)), [analysis])[name]
    assert found.significant, found
    assert found.direction == direction
