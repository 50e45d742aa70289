"""Method or size: what made-up prices say when it is known what drives them."""

from dataclasses import replace

import numpy as np
import pytest

from reproductions.validation_desk.study import drivers
from understudy.desk.web.price_figures import PricedRequest
from understudy.errors import DataError

ONE = PricedRequest(
    *("a", "P1", "trends", 10, None),
    *((0.3, 0.2, 0.4), (0.1, 0.05, 0.15), (1.0, 0.9, 1.1), (0.4, 0.3, 0.5), 1.1, True),
)


# Of one learner on each request.
INFLUENCES = [0.9, 1.0, 0.95, 0.9, 0.3, 0.4, 0.2, 0.35, 0.3, 0.4]


def requests(advantages, kind, sizes):
    return [
        replace(ONE, kind=kind, n_outputs=size, advantage=(advantage, 0.0, 1.0))
        for advantage, size in zip(advantages, sizes, strict=True)
    ]


def test_method_drives_the_price_when_causal_requests_cost_more_and_size_says_nothing():
    some = requests([0.6, 0.7, 0.65, 0.6], "causal", [2, 4, 5, 3])
    others = requests([0.1, 0.12, 0.09, 0.11, 0.1, 0.12], "trends", [50, 12, 3, 8, 60, 20])
    found = drivers([*some, *others], INFLUENCES[: len(some) + len(others)], np.random.default_rng(1))
    assert found.difference[0] == pytest.approx(0.6375 - 0.64 / 6)
    assert found.difference[1] > 0.4
    assert found.chance < 0.02
    assert found.by_size[0] < 0
    assert found.by_influence[0] == pytest.approx(1)
    assert found.method_drives
    assert (found.n_causal, found.n_others) == (4, 6)


def test_method_does_not_drive_the_price_when_large_answers_cost_more():
    some = requests([0.1, 0.2, 0.3], "causal", [1, 20, 30])
    others = requests([0.05, 0.15, 0.25, 0.35, 0.4, 0.5], "trends", [3, 12, 25, 33, 40, 60])
    found = drivers([*some, *others], INFLUENCES[: len(some) + len(others)], np.random.default_rng(1))
    assert found.by_size[0] == pytest.approx(0.983, abs=0.01)
    assert found.by_size[1] > 0
    assert found.chance > 0.2
    assert not found.method_drives


def test_too_few_requests_are_not_compared():
    with pytest.raises(DataError, match="two causal requests"):
        drivers([ONE], [0.5], np.random.default_rng(1))
