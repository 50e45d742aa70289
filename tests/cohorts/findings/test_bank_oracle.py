"""The bank of analyses against scipy, statsmodels and brute force, and its false alarms where there is nothing.

Calibration: every analysis is run on cohorts in which the relation it looks for is broken. With 5 % false
alarms per finding the number of significant findings over independent cohorts is binomial; the limits
below are passed by a right analysis with a probability stated beside them.
"""

from itertools import combinations, permutations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from scipy.cluster.vq import kmeans2
from statsmodels.miscmodels.ordinal_model import OrderedModel
from statsmodels.stats.mediation import Mediation

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.findings import ALPHA, bank, run_bank, without_effect
from understudy.cohorts.findings import evidence as ours
from understudy.cohorts.findings.model_analyses import direct_lingam
from understudy.cohorts.simulate import School

pytestmark = pytest.mark.oracle

COHORTS = [School().simulate(0, np.random.default_rng(seed)) for seed in (1, 2)]


class Plain:
    """The habits once more, learner by learner, with loops."""

    def __init__(self, cohort):
        self.windows = [feature.name for feature in cohort.schema.features]
        self.values = [[list(window) for window in learner] for learner in cohort.values]
        self.y = np.array([int(label) for label in cohort.label])
        self.low, self.high = self.y == 0, self.y == cohort.schema.n_labels - 1

    def per_window(self, number):
        return {
            name: np.array([number(learner[place]) for learner in self.values])
            for place, name in enumerate(self.windows)
        }

    def per_week(self, number):
        return np.array(
            [number([sum(week) for week in zip(*learner, strict=True)]) for learner in self.values]
        )


def activity(weeks):
    return sum(week > 0 for week in weeks) / len(weeks)


def intensity(weeks):
    positive = [np.log1p(week) for week in weeks if week > 0]
    return sum(positive) / len(positive) if positive else np.nan


def logs(weeks):
    return [np.log1p(week) for week in weeks]


def slope(weeks):
    return np.polyfit(range(len(weeks)), logs(weeks), 1)[0]


def rise(weeks):
    return np.mean(logs(weeks)[-3:]) - np.mean(logs(weeks)[:-3])


def dip(weeks):
    week, middle = logs(weeks), len(weeks) // 2
    return week[middle] - np.mean([week[middle - 2], week[middle - 1], week[middle + 1], week[middle + 2]])


def evenness(weeks):
    return stats.entropy(weeks) / np.log(len(weeks)) if sum(weeks) else np.nan


def spearman(x, y):
    known = np.isfinite(x)
    return stats.spearmanr(np.round(np.asarray(x)[known], 12), np.asarray(y)[known])


def whitney(a, b):
    result = stats.mannwhitneyu(a, b, method="asymptotic")
    return np.sign(result.statistic - len(a) * len(b) / 2), result.pvalue


def welch(a, b):
    return stats.ttest_ind(a, b, equal_var=False, nan_policy="omit")


def least_squares(x, y):
    known = np.isfinite(x).all(axis=1)
    fit = sm.OLS(y[known], sm.add_constant(x[known])).fit()
    return list(zip(fit.params[1:], fit.pvalues[1:], strict=True))


def logit(x, flag):
    fit = sm.Logit(flag.astype(float), sm.add_constant(x)).fit(disp=0)
    return list(zip(fit.params[1:], fit.pvalues[1:], strict=True))


def ordered(x, y):
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    fit = OrderedModel(y, z, distr="logit").fit(method="bfgs", gtol=1e-8, disp=0)
    return list(zip(fit.params[: x.shape[1]], fit.pvalues[: x.shape[1]], strict=True))


def named(plain, tests):
    return dict(zip(plain.windows, tests, strict=True))


def by_columns(columns, test):
    return {name: test(column) for name, column in columns.items()}


def mean_log(weeks):
    return np.mean(logs(weeks))


def matrix(columns):
    return np.column_stack(list(columns.values()))


def minutes(plain):
    return {"all windows": plain.per_week(np.mean), **plain.per_window(np.mean)}


def changes(number, plain):
    return {"all windows": plain.per_week(number), **plain.per_window(number)}


def groups(plain, test):
    return lambda column: test(column[plain.high], column[plain.low])


def with_y(plain):
    return lambda column: spearman(column, plain.y)


def pairs(plain, columns):
    return {f"{a} and {b}": spearman(columns[a], columns[b]) for a, b in combinations(plain.windows, 2)}


def halves(weeks):
    middle = len(weeks) // 2
    return mean_log(weeks[:middle]), mean_log(weeks[middle:])


def shares(plain):
    total = plain.per_week(np.mean)
    return {name: column / total for name, column in plain.per_window(np.mean).items()}


def log_minutes(plain):
    return np.log1p(matrix(plain.per_window(np.mean)))


def hour(plain):
    centres = {"morning": 8.5, "afternoon": 14.5, "evening": 20.5, "overnight": 26.5}
    return sum(centres[name] * column for name, column in shares(plain).items())


def chosen(plain, name):
    table = matrix(plain.per_window(np.mean))
    favourite = np.array([plain.windows[int(np.argmax(row))] == name for row in table])
    counts = [[sum(favourite[group]), sum(~favourite[group])] for group in (plain.high, plain.low)]
    sign = np.sign(favourite[plain.high].mean() - favourite[plain.low].mean())
    return sign, stats.fisher_exact(counts).pvalue


def thirds(plain):
    parts = {"first third": (0, 6), "second third": (6, 11), "last third": (11, 17)}
    return {
        name: plain.per_week(lambda weeks, a=a, b=b: mean_log(weeks[a:b])) for name, (a, b) in parts.items()
    }


def longest_break(weeks):
    runs = "".join("x" if week > 0 else "." for week in weeks).split("x")
    return max(map(len, runs))


def gini(weeks):
    gaps = [abs(a - b) for a in weeks for b in weeks]
    return sum(gaps) / (2 * len(weeks) * sum(weeks)) if sum(weeks) else np.nan


def variation(weeks):
    return np.std(weeks) / np.mean(weeks) if sum(weeks) else np.nan


def sobel(cause, mediator, y):
    (a, _), (b, _) = least_squares(cause[:, None], mediator)[0], least_squares(np.c_[mediator, cause], y)[0]
    first = sm.OLS(mediator, sm.add_constant(cause)).fit()
    second = sm.OLS(y, sm.add_constant(np.c_[mediator, cause])).fit()
    error = np.sqrt(b**2 * first.bse[1] ** 2 + a**2 * second.bse[1] ** 2)
    return a * b, 2 * stats.norm.sf(abs(a * b) / error)


def total_half(plain, place):
    return sum(plain.per_window(lambda weeks: halves(weeks)[place]).values())


def rhythm(plain):
    """F of the weeks by sums of squares over all cells of learners and weeks."""
    table = [list(row) for row in plain.per_week(logs)]
    n, n_weeks = len(table), len(table[0])
    grand = sum(map(sum, table)) / (n * n_weeks)
    by_week = [sum(row[week] for row in table) / n for week in range(n_weeks)]
    between = sum(n * (mean - grand) ** 2 for mean in by_week)
    within = sum(
        (row[week] - sum(row) / n_weeks - by_week[week] + grand) ** 2
        for row in table
        for week in range(n_weeks)
    )
    f = (between / (n_weeks - 1)) / (within / ((n - 1) * (n_weeks - 1)))
    return {"weeks": (0, stats.f.sf(f, n_weeks - 1, (n - 1) * (n_weeks - 1)))}


def undirected(p):
    return 0, p


# For each analysis: sign of the effect and p-value of each finding, from independent code.
EXPECTED = {
    "minutes_and_outcome": lambda c: by_columns(minutes(c), with_y(c)),
    "activity_and_outcome": lambda c: by_columns(
        {"any window": c.per_week(activity), **c.per_window(activity)}, with_y(c)
    ),
    "intensity_and_outcome": lambda c: by_columns(c.per_window(intensity), with_y(c)),
    "regularity_and_outcome": lambda c: by_columns(
        {"evenness": c.per_week(evenness), "variation": c.per_week(variation)}, with_y(c)
    ),
    "breaks_and_outcome": lambda c: {"longest break": spearman(c.per_week(longest_break), c.y)},
    "peak_and_outcome": lambda c: by_columns(changes(max, c), with_y(c)),
    "parts_of_term_and_outcome": lambda c: by_columns(thirds(c), with_y(c)),
    "between_windows": lambda c: pairs(c, c.per_window(np.mean)),
    "activity_and_intensity": lambda c: {
        name: spearman(c.per_window(intensity)[name], c.per_window(activity)[name]) for name in c.windows
    },
    "minutes_by_group": lambda c: by_columns(minutes(c), groups(c, whitney)),
    "activity_by_group": lambda c: by_columns(c.per_window(activity), groups(c, welch)),
    "idle_weeks_by_group": lambda c: {"idle weeks": groups(c, whitney)(1 - c.per_week(activity))},
    "intensity_by_group": lambda c: by_columns(c.per_window(intensity), groups(c, welch)),
    "variability_by_group": lambda c: {"variation": groups(c, welch)(c.per_week(variation))},
    "halves_by_group": lambda c: by_columns(
        c.per_window(lambda weeks: halves(weeks)[1] - halves(weeks)[0]), groups(c, welch)
    ),
    "minutes_across_groups": lambda c: by_columns(
        c.per_window(np.mean),
        lambda column: undirected(stats.kruskal(*(column[c.y == label] for label in range(3))).pvalue),
    ),
    "habits_across_groups": lambda c: by_columns(
        {
            "active weeks": matrix(c.per_window(activity)).mean(axis=1),
            "log minutes": np.log1p(c.per_week(np.mean)),
            "evenness": c.per_week(evenness),
        },
        lambda column: undirected(stats.f_oneway(*(column[c.y == label] for label in range(3))).pvalue),
    ),
    "neighbouring_groups": lambda c: {
        "average and low": whitney(c.per_week(np.mean)[c.y == 1], c.per_week(np.mean)[c.y == 0]),
        "high and average": whitney(c.per_week(np.mean)[c.y == 2], c.per_week(np.mean)[c.y == 1]),
    },
    "outcome_on_windows": lambda c: named(c, least_squares(log_minutes(c), c.y)),
    "ordered_outcome_on_activity": lambda c: named(c, ordered(matrix(c.per_window(activity)), c.y)),
    "highest_on_windows": lambda c: named(c, logit(log_minutes(c), c.high)),
    "lowest_on_windows": lambda c: named(c, logit(log_minutes(c), c.low)),
    "outcome_on_total_and_regularity": lambda c: dict(
        zip(
            ["log minutes", "evenness"],
            least_squares(np.c_[np.log1p(c.per_week(np.mean)), c.per_week(evenness)], c.y),
            strict=True,
        )
    ),
    "outcome_on_halves": lambda c: dict(
        zip(
            ["first half", "second half"],
            least_squares(np.c_[total_half(c, 0), total_half(c, 1)], c.y),
            strict=True,
        )
    ),
    "share_and_outcome": lambda c: by_columns(shares(c), with_y(c)),
    "chronotype_and_outcome": lambda c: {"mean hour": spearman(hour(c), c.y)},
    "preferred_windows": lambda c: named(
        c, [stats.ttest_1samp(x, 0) for x in (log_minutes(c) - log_minutes(c).mean(axis=1)[:, None]).T]
    ),
    "favourite_window_by_group": lambda c: {name: chosen(c, name) for name in c.windows},
    "spread_over_day_and_outcome": lambda c: {
        "entropy": spearman(stats.entropy(matrix(c.per_window(np.mean)), axis=1), c.y)
    },
    "weekly_slope": lambda c: by_columns(changes(slope, c), lambda x: stats.ttest_1samp(x, 0)),
    "weekly_slope_by_group": lambda c: by_columns(changes(slope, c), groups(c, welch)),
    "exam_rise": lambda c: by_columns(changes(rise, c), lambda x: stats.ttest_1samp(x, 0)),
    "exam_rise_by_group": lambda c: by_columns(changes(rise, c), groups(c, welch)),
    "holiday_dip": lambda c: by_columns(changes(dip, c), lambda x: stats.ttest_1samp(x, 0)),
    "holiday_dip_by_group": lambda c: {"all windows": groups(c, welch)(c.per_week(dip))},
    "start_of_term": lambda c: {
        "all windows": stats.ttest_1samp(
            c.per_week(lambda weeks: mean_log(weeks[:2]) - mean_log(weeks[2:])), 0
        )
    },
    "common_rhythm": rhythm,
    "regularity_mediates_time": lambda c: {
        "indirect": sobel(np.log1p(c.per_week(np.mean)), c.per_week(evenness), c.y)
    },
    "late_work_mediates_early_work": lambda c: {"indirect": sobel(total_half(c, 0), total_half(c, 1), c.y)},
    "learners_keep_their_place": lambda c: {
        name: spearman(column[:, 0], column[:, 1]) for name, column in c.per_window(halves).items()
    },
    "concentration_and_outcome": lambda c: by_columns(c.per_window(gini), with_y(c)),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_analysis_agrees_with_independent_code(name):
    (analysis,) = (one for one in bank() if one.name == name)
    for cohort in COHORTS:
        found = {one.name.removeprefix(f"{name}: "): one for one in analysis.findings(cohort)}
        wanted = EXPECTED[name](Plain(cohort))
        assert list(found) == list(wanted)
        for key, (effect, p_value) in wanted.items():
            assert found[key].p_value == pytest.approx(p_value, rel=2e-3, abs=1e-9), key
            assert found[key].direction == np.sign(effect), key
            assert found[key].significant == (p_value < ALPHA), key


def test_partial_rank_correlation_is_that_of_residuals():
    rng = np.random.default_rng(0)
    z = rng.normal(size=80)
    x, y = z + rng.normal(size=80), z + rng.normal(size=80)
    ranks = [stats.rankdata(one) for one in (x, y, z)]
    r = np.corrcoef(ranks)
    expected = (r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
    found = ours.partial_rank_correlation(x, y, z)
    t = expected * np.sqrt(77 / (1 - expected**2))
    assert found == pytest.approx((expected, 2 * stats.t.sf(abs(t), 77)))


def test_serial_correlation_has_the_mean_and_variance_of_all_orders():
    rows = np.array([[0.0, 0.0, 1.0, 3.0, 7.0], [1.0, 0.0, 0.0, 0.0, 0.0], [2.0, 2.0, 2.0, 5.0, 1.0]])
    totals = np.zeros(1)
    variance = 0.0
    observed = 0.0
    for row in rows:
        centred = (row - row.mean()) / np.sqrt(((row - row.mean()) ** 2).sum())
        orders = np.array([np.dot(x[1:], x[:-1]) for x in map(np.array, permutations(centred))])
        totals += orders.mean() + 1 / 5
        variance += orders.var()
        observed += np.dot(centred[1:], centred[:-1]) + 1 / 5
    assert totals == pytest.approx(0.0)
    found = ours.serial_correlation(rows)
    assert found.effect == pytest.approx(observed / 3)
    assert found.p_value == pytest.approx(2 * stats.norm.sf(abs(observed) / np.sqrt(variance)))


def test_gini_and_its_difference_agree_with_brute_force():
    rng = np.random.default_rng(2)
    a, b = rng.exponential(size=25), rng.uniform(size=30)
    assert ours.gini(a) == pytest.approx(gini(a))
    errors = [(len(x) - 1) * np.var([gini(np.delete(x, place)) for place in range(len(x))]) for x in (a, b)]
    t = (gini(a) - gini(b)) / np.sqrt(sum(errors))
    assert ours.inequality_difference(a, b) == pytest.approx((gini(a) - gini(b), 2 * stats.t.sf(abs(t), 24)))


def test_sobel_points_where_the_mediation_of_statsmodels_does():
    rng = np.random.default_rng(3)
    cause = rng.normal(size=150)
    mediator = 0.6 * cause + rng.normal(size=150)
    y = 0.5 * mediator + rng.normal(size=150)
    models = sm.OLS(y, np.c_[np.ones(150), cause, mediator]), sm.OLS(mediator, np.c_[np.ones(150), cause])
    np.random.seed(0)  # noqa: NPY002  statsmodels draws from the global generator
    reference = Mediation(*models, (1, 1), 2).fit(method="parametric", n_rep=200).summary()
    found = ours.sobel(cause, mediator, y)
    scale = y.std() / cause.std()
    assert found.effect * scale == pytest.approx(reference.loc["ACME (average)", "Estimate"], abs=0.03)
    assert found.p_value < 0.001
    assert reference.loc["ACME (average)", "P-value"] < 0.01


def test_clusters_reach_an_optimum_of_k_means():
    rng = np.random.default_rng(4)
    points = np.concatenate([rng.normal(centre, 0.3, size=(30, 2)) for centre in (0, 4, 9)])
    place = ours.clusters(points, 3)
    assert sorted(np.bincount(place)) == [30, 30, 30]
    z = (points - points.mean(axis=0)) / points.std(axis=0)
    centres = np.array([z[place == one].mean(axis=0) for one in range(3)])
    again = kmeans2(z, centres, minit="matrix", iter=5)[1]
    assert (again == place).all()


def test_direct_lingam_finds_a_chain_of_causes():
    """x -> y -> z with uniform noise: in each of 20 samples of 500 the right coefficients and no others."""
    rng = np.random.default_rng(5)
    noise = rng.uniform(-1, 1, size=(20, 500, 3))
    x = noise[..., 0]
    y = 0.8 * x + noise[..., 1]
    z = -0.7 * y + noise[..., 2]
    effects = direct_lingam(np.stack([z, x, y], axis=2))
    right = (
        (effects[:, 2, 1] > 0.4)
        & (effects[:, 0, 2] < -0.4)
        & (effects[:, 1, 2] == 0)
        & (effects[:, 2, 0] == 0)
    )
    assert right.sum() >= 19
    assert np.abs(effects[:, 0, 1]).mean() < 0.1


N_NULLS = 80


@pytest.fixture(scope="module")
def alarms():
    """How often each finding was significant in cohorts with nothing to find."""
    counts = {}
    for seed in range(N_NULLS):
        rng = np.random.default_rng([17, seed])
        cohort = School().simulate(0, rng)
        for null in ("labels", "weeks", "learners", "windows"):
            broken = without_effect(cohort, null, rng)
            analyses = [one for one in bank() if one.null == null]
            for name, finding in run_bank(broken, analyses).items():
                counts[name] = counts.get(name, 0) + finding.significant
    return counts


def test_every_finding_has_about_five_percent_false_alarms(alarms):
    """At most 14 of 80 for each: one of 5 % is above with a chance of 7e-6, one of 25 % with 0.91."""
    too_many = {name: count for name, count in alarms.items() if count > 14}
    assert not too_many


def test_the_bank_as_a_whole_has_five_percent_false_alarms(alarms):
    """Findings of one cohort go together (standard error of the mean over 80 cohorts measured: 0.3 %)."""
    rate = np.mean(list(alarms.values())) / N_NULLS
    assert 0.03 < rate < 0.07


def test_two_classes_of_one_school_replicate():
    """Measured over 30 pairs: precision 0.87 (0.79 to 0.95), recall 0.88; the limit is far below."""
    from understudy.cohorts.findings import compare_findings

    result = compare_findings(*COHORTS)
    assert result.precision > 0.7
    assert result.recall > 0.7
    assert min(result.n_synthetic, result.n_real) > 60


def test_shuffled_labels_lose_the_findings_about_the_outcome():
    from understudy.cohorts.findings import compare_findings

    real = COHORTS[0]
    shuffled = without_effect(COHORTS[1], "labels", np.random.default_rng(1))
    result = compare_findings(real, shuffled)
    assert result.about_outcome.recall < 0.15
    assert result.about_outcome.n_synthetic < 0.25 * result.about_outcome.n_real


def test_more_learners_find_more_of_the_same():
    small, large = (School(n_learners=n).simulate(0, np.random.default_rng(9)) for n in (120, 1000))
    n_small, n_large = (sum(one.significant for one in run_bank(c).values()) for c in (small, large))
    assert n_large > n_small


def test_the_analyses_do_not_change_the_cohort():
    cohort = COHORTS[0]
    before = cohort.values.copy()
    run_bank(cohort)
    assert isinstance(cohort, Cohort)
    assert (cohort.values == before).all()
