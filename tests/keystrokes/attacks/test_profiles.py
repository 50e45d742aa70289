"""Attacks on typing: who is planted is found, who is shuffled is not, and nothing breaks at the edges."""

import sys

import numpy as np
import pytest

from understudy.errors import DataError, MissingError
from understudy.keystrokes.attacks.events import EVENT_ATTACKS, histogram_likelihood, text
from understudy.keystrokes.attacks.identification import hit_chances, identification
from understudy.keystrokes.attacks.profiles import PROFILE_ATTACKS
from understudy.keystrokes.attacks.trained import TRAINED_ATTACKS, PersonWindows, cell_likelihood

N = 60


def people(rng, n=N, d=12):
    """Profiles in milliseconds, now and later."""
    usual = 200 + 40 * rng.normal(size=(n, d))
    return usual + 10 * rng.normal(size=(n, d)), usual + 10 * rng.normal(size=(n, d))


def histograms(rng, n=N, d=12, n_classes=30):
    centre = rng.uniform(8, 22, size=(n, d))
    law = np.exp(-0.5 * ((np.arange(n_classes) - centre[..., None]) / 4) ** 2)
    law /= law.sum(axis=2, keepdims=True)
    return rng.poisson(150 * law), rng.poisson(40 * law)


def windows(rng, n=N, d=12, m=6):
    usual = 200 + 40 * rng.normal(size=(n, d))
    owner = np.repeat(np.arange(n), m)
    later = np.repeat(np.arange(n), 2)
    return (
        PersonWindows(usual[owner] + 20 * rng.normal(size=(n * m, d)), owner, n),
        PersonWindows(usual[later] + 20 * rng.normal(size=(n * 2, d)), later, n),
    )


@pytest.mark.parametrize("name", PROFILE_ATTACKS)
def test_profile_attacks_find_planted_people(name):
    known, unknown = people(np.random.default_rng(0))
    assert identification(name, PROFILE_ATTACKS[name](known, unknown), 1).rate > 0.9


@pytest.mark.parametrize("name", EVENT_ATTACKS)
def test_event_attacks_find_planted_people(name):
    known, unknown = histograms(np.random.default_rng(0))
    assert identification(name, EVENT_ATTACKS[name](known, unknown), 1).rate > 0.9


@pytest.mark.parametrize("name", TRAINED_ATTACKS)
def test_trained_attacks_find_planted_people(name):
    rng = np.random.default_rng(0)
    distances = TRAINED_ATTACKS[name](*windows(rng), rng)
    assert distances.shape == (N, N)
    assert identification(name, distances, 1).rate > 0.8


def test_the_text_alone_names_people_with_words_of_their_own():
    rng = np.random.default_rng(0)
    law = rng.dirichlet(np.full(40, 0.5), size=N)
    assert identification("text", text(rng.poisson(900 * law), rng.poisson(200 * law)), 1).rate > 0.9


def test_nobody_is_found_among_equal_people():
    same = np.full((N, 5), 300.0)
    for name, attack in PROFILE_ATTACKS.items():
        assert identification(name, attack(same, same), 10).rate == pytest.approx(10 / N), name
    counts = np.tile(np.arange(6), (N, 5, 1))
    for name, attack in EVENT_ATTACKS.items():
        assert identification(name, attack(counts, counts), 10).rate == pytest.approx(10 / N), name
    assert identification("text", text(counts[:, 0], counts[:, 0]), 10).rate == pytest.approx(10 / N)
    owner, once = np.repeat(np.arange(N), 3), PersonWindows(same, np.arange(N), N)
    for name, attack in TRAINED_ATTACKS.items():
        distances = attack(PersonWindows(same[owner], owner, N), once, np.random.default_rng(0))
        if name == "forest":  # it has to prefer somebody, but prefers the same people for everyone
            assert (distances == distances[0]).all()
            assert identification(name, distances, 10).rate == pytest.approx(10 / N)
        else:
            assert identification(name, distances, 10).rate == pytest.approx(10 / N), name


@pytest.mark.parametrize("name", PROFILE_ATTACKS)
def test_constant_features_and_people_who_typed_nothing_do_no_harm(name):
    known, unknown = people(np.random.default_rng(0))
    known[:, 0] = unknown[:, 0] = 300.0
    known[3], unknown[5] = np.nan, np.nan
    found = identification(name, PROFILE_ATTACKS[name](known, unknown), 1)
    assert 0.8 < found.rate <= (N - 2 + 1 / N) / N + 1e-9


@pytest.mark.parametrize("name", EVENT_ATTACKS)
def test_digraphs_that_nobody_typed_change_nothing(name):
    known, unknown = histograms(np.random.default_rng(0))
    empty = np.zeros((N, 2, known.shape[2]), dtype=known.dtype)
    more = EVENT_ATTACKS[name](
        np.concatenate([known, empty], axis=1), np.concatenate([unknown, empty], axis=1)
    )
    np.testing.assert_allclose(more, EVENT_ATTACKS[name](known, unknown), atol=1e-9)


@pytest.mark.parametrize("name", EVENT_ATTACKS)
def test_somebody_without_latencies_is_guessed_at_random(name):
    known, unknown = histograms(np.random.default_rng(0))
    unknown[4] = 0
    distances = EVENT_ATTACKS[name](known, unknown)
    assert np.ptp(distances[4]) == 0


def test_two_classes_of_many_events_still_name_people():
    rng = np.random.default_rng(0)
    slow = rng.beta(4, 8, size=(N, 30))
    known, unknown = (rng.binomial(n, slow) for n in (300, 60))
    both = [np.stack([n - part, part], axis=2) for n, part in ((300, known), (60, unknown))]
    assert identification("histogram", histogram_likelihood(*both), 1).rate > 0.9


def test_fine_knowledge_of_the_known_beats_coarse_knowledge():
    rng = np.random.default_rng(0)
    usual = 200 + 60 * rng.normal(size=(N, 10))
    owner = np.repeat(np.arange(N), 6)
    fine = usual[owner] + 25 * rng.normal(size=(6 * N, 10))

    def coarsen(x):
        return 300.0 * np.floor(x / 300 + 0.5)

    unknown = coarsen(usual + 25 * rng.normal(size=usual.shape))
    likelihood = cell_likelihood(PersonWindows(fine, owner, N), unknown, coarsen, np.random.default_rng(1))
    coarse = PROFILE_ATTACKS["euclidean"](coarsen(fine.reshape(N, 6, 10).mean(axis=1)), unknown)
    assert identification("a", likelihood, 5).rate > identification("a", coarse, 5).rate + 0.05


def test_trained_attacks_are_reproducible_and_use_the_generator():
    for attack in TRAINED_ATTACKS.values():
        data = windows(np.random.default_rng(0), n=15, m=4)
        first, again = (attack(*data, np.random.default_rng(7)) for _ in range(2))
        np.testing.assert_array_equal(first, again)


def test_people_without_windows_are_guessed_last_or_at_random():
    rng = np.random.default_rng(0)
    known, unknown = windows(rng, n=15, m=4)
    silent = known.values.copy()
    silent[known.person == 6, 3] = np.nan  # nothing typed: such windows are left out
    known = PersonWindows(silent, known.person, 15)
    kept = unknown.person != 14
    unknown = PersonWindows(unknown.values[kept], unknown.person[kept], 15)
    others = np.delete(np.arange(15), [6, 14])
    for name, attack in TRAINED_ATTACKS.items():
        distances = attack(known, unknown, rng)
        assert distances.shape == (15, 15)
        assert not (distances[others, 6] < distances[others, others]).any(), name
        assert np.isnan(distances[14]).all(), name
        assert hit_chances(distances, 1)[14] == pytest.approx(1 / 15)


def test_pairs_need_two_windows_of_somebody():
    rng = np.random.default_rng(0)
    with pytest.raises(DataError, match="two windows"):
        TRAINED_ATTACKS["pairs"](*windows(rng, n=15, m=1), rng)


def test_windows_need_owners_among_the_people():
    with pytest.raises(DataError, match="2 windows need as many owners; got 1"):
        PersonWindows(np.zeros((2, 3)), np.array([0]), 2)
    with pytest.raises(DataError, match="outside"):
        PersonWindows(np.zeros((2, 3)), np.array([0, 2]), 2)


def test_without_scikit_learn_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    rng = np.random.default_rng(0)
    with pytest.raises(MissingError, match=r"\.\[keystrokes\]"):
        TRAINED_ATTACKS["forest"](*windows(rng, n=5), rng)
