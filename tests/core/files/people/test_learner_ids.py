"""Digests of learners' ids: all at once as one by one, and whoever is only numbered is noticed."""

import hashlib

import numpy as np
import polars as pl
import pytest

from understudy.core.files.people import learner_ids
from understudy.core.files.people.blake2 import blake2_numbers
from understudy.core.files.people.learner_ids import (
    are_only_numbered,
    digests_of,
    digests_of_names,
    keyed_digests,
    within_file,
)


def one_by_one(values, key=b""):
    return [int.from_bytes(hashlib.blake2b(v, digest_size=8, key=key).digest(), "little") for v in values]


@pytest.mark.oracle
@pytest.mark.parametrize("key", [b"", b"k", b"x" * 64])
def test_the_digests_of_all_at_once_are_those_of_hashlib(key):
    rng = np.random.default_rng(1)
    values = [rng.bytes(size) for size in [*range(300), 1000, 128, 0]]
    found = blake2_numbers(b"".join(values), np.array([len(value) for value in values]), key)
    assert found.tolist() == one_by_one(values, key)


def test_sizes_that_do_not_add_up_are_refused():
    with pytest.raises(ValueError, match="do not add up"):
        blake2_numbers(b"abc", np.array([2]))
    with pytest.raises(ValueError, match="do not add up"):
        blake2_numbers(b"abc", np.array([4, -1]))
    with pytest.raises(ValueError, match="64 are possible"):
        blake2_numbers(b"abc", np.array([3]), b"k" * 65)
    assert len(blake2_numbers(b"", np.array([], dtype=np.int64))) == 0


@pytest.mark.oracle
@pytest.mark.parametrize("many", [1, 10**9])
def test_few_and_many_learners_have_the_same_digests(monkeypatch, tmp_path, many):
    monkeypatch.setattr(learner_ids, "_MANY", many)
    names = ["Zo\u00eb", "", "007", "7.0", " anna "]
    digests = digests_of_names(pl.Series(names))
    assert sorted(digests.tolist()) == sorted(one_by_one([b"zo\xc3\xab", b"", b"7", b"anna"]))
    raw = [value.tobytes() for value in digests.astype("<u8")]
    assert keyed_digests(digests, b"key").tolist() == one_by_one(raw, b"key")
    file = tmp_path / "x.csv"
    file.write_bytes(b"content")
    content = hashlib.blake2b(b"content").digest()
    assert within_file(digests, file).tolist() == one_by_one([content + value for value in raw])


@pytest.mark.parametrize(
    ("ids", "numbered"),
    [
        (range(1, 31), True),
        (range(0, 60, 2), True),
        ([*range(1, 30), 60], True),
        ([*range(1, 30), 61], False),
        ([*range(1, 30), "anna"], False),
        (range(4, 34), False),
        ([1], True),
        ([2], True),
        ([3], False),
        ([1, "anna"], False),
    ],
)
def test_learners_who_are_only_numbered(ids, numbered):
    assert are_only_numbered(digests_of(str(value).encode() for value in ids)) is numbered
