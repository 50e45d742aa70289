"""Leaving learners out: what the probes hold, against brute force in pandas."""

import numpy as np
import pandas as pd
import pytest

from tests.desk.support.in_process import InProcess, analysis, log_frame, probed, school_frame, table_of
from understudy.desk.disclosure import probing
from understudy.desk.disclosure.influences import Influences
from understudy.desk.disclosure.probing import Probes, probe
from understudy.desk.domain.analysis import Failure
from understudy.errors import DataError


def as_pandas(table) -> pd.DataFrame:
    return InProcess.frame(table.whole())


def test_answers_without_each_learner_are_those_of_pandas():
    table = table_of(school_frame(1, 30))
    _, probes = probed('return data.groupby("achievement").score.mean().to_dict()', table)
    data = as_pandas(table)
    learners = sorted(data.learner.unique())
    assert probes.n_blocks == probes.n_learners == len(learners) == 30
    for place, one in enumerate(learners):
        expected = data[data.learner != one].groupby("achievement").score.mean()
        np.testing.assert_allclose(probes.without_one[place], [expected[name] for name in probes.names])
    for (a, b), found in zip(probes.pairs, probes.without_two, strict=True):
        kept = data[~data.learner.isin([learners[a], learners[b]])]
        expected = kept.groupby("achievement").score.mean()
        np.testing.assert_allclose(found, [expected[name] for name in probes.names])


@pytest.mark.parametrize(
    ("frame", "group", "value"),
    [
        (school_frame(1), "achievement", "evening"),
        (log_frame(1), "room", "seconds"),
        (log_frame(1), "week", "correct"),
    ],
)
def test_the_support_of_a_group_is_its_learners_and_not_its_rows(frame, group, value):
    table = table_of(frame)
    _, probes = probed(f'return data.groupby("{group}")["{value}"].mean().to_dict()', table)
    learners = as_pandas(table).groupby(group).learner.nunique()
    support = dict(zip(probes.names, Influences(probes).support.tolist(), strict=True))
    assert support == {str(name): n for name, n in learners.items()}


def test_probes_go_to_the_store_and_back():
    _, probes = probed(
        'return {"a": data.score.mean(), "b": [1.0, float("nan")]}', table_of(school_frame(1, 20))
    )
    again = Probes.from_bytes(probes.to_bytes())
    assert again.names == probes.names == ("a", "b / 1", "b / 2")
    assert again.n_learners == 20
    for name in ("full", "without_one", "pairs", "without_two", "triples", "without_three", "forms"):
        np.testing.assert_array_equal(getattr(again, name), getattr(probes, name))
    with pytest.raises(DataError):
        Probes.from_bytes(b"something else")
    _, none = probed("return {}", table_of(school_frame(1, 20)))
    assert Probes.from_bytes(none.to_bytes()).names == ()


def test_no_answer_no_probes():
    answer, probes = probe(
        analysis('return data["nothing"]'),
        table_of(school_frame(1, 10)),
        InProcess(),
        np.random.default_rng(0),
    )
    assert isinstance(answer, Failure)
    assert probes is None


def test_many_learners_go_in_blocks(monkeypatch):
    monkeypatch.setattr(probing, "MOST_BLOCKS", 10)
    table = table_of(school_frame(1, 35))
    _, probes = probed('return {"n": data.learner.nunique()}', table)
    assert not probes.one_by_one
    assert sorted(set((35 - probes.without_one).ravel().tolist())) == [3.0, 4.0]
    assert Influences(probes).support.tolist() == [10]


def test_kinds_of_statistics():
    table = table_of(school_frame(1))
    _, probes = probed(
        "d = data[data.achievement == 'high']\n"
        'return {"total": data.evening.sum(), "count": len(d), "freedom": len(data) - 3, "mean": data.score.mean(),'
        ' "share": d.passed.mean(), "sd": data.score.std(), "median": data.score.median(), "constant": 3.5,'
        ' "largest": data.score.max()}',
        table,
    )
    influences = Influences(probes)
    assert dict(zip(probes.names, influences.kinds, strict=True)) == {
        "total": "total",
        "count": "total",
        "freedom": "total",
        "mean": "mean",
        "share": "mean",
        "sd": "other",
        "median": "other",
        "constant": "constant",
        "largest": "other",
    }
    data = as_pandas(table)
    evening = data.sort_values("learner").evening.to_numpy()
    np.testing.assert_allclose(influences.contributions(0), evening[evening > 0])
    np.testing.assert_allclose(influences.contributions(3), data.sort_values("learner").score, rtol=1e-6)
    # The jackknife error of a mean is the textbook's.
    assert influences.standard_error[3] == pytest.approx(data.score.std() / np.sqrt(120))
