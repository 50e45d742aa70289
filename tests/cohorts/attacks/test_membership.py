"""Attacks on synthetic cohorts: copies are found, strangers are not, the control stays at guessing."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from understudy.cohorts.attacks.membership import (
    COHORT_ATTACKS,
    attack_cohort,
    cohort_scores,
    train_shadow_attack,
)
from understudy.cohorts.attacks.scores import CohortKnowledge
from understudy.cohorts.cohort import Cohort
from understudy.cohorts.schema import Feature, Schema
from understudy.cohorts.simulate import School
from understudy.errors import DataError

SCHEMA = Schema(features=(Feature("day", 60.0), Feature("night", 60.0)), n_weeks=3, labels=("low", "high"))


def school_of(n, seed):
    return School(n_learners=n).simulate(0, np.random.default_rng(seed))


def copies(cohort, rng):
    return cohort.select(rng.integers(cohort.n_learners, size=cohort.n_learners))


def all_copied(cohort, rng):
    return cohort


def strangers(cohort, rng):
    """A method that ignores its data."""
    return School(n_learners=cohort.n_learners).simulate(0, rng)


def means(cohort, rng):
    """A method that only keeps the share of active weeks and the mean minutes by label and window."""
    drawn = rng.integers(cohort.n_learners, size=cohort.n_learners)
    label = cohort.label[drawn]
    values = np.zeros((len(drawn), *cohort.values.shape[1:]))
    for one in np.unique(label):
        group = cohort.of_label(one).values
        here = label == one
        active = rng.random((here.sum(), *group.shape[1:])) < (group > 0).mean(axis=(0, 2))[None, :, None]
        mean = group.sum(axis=(0, 2)) / np.maximum((group > 0).sum(axis=(0, 2)), 1)
        values[here] = active * rng.exponential(1.0, active.shape) * mean[None, :, None]
    return Cohort(values, label, cohort.schema)


def risk_of(method, n=40, seed=0, n_shadows=24):
    members, outsiders = school_of(n, [seed, 1]), school_of(n, [seed, 2])
    rng = np.random.default_rng(seed)
    return attack_cohort(
        members, outsiders, method(members, rng), rng, synthesize=method, n_shadows=n_shadows
    )


def test_a_method_that_copies_every_row_is_found_out_by_every_distance():
    risk = risk_of(all_copied)
    areas = {estimate.attack: estimate.auc for estimate in risk.risk.estimates}
    assert tuple(areas) == COHORT_ATTACKS
    for name in ("dcr-l1", "dcr-l2", "dcr-max", "dcr-relative", "shadow"):
        assert areas[name] == pytest.approx(1.0, abs=0.01)
    assert risk.risk.low > 0.85  # 40 members and 40 outsiders cannot show more


def test_resampled_rows_are_found_out_for_those_who_were_drawn():
    """A bootstrap of the rows leaves out 37 % of them: AUC 0.63 + 0.37 / 2."""
    worst = risk_of(copies, n=60).risk.worst
    assert 0.7 < worst.auc < 0.92
    assert worst.low > 0.6


def test_a_method_that_ignores_its_data_leaves_guessing():
    """Eight cohorts: the mean AUC of each attack lies within three standard errors (0.065 / sqrt(8)) of 0.5."""
    risks = [risk_of(strangers, seed=seed, n_shadows=12).risk for seed in range(8)]
    assert sum(risk.low <= 0.5 <= risk.high for risk in risks) >= 7
    for place, name in enumerate(COHORT_ATTACKS):
        mean = np.mean([risk.estimates[place].auc for risk in risks])
        assert mean == pytest.approx(0.5, abs=3 * 0.065 / np.sqrt(8)), name


def test_chance_stays_far_below_a_method_that_copies():
    copied = risk_of(all_copied, n_shadows=8)
    assert copied.chance.high < 0.75 < copied.risk.low


def test_tracing_finds_what_means_of_few_learners_give_away():
    """Means by label and window of 12 learners: no row is copied, and still some are recognised."""
    areas = []
    for seed in range(12):
        members, outsiders = school_of(12, [seed, 3]), school_of(40, [seed, 4])
        knowledge = CohortKnowledge(Cohort.joined([members, outsiders]), 12)
        rng = np.random.default_rng(seed)
        large = Cohort.joined([means(members, rng) for _ in range(10)])
        score = cohort_scores(knowledge, large)["tracing-habits"]
        areas.append(np.mean(score[:12, None] > score[None, 12:]))
    assert np.mean(areas) > 0.6


def test_distances_are_those_of_standardised_log_minutes():
    population, synthetic = school_of(20, 1), school_of(15, 2)
    scores = cohort_scores(CohortKnowledge(population, 10), synthetic)

    def table(cohort):
        return np.column_stack([np.log1p(cohort.values).reshape(cohort.n_learners, -1), cohort.label])

    middle, spread = table(population).mean(axis=0), table(population).std(axis=0)
    spread[spread == 0] = 1.0
    own, others = (table(population) - middle) / spread, (table(synthetic) - middle) / spread
    for name, norm in [("dcr-l1", 1), ("dcr-l2", 2), ("dcr-max", np.inf)]:
        expected = [-min(np.linalg.norm(a - b, norm) for b in others) for a in own]
        assert scores[name] == pytest.approx(expected)
    nearest = np.sort(cdist(own, own), axis=1)[:, 1]
    assert scores["dcr-relative"] == pytest.approx(-np.log(-scores["dcr-l2"] / nearest), abs=1e-4)


def test_shadows_hold_each_learner_once_or_not_at_all():
    seen = []

    def method(cohort, rng):
        seen.append(cohort)
        return cohort

    population = school_of(30, 5)
    knowledge = CohortKnowledge(population, 12)
    train_shadow_attack(knowledge, method, np.random.SeedSequence(1), n_shadows=8)
    assert len(seen) == 8
    for cohort in seen:
        assert cohort.n_learners == 12
        assert len(np.unique(cohort.values.reshape(12, -1), axis=0)) == 12


def test_the_risk_is_reproducible_and_ready_for_machines():
    first, second = (risk_of(means, n=20, n_shadows=8) for _ in range(2))
    assert first.to_json() == second.to_json()
    content = first.to_json()
    assert {"auc_worst", "auc_worst_low", "auc_worst_high", "attacks", "chance"} <= set(content)
    assert content["attacks"][0]["baseline"] == 0.5


def test_without_a_method_there_is_no_shadow():
    members, outsiders = school_of(10, 1), school_of(10, 2)
    risk = attack_cohort(members, outsiders, members, np.random.default_rng(0))
    assert [estimate.attack for estimate in risk.risk.estimates] == list(COHORT_ATTACKS[:-1])


def test_too_few_learners_or_shadows_are_refused():
    rng = np.random.default_rng(0)
    few, some = school_of(1, 1), school_of(10, 2)
    nobody = np.zeros(10, dtype=bool)
    with pytest.raises(DataError, match="two members"):
        attack_cohort(few, some, some, rng)
    with pytest.raises(DataError, match="no learners"):
        attack_cohort(some, some, some.select(nobody), rng)
    with pytest.raises(DataError, match="shadows"):
        attack_cohort(some, some, some, rng, synthesize=all_copied, n_shadows=3)


def test_columns_that_never_change_and_missing_labels_do_no_harm():
    rng = np.random.default_rng(0)
    values = rng.uniform(0, 60, (12, 2, 3))
    values[:, 1] = 0.0
    cohort = Cohort(values, np.zeros(12, dtype=np.int8), SCHEMA)
    other = Cohort(values[:5], np.ones(5, dtype=np.int8), SCHEMA)
    for score in cohort_scores(CohortKnowledge(cohort, 6), other).values():
        assert np.isfinite(score).all()


def test_one_planted_copy_among_strangers_is_pointed_at_by_every_distance():
    population = school_of(60, 8)
    ada = 17
    knowledge = CohortKnowledge(population, 30)
    planted = Cohort.joined([school_of(30, 9), population.select([ada])])
    with_her, without = cohort_scores(knowledge, planted), cohort_scores(knowledge, school_of(30, 9))
    for name in ("dcr-l1", "dcr-l2", "dcr-max", "dcr-relative"):
        assert with_her[name].argmax() == ada, name
        # The negative control: without the copy she is not the one who is pointed at.
        assert without[name].argmax() != ada, name


def test_tracing_is_the_product_of_own_weeks_and_synthetic_means():
    population, synthetic = school_of(20, 1), school_of(15, 2)
    knowledge = CohortKnowledge(population, 10)
    expected = [
        sum(a * b for a, b in zip(own, knowledge.weeks(synthetic).mean(axis=0), strict=True))
        for own in knowledge.own_weeks
    ]
    assert cohort_scores(knowledge, synthetic)["tracing"] == pytest.approx(expected)


def test_tracing_finds_who_made_the_means_of_all_weeks():
    """Every column shuffled among 12 learners: their means are left and no row of theirs. Means of strangers are
    the control (12 cohorts, standard error about 0.03)."""
    areas = {"members": [], "strangers": []}
    for seed in range(12):
        members, outsiders = school_of(12, [seed, 5]), school_of(40, [seed, 6])
        knowledge = CohortKnowledge(Cohort.joined([members, outsiders]), 12)
        rng = np.random.default_rng(seed)
        for who, cohort in (("members", members), ("strangers", school_of(12, [seed, 7]))):
            shuffled = Cohort(rng.permuted(cohort.values, axis=0), cohort.label, cohort.schema)
            score = cohort_scores(knowledge, shuffled)["tracing"]
            areas[who].append(np.mean(score[:12, None] > score[None, 12:]))
    assert np.mean(areas["members"]) > 0.65
    assert np.mean(areas["strangers"]) == pytest.approx(0.5, abs=0.1)
