"""AUC, its error and its intervals against their definitions, scikit-learn and simulation.

The simulations are seeded. Coverage is compared with a bound four binomial standard
deviations away from what is claimed (false alarm below 1 in 10,000 seeds if the claim holds).
"""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from understudy.core.attacks import estimate
from understudy.core.attacks.estimate import (
    auc_with_error,
    chance_level,
    found_interval,
    judge,
    shares_found,
    true_positive_rate,
)
from understudy.errors import DataError
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.audit import attack
from understudy.logs.interactions import Interactions

pytestmark = pytest.mark.oracle


def example(seed, ties=False, n=(40, 25)):
    rng = np.random.default_rng(seed)
    member = np.repeat([True, False], n)[rng.permutation(sum(n))]
    score = rng.normal(size=sum(n)) + 0.7 * member
    return np.round(score * 2) if ties else score, member


def brute_force(score, member):
    """DeLong, DeLong and Clarke-Pearson (1988) by the matrix of all pairs."""
    inside, outside = score[member], score[~member]
    wins = (inside[:, None] > outside) + 0.5 * (inside[:, None] == outside)
    variance = wins.mean(axis=1).var(ddof=1) / len(inside) + wins.mean(axis=0).var(ddof=1) / len(outside)
    return wins.mean(), np.sqrt(variance)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", [(40, 25), (2, 60), (60, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_auc_and_error_by_definition(seed, n, ties):
    score, member = example(seed, ties, n)
    area, error = auc_with_error(score, member)
    wanted_area, wanted_error = brute_force(score, member)
    assert area == pytest.approx(wanted_area, abs=1e-12)
    assert area == pytest.approx(roc_auc_score(member, score), abs=1e-12)
    assert error == pytest.approx(max(wanted_error, 0.5 / np.sqrt(n[0] * n[1])), abs=1e-12)


def test_a_perfect_attack_on_few_learners_is_not_certain():
    member = np.repeat([True, False], 5)
    assert auc_with_error(member.astype(float), member) == (1.0, 0.1)
    risk = judge({"a": member.astype(float)}, member, np.random.default_rng(0))
    assert risk.low < 0.9
    assert risk.high == 1.0


def test_constant_scores_are_guesses():
    member = np.repeat([True, False], 20)
    assert auc_with_error(np.zeros(40), member)[0] == 0.5
    assert true_positive_rate(np.zeros(40), member, 0.01) == 0.0


@pytest.mark.parametrize("n", [(0, 5), (1, 5), (5, 0), (5, 1)])
def test_too_few_learners_are_refused_in_words(n):
    member = np.repeat([True, False], n)
    log = Interactions.from_sequences([[0, 1, 2, 3]] * sum(n))
    with pytest.raises(DataError, match="two members and two outsiders") as caught:
        attack(Knowledge(log, n[0]), member, log, None, np.random.default_rng(0))
    assert caught.value.hint


@pytest.mark.parametrize("ties", [False, True])
def test_weighted_areas_are_those_of_scikit_learn(ties):
    score, member = example(3, ties)
    noise = np.random.default_rng(0).normal(size=len(score))
    places = np.array([np.unique(s, return_inverse=True)[1] for s in (score, noise)], dtype=np.int64)
    for seed in range(5):
        weight = np.random.default_rng(seed).integers(4, size=len(score))
        wanted = [roc_auc_score(member, s, sample_weight=weight) for s in (score, noise)]
        np.testing.assert_allclose(estimate.weighted_areas(places, weight, member), wanted, atol=1e-12)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", [(200, 99), (200, 100), (150, 399), (50, 1000)])
def test_true_positives_at_the_best_admitted_threshold(n, ties):
    score, member = example(4, ties, n)
    thresholds = np.concatenate([np.unique(score), [-np.inf]])
    admitted = [t for t in thresholds if (score[~member] > t).sum() <= n[1] // 100]
    wanted = max((score[member] > t).mean() for t in admitted)
    assert true_positive_rate(score, member, 0.01) == pytest.approx(wanted)


def test_guessing_finds_one_member_in_a_hundred():
    # 200 runs with 100 members: 20,000 nearly independent guesses at a rate of about 1 %.
    rates = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        member = np.repeat([True, False], (100, 400))
        rates.append(true_positive_rate(rng.normal(size=500), member, 0.01))
    assert 0.006 < np.mean(rates) < 0.017


@pytest.mark.parametrize(
    ("shift", "sizes"),
    [(0.0, (60, 60)), (1.0, (60, 60)), (1.5, (15, 15)), (1.5, (100, 40)), (3.0, (200, 200))],
)
def test_the_interval_of_one_attack_covers(shift, sizes, monkeypatch):
    monkeypatch.setattr(estimate, "N_BOOTSTRAPS", 2)
    n_runs, truth, covered = 500, norm.cdf(shift / np.sqrt(2)), 0
    rng, member = np.random.default_rng(8), np.repeat([True, False], sizes)
    for _ in range(n_runs):
        (found,) = judge({"a": rng.normal(size=len(member)) + shift * member}, member, rng).estimates
        covered += found.low <= truth <= found.high
    assert covered / n_runs > 0.95 - 4 * np.sqrt(0.95 * 0.05 / n_runs)


def test_bands_are_symmetric_in_log_odds():
    member = np.repeat([True, False], (40, 25))
    score, _ = example(6)
    found = judge({"a": score, "turned": -score}, member, np.random.default_rng(0)).estimates
    area, error = auc_with_error(score, member)
    odds, half = np.log(area / (1 - area)), 1.959964 * error / (area * (1 - area))
    wanted = 1 / (1 + np.exp(-(odds + np.array([-half, half]))))
    assert (found[0].low, found[0].high) == pytest.approx(tuple(wanted), abs=1e-6)
    assert (1 - found[1].high, 1 - found[1].low) == pytest.approx(tuple(wanted), abs=1e-6)


@pytest.mark.parametrize("n", [2, 20, 2000])
def test_the_bound_of_a_perfect_attack_tightens_like_the_rule_of_three(n):
    member = np.repeat([True, False], n)
    found = judge({"a": member.astype(float)}, member, np.random.default_rng(0)).worst
    assert found.low == pytest.approx(2 * n / (2 * n + np.exp(1.959964) + 1), abs=0.02 if n > 2 else 0.2)
    assert found.high == 1.0


def correlated_scores(rng, member, shift):
    """Six attacks, some of them nearly the same."""
    common = rng.normal(size=len(member))
    mixed = [0.9 * common + 0.3 * rng.normal(size=len(member)) for _ in range(4)]
    scores = [*mixed, rng.normal(size=len(member)), np.round(rng.normal(size=len(member)))]
    return {str(k): score + shift * member for k, score in enumerate(scores)}


def test_the_simultaneous_interval_covers_when_nothing_leaks(monkeypatch):
    """Under the null the interval of the worst of six attacks holds 0.5 in 95 % of 300 runs."""
    monkeypatch.setattr(estimate, "N_BOOTSTRAPS", 200)
    member, rng = np.repeat([True, False], 80), np.random.default_rng(9)
    risks = [judge(correlated_scores(rng, member, 0.0), member, rng) for _ in range(300)]
    covered = np.mean([risk.low <= 0.5 <= risk.high for risk in risks])
    assert covered > 0.95 - 4 * np.sqrt(0.05 * 0.95 / 300)
    # The plain interval of the strongest attack cries wolf: that is why there is another.
    naive = np.mean([risk.worst.low <= 0.5 for risk in risks])
    assert naive < covered
    # It is not wide for nothing: at most twice the interval of a single attack.
    assert np.mean([risk.high - risk.low for risk in risks]) < 2 * 2 * 1.96 * 0.0455


@pytest.mark.parametrize(
    ("shifts", "n"),
    [
        ((0.0, 0.5, 0.8), 80),
        ((1.5,) * 6, 15),  # a band on the scale of the area covers this in 73 % of runs only
        ((3.0,) * 6, 200),  # and this in 83 %
    ],
)
def test_the_simultaneous_interval_covers_the_largest_of_leaking_attacks(shifts, n, monkeypatch):
    monkeypatch.setattr(estimate, "N_BOOTSTRAPS", 100)
    member, rng, covered = np.repeat([True, False], n), np.random.default_rng(10), 0
    truth = norm.cdf(max(shifts) / np.sqrt(2))
    for _ in range(200):
        risk = judge(
            {str(k): rng.normal(size=2 * n) + shift * member for k, shift in enumerate(shifts)}, member, rng
        )
        covered += risk.low <= truth <= risk.high
    assert covered / 200 > 0.95 - 4 * np.sqrt(0.05 * 0.95 / 200)


def test_the_worst_attack_is_reported_with_all():
    score, member = example(5)
    risk = judge({"weak": np.zeros(len(score)), "strong": score}, member, np.random.default_rng(0), 7)
    assert risk.worst.attack == "strong"
    assert risk.low <= risk.worst.low <= risk.worst.auc <= risk.worst.high <= risk.high
    report = risk.to_json()
    assert report["worst_attack"] == "strong"
    assert report["learners_set_aside"] == 7
    assert [e["attack"] for e in report["attacks"]] == ["weak", "strong"]
    assert report["auc_worst"] == pytest.approx(roc_auc_score(member, score))


def test_the_chance_level_is_that_of_the_strongest_of_as_many_attacks_on_as_many_learners():
    """Oracle: AUCs of independent scores, drawn one by one."""
    rng = np.random.default_rng(4)
    member = np.arange(80) < 40
    scores = {name: rng.normal(size=80) for name in "abcdefg"}
    found = chance_level(scores, member, rng, n_draws=2000)
    drawn = [
        max(auc_with_error(score, rng.permutation(member))[0] for score in rng.normal(size=(7, 80)))
        for _ in range(400)
    ]
    assert found.auc == pytest.approx(np.mean(drawn), abs=0.01)
    assert found.low == pytest.approx(np.quantile(drawn, 0.025), abs=0.02)
    assert found.high == pytest.approx(np.quantile(drawn, 0.975), abs=0.03)


def test_the_chance_level_of_the_share_found_is_that_of_the_best_of_as_many_attacks():
    """Oracle: shares found by independent scores, drawn one by one. One member of 100 is 0.01."""
    rng = np.random.default_rng(5)
    member = np.arange(300) < 100
    scores = {name: rng.normal(size=300) for name in "abcdefg"}
    found = chance_level(scores, member, rng, n_draws=1000)
    drawn = [
        max(true_positive_rate(score, rng.permutation(member), 0.01) for score in rng.normal(size=(7, 300)))
        for _ in range(400)
    ]
    assert found.found == pytest.approx(np.mean(drawn), abs=0.006)
    assert found.found_high == pytest.approx(np.quantile(drawn, 0.95), abs=0.021)


@pytest.mark.parametrize("ties", [False, True])
def test_shares_found_are_true_positive_rates(ties):
    score, member = example(7, ties, (80, 150))
    places = np.unique(score, return_inverse=True)[1][None].astype(np.int64)
    for rate in (0.0, 0.01, 0.1, 0.5):
        wanted = true_positive_rate(score, member, rate)
        assert shares_found(places, member, int(rate * 150))[0] == pytest.approx(wanted)


def test_the_attack_that_finds_most_need_not_have_the_largest_area():
    """A few members far out are found for sure; many a little higher make the larger area."""
    rng = np.random.default_rng(6)
    member = np.repeat([True, False], 500)
    spread, tail = rng.normal(size=1000) + 0.8 * member, rng.normal(size=1000)
    tail[:100] += 10.0
    risk = judge({"spread": spread, "tail": tail}, member, rng)
    assert (risk.worst.attack, risk.most_found.attack) == ("spread", "tail")
    assert risk.most_found.tpr_at_1pct > risk.worst.tpr_at_1pct
    report = risk.to_json()
    assert (report["worst_attack"], report["tpr_attack"]) == ("spread", "tail")
    assert report["tpr_at_1pct"] == risk.most_found.tpr_at_1pct >= 0.2
    assert risk.found_low < report["tpr_at_1pct"] < risk.found_high


@pytest.mark.parametrize("shifts", [(0.0,) * 6, (0.0, 0.5, 1.0), (2.0,) * 6])
def test_the_interval_of_the_largest_share_found_covers(shifts, monkeypatch):
    """The true share is known for normal scores; picking the largest of several is allowed for."""
    monkeypatch.setattr(estimate, "N_BOOTSTRAPS", 2)
    member, rng, covered = np.repeat([True, False], (300, 800)), np.random.default_rng(11), 0
    truth = norm.sf(norm.isf(0.01) - max(shifts))
    for _ in range(150):
        scores = {str(k): rng.normal(size=1100) + shift * member for k, shift in enumerate(shifts)}
        risk = judge(scores, member, rng)
        covered += risk.found_low <= truth <= risk.found_high
    assert covered / 150 > 0.95 - 4 * np.sqrt(0.05 * 0.95 / 150)


def test_with_few_outsiders_no_share_found_is_sure():
    """The largest of 100 outsiders lies above 99 % of all others in 63 % of draws only."""
    member = np.repeat([True, False], 100)
    assert found_interval(member.astype(float), member) == (0.0, 1.0)
