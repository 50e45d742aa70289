"""The pages of reproductions are what the measured tables say, and the tables say what the pages claim."""

import numpy as np
import pytest
from typer.testing import CliRunner

from reproductions.__main__ import app
from reproductions.dp_rasch import page
from reproductions.pages import PAGES, PAPERS, render
from reproductions.synthetic_logs.page import attacks_table
from understudy.errors import UsageError
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.study import StudyOptions, study

pytestmark = pytest.mark.functional


def test_pages_are_what_the_tables_say():
    for path, text in render().items():
        assert path.read_text(encoding="utf-8") == text, f"run: make docs ({path.name} is out of date)"


def test_the_page_of_attacks_has_the_measured_table():
    attacks = (PAGES.parent / "explanation" / "attacks.md").read_text(encoding="utf-8")
    assert attacks_table() in attacks


@pytest.mark.parametrize("arguments", [["measure", "nothing"], ["measure", "dp_rasch", "nothing"]])
def test_what_is_not_there_is_not_measured(arguments):
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, UsageError)
    assert "nothing" in result.exception.message


@pytest.mark.parametrize("paper", PAPERS)
def test_every_paper_can_be_measured(paper):
    from importlib import import_module

    assert all(map(callable, import_module(f"reproductions.{paper}.measure").PARTS.values()))


def test_the_measured_difficulties_are_what_the_page_claims():
    """The private difficulties against the published ones, and what the audit found."""
    for measure in page.BOTH:
        assert page.simulated("knorm", 1.0, 120, measure).mean >= 0.90
    ahead, untold, behind = page.wins()
    assert (ahead + untold + behind, behind) == (30, 0)
    for row in page.audit_rows():
        published, planted = "published" in row["mechanism"], "planted bug" in row["mechanism"]
        broken = published or planted or "abilities released too" in row["mechanism"]
        assert row["verdict"] == ("breaks its claim" if broken else "holds as far as shown")
    text = (PAGES / "dp-rasch.md").read_text(encoding="utf-8").lower()
    for word in ("anonymous", "safe", "re-identified"):
        assert word not in text


def test_the_small_version_of_the_reproduction(tmp_path):
    """The published order of methods on a small simulated log: more rows dropped, more error, less risk."""
    log = Classroom(n_learners=300, n_actions=20).simulate(np.random.default_rng(4))
    methods = ("drop:0", "drop:0.5", "drop:0.99", "markov")
    rows = study(log, methods, StudyOptions(n_seeds=2, n_shadows=8)).rows
    mean = {
        method: {
            key: np.mean([r[key] for r in rows if r["method"] == method])
            for key in ("wrmse", "auc_worst", "auc_lcs")
        }
        for method in methods
    }
    assert mean["drop:0"]["wrmse"] < mean["drop:0.5"]["wrmse"] < mean["drop:0.99"]["wrmse"]
    assert mean["drop:0"]["auc_worst"] > mean["drop:0.5"]["auc_worst"] > mean["drop:0.99"]["auc_worst"]
    # What the seed missed: the published attack sees nothing where the strongest one does.
    assert abs(mean["markov"]["auc_lcs"] - 0.5) < 0.08
    assert mean["markov"]["auc_worst"] > 0.62
