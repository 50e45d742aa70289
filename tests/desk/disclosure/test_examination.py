"""Honest analyses get through, and every check says what it found."""

import json

import numpy as np
import polars as pl
import pytest

from tests.desk.support.in_process import analysis, examined, log_frame, school_frame, table_of
from understudy.desk.disclosure.examination import Examination, examine
from understudy.desk.disclosure.probing import probe
from understudy.desk.disclosure.rounding import power_of_ten, round_value, round_vector
from understudy.desk.domain.policy import Policy
from understudy.errors import MissingError
from understudy.sandbox import Limits, Sandbox, require_sandbox

NAMES = [
    "learners", "dominance", "freedom", "extremes", "individuals", "shape",
    "digits", "size", "consistency", "differencing", "reconstruction",
]  # fmt: skip


@pytest.fixture(scope="module")
def school():
    return table_of(school_frame(1)), table_of(school_frame(2))


@pytest.fixture(scope="module")
def log():
    return table_of(log_frame(1)), table_of(log_frame(2))


OLS = 'import statsmodels.formula.api as smf\nfit = smf.ols("score ~ evening + morning", data).fit()\n'
HONEST = {
    "means by group": 'return data.groupby("achievement")[["evening", "score"]].mean()',
    "correlation": "from scipy import stats\nr, p = stats.pearsonr(data.evening, data.score)\n"
    'return {"r": r, "p": p, "n": len(data)}',
    "coefficients": OLS + 'return {"b": fit.params.to_dict(), "nobs": fit.nobs, "df_resid": fit.df_resid}',
    "regression table": OLS
    + "low, high = fit.conf_int().to_numpy().T\n"
    + 'return pd.DataFrame({"term": fit.params.index, "b": fit.params.values, "se": fit.bse.values,'
    + ' "t": fit.tvalues.values, "p": fit.pvalues.values, "low": low, "high": high})',
    "t test": 'from scipy import stats\nhigh = data.evening[data.achievement == "high"]\n'
    'low = data.evening[data.achievement == "low"]\nt, p = stats.ttest_ind(high, low, equal_var=False)\n'
    'return {"t": t, "p": p, "high": high.mean(), "low": low.mean(), "n_high": len(high), "n_low": len(low)}',
    "counts": 'return data.achievement.value_counts().sort_index().rename_axis("group").reset_index(name="n")',
    "weekly means": 'return data[[f"week_{w}" for w in range(1, 7)]].mean().to_dict()',
    "a sum and its mean": 'return {"sum": data.evening.sum(), "mean": data.evening.mean()}',
    "logistic regression": "import statsmodels.api as sm\n"
    'fit = sm.Logit(data.passed, sm.add_constant(data[["evening", "morning"]] / 100)).fit(disp=0)\n'
    'return {"b": fit.params.to_dict(), "p": fit.pvalues.to_dict()}',
}
# A slope near 0 and its p value go together until the slope changes its sign: nearly one statistic, and not quite.
FOR_A_PERSON = {"regression table": {"differencing"}}
HONEST_LOG = {
    "means by room": 'return data.groupby("room")[["correct", "seconds"]].mean()',
    "weeks": 'return data.groupby("week").agg(time=("seconds", "mean"), right=("correct", "mean"), n=("week", "size"))',
    "counts": 'return {"rows": len(data), "learners": data.learner.nunique(), "right": int(data.correct.sum())}',
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_analysis_passes(name, school):
    examination = examined(HONEST[name], *school)
    assert [check.name for check in examination.checks] == NAMES
    asked = {check.name for check in examination.checks if check.verdict == "review"}
    assert [check.reason for check in examination.checks if check.verdict == "fail"] == []
    assert asked == FOR_A_PERSON.get(name, set())
    assert Examination.from_json(json.loads(json.dumps(examination.to_json()))) == examination


@pytest.mark.parametrize("name", HONEST_LOG)
def test_an_honest_analysis_of_many_rows_passes(name, log):
    examination = examined(HONEST_LOG[name], *log)
    assert [check.reason for check in examination.checks if check.verdict != "pass"] == []


@pytest.mark.parametrize(
    ("body", "check"),
    [
        ('return {"m": data.score.median()}', "extremes"),
        (f'return {{"share": (data.score >= {sorted(school_frame(1)["score"])[-6]}).mean()}}', "learners"),
        (
            'return {"x": 1.0 if data.score.mean() > -1 else 0.0, "y": data.score.size // 1000 + 7.5}',
            "",
        ),
    ],
)
def test_what_a_person_has_to_look_at(body, check, school):
    examination = examined(body, *school)
    assert {one.name for one in examination.checks if one.verdict == "review"} == (
        {check} if check else set()
    )
    assert examination.verdict == ("review" if check else "pass")


def test_a_number_that_nobody_moves_and_that_is_not_the_trials(school):
    real, _ = school
    other = table_of(school_frame(2).with_columns(passed=0))
    body = 'return {"any": bool(data.passed.any()), "fixed": 0.123456789}'
    examination = examined(body, real, other)
    check = examination.check("learners")
    assert (check.verdict, check.numbers) == ("review", ("any",))
    assert examination.released.values["fixed"] == 0.123456789
    assert examined(body, real, real).check("learners").verdict == "pass"


def test_rules_of_dominance_are_the_textbooks(school):
    """Against the rules computed from the contributions themselves."""
    real, synthetic = school
    for share, p in ((0.99, 10.0), (0.5, 10.0), (0.02, 10.0)):
        examination = examined(
            'return {"total": data.evening.sum()}',
            real,
            synthetic,
            Policy(dominance_share=share, p_percent=p),
        )
        parts = np.sort(real.rows["evening"].to_numpy())[::-1]
        held = parts[:2].sum() > share * parts.sum() or parts[2:].sum() < p / 100 * parts[0]
        assert (examination.check("dominance").verdict == "fail") == held


def test_texts_may_be_declared(school):
    real, _ = school
    other = table_of(
        school_frame(2).with_columns(achievement=school_frame(2)["achievement"].replace("high", "average"))
    )
    body = 'return data.groupby("achievement").score.mean().reset_index()'
    assert examined(body, real, other).check("shape").verdict == "fail"
    assert examined(body, real, other, declared_texts=("high",)).check("shape").verdict == "review"


def test_more_numbers_than_learners_warn(school):
    body = 'return {"m": data.score.mean()}'
    assert examined(body, *school, n_released_numbers=119).check("reconstruction").verdict == "pass"
    assert examined(body, *school, n_released_numbers=120).check("reconstruction").verdict == "review"


def test_numbers_are_rounded_to_what_the_sample_supports(school):
    real, synthetic = school
    examination = examined(
        'return {"m": data.score.mean(), "n": len(data), "r": data.score.corr(data.evening)}', real, synthetic
    )
    score = real.rows["score"].to_numpy()
    error = score.std(ddof=1) / np.sqrt(120)
    assert examination.units["m"] == 0.1 <= error / 4 < 1
    assert examination.released.values["m"] == round(score.mean(), 1)
    assert examination.released.values["n"] == 120
    assert examination.released.values["r"] == round(examination.released.values["r"], 2)


def test_an_answer_without_numbers_is_examined(school):
    assert examined("return {}", *school).released.values == {}


def test_rounding():
    assert power_of_ten(0.4) == 0.1
    assert power_of_ten(1000.0) == 1000.0
    assert round_value(0.30000000000000004, 0.1) == 0.3
    assert round_value(1234.5, 100.0) == 1200.0
    assert round_value(0.123, 0.0) == 0.123
    assert str(round_value(-0.01, 0.1)) == "0.0"
    rounded = round_vector(np.array([[1.26, np.nan, 3e-20]]), np.array([0.1, 1.0, 1e-20]))
    np.testing.assert_array_equal(rounded, [[1.3, np.nan, 3e-20]])


@pytest.mark.sandbox
def test_in_the_sandbox(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    try:
        require_sandbox()
    except MissingError as error:
        pytest.skip(error.message)
    code = analysis('return {"m": data.score.mean(), "one": data.score[data.learner == "learner-07"].mean()}')
    real, synthetic = table_of(school_frame(1, 40)), table_of(school_frame(2, 40))
    heard = []
    with Sandbox(Limits(wall_seconds=60.0), workers=2) as sandbox:
        answer, probes = probe(
            code, real, sandbox, np.random.default_rng(0), lambda done, all_: heard.append((done, all_))
        )
        trial = code.answer(sandbox, synthetic.whole())
    examination = examine(answer, probes, trial, code.code, Policy(), n_learners=40)
    assert heard[-1] == (161, 161)
    assert examination.support == {"m": 40, "one": 1}
    assert examination.check("learners").numbers == ("one",)


@pytest.mark.parametrize("seed", range(12))
def test_a_mean_without_one_learner_is_seen_where_most_have_the_same_value(seed):
    """Floats make the influences of equal learners differ in the last digits, by their order in the table."""
    minutes = np.where(np.arange(36) < 23, 0.0, np.random.default_rng(seed).exponential(60, 36))
    frame = school_frame(3, 36).with_columns(minutes=pl.Series(minutes))
    real, synthetic = table_of(frame, seed), table_of(frame, seed + 100)
    body = """
others = data[data.learner != "learner-07"]
return {"all": data.minutes.mean(), "others": others.minutes.mean()}
"""
    assert examined(body, real, synthetic).check("differencing").verdict == "fail"
