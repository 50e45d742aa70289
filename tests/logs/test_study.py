"""Studies: rows, columns, resuming, controls."""

import csv
import json
import math

import numpy as np
import pytest

from understudy.errors import DataError, UsageError
from understudy.logs import study as study_module
from understudy.logs.audit import audit_files
from understudy.logs.interactions import Interactions, joined
from understudy.logs.simulate import Classroom
from understudy.logs.study import Plan, run_study
from understudy.logs.trial import Stage

NEEDED = [
    "method",
    "seed",
    "n_rows",
    "n_learners",
    "rmse",
    "wrmse",
    "wrmse_centred",
    "action_tv",
    "transition_tv",
    "length_ks",
    "auc_lcs",
    "auc_lcs_expected",
    "auc_transitions",
    "auc_rare",
    "auc_shadow",
    "auc_worst",
    "auc_worst_low",
    "auc_worst_high",
    "tpr_at_1pct",
    "epsilon",
    "delta",
    "fit_seconds",
    "sample_seconds",
]
PLAN = Plan(("drop:0", "markov"), n_seeds=2, n_shadows=8)


@pytest.fixture(scope="module")
def log():
    return Classroom(n_learners=150, n_actions=15).simulate(np.random.default_rng(2))


@pytest.fixture(scope="module")
def folder(log, tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "out"
    run_study(log, PLAN, path, source="classroom.csv")
    return path


def read(folder):
    with open(folder / "results.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_a_row_per_method_and_seed_with_the_columns_of_the_design(folder):
    rows = read(folder)
    assert set(NEEDED) <= set(rows[0])
    assert [(r["method"], r["seed"]) for r in rows if not r["method"].startswith("control")] == [
        ("drop:0", "0"),
        ("drop:0", "1"),
        ("markov", "0"),
        ("markov", "1"),
    ]
    assert all(float(r["epsilon"]) == math.inf for r in rows if not r["method"].startswith("control"))


def test_a_log_released_whole_is_perfectly_useful_and_perfectly_recognisable(folder):
    (first, *_) = [r for r in read(folder) if r["method"] == "drop:0"]
    assert float(first["wrmse"]) < 1e-9
    assert float(first["auc_worst"]) > 0.95


def test_controls_do_not_cry_wolf(folder):
    """Four simultaneous 95 % intervals: one may miss 0.5, two would miss by chance once in 70 runs."""
    controls = [r for r in read(folder) if r["method"].startswith("control:")]
    assert len(controls) == 4
    missed = [r for r in controls if not float(r["auc_worst_low"]) <= 0.5 <= float(r["auc_worst_high"])]
    assert len(missed) <= 1


def test_figures_and_report_are_written(folder):
    for name in ("tradeoff.svg", "tradeoff.png", "report.html"):
        assert (folder / name).stat().st_size > 500


def test_finished_cells_are_not_computed_again(folder, log, monkeypatch):
    before = read(folder)
    monkeypatch.setattr(Stage, "try_method", lambda *a, **k: pytest.fail("computed twice"))
    monkeypatch.setattr(study_module, "rehearsal", lambda *a, **k: pytest.fail("rehearsed twice"))
    run_study(log, PLAN, folder, source="classroom.csv")
    assert read(folder) == before


def test_a_study_grows_by_seeds_without_repeating(folder, log, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    run_study(log, Plan(("markov",), n_seeds=3, n_shadows=8), copy)
    rows = {(r["method"], r["seed"]): r for r in read(copy)}
    assert ("markov", "2") in rows
    old = next(r for r in read(folder) if (r["method"], r["seed"]) == ("markov", "1"))
    assert rows["markov", "1"] == old


def test_another_study_is_not_mixed_in(folder, log):
    with pytest.raises(UsageError, match="another study"):
        run_study(log.select(np.arange(100)), PLAN, folder)


def test_the_same_plan_gives_the_same_figures(log, tmp_path):
    plan = Plan(("markov",), n_seeds=1, n_shadows=8, control=False)
    tables = []
    for name in "ab":
        run_study(log, plan, tmp_path / name)
        tables.append(
            [{k: v for k, v in r.items() if not k.endswith("seconds")} for r in read(tmp_path / name)]
        )
    assert tables[0] == tables[1]


def test_the_results_hold_no_learner(folder):
    assert json.loads((folder / "study.json").read_text())["internal"]
    for cell in (folder / "cells").iterdir():
        for row in json.loads(cell.read_text()):
            assert not any(isinstance(value, list) for value in row.values())


@pytest.mark.parametrize(
    "plan", [((), 1, 64), (("markov",), 0, 64), (("markov",), 1, 2), (("nosuch",), 1, 64)]
)
def test_plans_that_make_no_sense(plan):
    with pytest.raises(UsageError):
        Plan(*plan)


def test_a_log_too_small_to_be_halved(tmp_path):
    tiny = Interactions.from_sequences([[0, 1], [1, 0]], [[0, 1], [1, 0]])
    with pytest.raises(DataError, match="8 learners"):
        run_study(tiny, PLAN, tmp_path / "x")


def test_files_are_audited_like_a_trial(log, tmp_path):
    """The audit of three files gives what a trial on the same split gives, shadow attack aside."""
    stage = Stage(log, 0)
    rng = np.random.default_rng(0)
    members, outsiders = log.select(stage.member), log.select(~stage.member)
    copied = audit_files(members, outsiders, members, rng)
    assert copied.risk.worst.auc > 0.95
    assert copied.utility["wrmse"] < 1e-9
    assert {e.attack for e in copied.risk.estimates} == {
        "lcs", "lcs-expected", "lcs-outcomes", "transitions", "counts", "rare", "rare-bags",
    }  # fmt: skip
    strangers = audit_files(members, outsiders, log.select(~stage.member), rng)
    assert strangers.risk.worst.auc < 0.55


def test_an_audit_of_files_with_other_vocabularies(log):
    rng = np.random.default_rng(0)
    half = np.arange(log.n_learners) < 75
    members, outsiders = log.select(half), log.select(~half)
    extra = Interactions.from_sequences([[0, 0, 1]], [[0, 1, 1]], actions=["an invention", "another"])
    result = audit_files(members, outsiders, joined(members, extra), rng)
    assert result.utility["action_tv"] > 0
    assert result.strange_share == pytest.approx(3 / (members.n_rows + 3))
    with pytest.raises(DataError, match="100 % of the synthetic rows"):
        audit_files(members, outsiders, extra, rng)


def test_a_study_is_not_resumed_with_other_data_of_the_same_size(folder, log):
    turned = Interactions(log.action, 1 - log.outcome, log.offsets, log.actions)
    with pytest.raises(UsageError, match="another study"):
        run_study(turned, PLAN, folder)


def test_a_study_is_its_owners(folder):
    assert folder.stat().st_mode & 0o077 == 0
