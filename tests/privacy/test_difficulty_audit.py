"""The audit of private difficulties: its densities and formulas against brute force, its runs against planted bugs.

Everything here is seeded, so a test fails always or never; over seeds, a correct mechanism is
called broken with a probability of FALSE_ALARM an audit, and each comparison with a Monte Carlo
figure fails with less than 1e-6.
"""

import itertools
import json
import math

import numpy as np
import pytest
from scipy import stats

from reproductions.dp_rasch import audit
from reproductions.dp_rasch.audit import (
    BREAKS,
    HOLDS,
    choice_loss,
    clamped_statistics_loss,
    revealed_scores,
    run_audit,
    statistics_loss,
)
from reproductions.dp_rasch.density import (
    abilities,
    implied_noise,
    log_density,
    log_ratio,
    objective_draws,
    objective_loss,
    release_difficulties,
)
from reproductions.dp_rasch.worst_pairs import empirical_audit, epsilon_lower_bound
from understudy.core.privacy.noise import seeded_noise
from understudy.exams.estimators.joint import fit_joint

FALSE_ALARM = 1e-6
CONFIDENCE = 1 - FALSE_ALARM
N_RUNS = 6000


def noise(seed=3):
    return seeded_noise(np.random.default_rng(seed))


# ---- the density of objective perturbation


@pytest.mark.parametrize("penalty", [0.01, 0.5])
def test_abilities_solve_their_equation_wherever_the_difficulties_are(penalty):
    rng = np.random.default_rng(0)
    difficulty = rng.normal(size=(500, 4)) * rng.choice([0.1, 3.0, 300.0], (500, 1))
    scores = np.arange(5.0)
    ability = abilities(difficulty, scores, penalty)
    chance = 1 / (1 + np.exp(np.clip(difficulty[:, None, :] - ability[:, :, None], -700, 700)))
    assert chance.sum(axis=2) + penalty * ability == pytest.approx(
        np.broadcast_to(scores, (500, 5)), abs=1e-9
    )


def test_the_jacobian_agrees_with_finite_differences():
    rng = np.random.default_rng(1)
    responses = rng.integers(0, 2, (3, 4)).astype(float)
    for scale in (0.3, 2.0):
        difficulty = rng.normal(size=4) * scale
        _, hessian = implied_noise(difficulty[None], responses, 0.01)
        step = 1e-5
        moved, _ = implied_noise(difficulty + step * np.vstack([np.eye(4), -np.eye(4)]), responses, 0.01)
        numeric = (moved[:4] - moved[4:]) / (2 * step)
        assert -numeric == pytest.approx(hessian[0], abs=1e-7)


@pytest.mark.parametrize("responses", [[[1.0]], [[1.0], [0.0], [1.0]]])
def test_the_density_of_one_difficulty_integrates_to_one(responses):
    data = np.array(responses)
    node, weight = np.polynomial.legendre.leggauss(20)
    # The Laplace's peak is where b = 0: the integral is split there, and each part into panels.
    ends = [-80.0, *sorted({-10.0, float(peak(data, 0.5)), 10.0}), 80.0]
    total = 0.0
    for low, high in itertools.pairwise(ends):
        edges = np.linspace(low, high, 101)
        half = np.diff(edges)[:, None] / 2
        difficulty = (edges[:-1, None] + half * (node + 1)).reshape(-1, 1)
        density = np.exp(log_density(difficulty, data, 1.0, 0.5)).reshape(100, 20)
        total += float((half * weight * density).sum())
    assert total == pytest.approx(1, abs=1e-6)


def peak(data, penalty):
    return fit_joint(data.sum(axis=1), data.sum(axis=0), penalty=penalty).difficulty[0]


def test_the_density_of_two_difficulties_integrates_to_one_and_is_that_of_the_fits():
    # A grid fine enough for the kink at b = 0, and 4,000 real fits in its coarse cells.
    data, epsilon, penalty, reach, n = np.array([[1.0, 0.0], [1.0, 1.0]]), 1.0, 0.5, 60.0, 1200
    middle = (np.arange(n) + 0.5) / n * 2 * reach - reach
    grid = np.stack(np.meshgrid(middle, middle, indexing="ij"), axis=-1).reshape(-1, 2)
    mass = np.concatenate(
        [np.exp(log_density(part, data, epsilon, penalty)) for part in np.array_split(grid, 60)]
    )
    mass = mass.reshape(n, n) * (2 * reach / n) ** 2
    assert mass.sum() == pytest.approx(1, abs=2e-3)

    drawn = release_difficulties(data, epsilon, penalty, n_draws=4000, rng=np.random.default_rng(5))
    edges = np.array([-reach, -6.0, -3.0, -1.0, 0.0, 1.0, 3.0, 6.0, reach])
    place = np.digitize(middle, edges) - 1
    expected = np.zeros((8, 8))
    np.add.at(expected, (place[:, None], place[None, :]), mass)
    observed, *_ = np.histogram2d(*np.clip(drawn, -reach, reach - 1e-9).T, bins=[edges, edges])
    expected = expected.ravel() / expected.sum() * 4000
    keep = expected >= 10
    observed, expected = observed.ravel(), expected
    observed = np.append(observed[keep], observed[~keep].sum())
    expected = np.append(expected[keep], expected[~keep].sum())
    assert stats.chisquare(observed, expected).pvalue > FALSE_ALARM


def test_the_implied_noise_is_the_noise_that_the_fit_had():
    rng = np.random.default_rng(2)
    responses = rng.integers(0, 2, (4, 3)).astype(float)
    for _ in range(50):
        b = rng.normal(size=3) * 5
        fit = fit_joint(responses.sum(axis=1), responses.sum(axis=0), penalty=0.01, tilt=b)
        assert implied_noise(fit.difficulty[None], responses, 0.01)[0][0] == pytest.approx(b, abs=1e-6)


# ---- the counterexamples


# Findings, section 2: 6.5, 16.2, 25.7 with one learner, at least 6.5, 12.8, 21.1 with two.
@pytest.mark.parametrize(
    ("n_items", "n_learners", "at_least"),
    [(3, 1, 6.7), (3, 2, 6.7), (6, 1, 16.3), (6, 2, 16.3), (9, 1, 26.0)],
)
def test_objective_perturbation_breaks_its_claim(n_items, n_learners, at_least):
    worst = objective_loss(n_items, n_learners)
    assert worst.loss > at_least
    # Nothing beyond what determinants (w at most 1/4) and twice the norm's part allow one learner.
    if n_learners == 1:
        assert worst.loss < (n_items - 1) * math.log(1 + 1 / 0.04) + math.log(2) + 2
    assert (worst.responses[:-1] == worst.neighbour[:-1]).all()
    again = log_ratio(worst.difficulty[None], worst.responses, worst.neighbour, 1.0, 0.01)[0]
    assert again == pytest.approx(worst.loss)
    # Not a freak of the tails: the noise behind it is smaller than usual.
    assert worst.noise_norm < n_items**1.5


def test_more_learners_do_not_make_the_worst_case_better():
    worst = objective_loss(3, 2)
    others = np.repeat(worst.responses[:1], 50, axis=0)
    many = log_ratio(
        worst.difficulty[None],
        np.vstack([others, worst.responses]),
        np.vstack([others, worst.neighbour]),
        1.0,
        0.01,
    )[0]
    assert many > 6.0


def test_a_strong_penalty_makes_the_loss_small():
    assert objective_loss(3, 1, penalty=100.0).loss < 1.5


def test_usual_releases_lose_more_than_the_claim():
    right, wrong = np.ones((1, 3)), np.zeros((1, 3))
    draws = objective_draws(right, wrong, n_draws=1500, rng=np.random.default_rng(1))
    assert 0.15 < draws.share < 0.35
    assert 0.05 < draws.delta < draws.share
    assert 3 < draws.largest < 7.3
    same = objective_draws(right, right, n_draws=50, rng=np.random.default_rng(1))
    assert (same.share, same.delta) == (0, 0)


def test_abilities_and_difficulties_together_reveal_the_scores():
    rng = np.random.default_rng(6)
    responses = rng.integers(0, 2, (30, 8))
    scores = responses.sum(axis=1)
    fit = fit_joint(scores, responses.sum(axis=0), penalty=0.01, tilt=rng.normal(size=8) * 10)
    assert revealed_scores(fit.ability, fit.difficulty, 0.01) == pytest.approx(scores, abs=1e-6)


def brute_choice_loss(n_items, n_candidates, epsilon, n_validation, scale):
    """All error vectors, all neighbours within I of them, all candidates."""
    worst = 0.0
    errors = range(n_validation * n_items + 1)
    for z in itertools.product(errors, repeat=n_candidates):
        p = np.exp(-epsilon * np.array(z) / scale / 2)
        for y in itertools.product(*[[e for e in errors if abs(e - a) <= n_items] for a in z]):
            q = np.exp(-epsilon * np.array(y) / scale / 2)
            worst = max(worst, float(np.abs(np.log(p / p.sum()) - np.log(q / q.sum())).max()))
    return worst


@pytest.mark.parametrize(
    ("n_items", "n_candidates", "n_validation"), [(1, 2, 1), (2, 2, 3), (3, 3, 1), (2, 3, 2), (1, 4, 2)]
)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_loss_of_the_choice_is_that_of_brute_force(n_items, n_candidates, n_validation, epsilon):
    for divide, scale in ((False, 1), (True, n_items)):
        exact = choice_loss(n_items, n_candidates, epsilon, n_validation=n_validation, divide=divide)
        brute = brute_choice_loss(n_items, n_candidates, epsilon, n_validation, scale)
        assert exact == pytest.approx(brute, abs=1e-12)


def test_the_choice_as_published_and_divided():
    assert choice_loss(20, 10, 1.0) == pytest.approx(12.2, abs=0.05)  # findings, section 2
    assert choice_loss(20, 10, 1.0, n_validation=2) > 19.8
    assert choice_loss(20, 10, 1.0, n_validation=100) == pytest.approx(20)
    for n_validation in (1, 2, 10, 1000):
        assert choice_loss(20, 10, 1.0, n_validation=n_validation, divide=True) <= 1.0
    assert choice_loss(20, 1, 1.0) == 0
    with pytest.raises(ValueError, match="a choice needs"):
        choice_loss(0, 10)


def test_errors_really_move_by_all_items():
    # The learner whose answers contradict a candidate's order has I errors, the opposite learner none.
    difficulty = np.array([-3.0, -3.0, 3.0, 3.0])
    for answers, n_errors in (([0, 0, 1, 1], 4), ([1, 1, 0, 0], 0)):
        ability = abilities(difficulty[None], np.array([2.0]), 0.01)[0, 0]
        assert (np.round(1 / (1 + np.exp(difficulty - ability))) != answers).sum() == n_errors


def test_the_statistics_spend_twice_epsilon():
    assert statistics_loss(20, 1.0) == pytest.approx(2.0)
    # By the densities themselves, at a release beyond all values: everything right, or everything wrong.
    n_items, epsilon = 4, 0.7
    right, wrong = np.array([4, 1, 1, 1, 1]), np.zeros(5)
    log_densities = [-np.abs(np.full(5, 9.0) - values).sum() * epsilon / n_items for values in (right, wrong)]
    assert log_densities[0] - log_densities[1] == pytest.approx(statistics_loss(n_items, epsilon))


# ---- runs


@pytest.mark.parametrize("mechanism", ["cube", "hexagon", "gaussian"])
def test_the_mechanisms_stay_below_their_claims_and_come_near(mechanism):
    audited = empirical_audit(mechanism, n_items=5, n_runs=N_RUNS, confidence=CONFIDENCE, noise=noise())
    assert not audited.breaks
    assert audited.mu.lower < audited.claimed_mu
    assert audited.found > 0.6 * audited.claimed


@pytest.mark.parametrize("mechanism", ["cube", "hexagon", "gaussian"])
def test_half_of_the_noise_is_caught(mechanism):
    audited = empirical_audit(
        mechanism, n_runs=N_RUNS, confidence=CONFIDENCE, noise=noise(), noise_factor=0.5
    )
    assert audited.breaks
    assert audited.found > 1.5 * audited.claimed


def test_the_statistics_are_caught_by_runs():
    audited = empirical_audit("statistics", n_items=3, n_runs=N_RUNS, confidence=CONFIDENCE, noise=noise())
    assert audited.breaks
    assert audited.claimed < audited.found < statistics_loss(3, 1.0)


def test_clamped_statistics_lose_twice_epsilon_all_the_same():
    """Against the atoms of the authors' program, counted: everything at its upper end, before and after the change."""
    assert clamped_statistics_loss(20, 40, 1.0) == pytest.approx(2.0, rel=1e-12)
    assert clamped_statistics_loss(3, 1, 0.5) == pytest.approx(1.0, rel=1e-12)
    rng = np.random.default_rng(5)
    n_runs, n_items, n_learners = 400_000, 2, 2
    rates = []
    for score, totals in ((2, 1), (0, 0)):
        noisy = score + rng.laplace(0, n_items / 1.0, n_runs)
        by_item = totals + rng.laplace(0, n_items / 1.0, (n_runs, n_items))
        released = np.clip(noisy, 0, n_items), np.clip(by_item, 0, n_learners)
        rates.append(np.mean((released[0] == n_items) & (released[1] == n_learners).all(axis=1)))
    error = math.sqrt(sum((1 - rate) / (rate * n_runs) for rate in rates))
    assert abs(math.log(rates[0] / rates[1]) - clamped_statistics_loss(n_items, n_learners, 1.0)) < 5 * error


def test_a_mechanism_that_is_none():
    with pytest.raises(ValueError, match="cube, hexagon"):
        empirical_audit("sphere")


def test_the_epsilon_bounds_confidence_is_what_it_says():
    # Randomised response with log odds 1: 400 audits at 95 %, more than 36 alarms would have p < 1e-4.
    rng = np.random.default_rng(8)
    truth = math.e / (1 + math.e)
    bounds = np.array(
        [
            epsilon_lower_bound(rng.random(2000) < 1 - truth, rng.random(2000) < truth).lower
            for _ in range(400)
        ]
    )
    assert np.sum(bounds > 1) <= 36
    assert bounds.mean() > 0.75


def test_the_epsilon_bound_finds_the_direction_by_itself():
    rng = np.random.default_rng(9)
    low, high = rng.laplace(size=6000), rng.laplace(1.5, 1, size=6000)
    for one, other in ((low, high), (high, low), (-low, -high)):
        assert 1.1 < epsilon_lower_bound(one, other).lower < 1.5
    # A rare event that only one of the two shows: everything else is alike.
    leak = np.where(rng.random(6000) < 0.05, 100.0, 0.0)
    assert epsilon_lower_bound(np.zeros(6000), leak).lower > 3
    assert epsilon_lower_bound(np.zeros(50), np.zeros(50)).lower == 0


@pytest.mark.parametrize(
    ("one", "other", "confidence"),
    [([1.0] * 4, [1.0] * 5, 0.95), ([1.0], [1.0], 0.95), ([1.0] * 4, [1.0] * 4, 1)],
)
def test_an_epsilon_that_cannot_be_bounded(one, other, confidence):
    with pytest.raises(ValueError, match=r"score|confidence"):
        epsilon_lower_bound(one, other, confidence)


def test_the_whole_audit():
    told = []
    findings = run_audit(items=(3,), exams=(40,), n_runs=4000, noise=noise(), progress=told.append)
    verdicts = {(found.mechanism, found.setting): found.verdict for found in findings}
    broken = [found for found in findings if found.verdict == BREAKS]
    assert {found.verdict for found in findings} == {BREAKS, HOLDS}
    assert all((found.found > found.claimed) == (found.verdict == BREAKS) for found in findings)
    assert len(verdicts) == len(findings)
    assert len(told) == 2 * (2 + 1) + 1 + 7
    holding = [found.mechanism for found in findings if found.verdict == HOLDS]
    assert holding == [
        "private choice of the penalty, errors divided by the number of items",
        "K-norm over the cube",
        "K-norm over hexagons",
        "discrete Gaussian",
    ]
    assert all("published" in f.mechanism or "planted" in f.mechanism or f.found == math.inf for f in broken)
    written = json.loads(json.dumps(audit.to_json(findings), allow_nan=False))
    assert [f["verdict"] for f in written] == [f.verdict for f in findings]
    assert written[0]["measure"] == "epsilon"
