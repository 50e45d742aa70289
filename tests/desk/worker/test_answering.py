"""An answer: the same every time, checked beside what was released, priced on the learners who are in now."""

import json

import numpy as np
import polars as pl
import pytest

from tests.desk.support.fixtures import MEAN, OTHER, POLICY, InProcess, fill, school_frame
from understudy.cohorts.methods import seeded_summary
from understudy.cohorts.simulate import School
from understudy.desk.disclosure import probing, replacement
from understudy.desk.disclosure.probing import Probes
from understudy.desk.domain.analysis import code_hash
from understudy.desk.risk.pricing import ShadowAnswers
from understudy.desk.service import data_sets, feedback, releases, requests, views
from understudy.desk.service.answers import RequestToAnswer
from understudy.desk.store.tables import MeasurementRow, ReleaseRow
from understudy.desk.worker import answering

DRAWS = """
import numpy as np

def analyze(data):
    drawn = np.random.default_rng(np.random.randint(1000)).normal(size=3)
    return {"mean": data["evening_01"].mean(), "drawn": list(map(float, drawn + data["morning_01"].mean()))}
"""


def answered(filled, name, code, **sandbox):
    told = []
    runs = InProcess()
    held = answering.answer(
        filled.desk,
        RequestToAnswer(name, filled.data_set, code, POLICY),
        runs,
        lambda *step: told.append(step),
    )
    return held, runs.n_runs, told


def n_checking(told):
    """How many runs the checks took."""
    return next(total for stage, _, total in told if stage == answering.CHECKING)


def test_the_same_request_gives_the_same_answer(small):
    name = small.in_review(DRAWS)
    (first, n_runs, told), (second, *_) = (answered(small, name, DRAWS) for _ in range(2))
    for part in ("origin", "results", "checks", "support", "prices", "probes", "basis"):
        assert getattr(first, part) == getattr(second, part), part
    np.testing.assert_array_equal(_shadows(first), _shadows(second))
    # Once on all, without each, without triples and their pairs, with replaced learners, and on every shadow.
    assert n_runs == n_checking(told) + POLICY.n_shadows
    assert n_checking(told) > 1 + 36 + 4 * probing.N_TRIPLES + 4 * replacement.MOST_GROUPS
    assert list(dict.fromkeys(stage for stage, *_ in told)) == [
        answering.CHECKING,
        answering.PRICING,
        answering.GAME,
    ]
    assert all(0 <= done <= total for _, done, total in told)


def test_an_answer_says_what_it_was_computed_from(small):
    held, *_ = answered(small, small.in_review(), MEAN)
    assert held.origin.code_hash == code_hash(MEAN)
    assert held.origin.data_hash == data_sets.real_table(small.desk, small.data_set).hash
    assert set(held.origin.environment) == {
        *("python", "numpy", "pandas", "scipy", "statsmodels", "scikit-learn", "lingam", "understudy")
    }
    assert "missing" not in held.origin.environment.values()
    real = data_sets.real_table(small.desk, small.data_set).table.rows["evening_01"]
    assert held.results.numbers["mean minutes"] == pytest.approx(real.mean(), abs=real.std() / 36**0.5 / 4)
    assert held.results.numbers["mean minutes"] != real.mean()


def test_other_data_has_another_hash_and_the_hash_is_keyed(small, tmp_path):
    (tmp_path / "twin").mkdir()
    twin = fill(tmp_path / "twin")
    hashes = [data_sets.real_table(one.desk, one.data_set).hash for one in (small, twin)]
    assert hashes[0] != hashes[1]
    twin.desk.close()


def test_released_requests_are_measured_again_when_a_learner_left(small):
    first = small.released()
    name = small.in_review(OTHER)
    same, n_runs, told_before = answered(small, name, OTHER)
    data_sets.withdraw_learner(small.desk, small.custodian, small.data_set, "simulated-07")
    without, n_more, told = answered(small, name, OTHER)
    assert n_runs == n_checking(told_before) + POLICY.n_shadows
    # An earlier answer was judged already: nobody is replaced for it.
    assert n_more == n_checking(told) + 1 + 35 + 4 * probing.N_TRIPLES + 2 * POLICY.n_shadows
    assert answering.EARLIER in {stage for stage, *_ in told}
    assert same.basis == without.basis == (first,)
    for held, n_learners in ((same, 36), (without, 35)):
        assert held.prices["together"]["n_learners"] == n_learners
        assert held.prices["together"]["n_outputs"] == 2
        assert Probes.from_bytes(held.probes).n_learners == n_learners


def test_a_release_is_measured_once_on_other_learners(filled):
    filled.released()
    data_sets.withdraw_learner(filled.desk, filled.custodian, filled.data_set, "simulated-07")
    once = 1 + 35 + 4 * probing.N_TRIPLES + POLICY.n_shadows
    counted = []
    for code in (OTHER, DRAWS):
        name = filled.in_review(code)
        requests.approve(filled.desk, filled.reviewer, name)
        sandbox = InProcess()
        with filled.worker(open_sandbox=lambda limits, sandbox=sandbox: sandbox) as worker:
            assert worker.do_one()
        n_replaced = n_checking(answered(filled, name, code)[2]) - (1 + 35 + 4 * probing.N_TRIPLES)
        counted.append(sandbox.n_runs - n_replaced)
        assert filled.state(name) == "output held"
    assert counted == [2 * once, once]


COUNTS = """
def analyze(data):
    return {"n": len(data), "n late": int((data["morning_01"] > 20).sum()), "mean": float(data["evening_02"].mean())}
"""


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (COUNTS + "# again\n", "fail"),
        ('def analyze(data):\n    return {"minutes": float(data["evening_02"].sum()) / 60}\n', "fail"),
        ('def analyze(data):\n    return float((data["morning_01"] <= 20).mean())\n', "fail"),
        # How many learners there are says that somebody left, and nothing about them.
        ('def analyze(data):\n    return {"n": len(data), "s": float(data["evening_01"].std())}\n', "review"),
    ],
)
def test_the_same_statistic_before_and_after_somebody_left_is_held(small, code, verdict):
    small.released(COUNTS)
    assert differencing(answered(small, small.in_review(code), code)[0]).verdict in ("pass", "review")
    data_sets.withdraw_learner(small.desk, small.custodian, small.data_set, "simulated-07")
    check = differencing(answered(small, small.in_review(code), code)[0])
    assert check.verdict == verdict
    assert "other learners" in check.reason


def test_what_only_the_one_who_left_moved_is_held_too(tmp_path):
    """Nobody who is still in moves a share of 1: that it was less before was the doing of who left."""
    frames = [
        school_frame(seed).with_columns(passed=(pl.col("learner") != "simulated-07").cast(int))
        for seed in (1, 2)
    ]
    filled = fill(tmp_path, real=frames[0], synthetic=frames[1])
    code = 'def analyze(data):\n    return {"passed": float(data["passed"].mean())}\n'
    filled.released(code)
    data_sets.withdraw_learner(filled.desk, filled.custodian, filled.data_set, "simulated-07")
    check = differencing(answered(filled, filled.in_review(code), code)[0])
    assert (check.verdict, check.numbers[0]) == ("fail", "passed")
    filled.desk.close()


def test_of_a_run_with_somebody_who_left_no_influences_stay(filled):
    name = filled.released()
    data_sets.withdraw_learner(filled.desk, filled.custodian, filled.data_set, "simulated-07")
    filled.held(OTHER)
    with filled.desk.database.reading() as session:
        release = session.query(ReleaseRow).one()
        run, since = release.run, session.query(MeasurementRow).one()
        assert run.probes is None
        assert run.shadows is None
        assert list(run.kept_units) == ["mean minutes"]
        assert Probes.from_bytes(since.probes).n_learners == 35
    # It can be measured once more, and the desk still counts for itself.
    data_sets.withdraw_learner(filled.desk, filled.custodian, filled.data_set, "simulated-08")
    held, n_runs, told = answered(filled, filled.in_review(OTHER), OTHER)
    assert n_runs == n_checking(told) + 1 + 34 + 4 * probing.N_TRIPLES + 2 * POLICY.n_shadows
    assert held.prices["together"]["n_outputs"] == 2
    assert feedback.own_precision(filled.desk, filled.reviewer, name) in (0.0, 1.0)


def differencing(held):
    return next(check for check in held.checks if check.name == "differencing")


def test_what_was_released_before_is_compared_with(small):
    """The mean of all and of all but one learner: each may leave, both together may not."""
    almost = MEAN.replace('data["evening_01"]', 'data[data["learner"] != "learner-07"]["evening_01"]')
    alone, *_ = answered(small, small.in_review(almost), almost)
    small.released()
    beside, *_ = answered(small, small.in_review(almost), almost)
    verdicts = [
        next(check.verdict for check in held.checks if check.name == "differencing")
        for held in (alone, beside)
    ]
    assert verdicts == ["pass", "fail"]


def test_stage_one_is_in_the_game_when_its_summary_is_registered(tmp_path):
    cohort = School(36).simulate(0, np.random.default_rng(3))
    summary = seeded_summary(cohort, 3.0, 1e-3, np.random.default_rng(4))
    (tmp_path / "summary.json").write_text(json.dumps(summary.to_json()))
    synthetic = School(36).simulate(0, np.random.default_rng(5)).to_polars()
    filled = fill(tmp_path, real=cohort.to_polars(), synthetic=synthetic, summary=tmp_path / "summary.json")
    name = filled.held()
    prices = views.request(filled.desk, filled.reviewer, name).held.prices
    assert prices["published"]["stage_one_mu"] > 0
    assert prices["together"] != prices["own"]
    filled.desk.close()


@pytest.mark.parametrize(
    "given",
    [
        "'low'",
        "1.0",
        "{'a': float('nan'), 'b': None, 'c': [], 'd': 10**400}",
        "{'a\\x00b': 1.0, 'c\\ud800': len(data)}",
        "data[data['evening_01'] < 0]",
    ],
)
def test_strange_answers_are_held_like_others(filled, given):
    name = filled.held(f"def analyze(data):\n    return {given}\n")
    held = views.request(filled.desk, filled.reviewer, name).held
    assert held.failure is None
    json.dumps(held.prices, allow_nan=False)


def test_an_answer_that_is_too_large_is_held_without_a_price(small):
    code = "def analyze(data):\n    return [float(x) for x in range(300)]\n"
    name = small.held(code)
    held = views.request(small.desk, small.reviewer, name).held
    assert held.prices is None
    assert next(check for check in held.checks if check.name == "size").verdict == "fail"
    with pytest.raises(Exception, match="no output that could be released"):
        releases.decide(small.desk, small.reviewer, name, "it is only counting")


def test_words_of_the_synthetic_table_may_stand_in_an_answer(small):
    table = data_sets.synthetic_table(small.desk, small.data_set)
    assert table.texts == [*table.columns, "average", "high", "low"]
    code = (
        "def analyze(data):\n    return {'minutes': data.groupby('achievement')['evening_01']"
        ".agg(['mean', 'count']).reset_index()}\n"
    )
    held, *_ = answered(small, small.in_review(code), code)
    assert next(check for check in held.checks if check.name == "shape").verdict == "pass"


def test_a_trial_touches_no_real_data(small):
    (small.desk.settings.folder.parent / "data" / "real.csv").unlink()
    name = small.in_review()
    assert views.request(small.desk, small.researcher, name).trial.reading["columns"] == ["evening_01"]
    requests.approve(small.desk, small.reviewer, name)
    small.work()
    assert small.state(name) == "running"


def _shadows(held):
    return ShadowAnswers.from_bytes(held.shadows).values
