"""`runs-dp` beside simpler models: the table of the page is the measured one, and the measurement, small."""

import numpy as np
import pytest

from reproductions import simpler_models
from reproductions.pages import rows_of
from reproductions.simpler_models import (
    COLUMNS,
    PAGE,
    SIZES,
    TABLE,
    PopularityAndRasch,
    compared,
    page,
)
from understudy.core.privacy.composition import default_delta
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.generators.budget import Spending, budget
from understudy.logs.simulated.classroom import Classroom


def test_the_page_shows_what_was_measured():
    rows = rows_of(TABLE)
    text = PAGE.read_text(encoding="utf-8")
    assert tuple(rows[0]) == COLUMNS
    assert {(int(row["learners"]), int(row["actions"]), float(row["epsilon"])) for row in rows} == set(SIZES)
    assert compared(rows) in text
    assert page(text, rows) == text


def test_the_simpler_model_knows_shares_and_difficulties_and_no_steps():
    """One size with little noise; difficulties all alike are worse than any that were learned."""
    found = dict(zip(COLUMNS[4:], simpler_models.measured(300, 5, 20.0, 0), strict=True))
    assert max(found["actions ours"], found["actions simpler"]) < 0.04
    assert found["difficulties simpler"] < 0.2 < found["difficulties alike"]
    assert found["transitions ours"] < 0.1 < 0.3 < found["transitions simpler"]


def test_the_simpler_model_spends_the_whole_budget(monkeypatch):
    spent = []
    spend = Spending.spend

    def noted(self, name, *totals):
        spent.append(self.rho_of(name))
        return spend(self, name, *totals)

    monkeypatch.setattr(Spending, "spend", noted)
    log = Classroom(n_learners=40, n_actions=6).simulate(np.random.default_rng(0)).declare()
    rng = np.random.default_rng(0)
    PopularityAndRasch(2.0).fit(log, rng, seeded_noise(rng))
    assert sum(spent) == pytest.approx(budget(2.0, default_delta(40)))
