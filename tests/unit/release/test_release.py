"""The bundle: what is in it, what is not, and when it is refused."""

import csv
import json

import numpy as np
import polars as pl
import pytest

from understudy.errors import RefusedError, UsageError
from understudy.privacy import Ledger
from understudy.records import Interactions
from understudy.records.classroom import Classroom
from understudy.release import Options, make_release
from understudy.release.bundle import refuse_risk
from understudy.synthesis import make_method

ACCEPTED = Options(method="markov", accept_risk="a test needs it")


@pytest.fixture(scope="module")
def log():
    return Classroom(n_learners=120, n_actions=15).simulate(np.random.default_rng(5))


@pytest.fixture(scope="module")
def bundle(log, tmp_path_factory):
    folder = tmp_path_factory.mktemp("release") / "bundle"
    return make_release(log, folder, ACCEPTED, ledger=None, notes=("Read as a test.",))


def test_the_bundle_has_what_may_leave_and_what_stays(bundle):
    names = sorted(
        str(path.relative_to(bundle.folder)) for path in bundle.folder.rglob("*") if path.is_file()
    )
    assert names == [
        "keep/report.html",
        "keep/report.json",
        "share/CITATION.cff",
        "share/card.html",
        "share/card.json",
        "share/codebook.csv",
        "share/synthetic.csv",
        "share/synthetic.parquet",
        "understudy.ledger",
    ]


def test_the_data_is_marked_and_the_same_in_both_formats(bundle, log):
    from_csv = pl.read_csv(bundle.folder / "share/synthetic.csv")
    from_parquet = pl.read_parquet(bundle.folder / "share/synthetic.parquet")
    assert from_csv.equals(from_parquet.cast({"outcome": pl.Int64}))
    assert from_csv["learner"].str.starts_with("synthetic-").all()
    assert "synthetic" in pl.read_parquet_metadata(bundle.folder / "share/synthetic.parquet")["understudy"]
    assert from_csv["learner"].n_unique() == log.n_learners
    assert set(from_csv["action"]) <= set(log.actions)


def test_the_codebook_describes_every_column(bundle):
    with open(bundle.folder / "share/codebook.csv", newline="") as file:
        described = [row["column"] for row in csv.DictReader(file)]
    assert described == pl.read_csv(bundle.folder / "share/synthetic.csv").columns


def test_what_is_shared_holds_nothing_measured_and_no_seed(bundle):
    report = json.loads((bundle.folder / "keep/report.json").read_text())
    shared = "".join(p.read_text() for p in (bundle.folder / "share").iterdir() if p.suffix != ".parquet")
    measured = report["measured"]
    for value in [
        measured["auc_worst"],
        *measured["utility"].values(),
        *(a["auc"] for a in measured["attacks"]),
    ]:
        if value not in (0.0, 1.0, 0.5):
            assert f"{value:.6f}" not in shared
    assert str(report["seed"]) not in shared
    assert json.loads((bundle.folder / "share/card.json").read_text())["measured"] is None


def test_the_accepted_risk_is_printed_on_the_card(bundle):
    assert "a test needs it" in (bundle.folder / "share/card.html").read_text()
    assert json.loads((bundle.folder / "share/card.json").read_text())["accepted_risk"] == "a test needs it"


def test_the_release_is_listed_in_the_ledger_with_its_risk(bundle):
    (entry,) = Ledger(bundle.folder / "understudy.ledger").entries()
    assert entry.card == bundle.card
    assert entry.epsilon is None
    assert entry.risk["auc_worst"] == pytest.approx(bundle.assessment.worst.auc)


def test_published_figures_are_rounded_and_say_that_nothing_covers_them(log, tmp_path):
    options = Options(method="markov", accept_risk="test", publish_figures=True)
    make_release(log, tmp_path / "b", options, ledger=None)
    card = json.loads((tmp_path / "b/share/card.json").read_text())
    assert card["measured"]["statement"].endswith("no guarantee covers them.")
    assert card["measured"]["auc"] == round(card["measured"]["auc"], 2)


def test_order_and_names_do_not_depend_on_the_input(log, tmp_path):
    """The same seed gives the same file whatever the order of learners: counts are what is fitted."""
    turned = log.select(np.arange(log.n_learners)[::-1])
    files = []
    for name, version in (("a", log), ("b", turned)):
        options = Options(method="markov", accept_risk="test", seed=7)
        make_release(version, tmp_path / name, options, ledger=None)
        files.append(pl.read_csv(tmp_path / name / "share/synthetic.csv").select("learner", "action"))
    assert files[0].equals(files[1])


def test_the_seed_is_drawn_afresh(log, tmp_path):
    seeds = set()
    for name in "ab":
        make_release(log, tmp_path / name, ACCEPTED, ledger=None)
        seeds.add(json.loads((tmp_path / name / "keep/report.json").read_text())["seed"])
    assert len(seeds) == 2


def test_a_risky_method_is_refused_before_anything_is_written_or_charged(log, tmp_path):
    ledger = Ledger(tmp_path / "l")
    with pytest.raises(RefusedError, match="no formal guarantee") as refusal:
        make_release(log, tmp_path / "bundle", Options(method="drop:0"), ledger=ledger)
    assert "--accept-risk" in refusal.value.hint
    assert not (tmp_path / "bundle").exists()
    assert ledger.entries() == []
    assert list(tmp_path.iterdir()) == []


def test_a_method_that_hides_its_learners_is_not_refused(log, tmp_path):
    """drop:0.999 leaves next to nothing, and next to nothing to attack."""
    from understudy.release.assessment import assess

    assessment = assess(log, "drop:0.97", n_halves=2, n_shadows=16)
    assert assessment.low <= 0.55
    refuse_risk(assessment, make_method("drop:0.97"), Options(method="drop:0.97"))


def test_a_folder_in_use_is_not_overwritten(log, tmp_path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(UsageError, match="not empty"):
        make_release(log, tmp_path, ACCEPTED, ledger=None)


def test_groups_are_shown_and_small_ones_pooled():
    log = Classroom(n_learners=300, n_actions=12, shortest=8).simulate(np.random.default_rng(1))
    group = np.array(log.group)
    group[:3] = 3  # three learners of a school of their own
    changed = Interactions(
        log.action,
        log.outcome,
        log.offsets,
        log.actions,
        group=group,
        groups=(*log.groups, "tiny"),
        simulated=True,
    )
    from understudy.release.assessment import assess

    assessment = assess(changed, "markov", n_halves=2, n_shadows=16)
    assert [figures.group for figures in assessment.groups] == ["north", "south", "west"]
    assert all(figures.low <= figures.auc <= figures.high for figures in assessment.groups)
