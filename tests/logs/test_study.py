"""Studies: rows, columns, resuming, controls."""

import csv
import json
import math

import numpy as np
import pytest

from understudy.errors import DataError, UsageError
from understudy.logs import study as study_module
from understudy.logs.audit import audit
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.interactions import Interactions, common_vocabulary, joined
from understudy.logs.same_learners import check_different
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.study import StudyOptions, study
from understudy.logs.trial import Split

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
    "tpr_attack",
    "tpr_at_1pct",
    "tpr_at_1pct_low",
    "tpr_at_1pct_high",
    "tpr_chance",
    "tpr_chance_high",
    "epsilon",
    "delta",
    "fit_seconds",
    "sample_seconds",
]
GENERATORS = ("drop:0", "markov")
FEW = StudyOptions(n_seeds=2, n_shadows=8)


@pytest.fixture(scope="module")
def log():
    return Classroom(n_learners=150, n_actions=15).simulate(np.random.default_rng(2))


@pytest.fixture(scope="module")
def folder(log, tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "out"
    study(log, GENERATORS, FEW, out=path)
    return path


def read(folder):
    with open(folder / "results.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_a_row_per_method_and_seed_with_the_columns_of_the_design(folder):
    rows = read(folder)
    assert set(NEEDED) <= set(rows[0])
    assert [(r["method"], r["seed"]) for r in rows] == [
        ("drop:0", "0"),
        ("drop:0", "1"),
        ("markov", "0"),
        ("markov", "1"),
    ]
    assert all(float(r["epsilon"]) == math.inf for r in rows)


def test_a_log_released_whole_is_perfectly_useful_and_perfectly_recognisable(folder):
    (first, *_) = [r for r in read(folder) if r["method"] == "drop:0"]
    assert float(first["wrmse"]) < 1e-9
    assert float(first["auc_worst"]) > 0.95


def test_luck_alone_is_a_little_better_than_guessing(folder):
    """The strongest of sixteen attacks on random memberships: above 0.5 on average, and the range holds 0.5."""
    for row in read(folder):
        low, mean, high = (float(row[f"auc_chance{part}"]) for part in ("_low", "", "_high"))
        assert low < mean < high
        assert 0.5 < mean < 0.65


def test_figures_and_report_are_written(folder):
    for name in ("tradeoff.svg", "tradeoff.png", "report.html"):
        assert (folder / name).stat().st_size > 500


def test_finished_cells_are_not_computed_again(folder, log, monkeypatch):
    before = read(folder)
    monkeypatch.setattr(Split, "try_generator", lambda *a, **k: pytest.fail("computed twice"))
    monkeypatch.setattr(study_module, "shadow_attack_on", lambda *a, **k: pytest.fail("attacked twice"))
    study(log, GENERATORS, FEW, out=folder)
    assert read(folder) == before


def test_a_study_that_is_stopped_keeps_the_generators_that_are_done(log, tmp_path, monkeypatch):
    """Ctrl-C in the shadows of the second generator: the first one's cells and shadows are not computed again."""
    attacked = []
    whole = study_module.shadow_attack_on

    def stops(generator, *rest):
        attacked.append(generator.label)
        if generator.label == "markov":
            raise KeyboardInterrupt
        return whole(generator, *rest)

    monkeypatch.setattr(study_module, "shadow_attack_on", stops)
    with pytest.raises(KeyboardInterrupt):
        study(log, GENERATORS, FEW, out=tmp_path / "study")
    assert len(list((tmp_path / "study" / "cells").glob("drop*.json"))) == 2
    # A write that was killed half-way leaves a file that is no cell, and that the next run removes.
    half = next((tmp_path / "study" / "cells").glob("drop*.json"))
    left = half.with_name(f".{half.name}-unfinished-99999999-x.json")
    left.write_text("{")
    monkeypatch.setattr(
        study_module, "shadow_attack_on", lambda *a: (attacked.append(a[0].label), whole(*a))[1]
    )
    study(log, GENERATORS, FEW, out=tmp_path / "study")
    assert attacked == ["drop:0", "markov", "markov"]
    assert {row["method"] for row in read(tmp_path / "study")} == set(GENERATORS)


def test_a_study_grows_by_seeds_without_repeating(folder, log, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    study(log, ("markov",), StudyOptions(n_seeds=3, n_shadows=8), out=copy)
    rows = {(r["method"], r["seed"]): r for r in read(copy)}
    assert ("markov", "2") in rows
    old = next(r for r in read(folder) if (r["method"], r["seed"]) == ("markov", "1"))
    assert rows["markov", "1"] == old


def test_a_study_adds_methods_to_the_table_of_its_folder(folder, log, tmp_path, monkeypatch):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    found = study(log, ("drop:0.5",), StudyOptions(n_seeds=1, n_shadows=8), out=copy)
    before = {(r["method"], r["seed"]): r for r in read(folder)}
    after = {(r["method"], r["seed"]): r for r in read(copy)}
    assert set(after) == {*before, ("drop:0.5", "0")}
    assert all(after[cell] == row for cell, row in before.items())
    assert [row["method"] for row in found.summaries] == ["drop:0.5", *sorted(GENERATORS)]
    assert "drop:0.5" in (copy / "report.html").read_text()


def test_another_study_is_not_mixed_in(folder, log):
    with pytest.raises(UsageError, match="another study"):
        study(log.select(np.arange(100)), GENERATORS, FEW, out=folder)


def test_the_same_plan_gives_the_same_figures(log, tmp_path):
    tables = []
    for name in "ab":
        study(log, ("markov",), StudyOptions(n_seeds=1, n_shadows=8), out=tmp_path / name)
        tables.append(
            [{k: v for k, v in r.items() if not k.endswith("seconds")} for r in read(tmp_path / name)]
        )
    assert tables[0] == tables[1]


def test_the_results_hold_no_learner(folder):
    assert json.loads((folder / "study.json").read_text())["internal"]
    for cell in (folder / "cells").iterdir():
        assert not any(isinstance(value, list) for value in json.loads(cell.read_text()).values())


@pytest.mark.parametrize(
    ("generators", "options"),
    [((), {}), (("markov",), {"n_seeds": 0}), (("markov",), {"n_shadows": 2}), (("nosuch",), {})],
)
def test_what_cannot_be_studied(log, generators, options):
    with pytest.raises(UsageError):
        study(log, generators, StudyOptions(**options))


def test_generators_of_others_and_nothing_written(log):
    """Objects and words side by side; an object needs nothing but fit and sample."""

    class Copy:
        def fit(self, log):
            self.rows = log.to_polars()

        def sample(self):
            return self.rows.to_pandas()

    found = study(log, [Copy(), MarkovDP(epsilon=8)], StudyOptions(n_seeds=1, n_shadows=8))
    assert [row["method"] for row in found.rows] == ["Copy", "markov-dp"]
    assert found.rows[0]["auc_worst"] > 0.95
    assert found.folder is None
    assert found.to_frame().height == 2
    assert "markov-dp" in found._repr_html_()
    assert found.plot().to_dict()


def test_a_study_says_where_names_come_from_and_tries_both_ways(tmp_path):
    """Forty names that few learners share: found privately, most of them are pooled, which the figures show."""
    log = Classroom(n_learners=80, n_actions=40).simulate(np.random.default_rng(4))
    options = StudyOptions(n_seeds=1, n_shadows=8, found_names=True)
    found = study(log, ["markov", "markov-dp:epsilon=4"], options, out=tmp_path / "study")
    public, pooled = "markov-dp:epsilon=4", "markov-dp:epsilon=4, names found"
    assert [(row["method"], row["names"]) for row in found.rows] == [
        ("markov", "as in the log"),
        (public, "taken as public"),
        (pooled, "found"),
    ]
    by_method = {row["method"]: row for row in found.rows}
    assert by_method[pooled]["action_tv"] > by_method[public]["action_tv"] + 0.2
    assert [row["names"] for row in read(tmp_path / "study")] == [row["names"] for row in found.rows]
    assert by_method[pooled]["names_kept"] < 0.5 < by_method[public]["names_kept"]
    page = (tmp_path / "study" / "report.html").read_text()
    assert "tried again with names that it had to find" in page
    assert page.count("taken as public") == 1
    again = study(log, [public], StudyOptions(n_seeds=1, n_shadows=8), out=tmp_path / "study")
    assert [row["method"] for row in again.summaries] == [public, pooled, "markov"]


def test_where_no_name_is_told_a_study_says_that_difficulties_are_unknown(tmp_path):
    log = Classroom(n_learners=24, n_actions=40).simulate(np.random.default_rng(4))
    options = StudyOptions(n_seeds=1, n_shadows=8, found_names=True)
    found = study(log, ["markov-dp:epsilon=0.1"], options, out=tmp_path / "study")
    assert found.rows[1]["names_kept"] == 0
    page = (tmp_path / "study" / "report.html").read_text()
    assert page.count("nothing is known about difficulties") == 1


def test_a_study_tries_the_epsilon_that_a_release_would_have():
    log = Classroom(n_learners=20, n_actions=30).simulate(np.random.default_rng(5))
    options = StudyOptions(n_seeds=1, n_shadows=8)
    crowded = study(log.declare(), ["markov-dp", "markov-dp:8"], options).rows
    assert [(row["method"], row["epsilon"]) for row in crowded] == [
        ("markov-dp:epsilon=4", 4.0),
        ("markov-dp:8", 8.0),
    ]


def test_a_log_too_small_to_be_halved(tmp_path):
    tiny = Interactions.from_sequences([[0, 1], [1, 0]], [[0, 1], [1, 0]])
    with pytest.raises(DataError, match="8 learners"):
        study(tiny, GENERATORS, FEW, out=tmp_path / "x")


def test_files_are_audited_like_a_trial(log, tmp_path):
    """The audit of three files gives what a trial on the same split gives, shadow attack aside."""
    split = Split(log, 0)
    rng = np.random.default_rng(0)
    members, outsiders = log.select(split.member), log.select(~split.member)
    copied = audit(members, outsiders, members, rng=rng)
    assert copied.risk.worst.auc > 0.95
    assert copied.utility["wrmse"] < 1e-9
    assert {e.attack for e in copied.risk.estimates} == {
        "lcs", "lcs-published", "lcs-expected", "lcs-outcomes", "transitions",
        "transitions-outcomes", "counts", "rare", "rare-bags", "joint",
        "joint-linear", "tracing", "tracing-outcomes",
    }  # fmt: skip
    strangers = audit(members, outsiders, log.select(~split.member), rng=rng)
    assert strangers.risk.worst.auc < 0.55


def test_an_audit_of_files_with_other_vocabularies(log):
    rng = np.random.default_rng(0)
    half = np.arange(log.n_learners) < 75
    members, outsiders = log.select(half), log.select(~half)
    extra = Interactions.from_sequences([[0, 0, 1]], [[0, 1, 1]], actions=["an invention", "another"])
    result = audit(members, outsiders, joined(members, extra), rng=rng)
    assert result.utility["action_tv"] > 0
    assert result.strange_share == pytest.approx(3 / (members.n_rows + 3))
    with pytest.raises(DataError, match="100 % of the synthetic rows"):
        audit(members, outsiders, extra, rng=rng)


def test_a_study_is_not_resumed_with_other_data_of_the_same_size(folder, log):
    turned = Interactions(log.action, 1 - log.outcome, log.offsets, log.actions)
    with pytest.raises(UsageError, match="another study"):
        study(turned, GENERATORS, FEW, out=folder)


def test_a_study_is_its_owners(folder):
    assert folder.stat().st_mode & 0o077 == 0


def test_learners_on_both_sides_of_an_audit_are_noticed(log):
    """The same ids and rows stop it; the same ids with other rows are told; a part of a log keeps no ids of others."""
    half = np.arange(log.n_learners) % 2 == 0
    frame = log.to_polars("pupil-")
    members, rest = (Interactions.from_frame(part) for part in halves(frame))
    with pytest.raises(DataError, match="75 learners of the outsiders are among the members") as caught:
        audit(Interactions.from_frame(frame), rest, members)
    assert caught.value.code == "shared-learners"
    with pytest.raises(DataError, match="are among the members, with the same rows"):
        audit(log.select(half), log.select(half), log)
    with pytest.raises(DataError, match="among the members"):
        audit(members, members, rest)
    assert audit(members, rest, members).notes == (
        "The synthetic log has the rows of the members: it is their log, not a synthetic one.",
    )
    strangers, namesakes = (
        Classroom(n_learners=75, n_actions=15).simulate(np.random.default_rng(seed)).to_polars(prefix)
        for seed, prefix in ((9, "stranger-"), (10, "pupil-0"))
    )
    strangers, namesakes = map(Interactions.from_frame, (strangers, namesakes))
    assert check_different(*common_vocabulary(members, rest, strangers)) == []
    (note,) = check_different(*common_vocabulary(members, namesakes, strangers))
    assert "ids of outsiders are also those of members, with other rows" in note


def halves(frame):
    """The rows of every second learner, and those of the rest."""
    number = frame["learner"].rank("dense")
    return frame.filter(number % 2 == 1), frame.filter(number % 2 == 0)
