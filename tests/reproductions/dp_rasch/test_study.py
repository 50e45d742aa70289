"""The study of difficulties: measures against brute force, determinism, and the order of methods."""

import contextlib
import math

import numpy as np
import pytest
from scipy import stats

from reproductions.dp_rasch import study
from reproductions.dp_rasch.study import (
    COLUMNS,
    DifficultyPlan,
    read_table,
    run_experiments,
    sizes_of,
    table_of,
    write_study,
)
from reproductions.dp_rasch.trials import (
    GLOBAL,
    METHODS,
    N_BINS,
    NOISELESS,
    POSTERIOR,
    REESTIMATED,
    Fitted,
    chances,
    correlation,
    joint_histogram,
    misclassification,
    posterior_chances,
    real_trial,
)
from understudy.core.engine import tasks
from understudy.core.engine.progress import reported_by
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import seeded_noise
from understudy.errors import DataError, UsageError
from understudy.exams import posterior as product
from understudy.exams.difficulties import DifficultiesOptions, fit_difficulties
from understudy.exams.estimators.published import objective, statistics
from understudy.exams.plan import plan
from understudy.exams.released_file import Ability, Difficulties, Item
from understudy.exams.responses import Responses
from understudy.exams.simulate import Exam

SMALL = DifficultyPlan(repetitions=3, bootstrap=3, slow_bootstrap=2, sizes=(40,), epsilons=(1.0, 5.0))


@pytest.fixture(scope="module")
def exam():
    return Exam(n_learners=30, n_items=6).simulate(np.random.default_rng(5)).responses


@pytest.fixture(scope="module")
def findings(exam):
    return run_experiments(SMALL, {"an exam": exam})


# Measures


def test_correlation_is_pearsons_over_all_entries():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(7, 5)), rng.normal(size=(7, 5))
    assert correlation(a, b) == pytest.approx(np.corrcoef(a.ravel(), b.ravel())[0, 1], abs=1e-14)
    assert correlation(a, 3 * a - 7) == pytest.approx(1.0)
    assert correlation(a, np.ones((7, 5))) == 0.0


def test_misclassification_counts_rounded_probabilities_that_are_wrong():
    rng = np.random.default_rng(2)
    chance = rng.random((6, 4))
    correct = (rng.random((6, 4)) < 0.5).astype(np.int8)
    wrong = sum(round(chance[n, i]) != correct[n, i] for n in range(6) for i in range(4))
    assert misclassification(chance, correct) == wrong / 24


def test_the_histogram_of_pairs_is_numpys():
    rng = np.random.default_rng(3)
    a, b = rng.random((9, 8)), rng.random((9, 8))
    a[0, 0] = b[0, 0] = 1.0
    edges = np.linspace(0, 1, N_BINS + 1)
    expected = np.histogram2d(a.ravel(), b.ravel(), bins=(edges, edges))[0]
    np.testing.assert_array_equal(joint_histogram(a, b), expected)


@pytest.mark.parametrize("sd", [1.0, 2.0])
def test_posterior_chances_are_those_that_the_product_shows(sd):
    rng = np.random.default_rng(4)
    responses = Exam(n_learners=25, n_items=9).simulate(rng).responses
    fitted = Fitted(rng.normal(0, 3, 9), rng.uniform(0, 1.5, 9), ability_sd=sd)
    items = tuple(
        Item(name, float(d), float(e), 0.5, "", 1, 9)
        for name, d, e in zip(responses.items, fitted.difficulty, fitted.standard_error, strict=True)
    )
    released = Difficulties(items, (responses.items,), Ability(0.0, sd, "declared"), Guarantee.none("a test"))
    expected = product.abilities(released, responses).chances
    np.testing.assert_allclose(posterior_chances(fitted, responses.correct), expected, rtol=0, atol=1e-9)


def test_extreme_difficulties_have_finite_chances():
    correct = np.array([[1, 1, 0], [0, 0, 0], [1, 1, 1]], dtype=np.int8)
    fitted = Fitted.exactly(np.array([-900.0, 0.0, 900.0]))
    for way in (POSTERIOR, REESTIMATED):
        found = chances(fitted, correct, way)
        assert np.isfinite(found).all()
        assert (found >= 0).all()
        assert (found <= 1).all()


def test_difficulties_adrift_are_judged_from_their_median():
    correct = np.array([[1, 1, 0], [0, 1, 0]], dtype=np.int8)
    here, there = Fitted.exactly(np.array([-1.0, 0.0, 2.0])), Fitted.adrift(np.array([59.0, 60.0, 62.0]))
    np.testing.assert_allclose(
        posterior_chances(here, correct), posterior_chances(there, correct), atol=1e-12
    )


def test_knorm_is_the_products_fit():
    responses = Exam(n_learners=60).simulate(np.random.default_rng(6)).responses
    mine = METHODS["knorm"].fit(responses, 1.0, np.random.default_rng(7))
    rng = np.random.default_rng(7)
    settled = plan(DifficultiesOptions("knorm", epsilon=1.0), responses.n_items, responses.n_learners)
    released = fit_difficulties(responses, settled, seeded_noise(rng), rng)
    np.testing.assert_allclose(mine.difficulty, [item.difficulty for item in released.items], atol=1e-6)
    np.testing.assert_allclose(
        mine.standard_error, [item.standard_error for item in released.items], atol=1e-6
    )


def test_intervals_of_means_aret_intervals():
    values = np.random.default_rng(8).normal(size=20)
    mean, low, high = study.t_interval(values)
    expected = stats.t.interval(0.95, 19, loc=values.mean(), scale=stats.sem(values))
    assert (mean, low, high) == pytest.approx((values.mean(), *expected))


# The study


def test_rows_are_there_for_every_method_epsilon_and_measure(findings):
    assert COLUMNS == (
        "experiment",
        "data",
        "method",
        "epsilon",
        "n_learners",
        "measure",
        "mean",
        "low",
        "high",
        "repetitions",
        "sd",
    )
    for method in SMALL.methods:
        for epsilon in SMALL.epsilons:
            for measure in (
                "probabilities_true",
                "probabilities_nonprivate",
                "difficulties_true",
                "misclassification",
            ):
                row = findings.one(experiment=2, method=method, epsilon=epsilon, measure=measure)
                assert row is not None
                assert row.low <= row.mean <= row.high
                assert row.repetitions == 3
    for method in ("objective", "statistics"):
        assert findings.of(experiment=2, method=method, measure="probabilities_true_posterior")
    for method in ("knorm", "gaussian"):
        assert findings.of(experiment=2, method=method, measure="probabilities_true_reestimated")
    assert {row.method for row in findings.of(experiment=1)} == {
        "global", "re-estimated", "true model", "re-estimated - global",
    }  # fmt: skip
    assert {row.n_learners for row in findings.of(experiment=3)} == {10, 20, 30}


def test_the_published_intervals_are_196_standard_errors_of_the_mean(findings, exam):
    """Over bootstrap samples too, where ours are percentiles: against the samples themselves."""
    row = findings.one(experiment=3, method="objective", n_learners=10, measure="probabilities_noiseless")
    values = [
        next(o for o in real_trial(1, 3, exam, 10, r, ("objective",), 5.0) if o.method == "objective")
        for r in range(3)
    ]
    samples = np.array([outcome.measures["probabilities_noiseless"] for outcome in values])
    assert row.mean == pytest.approx(samples.mean())
    assert row.published_half == pytest.approx(1.96 * stats.sem(samples))
    assert (row.low, row.high) == pytest.approx(np.quantile(samples, [0.025, 0.975]))


def test_slow_methods_have_fewer_samples(findings):
    samples = {row.method: row.repetitions for row in findings.of(experiment=3, n_learners=10)}
    assert samples["knorm"] == samples["knorm - objective"] == 2
    assert samples["objective"] == samples["objective - statistics"] == 3


def test_the_third_line_of_experiment_1_and_that_of_experiment_3(findings):
    row = findings.one(experiment=1, method="re-estimated", measure=GLOBAL)
    assert row.mean == pytest.approx(1.0, abs=1e-9)
    for experiment, sizes in ((2, {40}), (3, {10, 20, 30})):
        rows = findings.of(experiment=experiment, method="objective with statistics")
        assert {row.n_learners for row in rows} == sizes
        assert all(-1 <= row.mean <= 1 for row in rows)


def test_as_printed_is_another_penalty_and_no_clamping():
    responses = Exam(n_learners=60).simulate(np.random.default_rng(6)).responses
    for name, published, more in (
        ("objective", objective, {}),
        ("statistics", statistics, {"clamp": False}),
    ):
        printed = METHODS[f"{name}:printed"].fit(responses, 1.0, np.random.default_rng(7))
        expected = published(responses, 1.0, np.random.default_rng(7), penalty=0.01, **more)
        np.testing.assert_array_equal(printed.difficulty, expected.difficulty)
        assert printed.penalty == 0.01
        run = METHODS[name].fit(responses, 1.0, np.random.default_rng(7))
        np.testing.assert_array_equal(
            run.difficulty, published(responses, 1.0, np.random.default_rng(7)).difficulty
        )
        assert run.penalty == 0.02


def test_without_noise_knorm_finds_the_spread_that_the_class_has():
    """The estimator on exact totals and exact agreement: within a tenth for 3,000 learners."""
    for sd in (0.8, 2.0):
        responses = Exam(3000, 20, ability_sd=sd).simulate(np.random.default_rng(3)).responses
        found = NOISELESS["totals"][0](responses)
        assert found.ability_sd == pytest.approx(sd, rel=0.1)


def test_the_seeds_sizes_of_a_class_are_thirds():
    assert sizes_of(Responses(np.zeros((62, 16), np.int8), tuple(map(str, range(16))))) == (21, 42, 62)


def test_differences_are_paired(findings):
    first = findings.one(experiment=2, method="knorm", epsilon=1.0, measure="probabilities_true")
    second = findings.one(experiment=2, method="objective", epsilon=1.0, measure="probabilities_true")
    both = findings.one(experiment=2, method="knorm - objective", epsilon=1.0, measure="probabilities_true")
    assert both.mean == pytest.approx(first.mean - second.mean)
    # In the same way for both: knorm's own against objective's other one.
    other = findings.one(
        experiment=2, method="objective", epsilon=1.0, measure="probabilities_true_posterior"
    )
    same = findings.one(
        experiment=2, method="knorm - objective", epsilon=1.0, measure="probabilities_true_posterior"
    )
    assert same.mean == pytest.approx(first.mean - other.mean)


def test_the_table_can_be_read_again(findings):
    again = read_table(table_of(findings.results)).results
    assert len(again) == len(findings.results)
    for a, b in zip(again, findings.results, strict=True):
        assert (a.experiment, a.data, a.method, a.epsilon, a.measure) == (
            b.experiment, b.data, b.method, b.epsilon, b.measure,
        )  # fmt: skip
        assert math.isclose(a.mean, b.mean, rel_tol=1e-5, abs_tol=1e-12)


def test_results_depend_neither_on_threads_nor_on_what_else_runs(findings, monkeypatch):
    monkeypatch.setattr(tasks, "n_cores", lambda: 1)
    alone = run_experiments(
        DifficultyPlan(repetitions=3, sizes=(60, 40), epsilons=(5.0,), methods=("objective", "knorm"))
    )
    for method in ("knorm", "objective", "joint"):
        epsilon = None if method == "joint" else 5.0
        for measure in ("probabilities_true", "misclassification"):
            wanted = {
                "experiment": 2,
                "method": method,
                "epsilon": epsilon,
                "n_learners": 40,
                "measure": measure,
            }
            assert alone.one(**wanted) == findings.one(**wanted)


def test_another_seed_gives_other_results(findings):
    other = run_experiments(
        DifficultyPlan(repetitions=3, seed=2, sizes=(40,), epsilons=(1.0,), methods=("knorm",))
    )
    wanted = {"experiment": 2, "method": "knorm", "epsilon": 1.0, "measure": "probabilities_true"}
    assert other.one(**wanted).mean != findings.one(**wanted).mean


def test_re_estimated_abilities_are_as_good_as_global_ones(findings):
    (row,) = findings.of(experiment=1, method="re-estimated - global", measure="probabilities_true")
    # At the joint optimum an ability solves the very equation that re-estimation solves.
    assert max(abs(row.low), abs(row.high)) < 1e-6


def test_knorm_beats_objective_perturbation():
    """12 paired classes of 200 at epsilon 1, in the correlation of probabilities and of difficulties.

    Over 50 classes the differences are 0.04 and 0.38 with standard deviations 0.02 and 0.20: six
    standard errors of a mean of 12 above 0. With another seed this would fail less than once in 10,000.
    """
    found = run_experiments(
        DifficultyPlan(repetitions=12, sizes=(200,), epsilons=(1.0,), methods=("knorm", "objective"))
    )
    for measure in ("probabilities_true", "difficulties_true", "probabilities_noiseless"):
        row = found.one(experiment=2, method="knorm - objective", epsilon=1.0, measure=measure)
        assert row.mean > 0
    (row,) = found.of(experiment=2, method="knorm - objective", measure="misclassification")
    assert row.mean < 0


def test_the_histogram_adds_up_and_no_row_is_in_it(findings):
    assert {h.method for h in findings.histograms} == set(study.REAL_METHODS)
    for histogram in findings.histograms:
        assert histogram.share.shape == (N_BINS, N_BINS)
        assert histogram.share.sum() == pytest.approx(1.0)


def test_missing_answers_count_as_wrong(exam):
    holes = exam.correct.copy()
    holes[::3, 0] = -1
    filled = np.maximum(holes, 0)
    key = (1, 3, 10, 0, ("knorm",), 5.0)
    a, b = (real_trial(key[0], key[1], Responses(m, exam.items), *key[2:]) for m in (holes, filled))
    assert [outcome.measures for outcome in a] == [outcome.measures for outcome in b]


# Refusals and files


@pytest.mark.parametrize(
    "wrong", [{"repetitions": 1}, {"bootstrap": 0}, {"seed": -1}, {"methods": ("magic",)}]
)
def test_plans_that_make_no_sense_are_refused(wrong):
    with pytest.raises(UsageError) as caught:
        DifficultyPlan(**wrong)
    assert caught.value.hint


def test_a_class_without_thirds_is_refused():
    tiny = Responses(np.ones((3, 4), np.int8), tuple("abcd"))
    with pytest.raises(DataError, match="3 and 4"):
        run_experiments(SMALL, {"tiny": tiny})


class Counting:
    """Counts the parts of one task."""

    done = total = 0

    @contextlib.contextmanager
    def task(self, name, total):
        self.total += total
        yield self

    def advance(self, n=1):
        self.done += n


def test_a_study_writes_its_files_for_the_custodian_alone(tmp_path, exam):
    plan = DifficultyPlan(repetitions=2, bootstrap=2, sizes=(40, 80), epsilons=(1.0, 5.0))
    out = tmp_path / "study"

    reporter = Counting()
    with reported_by(reporter):
        write_study(plan, out, {"an exam": exam})
    assert reporter.total == reporter.done == 2 * 2 + 3 * 2
    assert out.stat().st_mode & 0o777 == 0o700
    names = {path.name for path in out.iterdir()}
    assert {"results.csv", "report.html", "study.json"} <= names
    for figure in (
        "experiment-1",
        "experiment-2-true",
        "knorm-objective",
        "real-data",
        "probabilities-an-exam",
    ):
        assert {f"{figure}.svg", f"{figure}.png"} <= names
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Internal" in page
    assert "no formal guarantee (test)" in page
    for word in ("anonymous", "safe"):
        assert word not in page.split("</style>")[1].lower()
    with pytest.raises(UsageError, match="not empty"):
        write_study(plan, out)
