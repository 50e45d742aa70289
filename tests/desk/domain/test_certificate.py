"""A certificate says what left, about how many learners, and what its price leaves out; the store has to agree."""

from pathlib import Path

import pytest

from tests.desk.support.fixtures import OTHER
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.ledger import Ledger
from understudy.desk.domain import certificate
from understudy.desk.service import data_sets, views
from understudy.desk.service.verification import verify
from understudy.desk.store.tables import DataSetRow, ReleaseRow
from understudy.errors import DataError


def signed(filled, name):
    view = views.request(filled.desk, filled.researcher, name)
    return views.certificate(filled.desk, view.certificate)


def test_an_edited_result_is_found_and_not_shown(small):
    name = small.released()
    was = views.request(small.desk, small.researcher, name).released
    with small.desk.database.writing() as session:
        session.query(ReleaseRow).one().run.results = {"values": {"mean minutes": 99.0}, "tables": {}}
    assert views.request(small.desk, small.researcher, name).released == was
    with pytest.raises(DataError, match="not what its certificate says"):
        verify(small.desk)


def test_an_edited_code_is_found(small):
    small.released()
    with small.desk.database.writing() as session:
        session.query(ReleaseRow).one().request.code = OTHER
    with pytest.raises(DataError, match="not what its certificate says"):
        verify(small.desk)


def test_a_result_is_about_the_learners_of_its_day(small):
    name = small.released()
    data_sets.withdraw_learner(small.desk, small.custodian, small.data_set, "simulated-07")
    view = views.request(small.desk, small.researcher, name)
    assert (view.n_learners, view.n_learners_then) == (35, 36)
    assert signed(small, name)["n_learners"] == 36


def test_a_price_is_measured_and_says_what_it_leaves_out(small):
    first = signed(small, small.released())
    assert first["other_releases"] == {"exist": False, "meaning": certificate.NO_OTHERS}
    assert first["price"]["includes_stage_one"] is False
    assert first["price"]["this_answer"].keys() == {"mu_measured_up_to", "advantage_measured_up_to"}
    with small.desk.database.reading() as session:
        path, population = session.query(DataSetRow.ledger, DataSetRow.population).one()
    Ledger(Path(path)).record(
        population=population,
        card="a synthetic log",
        kind="synthetic data",
        method="markov",
        guarantee=Guarantee.none("it was not measured"),
    )
    second = signed(small, small.released(OTHER))
    assert second["other_releases"] == {"exist": True, "meaning": certificate.OTHERS}
    # What left before on this desk is in the price.
    assert verify(small.desk).n_releases == 2
