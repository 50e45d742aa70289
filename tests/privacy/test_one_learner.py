"""Attackers who ask whether something is true of one learner: release against refusal must not tell them.

Every statement is asked about two files that differ by one learner, of whom it is true in one and false in the other.
Both verdicts are the same, and so is all that the researcher reads. No chance: data, order and runs are seeded.
"""

from dataclasses import replace
from datetime import datetime
from functools import cache

import numpy as np
import polars as pl
import pytest

from tests.desk.support.fixtures import POLICY as DESK_POLICY
from tests.desk.support.fixtures import fill, make_rough
from tests.desk.support.fixtures import school_frame as desk_frame
from tests.desk.support.in_process import judged, log_frame, school_frame, table_of
from understudy.desk.disclosure import probing, replacement
from understudy.desk.domain.analysis import Failure
from understudy.desk.domain.policy import Policy
from understudy.desk.service import releases, requests, views

N = 18
POLICY = Policy(minimum_learners=4, minimum_freedom=4)
TARGET = "learner-07"


@pytest.fixture(autouse=True)
def few_runs(monkeypatch):
    """What these attacks need, and no more."""
    monkeypatch.setattr(probing, "N_TRIPLES", 3)
    monkeypatch.setattr(replacement, "N_ORDERS", 6)


def with_learner(frame: pl.DataFrame, **values: object) -> pl.DataFrame:
    """The frame with other values for the learner whom an analysis sees as number seven."""
    place = int(np.flatnonzero(np.random.default_rng(5).permutation(len(frame)) == 6)[0])
    target = frame["learner"].unique().sort()[place]
    return frame.with_columns(
        pl.when(pl.col("learner") == target).then(pl.lit(value)).otherwise(pl.col(name)).alias(name)
        for name, value in values.items()
    )


@cache
def synthetic():
    return table_of(with_learner(school_frame(2, N), passed=1, score=61.0))


FAILED = {"passed": 1, "score": 61.3}, {"passed": 0, "score": 44.2}
MINUTES = {"evening": 100.25}, {"evening": 326.0}
HIGH = {"score": 50.0}, {"score": 99.9}
MISSING = {"score": 50.0}, {"score": None}
ONE = f'one = data[data.learner == "{TARGET}"]\n'
STATEMENTS = {
    "failed": (ONE + 'return {"x": bool((one.passed == 0).any())}', *FAILED),
    "failed, the other way round": (ONE + 'return {"x": int((one.passed == 1).all())}', *FAILED),
    "failed, in words": (ONE + 'return {"x": "yes" if (one.score < 50).any() else "no"}', *FAILED),
    "failed, as an error": (
        ONE + '1 / (1 - int((one.passed == 0).any()))\nreturn {"m": data.score.mean()}',
        *FAILED,
    ),
    "failed, as an error beside a text": (
        ONE + '1 / (1 - int((one.passed == 0).any()))\nreturn {"t": "done"}',
        *FAILED,
    ),
    "failed, by a hash of the number": (
        "h = data.learner.map(lambda name: sum(ord(c) * 31**k for k, c in enumerate(name)) % 1009)\n"
        'own = sum(ord(c) * 31**k for k, c in enumerate("learner-0" + str(3 + 4))) % 1009\n'
        'return {"x": bool(((h == own) & (data.passed == 0)).any())}',
        *FAILED,
    ),
    "failed, within a mean": (
        ONE + 'return {"m": data.score.mean() + 1000 * int((one.passed == 0).sum())}',
        *FAILED,
    ),
    "failed, by weights": (
        f'w = np.where(data.learner == "{TARGET}", 1000.0, 1.0)\nreturn {{"m": float((w * (1 - data.passed)).sum())}}',
        *FAILED,
    ),
    "the lowest of all": (
        f'return {{"x": bool(data.sort_values("score").learner.iloc[0] == "{TARGET}")}}',
        {"score": 61.0},
        {"score": 1.0},
    ),
    "how many have a value": ('return {"x": int((data.evening == 326).sum())}', *MINUTES),
    "the share who have a value": ('return {"x": float((data.evening == 326).mean())}', *MINUTES),
    "any has a value, hidden": (
        'e = data["evening"]\nwanted = 300 + 26\nreturn {"x": bool((e == wanted).any()), "n": len(data)}',
        *MINUTES,
    ),
    "a query": ('return {"x": len(data.query("evening == 326"))}', *MINUTES),
    "two have a value": ('return {"x": bool((data.evening == 326).sum() >= 2)}', *MINUTES),
    "exactly one has a value": ('return {"x": bool((data.evening == 326).sum() == 1)}', *MINUTES),
    "a value, within a mean": (
        'return {"m": data.score.mean() + 1000 * bool((data.evening == 326).any())}',
        *MINUTES,
    ),
    "a sum of columns": (
        't = data.filter(like="week_").sum(axis=1)\nreturn {"x": bool((t == 97).any())}',
        {f"week_{week}": 1.0 for week in range(1, 7)},
        {**{f"week_{week}": 10.0 for week in range(1, 6)}, "week_6": 47.0},
    ),
    "above a threshold": ('return {"x": bool((data.score > 99.5).any())}', *HIGH),
    "all below it": ('return {"x": bool((data.score < 99.5).all())}', *HIGH),
    "a maximum": ('return {"x": bool(data.score.max() > 99.5)}', *HIGH),
    "a number that is missing": ('return {"x": np.nan if (data.score > 99.5).any() else 1.0}', *HIGH),
    "a key": ('return {"a": 1.0} if (data.score > 99.5).any() else {"b": 1.0}', *HIGH),
    "a missing value": ('return {"x": bool(data.score.isna().any())}', *MISSING),
    "no missing value": ('return {"x": len(data.dropna()) == len(data)}', *MISSING),
    "a missing value, in words": ('return {"x": "yes" if data.score.isna().any() else "no"}', *MISSING),
    "a missing value, within a mean": (
        'return {"m": data.evening.mean() + 1000 * int(data.score.isna().sum())}',
        *MISSING,
    ),
    "a power": ('return {"x": bool((data.evening == 18**2 + 2).any())}', *MINUTES),
    "a shift": ('return {"x": bool((data.evening == 163 << 1).any())}', *MINUTES),
    "a comparison by a function": ('return {"x": bool(np.greater(data.score, 99.5).any())}', *HIGH),
    "classes": ('return {"n": int(pd.cut(data.score, [0, 99.5, 200]).nunique())}', *HIGH),
    "a step that is in no comparison": (
        'return {"x": float(np.heaviside(data.score - 99.5, 0).sum())}',
        *HIGH,
    ),
    "the beginning of a text": (
        'return {"x": bool(data.achievement.str.startswith("abs").any())}',
        {"achievement": "low"},
        {"achievement": "absent"},
    ),
    "three columns at once": (
        'return {"x": bool(((data.passed == 0) & (data.evening > 300) & (data.achievement == "high")).any())}',
        {"passed": 1, "evening": 50.0, "achievement": "low"},
        {"passed": 0, "evening": 326.0, "achievement": "high"},
    ),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_about_one_learner_gets_the_same_verdict_if_it_is_true_and_if_not(name):
    body, no, yes = STATEMENTS[name]
    for values in (no, yes):
        found = judged(body, table_of(with_learner(school_frame(1, N), **values)), synthetic(), POLICY)
        # Without a result nothing can be released either.
        assert isinstance(found, Failure) or found.verdict == "fail", (name, values)


def test_a_mean_of_one_learner_among_constants_never_leaves_unseen():
    """If it is true, one side of the mean is one learner, which is for a person; "no" is held."""
    for values in HIGH:
        frame = with_learner(school_frame(1, N), **values)
        found = judged(
            'return {"m": data.score.clip(lower=99.5).mean()}', table_of(frame), synthetic(), POLICY
        )
        assert found.verdict != "pass", values


SIZES = {
    "exactly as many rows": ('return {"x": bool((data.groupby("learner").size() == 21).any())}', 21),
    "more rows than": ('return {"x": bool(data.groupby("learner").size().max() > 60)}', 61),
    "more rows than, in words": (
        'return {"x": "yes" if data.learner.value_counts().max() > 60 else "no"}',
        61,
    ),
}


@pytest.mark.parametrize("name", SIZES)
def test_how_many_rows_a_learner_has_gets_the_same_verdict_if_it_is_true_and_if_not(name):
    body, size = SIZES[name]
    frame = log_frame(1, N).filter(pl.int_range(pl.len()).over("learner") < 12)
    others, one = frame.filter(pl.col("learner") != "s4"), frame.filter(pl.col("learner") == "s4")
    longer = pl.concat([others, one[np.arange(size) % len(one)]])
    for each in (frame, longer):
        found = judged(body, table_of(each), table_of(frame), POLICY)
        assert found.verdict == "fail", name


TIMES = {
    "a day": (
        'return {"x": bool((data.handed_in.dt.normalize() == "2026-03-05").any())}',
        datetime(2026, 3, 5),
    ),
    "since": ('return {"x": bool((data.handed_in > "2026-03-05").any())}', datetime(2026, 3, 5, 17, 8)),
    "a minute": ('return {"x": bool((data.handed_in.dt.minute == 17).any())}', datetime(2026, 2, 1, 9, 17)),
}


@pytest.mark.parametrize("name", TIMES)
def test_a_time_gets_the_same_verdict_if_it_is_true_and_if_not(name):
    body, time = TIMES[name]
    times = pl.Series([datetime(2026, 2, 1 + place, 10, 2) for place in range(N)])
    frame = school_frame(1, N).select("learner", "score", handed_in=times)
    for each in (frame, with_learner(frame, handed_in=time)):
        found = judged(body, table_of(each), table_of(frame), POLICY)
        assert found.verdict == "fail", name


def test_an_empty_class_above_all_learners_is_for_a_person():
    body = "return {'counts': np.histogram(data.score, [0, 55, 99.5, 200])[0].tolist()}"
    real, other = table_of(school_frame(1, 36)), table_of(school_frame(2, 36))
    check = judged(body, real, other, POLICY).check("replacement")
    assert check.verdict == "review"
    assert len(check.numbers) == 1


def test_a_group_that_one_learner_makes_large_enough():
    for n_behind in (POLICY.minimum_learners - 1, POLICY.minimum_learners):
        late = pl.Series(np.where(np.arange(N) < n_behind, 600.0, np.arange(N)))
        found = judged(
            'return {"m": data.score[data.week_1 > 500].mean()}',
            table_of(school_frame(1, N).with_columns(week_1=late)),
            table_of(school_frame(2, N).with_columns(week_1=late)),
            POLICY,
        )
        assert found.verdict == "fail", n_behind
    # The larger group would pass if it were not for the smaller one.
    assert found.check("learners").verdict == "pass"
    assert "fewer than 4 would be left" in found.check("replacement").reason


def test_few_learners_above_a_value_are_found_when_no_single_one_decides():
    two = school_frame(1, N).with_columns(
        score=pl.when(pl.int_range(N) < 2).then(99.9).otherwise(pl.col("score").clip(upper_bound=80))
    )
    for frame in (two, with_learner(two, score=99.8)):
        found = judged('return {"x": bool(data.score.max() > 90)}', table_of(frame), synthetic(), POLICY)
        assert found.check("replacement").verdict == "fail"


HONEST = {
    "means by group": 'return data.groupby("achievement")[["evening", "score"]].mean()',
    "correlation": "from scipy import stats\nr, p = stats.pearsonr(data.evening, data.score)\n"
    'return {"r": r, "p": p, "n": len(data)}',
    "shares above hours": 'return {"share": float((data.evening > 60).mean()), "n": int((data.evening > 60).sum())}',
    "a robust label": 'return {"m": data.score.mean(), "finding": "above 30" if data.score.mean() > 30 else "below"}',
    "an order of learners that does not matter": 'return {"m": data.sort_values("score").score.iloc[9:27].mean()}',
    "a regression that does not take missing values": "from scipy import stats\n"
    "x, y = np.log(data.evening + 1), data.score\nfit = stats.linregress(x, y)\n"
    'return {"slope": fit.slope, "p": fit.pvalue, "share": round(float((y > 50).mean()), 3)}',
    "without missing values": 'd = data.dropna(subset=["score"])\n'
    'return {"m": d.score.mean(), "sd": d.score.std(ddof=1), "minutes": d.evening.fillna(0).mean() / 60}',
    "a table by numbers": 'means = data.groupby("passed").score.mean()\n'
    'return {f"passed {key}": mean for key, mean in means.items()}',
    "weeks": 'return data[[f"week_{w}" for w in range(1, 7)]].mean().to_dict()',
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_analysis_is_not_held_for_it(name):
    real, other = table_of(school_frame(1, 36)), table_of(school_frame(2, 36))
    check = judged(HONEST[name], real, other, POLICY).check("replacement")
    assert check.verdict == "pass", check.reason


def test_an_honest_analysis_of_many_rows_is_not_held_for_it():
    body = 'return data.groupby("week").agg(time=("seconds", "mean"), right=("correct", "mean"))'
    found = judged(body, table_of(log_frame(1, 24)), table_of(log_frame(2, 24)), POLICY)
    assert found.check("replacement").verdict == "pass"


def test_more_values_than_can_be_tried_are_for_a_person():
    body = f'decoys = {list(range(1000, 1400))}\nreturn {{"m": data.score.mean()}}'
    found = judged(body, table_of(school_frame(1, N)), synthetic(), POLICY)
    assert found.check("replacement").verdict == "review"


CODES = {
    "an error": (
        "    1 / int(not (data['evening_01'] > 5000).any())\n    return {'m': data['morning_01'].mean()}",
        requests.send_back,
    ),
    "another error": (
        "    if (data['evening_01'] > 5000).any():\n        raise KeyError\n"
        "    return {'m': data['morning_01'].mean()}",
        releases.withhold,
    ),
    "a yes or no": ("    return {'x': bool((data['evening_01'] > 5000).any())}", requests.send_back),
}


def test_a_researcher_reads_the_same_whatever_the_reason(tmp_path, monkeypatch):
    """Errors, failed checks, and which of them: one sentence, whether the statement is true or not."""
    make_rough(monkeypatch.setattr)
    seen = set()
    for answer, minutes in (("no", 20.0), ("yes", 7000.0)):
        (tmp_path / answer).mkdir()
        real = desk_frame(1, N).with_row_index()
        minute = pl.when(pl.col("index") == 3).then(minutes).otherwise("evening_01")
        real = real.with_columns(evening_01=minute).drop("index")
        filled = fill(tmp_path / answer, real=real, policy=replace(DESK_POLICY, may_override=()))
        for name, (body, end) in CODES.items():
            held = filled.held(f"def analyze(data):\n{body}\n")
            verdict = views.request(filled.desk, filled.reviewer, held).held.verdict
            assert not verdict.may_release, (name, answer)
            end(filled.desk, filled.reviewer, held, f"it was {name}, and the answer is {answer}")
            view = views.request(filled.desk, filled.researcher, held)
            seen.add((view.state, view.note, view.held, view.history, view.released))
            # Reviewers read in the log what was written, and only they.
            words = views.request(filled.desk, filled.reviewer, held).history[-1].detail["words"]
            assert words.startswith(f"it was {name}")
        filled.desk.close()
    assert seen == {(state, requests.NOT_ANSWERED, None, (), None) for state in ("returned", "withheld")}
