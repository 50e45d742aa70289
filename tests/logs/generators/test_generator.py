"""Methods by name: what can be written, and what is said about the rest."""

import numpy as np
import pytest

from understudy.errors import UsageError
from understudy.logs.generators.registry import generator_names, parse_generator


def test_names_are_known():
    assert {"drop", "markov"} <= set(generator_names())


@pytest.mark.parametrize(
    ("text", "ratio"), [("drop", 0.5), ("drop:0", 0.0), ("drop:0.25", 0.25), ("drop:ratio=0.75", 0.75)]
)
def test_what_can_be_written(text, ratio):
    assert parse_generator(text).ratio == ratio


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nosuch", "no generator 'nosuch'"),
        ("", "no generator ''"),
        ("Markov", "no generator 'Markov'"),
        ("markov:1", "does not take '1'"),
        ("markov:x=1", "no option 'x'"),
        ("drop:rate=0.5", "no option 'rate'"),
        ("drop:=0.5", "no option ''"),
        ("drop:0.5:0.6", "does not take '0.6'"),
        ("drop:abc", "is a number, not 'abc'"),
        ("drop:", "is a number, not ''"),
        ("drop:2", "at least 0 and below 1, got 2"),
        ("drop:1", "at least 0 and below 1, got 1"),
        ("drop:-0.1", "at least 0 and below 1, got -0.1"),
        ("drop:nan", "at least 0 and below 1, got nan"),
        ("drop:inf", "at least 0 and below 1, got inf"),
    ],
)
def test_what_cannot_is_refused_with_a_hint(text, said):
    with pytest.raises(UsageError, match=said) as caught:
        parse_generator(text)
    assert caught.value.hint
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "example"), [("drop:abc", "drop:ratio=0.5"), ("gru:epochs=x", "gru:epochs=1")]
)
def test_the_example_is_the_generators_own(text, example):
    with pytest.raises(UsageError) as caught:
        parse_generator(text)
    assert example in caught.value.hint


@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.9])
def test_drop_drops_its_share_and_keeps_the_order(make_log, ratio):
    log = make_log(np.random.default_rng(0), n_learners=200, mean_length=30)
    sample = parse_generator(f"drop:{ratio}").fit(log, None, None).sample(None, np.random.default_rng(1))
    # Six standard deviations: a false alarm in one of a billion seeds.
    assert abs(sample.n_rows - (1 - ratio) * log.n_rows) <= 6 * np.sqrt(log.n_rows * ratio * (1 - ratio))
    rows = {
        tuple(zip(log.action[a:b].tolist(), log.outcome[a:b].tolist(), strict=True))
        for a, b in zip(log.offsets[:-1], log.offsets[1:], strict=True)
    }

    def contained(short, long):
        rest = iter(long)
        return all(any(x == y for y in rest) for x in short)

    for a, b in zip(sample.offsets[:-1], sample.offsets[1:], strict=True):
        own = tuple(zip(sample.action[a:b].tolist(), sample.outcome[a:b].tolist(), strict=True))
        assert own in rows if ratio == 0 else any(contained(own, long) for long in rows)


def test_drop_shuffles_the_learners(make_log):
    log = make_log(np.random.default_rng(0), n_learners=50)
    sample = parse_generator("drop:0").fit(log, None, None).sample(None, np.random.default_rng(1))
    assert sorted(sample.lengths) == sorted(log.lengths)
    assert sample.lengths.tolist() != log.lengths.tolist()
