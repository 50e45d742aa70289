"""Names that a generator finds privately: what is said before anything is spent, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.command import run
from understudy.core.privacy.ledger import Ledger
from understudy.core.privacy.noise import seeded_noise
from understudy.errors import RefusedError
from understudy.logs.declared.columns import Column
from understudy.logs.expectation import check_worth
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.interactions import POOLED
from understudy.logs.names import FoundNames, categories_doubts
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.synthesize import synthesize


def classroom(n_learners, n_actions):
    return Classroom(n_learners=n_learners, n_actions=n_actions).simulate(np.random.default_rng(2))


@pytest.mark.parametrize("kind", [MarkovDP, RunsDP])
def test_what_is_expected_is_what_a_fit_does(kind):
    log, generator = classroom(150, 12), kind(8.0)
    expected = FoundNames.expected(log, generator)
    kept = []
    for _ in range(3):
        fitted = kind(8.0).fit(log, np.random.default_rng(0))
        assert expected.sigma == pytest.approx(np.max(fitted.transcript_["vocabulary 0"].sigma))
        assert np.all(fitted.transcript_["vocabulary 0"].values > expected.threshold)
        told = np.isin(np.array(log.actions)[log.action], [n for n in fitted.actions_ if n != POOLED])
        kept.append(told.mean())
    assert 0.2 < expected.kept < 0.98
    assert expected.kept == pytest.approx(np.mean(kept), abs=0.25)


def test_the_threshold_is_public():
    """Two logs of as many learners have the same one, whatever the learners did."""
    first, second = (FoundNames.expected(classroom(60, n), MarkovDP(4.0)) for n in (5, 40))
    assert (first.threshold, first.sigma) == (second.threshold, second.sigma)
    assert first.sentence() == second.sentence()
    assert first.kept > second.kept


def test_declared_names_and_methods_without_a_guarantee_have_none_to_find():
    log = classroom(20, 5)
    assert FoundNames.expected(log.declare(), MarkovDP(4.0)) is None
    from understudy.logs.generators.registry import parse_generator

    assert FoundNames.expected(log, parse_generator("markov")) is None


def test_a_release_without_names_is_refused_before_it_spends(tmp_path):
    log = classroom(40, 20).to_polars("pupil-")
    log.write_csv(tmp_path / "log.csv")
    asked = ("synthesize", "log.csv", "-o", "out.csv", "-m", "markov-dp:epsilon=4")
    refused = run(*asked, cwd=tmp_path)
    assert refused.returncode == 4
    for part in ("one is released if about", "Stays inside: about", "Nothing was spent"):
        assert part in refused.stderr
    assert "(--public-actions, --actions, --anyway)" in refused.stderr
    assert not (tmp_path / "understudy.ledger").exists()
    made = run(*asked, "--anyway", "--json", cwd=tmp_path)
    assert made.returncode == 0
    assert "Stays inside: about" in made.stderr
    assert "Stays inside" not in made.stdout + (tmp_path / "out.csv").read_text()
    assert len(Ledger(tmp_path / "understudy.ledger").entries()) == 1


def test_a_stand_in_shows_the_same_refusal():
    with pytest.raises(RefusedError) as refused:
        synthesize(classroom(40, 20), "markov-dp:epsilon=4")
    assert refused.value.code == "names-lost"
    assert synthesize(classroom(40, 20), "markov-dp:epsilon=4", anyway=True).log.n_rows


@pytest.mark.parametrize(("n_learners", "keeps"), [(40, "about 0 %"), (2000, "about 100 %")])
def test_what_categories_that_are_found_would_keep_is_said_before_the_charge(n_learners, keeps):
    log = Classroom(n_learners=n_learners, timed=True).simulate(np.random.default_rng(0)).declare()
    device = next(column for column in log.columns if column.declared.name == "device")
    found = replace(log, columns=(Column(replace(device.declared, found=True), device.cells),), term=None)
    doubts = categories_doubts(found, RunsDP(2.0))
    assert len(doubts) == 1
    assert "'device' are found privately" in str(doubts[0])
    assert f"Stays inside: {keeps} of its cells would keep theirs" in str(doubts[0])
    real = replace(found, simulated=False)
    assert doubts[0] in check_worth(real, RunsDP(2.0), anyway=True)
    assert categories_doubts(replace(found, columns=(device,)), RunsDP(2.0)) == ()
    # As a fit does.
    rng = np.random.default_rng(1)
    drawn = RunsDP(2.0).fit(found, rng, seeded_noise(rng)).sample(None, rng)
    others = (drawn.columns[0].cells == len(drawn.columns[0].declared.values)).mean()
    assert others == (1.0 if n_learners == 40 else 0.0)
