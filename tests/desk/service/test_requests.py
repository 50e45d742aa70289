"""What people can do at the desk: data sets, requests, releases, and what each of them sees."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tests.desk.support.fixtures import MEAN, OTHER, POLICY, REASON, policy_of, school_frame, write_real
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.ledger import Ledger
from understudy.desk.domain import certificate
from understudy.desk.domain.people import NotAllowedError
from understudy.desk.domain.policy import Grounds
from understudy.desk.service import data_sets, releases, requests, views
from understudy.desk.service.notices import notices
from understudy.desk.service.verification import verify
from understudy.desk.store.tables import DataSetRow, EventRow, ReleaseRow, RunRow, WithdrawalRow
from understudy.errors import DataError, RefusedError, UsageError


def named_like_people(frame):
    return frame.with_columns(pl.col("learner").str.replace("simulated", "person"))


HELD_BACK = ("run again", "withhold", "release", "return")


def ledger(filled):
    with filled.desk.database.reading() as session:
        return Ledger(Path(session.query(DataSetRow.ledger).scalar())).entries()


def register(filled, who=None, **frames):
    folder = filled.desk.settings.folder
    paths = {}
    for name, seed in (("real", 5), ("synthetic", 6)):
        paths[name] = folder / f"{name}-2.csv"
        write_real(frames.get(name, school_frame(seed)), paths[name])
    return data_sets.register(filled.desk, who or filled.custodian, title="Another", policy=POLICY, **paths)


def test_a_data_set_is_registered_by_a_custodian(filled):
    view = register(filled)
    assert view.n_learners == 36
    assert view.columns[0] == "learner"
    assert view.simulated
    with pytest.raises(NotAllowedError):
        register(filled, filled.reviewer)
    assert [one.name for one in data_sets.listed(filled.desk, filled.researcher)] == [
        filled.data_set,
        view.name,
    ]
    data_sets.close(filled.desk, filled.custodian, view.name)
    assert len(data_sets.listed(filled.desk, filled.researcher)) == 1
    with pytest.raises(RefusedError, match="no more requests"):
        requests.create(filled.desk, filled.researcher, view.name, question="What is it, then?", code=MEAN)


def test_tables_that_are_not_alike_are_refused_without_naming_a_path(small):
    wide = school_frame(5).with_columns(extra=pl.lit(1.0))
    words = school_frame(5).with_columns(pl.lit("often").alias("evening_01"))
    for frames in ({"synthetic": wide}, {"real": words}, {"real": school_frame(5).drop("learner")}):
        with pytest.raises(DataError) as caught:
            register(small, **frames)
        assert str(small.desk.settings.folder) not in str(caught.value)


def test_a_learner_who_withdraws_is_left_out_and_leaves_a_hash(filled):
    before = data_sets.real_table(filled.desk, filled.data_set)
    with pytest.raises(NotAllowedError):
        data_sets.withdraw_learner(filled.desk, filled.reviewer, filled.data_set, "simulated-07")
    data_sets.withdraw_learner(filled.desk, filled.custodian, filled.data_set, "simulated-07")
    after = data_sets.real_table(filled.desk, filled.data_set)
    assert (before.table.n_learners, after.table.n_learners) == (36, 35)
    assert (before.hash, before.version) != (after.hash, after.version)
    assert data_sets.view(filled.desk, filled.researcher, filled.data_set).n_learners == 35
    for learner, words in (("simulated-07", "already"), ("nobody", "no learner of that name")):
        with pytest.raises(UsageError, match=words):
            data_sets.withdraw_learner(filled.desk, filled.custodian, filled.data_set, learner)
    with filled.desk.database.reading() as session:
        assert "simulated-07" not in session.query(WithdrawalRow.learner).scalar()
        assert "simulated-07" not in json.dumps([line.detail for line in session.query(EventRow)])


@pytest.mark.parametrize("newcomer", ["a9", "9.5"])
def test_who_withdrew_stays_out_when_another_learner_changes_the_type_of_names(small, newcomer):
    """001 is a number in one csv file, and text in the next."""
    with small.desk.database.writing() as session:
        (row,) = session.query(DataSetRow)
        row.simulated, path = False, Path(row.real)
    path.write_text(path.read_text().replace("simulated-", "0"))
    data_sets.withdraw_learner(small.desk, small.custodian, small.data_set, "007")
    with pytest.raises(UsageError, match="already"):
        data_sets.withdraw_learner(small.desk, small.custodian, small.data_set, "7")
    before = data_sets.real_table(small.desk, small.data_set).table.n_learners
    *rest, last = path.read_text().splitlines()
    path.write_text("\n".join([*rest, last, newcomer + last[last.index(",") :], ""]))
    assert data_sets.real_table(small.desk, small.data_set).table.n_learners == before + 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"question": "What?"}, "research question"),
        ({"question": "a b c " * 4000}, "too long"),
        ({"shown": "a b c " * 4000}, "too long"),
        ({"code": " \n"}, "needs code"),
        ({"code": "# " + "x" * POLICY.most_code_bytes}, "longer than"),
        ({"code": "def analyze(data):\n    '\x00'"}, "character"),
        ({"code": "'\ud800'"}, "character"),
        ({"kind": "k" * 61}, "kind"),
    ],
)
def test_what_cannot_be_asked(small, change, words):
    given = {"question": "How many minutes then?", "code": MEAN, **change}
    with pytest.raises(UsageError, match=words):
        requests.create(small.desk, small.researcher, small.data_set, **given)


def test_the_same_code_has_one_hash_however_its_lines_end(small):
    names = [small.draft(MEAN), small.draft(MEAN.replace("\n", "\r\n"))]
    codes = {views.request(small.desk, small.researcher, name).code for name in names}
    assert codes == {MEAN}


def test_code_imports_what_the_policy_allows(small):
    name = small.draft("import ctypes.util\n" + MEAN)
    with pytest.raises(RefusedError, match="imports ctypes"):
        requests.submit(small.desk, small.researcher, name)
    assert small.state(name) == "draft"


def test_nobody_fills_the_desk(small, monkeypatch):
    monkeypatch.setattr(requests, "MOST_OPEN", 2)
    names = [small.draft(), small.draft()]
    with pytest.raises(RefusedError, match="2 is the most"):
        small.draft()
    requests.withdraw(small.desk, small.researcher, names[0])
    small.draft()
    monkeypatch.setattr(requests, "MOST_WAITING", 1)
    requests.submit(small.desk, small.researcher, names[1])
    other = small.draft(who=small.second_researcher)
    with pytest.raises(RefusedError, match="submit later"):
        requests.submit(small.desk, small.second_researcher, other)
    assert small.state(other) == "draft"


def test_a_release_is_charged_once_and_certified(filled):
    name = filled.released()
    shown = views.request(filled.desk, filled.researcher, name)
    held = views.request(filled.desk, filled.reviewer, name).held
    assert shown.released == held.results
    (entry,) = ledger(filled)
    assert (entry.card, entry.epsilon) == (shown.certificate, None)
    assert entry.risk["measured_mu_of_everything"] == held.prices["together"]["mu"]["high"]
    document = views.certificate(filled.desk, shown.certificate)
    certificate.verify(document, certificate.public_key(filled.desk.settings.secret))
    assert (
        document["price"]["everything_released"]["mu_measured_up_to"] >= held.prices["together"]["mu"]["high"]
    )
    text = json.dumps(document)
    assert "reason" not in text
    assert filled.researcher.name not in text
    with pytest.raises(DataError, match="changed after"):
        certificate.verify({**document, "result": {"values": 1, "tables": {}}})
    assert verify(filled.desk).n_releases == 1


def test_a_second_release_needs_a_price_beside_the_first(filled):
    first, second = filled.held(), filled.held(OTHER)
    releases.decide(filled.desk, filled.reviewer, first, REASON)
    # As soon as it is decided, and not only when it is out.
    with pytest.raises(RefusedError, match="run it again"):
        releases.decide(filled.desk, filled.second_reviewer, second, REASON)
    filled.work()
    assert views.request(filled.desk, filled.reviewer, second).held.verdict.has(Grounds.OUT_OF_DATE)
    releases.run_again(filled.desk, filled.reviewer, second)
    filled.work()
    held = views.request(filled.desk, filled.reviewer, second).held
    assert (held.verdict.has(Grounds.OUT_OF_DATE), held.basis) == (False, (first,))
    assert held.prices["together"]["n_outputs"] == held.prices["own"]["n_outputs"] + 1
    releases.decide(filled.desk, filled.reviewer, second, REASON)
    filled.work()
    assert verify(filled.desk).n_releases == 2


def test_limits_and_checks_that_failed_are_final(small):
    name = small.held()
    held = views.request(small.desk, small.reviewer, name).held
    mu = held.prices["together"]["mu"]["high"]
    with policy_of(small, mu_limit=mu / 2), pytest.raises(RefusedError, match="limit"):
        releases.decide(small.desk, small.reviewer, name, REASON)
    with policy_of(small, advantage_limit=0.001), pytest.raises(RefusedError, match="advantage"):
        releases.decide(small.desk, small.reviewer, name, REASON)
    with small.desk.database.writing() as session:
        run = session.query(RunRow).filter_by(trial=False).one()
        run.checks = [{"name": "shape", "verdict": "fail", "reason": "it is", "numbers": []}]
    with pytest.raises(RefusedError, match="'shape' failed"):
        releases.decide(small.desk, small.reviewer, name, REASON)
    with policy_of(small, may_override=("shape",)):
        with pytest.raises(RefusedError, match="no reason"):
            releases.decide(small.desk, small.reviewer, name)
        releases.decide(small.desk, small.reviewer, name, REASON)
        small.work()
    document = views.certificate(small.desk, views.request(small.desk, small.researcher, name).certificate)
    assert document["released_against_a_check"] is True


def test_what_the_ledger_refuses_stays_held(filled):
    name = filled.held()
    mu = views.request(filled.desk, filled.reviewer, name).held.prices["together"]["mu"]["high"]
    releases.decide(filled.desk, filled.reviewer, name, REASON)
    with policy_of(filled, mu_limit=mu / 2):
        filled.work()
    assert filled.state(name) == "output held"
    assert ledger(filled) == []
    with filled.desk.database.reading() as session:
        assert session.query(ReleaseRow).count() == 0
    releases.decide(filled.desk, filled.reviewer, name, REASON)
    filled.work()
    assert filled.state(name) == "released"
    assert verify(filled.desk).n_releases == 1


def test_data_that_changed_behind_a_price_is_not_released(small):
    name = small.held()
    releases.decide(small.desk, small.reviewer, name, REASON)
    with small.desk.database.reading() as session:
        real = Path(session.query(DataSetRow.real).scalar())
    write_real(school_frame(99), real)
    small.work()
    assert small.state(name) == "output held"
    assert ledger(small) == []
    releases.run_again(small.desk, small.reviewer, name)
    small.work()
    releases.decide(small.desk, small.reviewer, name, REASON)
    small.work()
    assert small.state(name) == "released"


def test_nothing_is_left_of_an_output_that_was_to_be_run_again(small):
    name = small.held()
    releases.run_again(small.desk, small.reviewer, name)
    requests.cancel(small.desk, small.reviewer, name)
    requests.refuse(small.desk, small.reviewer, name, "it is not needed any more")
    with small.desk.database.reading() as session:
        for run in session.query(RunRow).filter(RunRow.trial.is_(False)):
            assert run.results is None
            assert run.probes is None
            assert run.shadows is None


def test_an_output_that_was_computed_with_somebody_who_left_is_deleted(small):
    name = small.held()
    data_sets.withdraw_learner(small.desk, small.custodian, small.data_set, "simulated-07")
    view = views.request(small.desk, small.reviewer, name)
    assert view.held is None
    assert "run again" in view.actions
    with pytest.raises(RefusedError, match="no output"):
        releases.decide(small.desk, small.reviewer, name, REASON)
    releases.run_again(small.desk, small.reviewer, name)
    small.work()
    assert views.request(small.desk, small.reviewer, name).held is not None


def test_an_output_that_was_checked_by_other_rules_is_not_released(small):
    name = small.held()
    stricter = replace(POLICY, minimum_learners=30)
    data_sets.set_policy(small.desk, small.custodian, small.data_set, stricter)
    assert views.request(small.desk, small.reviewer, name).held.verdict.has(Grounds.OUT_OF_DATE)
    with pytest.raises(RefusedError, match="its price is not what it would cost now"):
        releases.decide(small.desk, small.reviewer, name, REASON)


def test_releases_that_no_price_covers_need_a_written_reason(small):
    name = small.held()
    with small.desk.database.reading() as session:
        path, population = session.query(DataSetRow.ledger, DataSetRow.population).one()
    Ledger(Path(path)).record(
        population=population,
        card="another",
        kind="release",
        method="markov",
        guarantee=Guarantee.none("a baseline"),
    )
    checks = {one.name: one.verdict for one in views.request(small.desk, small.reviewer, name).held.checks}
    assert checks["others"] == "review"
    with pytest.raises(RefusedError, match="no reason was written"):
        releases.decide(small.desk, small.reviewer, name)


@pytest.mark.parametrize(
    "change", [lambda frame: frame, lambda frame: frame.drop("learner"), named_like_people]
)
def test_a_real_table_given_for_the_synthetic_one_is_refused(small, change):
    real = school_frame(8)
    with pytest.raises(DataError, match="researchers will download it"):
        register(small, real=named_like_people(real), synthetic=change(real))


def test_learners_of_two_data_sets_are_counted_together(small):
    real = named_like_people(school_frame(7))
    register(small, real=real)
    folder = small.desk.settings.folder
    paths = {"real": folder / "copy.csv", "synthetic": folder / "synthetic-2.csv"}
    real.write_csv(paths["real"])
    with pytest.raises(UsageError, match="some of these learners are in the data set"):
        data_sets.register(
            small.desk, small.custodian, title="A copy", policy=POLICY, population="others", **paths
        )


def test_returned_and_withheld_outputs_are_gone(filled):
    back, closed = filled.held(), filled.held(OTHER)
    requests.send_back(filled.desk, filled.reviewer, back, "please round the minutes")
    releases.withhold(filled.desk, filled.reviewer, closed)
    assert (filled.state(back), filled.state(closed)) == ("returned", "withheld")
    with filled.desk.database.reading() as session:
        for run in session.query(RunRow).filter_by(trial=False):
            assert run.results is run.probes is run.shadows is None
            assert run.checks == []
    assert views.request(filled.desk, filled.researcher, back).note == "please round the minutes"


def test_what_was_deleted_is_nowhere_in_the_files(small):
    marker = "marker-7431"
    name = small.held("def analyze(data):\n    return {'mark' + 'er-74' + '31': 1.0}\n")

    def kept():
        files = small.desk.settings.folder.glob("desk.sqlite*")
        return any(marker.encode() in file.read_bytes() for file in files)

    assert kept()
    with small.desk.database.writing() as session:
        # The trial on synthetic data may stay; here it holds the marker too.
        session.query(RunRow).filter_by(trial=True).update({"results": None})
    releases.withhold(small.desk, small.reviewer, name)
    releases.expire(small.desk)
    assert not kept()


def test_researchers_see_nothing_that_depends_on_the_data_until_it_is_released(small):
    name = small.held()
    own = views.request(small.desk, small.researcher, name)
    assert own.state == "being answered"
    assert (own.held, own.progress, own.history, own.released, own.certificate) == (
        None,
        None,
        (),
        None,
        None,
    )
    assert not own.actions & set(HELD_BACK)
    assert own.trial.results is not None
    inside = views.request(small.desk, small.reviewer, name)
    assert inside.held.checks
    assert {"release", "withhold", "return", "run again"} <= inside.actions
    with pytest.raises(UsageError, match="no such request"):
        views.request(small.desk, small.second_researcher, name)
    # Somebody who reviews is a researcher like others when it is their own.
    theirs = small.held(OTHER, who=small.second_reviewer)
    seen = views.request(small.desk, small.second_reviewer, theirs)
    assert (seen.state, seen.held, seen.history) == ("being answered", None, ())


def test_notices_reach_those_who_wait_and_say_nothing_of_the_data(small):
    name = small.released()
    words = {one.name: [notice.words for notice in notices(small.desk, one)] for one in small.people}
    assert words[small.researcher.name] == ["Your result was released."]
    assert words[small.second_researcher.name] == []
    assert words[small.reviewer.name] == [
        "An output is held and waits for a decision.",
        "A request waits for review.",
    ]
    assert notices(small.desk, small.reviewer)[0].request == name


def test_a_policy_in_force_is_that_of_the_data_set(small):
    strict = replace(POLICY, minimum_learners=12)
    data_sets.set_policy(small.desk, small.custodian, small.data_set, strict)
    assert data_sets.view(small.desk, small.researcher, small.data_set).policy == strict
    with small.desk.database.reading() as session:
        line = session.query(EventRow).order_by(EventRow.id.desc()).first()
        assert (line.action, line.detail["changed"]) == ("set policy", {"minimum_learners": 12})
    with pytest.raises(NotAllowedError):
        data_sets.set_policy(small.desk, small.reviewer, small.data_set, POLICY)
