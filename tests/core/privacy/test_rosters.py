"""Rosters: the ledger knows learners again under another name, and says nothing about them."""

import json
import math
import sqlite3

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.core.files.origin import Origin
from understudy.core.files.people.learner_ids import digests_of_names
from understudy.core.privacy import rosters
from understudy.core.privacy.confirmation import asked_by
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.ledger import Ledger
from understudy.core.privacy.population import FOLDER_POPULATION
from understudy.core.privacy.rosters import Roster, shared_share
from understudy.core.privacy.spending import Account, Spending
from understudy.errors import RefusedError, UsageError

KEY = b"k" * 32


def roster(names):
    return Roster(digests_of_names(pl.Series([str(name) for name in names], dtype=pl.String)))


def account(folder, names, file="log.csv", **spending):
    names = [name if isinstance(name, str) else f"student {name}" for name in names]
    return Account.open(
        Spending(**spending),
        Origin(folder / file, digests=digests_of_names(pl.Series(names, dtype=pl.String))),
        simulated=False,
    )


def charge(account, epsilon=1.0):
    with account.charge("k", "m", Guarantee(epsilon)):
        pass


def exact_share(first, second):
    return len(first & second) / min(len(first), len(second)) if first and second else 0.0


@pytest.mark.oracle
@settings(max_examples=60, deadline=None)
@given(st.sets(st.integers(0, 60)), st.sets(st.integers(0, 60)))
def test_the_share_is_exact_while_sketches_are_complete(first, second):
    found = shared_share(roster(first).sketch(KEY), roster(second).sketch(KEY))
    assert found == exact_share(first, second)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("n_first", "n_second", "n_both"), [(900, 900, 450), (2000, 500, 250), (1500, 300, 300)]
)
def test_larger_groups_are_estimated_within_the_error_of_a_sample(monkeypatch, n_first, n_second, n_both):
    """The mean over 40 keys lies within 4 standard errors of the truth: a false alarm in 16,000."""
    monkeypatch.setattr(rosters, "SIZE", 128)
    first, second = set(range(n_first)), set(range(n_first - n_both, n_first - n_both + n_second))
    groups = roster(first), roster(second)
    keys = [bytes([number]) * 32 for number in range(40)]
    found = np.array([shared_share(*(group.sketch(key) for group in groups)) for key in keys])
    truth, n_sampled = exact_share(first, second), 128 * min(n_first, n_second) / max(n_first, n_second)
    assert abs(found.mean() - truth) <= 4 * math.sqrt(0.25 / (n_sampled * len(keys))) + 0.01


def test_spelling_makes_no_other_learners():
    again = [" ANNA", "ben ", "7.0", "012"]
    assert shared_share(roster(["Anna", "Ben", "007", "12"]).sketch(KEY), roster(again).sketch(KEY)) == 1.0


def test_the_key_decides_what_is_kept():
    assert shared_share(roster(range(50)).sketch(KEY), roster(range(50)).sketch(b"l" * 32)) == 0.0


def test_the_same_learners_under_another_name_are_refused_and_nothing_is_charged(tmp_path):
    charge(account(tmp_path, range(40)))
    for copy in (
        account(tmp_path, range(40), "copy.csv"),
        account(tmp_path, range(40), "copy.csv", population="other people"),
        account(tmp_path, range(20), "half.csv"),  # half the class
        account(tmp_path, [*range(30, 40), *range(100, 190)], "ten of them.csv"),
    ):
        for attempt in (copy.check, lambda guarantee, copy=copy: charge(copy)):
            with pytest.raises(RefusedError) as refusal:
                attempt(Guarantee(1.0))
            assert refusal.value.code == "known-learners"
            assert refusal.value.settings == ("population", "other_learners", "reason")
            assert refusal.value.fields["populations"] == ["learners of the file log.csv"]
    assert len(Ledger(tmp_path / "understudy.ledger").entries()) == 1


def test_charged_to_the_population_that_they_are_known_as_everything_adds_up(tmp_path):
    charge(account(tmp_path, range(40)))
    again = account(tmp_path, range(40), "copy.csv", population="Learners of the file log.csv")
    charge(again)
    assert again.balance().epsilon == 2.0
    charge(account(tmp_path, range(40), "copy.csv"))  # linked by now
    assert again.balance().epsilon == 3.0


def test_other_learners_are_not_asked_about(tmp_path):
    charge(account(tmp_path, range(40)))
    charge(account(tmp_path, range(100, 140), "b.csv"))
    charge(account(tmp_path, [*range(38, 40), *range(200, 238)], "two of them.csv"))
    assert account(tmp_path, range(40)).balance().epsilon == 1.0


@pytest.mark.parametrize("names", [range(30), range(1, 31), [*range(1, 7), *range(8, 31)]])
def test_learners_who_are_only_numbered_are_known_by_their_file(tmp_path, names):
    names = [str(name) for name in names]
    for file, content in (("7a.csv", "a"), ("7b.csv", "b"), ("copy of 7a.csv", "a")):
        (tmp_path / file).write_text(content)
    charge(account(tmp_path, names, "7a.csv"))
    charge(account(tmp_path, names, "7b.csv"))  # another class has a learner 1 as well
    with pytest.raises(RefusedError) as refusal:
        charge(account(tmp_path, names, "copy of 7a.csv"))
    assert refusal.value.code == "known-learners"


def test_numbers_of_students_are_names(tmp_path):
    charge(account(tmp_path, [str(number) for number in range(104_200, 104_230)]))
    with pytest.raises(RefusedError):
        charge(account(tmp_path, [str(number) for number in range(104_210, 104_240)], "other.csv"))


def test_other_learners_of_the_same_names_are_declared_and_why_is_noted(tmp_path):
    charge(account(tmp_path, range(40), "7a.csv"))
    charge(account(tmp_path, range(40), "7b.csv", other_learners=True, reason=" another school "))
    ledger = Ledger(tmp_path / "understudy.ledger")
    assert ledger.balance("learners of the file 7b.csv").epsilon == 1.0
    (declared,) = ledger.declarations()
    assert declared["population"] == "learners of the file 7b.csv"
    assert declared["fact"] == "other learners than learners of the file 7a.csv"
    assert (declared["how"], bool(declared["who"]), bool(declared["at"])) == ("another school", True, True)


@pytest.mark.parametrize("reason", ["", "  "])
def test_without_a_reason_they_get_no_budget_of_their_own(tmp_path, reason):
    charge(account(tmp_path, range(40), "7a.csv"))
    other = account(tmp_path, range(40), "7b.csv", other_learners=True, reason=reason)
    for attempt in (other.check, lambda guarantee: charge(other)):
        with pytest.raises(UsageError) as refused:
            attempt(Guarantee(1.0))
        assert (refused.value.code, refused.value.settings) == ("no-reason", ("reason",))
        assert "'learners of the file 7a.csv'" in refused.value.message
    ledger = Ledger(tmp_path / "understudy.ledger")
    assert (len(ledger.entries()), ledger.declarations()) == (1, [])


def test_the_reason_stays_for_the_two_and_for_no_other(tmp_path):
    charge(account(tmp_path, range(40), "7a.csv"))
    others = {"other_learners": True}
    charge(account(tmp_path, range(40), "7b.csv", **others, reason="another school"))
    charge(account(tmp_path, range(40), "7b.csv", **others))
    for file, more in (("7c.csv", {}), ("7b.csv", {"simulated": True})):
        with pytest.raises((UsageError, RefusedError)) as refused:
            charge(account(tmp_path, range(40), file, **others, **more))
        assert refused.value.code == ("known-as-real" if more else "no-reason")
    assert len(Ledger(tmp_path / "understudy.ledger").entries()) == 3


def test_a_reason_for_one_file_is_none_for_another(tmp_path):
    charge(account(tmp_path, range(40), "7a.csv"))
    for file in ("7b.csv", "7c.csv"):
        charge(account(tmp_path, range(40), file, other_learners=True, reason="another school"))
    with pytest.raises(UsageError, match=r"others than 'learners of the file 7c\.csv' without") as refused:
        charge(account(tmp_path, range(40), "7b.csv", other_learners=True))
    assert refused.value.code == "no-reason"


def test_simulated_learners_of_known_names_need_the_reason_each_time(tmp_path):
    charge(account(tmp_path, range(40), "7a.csv"))
    declared = {"other_learners": True, "simulated": True}
    charge(account(tmp_path, range(40), "made.csv", **declared, reason="made by our own program"))
    with pytest.raises(UsageError) as refused:
        charge(account(tmp_path, range(40), "made.csv", **declared))
    assert refused.value.code == "no-reason"


def test_what_was_declared_before_reasons_were_asked_for_needs_one_now(tmp_path):
    charge(account(tmp_path, range(40), "7a.csv"))
    with sqlite3.connect(tmp_path / "understudy.ledger") as connection:
        connection.execute(
            "INSERT INTO declarations (at, who, population, fact, how) VALUES ('2024', 'ana', ?, ?, ?)",
            (
                "learners of the file 7b.csv",
                "other learners than learners of the file 7a.csv",
                "declared by the user",
            ),
        )
    with pytest.raises(UsageError) as refused:
        charge(account(tmp_path, range(40), "7b.csv", other_learners=True))
    assert refused.value.code == "no-reason"


def test_a_yes_at_the_terminal_is_no_reason(tmp_path):
    """A person says it as a script does; the refusal comes before the price is stated."""
    charge(account(tmp_path, range(40), "7a.csv"))
    questions = []
    with asked_by(lambda question: not questions.append(question)):
        for reason, kind in ((None, RefusedError), ("", UsageError)):
            said = {} if reason is None else {"other_learners": True, "reason": reason}
            with pytest.raises(kind) as refused:
                charge(account(tmp_path, range(40), "7b.csv", **said))
            assert refused.value.code == ("known-learners" if reason is None else "no-reason")
    assert questions == []
    assert len(Ledger(tmp_path / "understudy.ledger").entries()) == 1


def test_a_release_without_a_guarantee_is_refused_too(tmp_path):
    charge(account(tmp_path, range(40), "7a.csv"))
    with (
        pytest.raises(RefusedError),
        account(tmp_path, range(40), "7b.csv").charge("k", "m", Guarantee.none("x")),
    ):
        pass


def test_known_learners_cannot_be_declared_simulated_under_another_name(tmp_path):
    charge(account(tmp_path, range(40)))
    with pytest.raises(RefusedError) as refusal:
        account(tmp_path, range(40), "copy.csv", simulated=True).check(Guarantee(1.0))
    assert refusal.value.code == "known-as-real"


def test_a_second_ledger_is_refused_for_a_copy_as_well(tmp_path):
    charge(account(tmp_path, range(40)))
    with pytest.raises(RefusedError) as refusal:
        account(tmp_path, range(40), "copy.csv", ledger=tmp_path / "elsewhere.ledger")
    assert refusal.value.code == "ledger-elsewhere"


def test_what_was_taken_back_or_is_about_everybody_raises_no_question(tmp_path):
    failing = account(tmp_path, range(40))
    with pytest.raises(OSError, match="full"), failing.charge("k", "m", Guarantee(1.0)):
        raise OSError("full")
    charge(account(tmp_path, range(40), "copy.csv"))
    everybody = account(tmp_path, range(40), "all.csv", population=FOLDER_POPULATION)
    charge(everybody)
    assert everybody.balance().epsilon == 2.0


def test_linked_files_are_known_without_a_charge(tmp_path):
    account(tmp_path, range(40)).link()
    charge(account(tmp_path, range(40), "copy.csv"))
    with pytest.raises(RefusedError):
        charge(account(tmp_path, range(40)))


def test_the_key_and_the_sketches_stay_in_the_ledger(tmp_path):
    from tests.support.command import run

    (tmp_path / "log.csv").write_text("learner,action,outcome\n")
    charge(account(tmp_path, ["canary-4711", *range(40)]))
    book = sqlite3.connect(tmp_path / "understudy.ledger")
    ((key,),) = book.execute("SELECT key FROM roster_keys").fetchall()
    ((sketch,),) = book.execute("SELECT sketch FROM rosters").fetchall()
    assert len(key) == 32
    assert b"canary" not in (tmp_path / "understudy.ledger").read_bytes()
    said = run("ledger", "log.csv", "--json", cwd=tmp_path).stdout
    assert json.loads(said)["epsilon"] == 1.0
    assert key.hex() not in said
    assert sketch.hex()[:16] not in said
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        book.execute("DELETE FROM rosters")


def test_the_same_roster_is_kept_once(tmp_path):
    for _ in range(3):
        charge(account(tmp_path, range(40)))
    book = sqlite3.connect(tmp_path / "understudy.ledger")
    assert book.execute("SELECT count(*) FROM rosters").fetchone() == (1,)


def test_a_ledger_of_before_opens_and_its_learners_are_known_from_the_next_charge_on(tmp_path):
    charge(account(tmp_path, range(40)))
    with sqlite3.connect(tmp_path / "understudy.ledger") as book:
        book.executescript("DROP TABLE rosters; DROP TABLE roster_keys;")
    assert len(Ledger(tmp_path / "understudy.ledger").entries()) == 1
    charge(account(tmp_path, range(40)))
    with pytest.raises(RefusedError):
        charge(account(tmp_path, range(40), "copy.csv"))


def test_a_charge_that_is_checked_first_digests_its_learners_once(tmp_path, monkeypatch):
    keys = []
    digest = rosters.keyed_digests
    monkeypatch.setattr(rosters, "keyed_digests", lambda ids, key: keys.append(key) or digest(ids, key))
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        opened = account(tmp_path / folder, range(30))
        opened.check(Guarantee(1.0))
        charge(opened)
    # One key for each ledger, and not the same.
    assert len(keys) == len(set(keys)) == 2
