"""Methods side by side: what is measured, what is written, and that nothing of a learner is in it."""

import contextlib
import csv
import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import run
from understudy.cohorts import comparison
from understudy.cohorts.attacks.membership import COHORT_ATTACKS
from understudy.cohorts.cohort import Cohort
from understudy.cohorts.comparison import (
    CompareOptions,
    Comparison,
    check_cohort,
    compare,
)
from understudy.cohorts.comparison_report import ATTACKS, figures, floor_sentences, write_comparison
from understudy.cohorts.methods import exact_summary, methods, pooled, resample, seeded_summary
from understudy.cohorts.schema import Schema
from understudy.cohorts.simulate import School
from understudy.cohorts.summary.budget import propose
from understudy.core.engine.progress import reported_by
from understudy.core.files.writing import read_results, results_csv
from understudy.core.privacy.risk import worst_case
from understudy.errors import DataError, UsageError

COHORT = School(n_learners=60).simulate(0, np.random.default_rng(4))


class CountingReporter:
    """Counts what a verb reports of its progress."""

    def __init__(self):
        self.totals, self.done = {}, 0

    @contextlib.contextmanager
    def task(self, name, total):
        self.totals[name] = total
        yield self

    def advance(self, n=1):
        self.done += n

    def note(self, text):
        pass


@pytest.fixture(scope="module")
def found():
    return compare(COHORT, CompareOptions(delta=1e-3, n_seeds=2, per_panelist=60, n_shadows=0))


def test_every_method_has_a_row_for_each_seed(found):
    assert found.methods == [
        *("pool", "zero-inflated", "habit-chain", "copula"),
        *("nobody", "pool-no-noise", "resample"),
    ]
    assert all(len(found.of(method)) == 2 for method in found.methods)


def test_private_methods_are_marked_as_tests_and_references_as_not_private(found):
    assert found.guarantee("pool") == "no formal guarantee (test: the noise was seeded)"
    assert "not private" in found.guarantee("resample")
    assert "not private" in found.guarantee("pool-no-noise")
    assert math.isnan(found.of("resample")[0]["epsilon"])
    assert found.of("pool")[0]["epsilon"] == 3.0


def test_the_ceiling_is_nearest_and_is_found_out(found):
    nearest = min(found.methods, key=lambda method: found.interval(method, "ajs").mean)
    assert nearest == "resample"
    assert found.interval("resample", "auc_worst").mean > 0.75
    assert found.interval("resample", "auc_worst").mean > found.interval("pool", "auc_worst").mean


def test_the_same_seed_gives_the_same_figures(found):
    again = compare(COHORT, CompareOptions(delta=1e-3, n_seeds=2, per_panelist=60, n_shadows=0))
    for mine, other in zip(found.rows, again.rows, strict=True):
        assert mine["ajs"] == other["ajs"]
        assert mine["auc_worst"] == other["auc_worst"]


@pytest.fixture(scope="module")
def written(found, tmp_path_factory):
    folder = tmp_path_factory.mktemp("comparison") / "out"
    write_comparison(found, folder)
    return folder


def test_results_are_written_for_whoever_made_them_and_hold_no_learner(found, written):
    assert {path.stat().st_mode & 0o777 for path in written.iterdir()} == {0o600}
    names = {path.name for path in written.iterdir()}
    pictures = {
        f"{name}.{kind}" for name in ("ajs", "findings", "kinds", "risk", "levels") for kind in ("svg", "png")
    }
    assert names == {"results.csv", "study.json", "report.html", *pictures}
    with open(written / "results.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(found.rows)
    assert {
        "method",
        "seed",
        "ajs",
        "precision",
        "recall",
        "auc_worst",
        "control_auc_worst",
        "seconds",
    } <= set(rows[0])
    page = (written / "report.html").read_text()
    assert "no formal guarantee (test" in page
    assert "Simulated data." in page
    json.loads((written / "study.json").read_text())
    for word in ("anonymous", "cannot be re-identified", "safe "):
        assert word not in page.lower()


def test_proof_white_box_and_strongest_attack_stand_side_by_side(found, written):
    proved, seen, strongest = found.levels()
    assert proved.auc == worst_case(propose(COHORT.schema, 60, 3.0, 1e-3).guarantee)["auc"]
    assert seen.auc == round(found.interval("pool", "auc_transcript").mean, 2) < proved.auc
    assert strongest.auc == round(found.interval("pool", "auc_worst").mean, 2)
    page = (written / "report.html").read_text()
    for level in (proved, seen, strongest):
        assert level.sentence in page
        assert f"Pool: {level.sentence}" in found.lines()
    assert found.exposed_share() == 0.0
    assert "no learner is exposed" in page
    assert [level["name"] for level in found.to_json()["levels"]] == [
        *("proved limit", "noisy sums seen", "strongest attack")
    ]
    # A method that works from no noisy sums has no such number.
    assert found.shown("resample", "auc_transcript") is None
    without = replace(found, rows=tuple({**row, "auc_transcript": math.nan} for row in found.rows))
    assert without.levels() == []


def test_real_learners_make_an_internal_page(found, tmp_path):
    write_comparison(Comparison(found.plan, found.rows, 60, simulated=False), tmp_path / "out")
    assert "<strong>Internal.</strong>" in (tmp_path / "out" / "report.html").read_text()


def test_figures_have_few_ticks_short_titles_and_room_for_every_dot(found):
    """On a telephone, 340 pixels wide, more ticks run into each other and longer titles are cut."""
    low = {**found.rows[0], "control_auc_worst": 0.27}
    for figure in figures(Comparison(found.plan, (low, *found.rows[1:]), 60, simulated=True)).values():
        for layer in figure.specification["layer"]:
            x = layer["encoding"]["x"]
            assert x["axis"]["tickCount"] <= 5
            assert all(len(line) <= 34 for line in x["title"])
        lows = [point["low"] for point in figure.specification["data"]["values"]]
        assert min(lows) >= x["scale"].get("domain", [0.0])[0]


def risks(aucs, half_width):
    """Rows of a method with an attack's AUC in each seed, and its interval over learners."""
    return tuple(
        {
            **{"method": "pool", "seed": seed, "guarantee": "", "ajs": 0.1 * seed},
            **{"auc_worst": auc, "auc_worst_low": auc - half_width, "auc_worst_high": auc + half_width},
        }
        for seed, auc in enumerate(aucs)
    )


@pytest.mark.parametrize("aucs", [(0.69,), (0.6, 0.7), (0.6, 0.6, 0.6, 0.6), (0.5, 0.6, 0.7, 0.8)])
def test_an_interval_of_a_risk_is_never_narrower_than_that_over_learners(aucs):
    comparison = Comparison(
        CompareOptions(delta=1e-3, n_seeds=len(aucs)), risks(aucs, 0.1), 60, simulated=True
    )
    one = comparison.shown("pool", "auc_worst")
    assert one.mean == pytest.approx(np.mean(aucs))
    assert one.low <= one.mean - 0.1 + 1e-9
    assert one.high >= one.mean + 0.1 - 1e-9
    if len(set(aucs)) > 1:
        assert one.high - one.low > 0.2 + 1e-3


def test_fewer_than_three_seeds_have_no_interval_over_seeds():
    for n in (1, 2, 3):
        found = Comparison(CompareOptions(delta=1e-3, n_seeds=n), risks([0.5] * n, 0.1), 60, simulated=True)
        assert (found.shown("pool", "ajs").low is None) == (n < 3)
        assert (found.to_json()["methods"]["pool"]["ajs"]["low"] is None) == (n < 3)


def test_a_kind_without_findings_has_no_precision(found):
    rows = [{**row, "n_synthetic_trend": 0.0, "precision_trend": 0.0} for row in found.rows]
    without = Comparison(found.plan, tuple(rows), 60, simulated=True)
    assert without.of_kind("pool", "trend")["precision"] is None
    assert found.of_kind("pool", "trend")["precision"] is not None
    points = figures(without)["kinds"].specification["data"]["values"]
    assert ("trend (0)", "precision") not in [(point["at"], point["series"]) for point in points]


def test_the_tutorial_says_what_the_page_it_links_to_says():
    root = Path(__file__).parents[2]
    page = (root / "docs/reproductions/two-stage.md").read_text()
    pool, guess = (
        re.search(rf"\| Moodle course \| `{method}` \| (0\.\d\d) .*?\| (0\.\d\d) ", page).groups()
        for method in ("pool", "nobody")
    )
    text = " ".join((root / "docs/tutorials/cohort.md").read_text().split())
    assert pool[0] == guess[0]
    assert f"the pool's precision is {pool[0]}, and so is that of the guess" in text
    assert f"its recall is {pool[1]} against {guess[1]}" in text


def test_the_report_says_when_the_pool_lies_under_the_floor(found, tmp_path):
    def with_precision(value):
        rows = [{**row, "precision": value if row["method"] == "pool" else 0.76} for row in found.rows]
        return Comparison(found.plan, tuple(rows), 60, simulated=True)

    (said,) = floor_sentences(with_precision(0.72))
    assert "Pool of the three does not do better than a guess that looked at no learner" in said
    assert "precision 0.72 against 0.76" in said
    assert "precision" not in "".join(floor_sentences(with_precision(0.8)))
    write_comparison(with_precision(0.72), tmp_path / "out")
    assert "Not better than a guess" in (tmp_path / "out" / "report.html").read_text()


def test_what_was_left_out_is_not_spoken_of_and_attacks_are_told_in_words(found, written, tmp_path):
    page = (written / "report.html").read_text()
    for word in (
        "The deep baseline was attacked",
        "shadows of the attack",
        "1 synthetic cohorts",
        "shadows",
    ):
        assert word not in page, word
    assert "was left out here" in page
    assert set(ATTACKS) == set(COHORT_ATTACKS)
    used = {row["worst_attack"] for row in found.rows}
    assert all(ATTACKS[name].split("'")[0] in page for name in used)
    one = Comparison(replace(found.plan, n_seeds=1), tuple(found.rows[::2]), 60, simulated=True)
    write_comparison(one, tmp_path / "one")
    page = (tmp_path / "one" / "report.html").read_text()
    assert "made one synthetic cohort of" in page
    assert "bootstrap interval" not in page


QUICK = CompareOptions(delta=1e-3, n_seeds=1, per_panelist=30, n_shadows=0)


def test_a_given_cohort_is_judged_and_its_risk_only_with_outsiders(monkeypatch):
    """A copy of the learners is nearest to them, and is found out by outsiders of the same school."""
    # The files are judged one by one, whatever stands beside them: the quickest method will do.
    monkeypatch.setattr(comparison, "methods", lambda *plan: {"nobody": methods(*plan)["nobody"]})
    outsiders = School(n_learners=60).simulate(0, np.random.default_rng(11))
    given = {"copy.csv": COHORT, "other.csv": School(n_learners=60).simulate(0, np.random.default_rng(12))}
    done = compare(COHORT, QUICK, synthetic=given, outsiders=outsiders)
    assert done.given == ("copy.csv", "other.csv")
    assert done.interval("copy.csv", "ajs").mean == 0.0
    assert done.interval("copy.csv", "precision").mean == 1.0
    assert done.shown("copy.csv", "auc_worst").mean == 1.0
    # As certain as 60 of each can make it.
    assert done.shown("copy.csv", "auc_worst").low > 0.9
    # Made by nobody of either: the interval holds 0.5 (false alarm less than once in 20 times; seeded).
    assert done.shown("other.csv", "auc_worst").low < 0.5
    alone = compare(COHORT, QUICK, synthetic=given)
    assert alone.shown("copy.csv", "auc_worst") is None
    assert alone.shown("copy.csv", "ajs").mean == 0.0
    assert "see its data card" in alone.guarantee("copy.csv")


def test_outsiders_who_are_members_are_refused():
    some = COHORT.select(np.arange(5))
    with pytest.raises(DataError, match="5 of the 5 outsiders"):
        compare(COHORT, QUICK, synthetic={"x.csv": COHORT}, outsiders=some)
    with pytest.raises(UsageError, match="no synthetic cohort"):
        compare(COHORT, QUICK, outsiders=School(n_learners=9).simulate(0, np.random.default_rng(3)))


def test_the_pool_grows_when_few_rows_were_asked_for():
    small = School(n_learners=24).simulate(0, np.random.default_rng(3))
    rng = np.random.default_rng(1)
    assert pooled(seeded_summary(small, 3.0, 1e-3, rng), rng, panelists=["copula"], n_each=2).n_learners == 24


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """The command as a person runs it, with an analysis of their own."""
    folder = tmp_path_factory.mktemp("school")
    made = run("simulate", "cohort.parquet", "--shape", "cohort", "--learners", "40", cwd=folder)
    assert made.returncode == 0, made.stderr
    (folder / "mine.py").write_text(
        "from understudy.cohorts.findings import NO_EVIDENCE, Finding, register\n\n\n"
        "@register('my own', 'Is there anything?')\n"
        "def nothing_at_all(cohort):\n    return [Finding.of('x', NO_EVIDENCE)]\n"
    )
    quick = ("--seeds", "1", "--shadows", "0", "--per-panelist", "5", "--analyses", "mine.py")
    return folder, quick


@pytest.fixture(scope="module")
def shown(compared):
    """What the command shows when a file is judged beside the methods."""
    folder, quick = compared
    run("simulate", "made.csv", "--shape", "cohort", "--learners", "30", "--seed", "5", cwd=folder)
    done = run(
        *("cohort", "compare", "cohort.parquet", "-o", "shown", *quick, "--synthetic", "made.csv"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return folder, quick, done


def test_the_command_shows_all_methods_and_findings_about_the_outcome(shown):
    folder, _, done = shown
    for words in (
        *("pool of the three", "zero-inflated alone", "habit chain alone", "copula alone"),
        *(
            "real learners, resampled",
            "precision, outcome",
            "recall, outcome",
            "luck alone (AUC)",
            "0.5 is guessing",
        ),
        *("Internal", "nothing was charged", "Not private, for reference: pool, no noise"),
        "With 1 of your own",
        "The deep baseline was left out",
    ):
        assert words in done.stdout, words
    assert "my own" in (folder / "shown/report.html").read_text()
    assert "nothing_at_all" in json.loads((folder / "shown/study.json").read_text())["analyses"]


def test_the_command_speaks_to_machines(compared):
    folder, quick = compared
    done = run("cohort", "compare", "cohort.parquet", "-o", "said", *quick, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["internal"] is True
    assert content["own_analyses"] == ["nothing_at_all"]
    assert set(content["methods"]["pool"]) >= {"ajs", "outcome_precision", "outcome_recall", "auc_worst"}
    assert content["methods"]["pool"]["by_kind"]["my_own"]["n_synthetic"] == 0


def test_the_command_judges_a_file_and_says_what_it_cannot(shown):
    folder, quick, done = shown
    assert "made.csv" in done.stdout
    assert "The risk of made.csv was not measured" in done.stdout
    assert "delta 1.0e-06" in done.stdout
    assert "no risk could be measured" in (folder / "shown/report.html").read_text()
    (folder / "elsewhere").mkdir()
    shutil.copy(folder / "made.csv", folder / "elsewhere")
    again = run(
        *("cohort", "compare", "cohort.parquet", "-o", "twice", *quick),
        *("--synthetic", "made.csv", "--synthetic", "elsewhere/made.csv"),
        cwd=folder,
    )
    assert again.returncode == 2
    assert "same file name" in again.stderr
    assert not (folder / "twice").exists()


def test_an_analysis_that_fails_is_said_before_minutes_of_work(compared):
    folder, _ = compared
    (folder / "bad.py").write_text((folder / "mine.py").read_text().replace("return [", "return 1 / 0 # ["))
    done = run("cohort", "compare", "cohort.parquet", "-o", "bad", "--analyses", "bad.py", cwd=folder)
    assert done.returncode == 3
    assert "'nothing_at_all' ended with ZeroDivisionError in line 6 of bad.py" in done.stderr
    assert not (folder / "bad").exists()


def test_a_table_is_read_as_it_was_written(found):
    again = read_results(
        results_csv(found.rows), ("method", "guarantee", "worst_attack", "control_worst_attack")
    )
    assert [row["method"] for row in again] == [row["method"] for row in found.rows]
    assert again[0]["ajs"] == pytest.approx(found.rows[0]["ajs"], rel=1e-5)


def test_shadows_are_fitted_when_asked():
    small = School(n_learners=20).simulate(0, np.random.default_rng(2))
    reporter = CountingReporter()
    with reported_by(reporter):
        done = compare(small, CompareOptions(delta=1e-3, n_seeds=1, per_panelist=5, n_shadows=8))
    assert reporter.totals == {"Comparing": 7 + 7 * 8}
    assert reporter.done == 7 + 7 * 8
    assert {row["method"] for row in done.rows if "auc_worst" in row} == set(done.methods)


def test_cohorts_that_cannot_be_compared_are_refused():
    with pytest.raises(DataError, match="20 learners"):
        check_cohort(COHORT.select(np.arange(10)))
    cut = Schema(cuts=(40.0, 60.0), cuts_source="data")
    with pytest.raises(DataError, match="cuts"):
        check_cohort(Cohort(COHORT.values, COHORT.label, cut))
    with pytest.raises(UsageError):
        CompareOptions(delta=1e-3, n_seeds=0)


def test_the_summary_without_noise_is_the_mean_of_noisy_ones():
    exact = exact_summary(COHORT, 3.0, 1e-3).statistics["levels"]
    noisy = [
        seeded_summary(COHORT, 3.0, 1e-3, np.random.default_rng(seed)).statistics["levels"].values
        for seed in range(40)
    ]
    sd = seeded_summary(COHORT, 3.0, 1e-3, np.random.default_rng(0)).statistics["levels"].noise_sd
    # 8 means of 40 draws each beyond 4 standard errors: by chance less than once in 1,000 times.
    assert np.abs(np.mean(noisy, axis=0) - exact.values).max() < 4 * sd / math.sqrt(40)
    assert exact.noise_sd < 0.01 * sd


def test_a_pool_has_the_asked_size_and_a_resample_only_real_rows():
    rng = np.random.default_rng(1)
    assert pooled(seeded_summary(COHORT, 3.0, 1e-3, rng), rng, n_each=60).n_learners == 60
    real = {row.tobytes() for row in COHORT.values}
    assert all(row.tobytes() in real for row in resample(COHORT, rng).values)
