"""Digraph statistics: what a learner adds, the declarations, the means and their error bars."""

import json
import math

import numpy as np
import pytest

from understudy.core.privacy.noise import os_noise, seeded_noise
from understudy.errors import UsageError
from understudy.keystrokes.digraph_statistics import (
    ONE,
    Declaration,
    DigraphStatistics,
    Release,
    contributions,
    lattice_sums,
    release_statistics,
)
from understudy.keystrokes.group_statistics import declared_groups, read_digraphs
from understudy.keystrokes.keystrokes import Keystrokes
from understudy.keystrokes.latencies import count_latencies

MS = 1_000_000
DIGRAPHS = ("i → n", "n → t", "t → Space", "+ → +")
GROUPS = ("none", "some")


class NoNoise:
    """Adds nothing, to look at what would be noised."""

    secret = False

    def discrete_gaussian(self, values, sigma):
        return values


def typing(latencies):
    """One learner who types `a` and `b` in turn, with these latencies in ms: a → b, b → a, ..."""
    n = len(latencies) + 1
    return np.arange(n) % 2, np.concatenate([[0], np.cumsum(latencies)])


def made(*learners):
    keys, times = zip(*(typing(one) for one in learners), strict=True)
    lengths = [len(one) for one in keys]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    follows = np.ones(offsets[-1], dtype=bool)
    follows[offsets[:-1]] = False
    zero = np.zeros(offsets[-1], dtype=np.int32)
    return Keystrokes(
        np.concatenate(keys),
        (np.concatenate(times) * MS).astype(np.int64),
        follows,
        offsets,
        ("a", "b"),
        zero,
        zero,
    )


def test_a_learner_adds_one_and_their_average_or_nothing():
    declared = Declaration(("a → b", "b → a", "a → c"), ("all",), shortest=100, longest=300, least=2)
    keystrokes = made(
        [100, 300, 200, 300, 99],  # a → b: 100, 200 (99 is out of bounds); b → a: 300, 300
        [200, 250, 301],  # a → b: 200 once; b → a: once
        [],
    )
    added = contributions(keystrokes, declared) / ONE
    assert added[0].tolist() == [[1, 1, 0], [-0.5, 1, 0]]
    assert not added[1:].any()


def test_the_same_as_profiles_give(course):
    keystrokes, _ = course
    declared = Declaration(DIGRAPHS, GROUPS)
    added = contributions(keystrokes, declared)
    totals = count_latencies(keystrokes, keystrokes.learner, keystrokes.n_learners)
    for j, name in enumerate(DIGRAPHS):
        column = totals.features.index(name)
        count, total = totals.count[:, column], totals.total[:, column]
        enough = count >= 5
        assert (added[:, 0, j] == ONE * enough).all()
        average = (added[:, 1, j] / ONE * 370 + 380)[enough]
        assert average == pytest.approx((total / np.maximum(count, 1))[enough], abs=1e-3)


def test_what_a_learner_adds_does_not_depend_on_others(course):
    keystrokes, _ = course
    declared = Declaration(DIGRAPHS, GROUPS)
    together = contributions(keystrokes, declared)
    for one in range(keystrokes.n_learners):
        assert (contributions(keystrokes.learners(np.array([one])), declared)[0] == together[one]).all()


def test_sums_by_group():
    added = np.arange(12).reshape(3, 2, 2)
    assert lattice_sums(added, np.array([1, -1, 1]), 2).tolist() == [[[0, 0], [0, 0]], [[8, 10], [12, 14]]]


def test_without_noise_the_means_are_the_means(course):
    keystrokes, experience = course
    release = Release(Declaration(DIGRAPHS, GROUPS), keystrokes.n_learners, 5.0, 1e-6)
    exact = release_statistics(keystrokes, experience, release, NoNoise())
    totals = count_latencies(keystrokes, keystrokes.learner, keystrokes.n_learners)
    column = totals.features.index("i → n")
    often = totals.count[:, column] >= 5
    averages = totals.total[:, column] / np.maximum(totals.count[:, column], 1)
    for g in range(2):
        members = often & (experience == g)
        assert exact.count[g, 0] == members.sum()
        assert exact.total[g, 0] * 370 + 380 * members.sum() == pytest.approx(
            averages[members].sum(), abs=0.01
        )
    assert not exact.guarantee.formal


def test_means_come_with_the_noise_that_they_have():
    release = Release(Declaration(("a → b",), ("all",), 0, 200), 400, 3.0, 1e-6)
    rng = np.random.default_rng(12)
    n, t = 300.0, -0.4
    drawn = [
        DigraphStatistics(
            release,
            release.guarantee,
            n + rng.normal(0, release.noise_sd, (1, 1)),
            n * t + rng.normal(0, release.noise_sd, (1, 1)),
        ).means
        for _ in range(4000)
    ]
    means = np.array([mean[0, 0] for mean, _ in drawn])
    errors = np.array([error[0, 0] for _, error in drawn])
    assert means.mean() == pytest.approx(100 + 100 * t, abs=0.05)
    # A standard deviation from 4,000 draws is known to 1.1 %; seeded, so this fails always or never.
    assert means.std() == pytest.approx(errors.mean(), rel=0.05)
    assert release.expected_error(n) == pytest.approx(means.std(), rel=0.15)


def test_a_count_lost_in_noise_gives_no_mean():
    release = Release(Declaration(("a → b",), GROUPS), 50, 1.0, 1e-6)
    count = np.array([[2.9], [3.1]]) * release.noise_sd
    written = DigraphStatistics(release, release.guarantee, count, count * 5).to_json()
    groups = written["digraphs"][0]["groups"]
    assert groups["none"]["mean_ms"] is None
    assert groups["none"]["mean_noise_sd"] is None
    assert groups["some"]["mean_ms"] == 750.0  # within the bounds, whatever the noise
    assert groups["some"]["count_noise_sd"] == pytest.approx(release.noise_sd, abs=1e-3)
    json.dumps(written, allow_nan=False)


def test_the_guarantee_is_stated_for_learners(course):
    keystrokes, experience = course
    release = Release(Declaration(DIGRAPHS, GROUPS), keystrokes.n_learners, 2.0, 1e-6)
    found = release_statistics(keystrokes, experience, release, os_noise())
    assert found.guarantee.formal
    assert found.guarantee.epsilon == 2.0
    assert found.guarantee.unit == "a learner with all their rows"
    assert found.guarantee.caveats == ()
    seeded = release_statistics(keystrokes, experience, release, seeded_noise(np.random.default_rng(1)))
    assert not seeded.guarantee.formal


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"digraphs": ()}, "no digraphs"),
        ({"groups": ()}, "no groups"),
        ({"groups": ("a", "a")}, "twice"),
        ({"shortest": 750}, "smaller first"),
        ({"longest": math.inf}, "smaller first"),
        ({"least": 0}, "1 or more"),
        ({"digraphs": tuple(map(str, range(9000)))}, "too many"),
    ],
)
def test_declarations_that_make_no_sense(options, words):
    with pytest.raises(UsageError) as error:
        Declaration(**{"digraphs": ("a → b",), "groups": GROUPS, **options})
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("epsilon", "delta", "words"),
    [
        (0, 1e-6, "above 0"),
        (math.inf, 1e-6, "above 0"),
        (1, 0, "between 0"),
        (1, 0.5, "one over"),
        (1e9, 1e-6, "100"),
    ],
)
def test_budgets_that_make_no_sense(epsilon, delta, words):
    with pytest.raises(UsageError) as error:
        Release(Declaration(("a → b",), GROUPS), 30, epsilon, delta)
    assert words in str(error.value)


def test_digraphs_as_people_write_them(tmp_path):
    path = tmp_path / "digraphs.txt"
    path.write_text("i n\nth\n\n+ → +\nSpace a\n- Enter\n→ x\n", encoding="utf-8")
    with pytest.raises(UsageError, match="line 7"):
        read_digraphs(path)
    path.write_text("i n\nth\n\n+ → +\nSpace a\n- Enter\n", encoding="utf-8")
    assert read_digraphs(path) == ("i → n", "t → h", "+ → +", "Space → a", "- → Enter")


@pytest.mark.parametrize("line", ["a", "a b c", "abc", "→"])
def test_lines_that_are_no_digraph(tmp_path, line):
    path = tmp_path / "digraphs.txt"
    path.write_text(f"i n\n{line}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="line 2"):
        read_digraphs(path)


def test_digraphs_have_to_be_declared(tmp_path):
    with pytest.raises(UsageError, match="no file"):
        read_digraphs(tmp_path / "none.txt")


def test_labels_that_were_not_declared_count_in_no_group():
    labels = np.array([0, 1, 2, -1, 1])
    assert declared_groups(("some", "none"), ("none", "some", "secret"), labels).tolist() == [1, 0, -1, -1, 0]


def test_a_group_that_is_a_number_is_found_however_it_is_written():
    found = declared_groups(("0", "1"), ("1.0", "0.0", "other"), np.array([0, 1, 2, -1]))
    assert found.tolist() == [1, 0, -1, -1]
