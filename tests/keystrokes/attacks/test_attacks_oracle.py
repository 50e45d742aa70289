"""Distances of the typing attacks against loops, scipy and scikit-learn; ties against guessing in random order."""

import numpy as np
import pytest
from scipy.spatial.distance import mahalanobis as scipy_mahalanobis
from scipy.stats import ks_2samp, norm, spearmanr, wasserstein_distance
from sklearn.covariance import LedoitWolf
from sklearn.metrics import pairwise_distances
from sklearn.naive_bayes import MultinomialNB
from sklearn.preprocessing import MinMaxScaler

from understudy.keystrokes.attacks import events, trained
from understudy.keystrokes.attacks.events import (
    EVENT_ATTACKS,
    histogram_likelihood,
    kolmogorov,
    text,
    wasserstein,
)
from understudy.keystrokes.attacks.identification import hit_chances, identification, strongest
from understudy.keystrokes.attacks.profiles import PROFILE_ATTACKS, whitening
from understudy.keystrokes.attacks.trained import (
    TRAINED_ATTACKS,
    PersonWindows,
    cell_likelihood,
    within_mahalanobis,
)

pytestmark = pytest.mark.oracle


@pytest.fixture
def profiles():
    rng = np.random.default_rng(3)
    return rng.normal(200, 40, size=(14, 6)), np.round(rng.normal(200, 40, size=(11, 6)), -1)


@pytest.fixture
def latencies():
    """Known and unknown people's latencies per digraph, in classes 0 to 19; some digraphs hardly typed."""
    rng = np.random.default_rng(4)

    def draw(n):
        return [
            [np.clip(rng.normal(10, 3, size=rng.integers(0, 40)), 0, 19).astype(int) for _ in range(4)]
            for _ in range(n)
        ]

    return draw(9), draw(7)


def counted(people):
    return np.array([[np.bincount(one, minlength=20) for one in person] for person in people])


def loops(known, unknown, distance):
    return np.array([[distance(a, b) for b in known] for a in unknown])


def test_euclidean_and_manhattan_are_those_of_scikit_learn(profiles):
    known, unknown = profiles
    scaler = MinMaxScaler().fit(np.concatenate(profiles))
    for name in ("euclidean", "manhattan"):
        expected = pairwise_distances(scaler.transform(unknown), scaler.transform(known), metric=name)
        np.testing.assert_allclose(PROFILE_ATTACKS[name](known, unknown), expected)


def test_scaled_manhattan_is_that_of_loops(profiles):
    known, unknown = profiles
    deviation = [np.mean([abs(x - np.mean(column)) for x in column]) for column in known.T]

    def distance(a, b):
        return sum(abs(x - y) / s for x, y, s in zip(a, b, deviation, strict=True))

    np.testing.assert_allclose(
        PROFILE_ATTACKS["scaled-manhattan"](known, unknown), loops(known, unknown, distance)
    )


def test_mahalanobis_is_scipys_with_scikit_learns_shrunk_covariance(profiles):
    known, unknown = profiles
    spread = known.std(axis=0)
    precision = LedoitWolf().fit(known / spread).precision_

    def distance(a, b):
        return scipy_mahalanobis(a / spread, b / spread, precision)

    np.testing.assert_allclose(
        PROFILE_ATTACKS["mahalanobis"](known, unknown), loops(known, unknown, distance)
    )


@pytest.mark.parametrize("n", [3, 30, 3000])
def test_shrinkage_is_that_of_ledoit_and_wolf(n):
    rng = np.random.default_rng(n)
    rows = rng.normal(size=(n, 8)) @ rng.normal(size=(8, 8))
    rows -= rows.mean(axis=0)
    whiten = whitening(rows)
    np.testing.assert_allclose(
        np.linalg.inv(whiten @ whiten.T), LedoitWolf(assume_centered=True).fit(rows).covariance_, rtol=1e-6
    )


def test_rank_of_features_is_scipys_spearman(profiles):
    known, unknown = profiles
    distances = PROFILE_ATTACKS["rank-features"](known, unknown)
    for i, a in enumerate(unknown - unknown.mean(axis=0)):
        for j, b in enumerate(known - known.mean(axis=0)):
            assert distances[i, j] == pytest.approx(1 - spearmanr(a, b).statistic)


def test_rank_of_people_is_that_of_loops(profiles):
    known, unknown = profiles

    def places(part):
        return np.array(
            [
                [
                    np.mean([(y < x) + 0.5 * (y == x) for y in column])  # mid-rank from 0 to 1
                    for x in column
                ]
                for column in part.T
            ]
        ).T

    expected = loops(places(known), places(unknown), lambda a, b: sum(abs(a - b)))
    np.testing.assert_allclose(PROFILE_ATTACKS["rank-people"](known, unknown), expected)


@pytest.mark.parametrize("name", ["wasserstein", "kolmogorov"])
def test_distances_of_distributions_are_scipys(latencies, name):
    known, unknown = latencies
    one = wasserstein_distance if name == "wasserstein" else (lambda a, b: ks_2samp(a, b).statistic)
    table = np.full((4, len(unknown), len(known)), np.nan)
    for j in range(4):
        for i, a in enumerate(unknown):
            for m, b in enumerate(known):
                if len(a[j]) >= events.MIN_OCCURRENCES and len(b[j]) >= events.MIN_OCCURRENCES:
                    table[j, i, m] = one(a[j], b[j])
        table[j] /= np.nanmean(table[j])
    attack = {"wasserstein": wasserstein, "kolmogorov": kolmogorov}[name]
    np.testing.assert_allclose(attack(counted(known), counted(unknown)), np.nanmean(table, axis=0))


def test_the_histogram_likelihood_is_that_of_loops(latencies, monkeypatch):
    monkeypatch.setattr(events, "N_CLASSES", 5)
    known, unknown = latencies
    # Classes of about equal size: where the middle of a value's share of the pooled latencies falls.
    merged = []
    for j in range(4):
        pooled = sorted(x for person in known + unknown for x in person[j])
        merged.append({})
        for value in range(20):
            middle = sum(x < value for x in pooled) + 0.5 * pooled.count(value)
            merged[j][value] = min(int(5 * middle / len(pooled)), 4)

    def share(person, j, one):
        everybody = [merged[j][x] for other in known for x in other[j]]
        prior = (everybody.count(one) + 1) / (len(everybody) + 5)
        own = [merged[j][x] for x in person[j]]
        return (own.count(one) + events.PRIOR * prior) / (len(own) + events.PRIOR)

    def distance(a, b):
        total, weight = 0.0, 0.0
        for j in range(4):
            each = 1 / (1 + len(a[j]) / events.SATURATION)
            total -= each * sum(np.log(share(b, j, merged[j][x])) for x in a[j])
            weight += each * len(a[j])
        return total / weight

    np.testing.assert_allclose(
        histogram_likelihood(counted(known), counted(unknown)), loops(known, unknown, distance)
    )


def test_the_text_attack_ranks_as_naive_bayes_with_that_prior():
    rng = np.random.default_rng(0)
    known, unknown = rng.poisson(5, size=(8, 12)), rng.poisson(2, size=(6, 12))
    # A flat prior is what scikit-learn has; with everybody alike in sum the population's is flat.
    known = np.concatenate([known, known.sum(axis=0).max() - known.sum(axis=0)[None]])
    alpha = 10 * events.PRIOR / 12
    model = MultinomialNB(alpha=alpha, fit_prior=False).fit(known, np.arange(9))
    distances = text(known, unknown)
    expected = -model.predict_joint_log_proba(unknown) / unknown.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(distances - distances[:, :1], expected - expected[:, :1], atol=1e-9)


def test_within_mahalanobis_is_that_of_loops():
    rng = np.random.default_rng(0)
    usual = rng.normal(size=(9, 4))
    owner, later = rng.permutation(np.repeat(np.arange(9), 5)), np.repeat(np.arange(9), 2)
    windows = usual[owner] + 0.3 * rng.normal(size=(45, 4)) @ rng.normal(size=(4, 4))
    unknown = usual[later] + 0.3 * rng.normal(size=(18, 4))
    means = [windows[owner == i].mean(axis=0) for i in range(9)]
    residuals = np.array([x - means[i] for x, i in zip(windows, owner, strict=True)])
    stray = np.sqrt((residuals**2).sum(axis=0) / (45 - 9))
    precision = LedoitWolf(assume_centered=True).fit(residuals / stray).precision_
    named = [unknown[later == i].mean(axis=0) for i in range(9)]
    expected = loops(means, named, lambda a, b: scipy_mahalanobis(a / stray, b / stray, precision))
    np.testing.assert_allclose(
        within_mahalanobis(PersonWindows(windows, owner, 9), PersonWindows(unknown, later, 9)), expected
    )


def test_the_chance_of_a_cell_is_that_of_the_normal_law(monkeypatch):
    monkeypatch.setattr(trained, "N_DRAWS", 200_000)
    windows = np.array([[100.0], [140], [180], [170], [200], [230]])
    owner = np.array([0, 0, 0, 1, 1, 1])
    unknown = np.array([[0.0], [300.0]])

    def coarsen(x):
        return 300.0 * np.floor(x / 300 + 0.5)

    distances = cell_likelihood(PersonWindows(windows, owner, 2), unknown, coarsen, np.random.default_rng(0))
    stray = np.sqrt(np.sum([40**2, 0, 40**2, 30**2, 0, 30**2]) / 4 * (1 + 1 / 3))
    below = norm.cdf((150 - np.array([140, 200])) / stray) - norm.cdf((-150 - np.array([140, 200])) / stray)
    above = norm.cdf((450 - np.array([140, 200])) / stray) - norm.cdf((150 - np.array([140, 200])) / stray)
    # 200,000 draws: 0.02 is more than four standard errors of each logarithm.
    np.testing.assert_allclose(distances, -np.log([below, above]), atol=0.02)


def test_ties_are_what_guessing_in_random_order_gives():
    """20,000 shuffles: each of 12 chances strays by 4.5 standard errors in one of 10,000 such tests."""
    rng = np.random.default_rng(0)
    distances = rng.integers(3, size=(12, 12)).astype(float)
    # Distances are whole numbers, so a fraction added to each settles every tie by lot, and nothing else.
    lots = distances + rng.random((20_000, 12, 12))
    own = np.diagonal(lots, axis1=1, axis2=2)[:, :, None]
    place = np.sum(lots < own, axis=2)
    for k in (1, 4):
        hits = np.mean(place < k, axis=0)
        assert np.abs(hits - hit_chances(distances, k)).max() < 4.5 * 0.5 / np.sqrt(20_000)


def test_the_chances_of_all_people_add_up_to_the_guesses():
    """So over random identities the rate is k/n exactly, whatever the ties."""
    rng = np.random.default_rng(0)
    distances = rng.integers(4, size=(9, 15)).astype(float)
    distances[2] = 1.0
    for k in (1, 5, 10):
        total = sum(hit_chances(distances, k, np.full(9, column)) for column in range(15))
        np.testing.assert_allclose(total, k)


def test_nobody_is_found_when_identities_are_shuffled():
    """The lower bound of the strongest attack exceeds chance in at most 2.5 % of seeds; this one is fixed."""
    rng = np.random.default_rng(5)
    n, k = 80, 8
    usual = 200 + 40 * rng.normal(size=(n, 10))
    owner, mixed = np.repeat(np.arange(n), 5), rng.permutation(n)
    windows = usual[owner] + 15 * rng.normal(size=(5 * n, 10))
    unknown = (usual + 15 * rng.normal(size=usual.shape))[mixed]
    law = rng.dirichlet(np.full(12, 2.0), size=(n, 10))
    known_counts, unknown_counts = rng.poisson(100 * law), rng.poisson(30 * law)[mixed]
    known = windows.reshape(n, 5, 10).mean(axis=1)
    distances = {name: attack(known, unknown) for name, attack in PROFILE_ATTACKS.items()}
    distances |= {name: attack(known_counts, unknown_counts) for name, attack in EVENT_ATTACKS.items()}
    distances |= {
        name: attack(PersonWindows(windows, owner, n), PersonWindows(unknown, np.arange(n), n), rng)
        for name, attack in TRAINED_ATTACKS.items()
    }
    estimates = [identification(name, part, k) for name, part in distances.items()]
    assert strongest(estimates).low <= k / n
    # Unshuffled, each of them finds nearly everybody.
    back = np.argsort(mixed)
    assert min(identification(name, part[back], k).rate for name, part in distances.items()) > 0.9
