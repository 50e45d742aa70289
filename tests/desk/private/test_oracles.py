"""With hardly any noise, private answers are those of scipy and statsmodels on the same learners."""

import math

import numpy as np
import pytest
import scipy.stats as st
import statsmodels.formula.api as smf

from tests.desk.support.private_tables import SCHEMA, SCHOOLS, analyze, table
from understudy.core.privacy.noise import seeded_noise
from understudy.desk import private
from understudy.desk.private import comparisons
from understudy.desk.private.mechanism import answer_privately

pytestmark = pytest.mark.oracle

N = 3000
TABLE = table(N, seed=4)
FRAME = TABLE.to_pandas().assign(yes=lambda frame: frame.passed.astype(int))


@pytest.fixture(scope="module")
def answers():
    """All questions at epsilon 100 each: noise is a hundredth of the chance of sampling, or less."""
    records = private.read_records(TABLE, SCHEMA)
    found = {}
    for question in private.questions_of(analyze):
        plan = private.propose([question], SCHEMA, N, 100.0)
        (found[question.ask, getattr(question, "test", ""), getattr(question, "by", "")],) = answer_privately(
            plan, records, seeded_noise(np.random.default_rng(1))
        )
    return found


def test_counts_and_shares(answers):
    counted = FRAME.groupby(["school", "passed"]).size()
    shares = FRAME.groupby("school").passed.mean()
    for school in SCHOOLS:
        for passed in (False, True):
            name = f"school = {school}, passed = {'yes' if passed else 'no'}"
            assert answers["count", "", ("school", "passed")][name].value == pytest.approx(
                counted[school, passed], abs=1.5
            )
        found = answers["proportion", "", "school"][f"passed = yes, school = {school}"]
        assert found.value == pytest.approx(shares[school], abs=2e-3)
        n = (FRAME.school == school).sum()
        exact = st.binomtest(round(shares[school] * n), n).proportion_ci(0.95, method="wilson")
        assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=3e-3)
    of_all = answers["proportion", "", None]["school = west"]
    assert of_all.value == pytest.approx((FRAME.school == "west").mean(), abs=1e-3)


def test_histogram_and_quantiles(answers):
    counts, _ = np.histogram(FRAME.minutes, [0, 100, 200, 300, 600])
    found = [estimate.value for estimate in answers["histogram", "", ""].estimates]
    assert found == pytest.approx(counts, abs=1.5)
    for estimate, share in zip(answers["quantile", "", ""].estimates, (0.25, 0.5, 0.75), strict=True):
        assert estimate.value == pytest.approx(np.quantile(FRAME.minutes, share), abs=0.01 * 600)
        assert estimate.low < np.quantile(FRAME.minutes, share) < estimate.high


def test_means_and_variances(answers):
    found = answers["mean", "", None].estimates[0]
    assert found.value == pytest.approx(FRAME.grade.mean(), abs=0.05)
    exact = st.t.interval(0.95, N - 1, FRAME.grade.mean(), FRAME.grade.sem())
    assert (found.low, found.high) == pytest.approx(exact, abs=0.05)
    for school in SCHOOLS:
        hours = FRAME.hours[FRAME.school == school].dropna()
        found = answers["mean", "", "school"][f"hours, school = {school}"]
        assert found.value == pytest.approx(hours.mean(), abs=0.03)
        exact = st.t.interval(0.95, len(hours) - 1, hours.mean(), hours.sem())
        assert found.high - found.low == pytest.approx(exact[1] - exact[0], rel=0.1)
        grade = FRAME.grade[FRAME.school == school]
        found = answers["variance", "", "school"][f"grade, school = {school}"]
        assert found.value == pytest.approx(grade.var(), rel=0.03)
        assert found.low < grade.var() < found.high


def test_correlations(answers):
    exact = FRAME[["minutes", "grade", "hours"]].dropna().corr()
    for one, other in (("minutes", "grade"), ("minutes", "hours"), ("grade", "hours")):
        found = answers["correlation", "", ""][f"{one} with {other}"]
        assert found.value == pytest.approx(exact.loc[one, other], abs=0.01)
        reach = 1.96 / math.sqrt(len(FRAME.dropna()) - 3)
        ends = np.tanh(np.arctanh(exact.loc[one, other]) + np.array([-reach, reach]))
        assert (found.low, found.high) == pytest.approx(ends, abs=0.02)


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_regressions(answers, kind):
    if kind == "linear":
        fit = smf.ols("grade ~ minutes + school", FRAME).fit()
    else:
        fit = smf.logit("yes ~ minutes + school", FRAME).fit(disp=0)
    names = {
        "Intercept": "intercept",
        "minutes": "minutes",
        "school[T.south]": "school = south",
        "school[T.west]": "school = west",
    }
    for theirs, ours in names.items():
        found, error = answers[kind, "", ""][ours], fit.bse[theirs]
        assert abs(found.value - fit.params[theirs]) < 0.25 * error
        assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.12)


def test_tests_of_means(answers):
    groups = {school: FRAME.grade[FRAME.school == school] for school in SCHOOLS}
    exact = st.ttest_ind(groups["north"], groups["south"], equal_var=False)
    found = answers["compare", "welch", "school"]
    assert found.test.statistic == pytest.approx(exact.statistic, abs=0.15)
    difference = found.estimates[0]
    ends = exact.confidence_interval()
    assert (difference.low, difference.high) == pytest.approx((ends.low, ends.high), abs=0.1)
    exact = st.f_oneway(*groups.values())
    assert answers["compare", "anova", "school"].test.statistic == pytest.approx(exact.statistic, rel=0.05)


def test_test_of_independence(answers):
    counts = FRAME.groupby(["school", "passed"]).size().unstack()
    exact = st.chi2_contingency(counts, correction=False)
    assert answers["independence", "", "school"].test.statistic == pytest.approx(exact.statistic, rel=0.05)


@pytest.mark.parametrize("at_once", [2_000_000, 5_000], ids=["at once", "in parts"])
@pytest.mark.parametrize("test", ["t", "welch", "anova", "welch-anova", "chi-square"])
def test_p_values_without_noise(test, at_once, monkeypatch):
    """Where groups hardly differ; a p value of 9,999 simulations is off by 0.005 (one standard deviation).

    Of large tables not all simulations are made at once.
    """
    monkeypatch.setattr(comparisons, "_MOST_AT_ONCE", at_once)
    rng = np.random.default_rng(8)
    frame = TABLE.head(600).with_columns(grade=50.0 + rng.normal(0, 10, 600))
    grade, school = frame["grade"].to_numpy(), frame["school"].to_numpy()
    groups = [grade[school == name] for name in SCHOOLS]

    def ask(ask):
        if test == "chi-square":
            ask.independence("passed", by="school")
        else:
            ask.compare("grade", by="school", test=test, groups=SCHOOLS[:2] if test in ("t", "welch") else ())

    plan = private.propose(private.questions_of(ask), SCHEMA, 600, 100.0, delta=0.5)
    found = answer_privately(
        plan, private.read_records(frame, SCHEMA), seeded_noise(np.random.default_rng(2))
    )[0].test.p_value
    exact = {
        "t": lambda: st.ttest_ind(groups[0], groups[1]).pvalue,
        "welch": lambda: st.ttest_ind(groups[0], groups[1], equal_var=False).pvalue,
        "anova": lambda: st.f_oneway(*groups).pvalue,
        "welch-anova": lambda: st.f_oneway(*groups, equal_var=False).pvalue,
        "chi-square": lambda: (
            st.chi2_contingency(
                frame.to_pandas().groupby(["school", "passed"]).size().unstack(), correction=False
            ).pvalue
        ),
    }[test]()
    assert found == pytest.approx(exact, abs=0.05)
