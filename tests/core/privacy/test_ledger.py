"""The ledger: append-only, one budget per population, two processes cannot spend it twice."""

import multiprocessing
import sqlite3
from dataclasses import replace

import pytest

from understudy.core.privacy.balance import DEFAULT_LIMIT
from understudy.core.privacy.composition import (
    Cost,
    analytic_rho,
    counted_epsilon,
    from_gaussians,
    total_epsilon,
)
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.ledger import Ledger, ledger_path, new_card_id
from understudy.core.privacy.population import FOLDER_POPULATION, SIMULATED_POPULATION, file_population
from understudy.errors import DataError, MissingError, RefusedError, UsageError

NONE = Guarantee.none("a test")


def record(ledger, guarantee, population="class of 2026", risk=None):
    ledger.record(
        population=population, card="c", kind="release", method="markov", guarantee=guarantee, risk=risk
    )


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "understudy.ledger")


def test_an_absent_ledger_is_an_empty_one_and_is_not_made_by_looking(ledger):
    assert ledger.entries() == []
    assert ledger.balance("x").remaining() == DEFAULT_LIMIT
    assert not ledger.path.exists()


def test_entries_come_back_as_recorded(ledger):
    record(ledger, Guarantee(2.0, 1e-6, mechanisms=("Gaussian",)), risk={"auc_worst": 0.51})
    record(ledger, NONE)
    private, plain = ledger.entries("class of 2026")
    assert (private.epsilon, private.delta, private.risk) == (2.0, 1e-6, {"auc_worst": 0.51})
    assert (plain.epsilon, plain.delta) == (None, None)
    assert plain.statement == "no formal guarantee (a test)"
    balance = ledger.balance("class of 2026")
    assert (balance.epsilon, balance.n_entries, balance.n_without_guarantee) == (2.0, 2, 1)


def test_populations_have_budgets_of_their_own(ledger):
    record(ledger, Guarantee(9.0), "north")
    record(ledger, Guarantee(9.0), "south")
    assert ledger.populations() == ["north", "south"]
    assert ledger.balance("north").remaining() == pytest.approx(1.0)


def test_spending_past_the_limit_is_refused_with_all_numbers_and_writes_nothing(ledger):
    record(ledger, Guarantee(8.0))
    with pytest.raises(RefusedError) as refusal:
        record(ledger, Guarantee(3.0))
    message = str(refusal.value)
    assert "epsilon 3 was asked" in message
    assert "8 of 10 is spent. Together they would count 11; the largest epsilon that fits is 2." in message
    assert refusal.value.exit_code == 4
    assert len(ledger.entries()) == 1
    record(ledger, Guarantee(2.0))  # exactly what remains


def test_deltas_add_up_too(ledger):
    record(ledger, Guarantee(0.1, 9e-5))
    with pytest.raises(RefusedError, match=r"delta 2.00e-05 was asked.*9.00e-05 of 1e-04 is spent"):
        record(ledger, Guarantee(0.1, 2e-5))


def test_no_smaller_epsilon_is_advised_where_delta_is_spent(ledger):
    record(ledger, Guarantee(9.0, 9e-5))
    with pytest.raises(RefusedError) as refusal:
        record(ledger, Guarantee(3.0, 2e-5))
    assert refusal.value.code == "delta-budget"
    record(ledger, Guarantee(0.9995))
    with pytest.raises(RefusedError, match=r"no epsilon above 0\.001 fits"):
        record(ledger, Guarantee(0.5))


def test_spelling_makes_no_new_population(ledger):
    record(ledger, Guarantee(8.0), "Class of 2026")
    with pytest.raises(RefusedError):
        record(ledger, Guarantee(8.0), " class  of 2026 ")


def test_a_check_refuses_like_a_charge_and_charges_nothing(ledger):
    assert ledger.check("x", Guarantee(8.0)).epsilon == 0
    with pytest.raises(RefusedError):
        ledger.check("x", Guarantee(11.0))
    assert ledger.entries() == []


@pytest.mark.parametrize("limit", [float("inf"), float("nan"), -1.0])
def test_limits_that_are_none(ledger, limit):
    with pytest.raises(UsageError):
        ledger.set_limit("x", limit)


def test_the_ledger_is_its_owners(ledger):
    record(ledger, NONE)
    assert ledger.path.stat().st_mode & 0o077 == 0


def test_of_linked_populations_the_strictest_limit_holds(ledger, tmp_path):
    ledger.set_limit("first", 2.0)
    ledger.set_limit("second", 5.0)
    for name in ("first", "second"):
        ledger.link(name, [tmp_path / "log.csv"])
        ledger.set_delta_limit(name, 1e-5 if name == "first" else 1e-3, "a test")
    assert [ledger.balance(name).limit for name in ("first", "second")] == [2.0, 2.0]
    assert [ledger.balance(name).delta_limit for name in ("first", "second")] == [1e-5, 1e-5]


def test_the_newest_limit_holds(ledger):
    ledger.set_limit("class of 2026", 1.0)
    with pytest.raises(RefusedError):
        record(ledger, Guarantee(2.0))
    ledger.set_limit("class of 2026", 5.0, "a test")
    record(ledger, Guarantee(2.0))


@pytest.mark.parametrize(("declare", "usual"), [("set_limit", 10.0), ("set_delta_limit", 1e-4)])
def test_more_may_be_spent_only_for_a_reason_which_the_ledger_keeps(ledger, declare, usual):
    declare = getattr(ledger, declare)
    for reason in ("", "  "):
        with pytest.raises(UsageError) as refused:
            declare("class of 2026", 2 * usual, reason)
        assert (refused.value.code, refused.value.settings) == ("no-reason", ("reason",))
    declare("class of 2026", usual / 2)
    with pytest.raises(UsageError):
        declare("class of 2026", usual)
    declare("class of 2026", 2 * usual, " the board agreed ")
    (kept,) = ledger.declarations()
    assert kept["how"] == "the board agreed"
    assert kept["fact"].startswith("allowed ")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET epsilon = 0",
        "DELETE FROM entries",
        "INSERT OR REPLACE INTO entries SELECT id, at, who, population, card, kind, method, 0, 0, 0, '', '' "
        "FROM entries",
        "INSERT OR REPLACE INTO delta_limits SELECT id, at, who, population, 1 FROM delta_limits",
        "INSERT OR REPLACE INTO limits SELECT id, at, who, population, 99 FROM limits",
    ],
)
def test_rows_can_neither_be_changed_nor_removed(ledger, statement):
    record(ledger, Guarantee(8.0))
    ledger.set_limit("class of 2026", 10.0)
    ledger.set_delta_limit("class of 2026", 1e-5)
    with (
        sqlite3.connect(ledger.path) as connection,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        connection.execute(statement)


def _spend(path, barrier, results):
    barrier.wait()
    try:
        record(Ledger(path), Guarantee(6.0))
        results.put("spent")
    except RefusedError:
        results.put("refused")


def test_two_processes_cannot_spend_the_same_budget(ledger):
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(4), context.Queue()
    processes = [context.Process(target=_spend, args=(ledger.path, barrier, results)) for _ in range(4)]
    for process in processes:
        process.start()
    outcomes = sorted(results.get(timeout=120) for _ in processes)
    for process in processes:
        process.join()
    assert outcomes == ["refused", "refused", "refused", "spent"]


def test_a_damaged_ledger_is_an_error_and_not_an_empty_one(ledger):
    ledger.path.write_bytes(b"this is not a database, whatever its name says" * 100)
    with pytest.raises(DataError, match="damaged or not a ledger"):
        ledger.entries()


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(MissingError, match="cannot be opened or written"):
        record(Ledger(tmp_path / "absent" / "x.ledger"), NONE)


def test_where_the_ledger_is(tmp_path):
    assert ledger_path(tmp_path / "log.csv") == tmp_path.resolve() / "understudy.ledger"
    assert ledger_path(tmp_path / "log.csv", tmp_path / "own") == tmp_path / "own"
    assert FOLDER_POPULATION == "learners of this folder"


def test_card_ids_are_random():
    assert len({new_card_id() for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 0.0), (-1.0, 0.0), (float("nan"), 0.0), (1.0, 1.0), (1.0, -1e-9)]
)
def test_guarantees_that_mean_nothing_are_refused(epsilon, delta):
    with pytest.raises(UsageError):
        Guarantee(epsilon, delta)


def test_a_guarantee_prints_its_delta_in_scientific_notation():
    text = str(Guarantee(8.0, 1e-9, mechanisms=("Gaussian mechanism",)))
    assert "epsilon 8, delta 1.00e-09 for a learner with all their rows" in text
    assert "replace one learner; Gaussian mechanism" in text
    assert str(Guarantee.none("why")) == "no formal guarantee (why)"
    assert Guarantee.none("why").to_json()["epsilon"] is None


def test_what_is_told_about_a_folder_is_told_about_each_of_its_files(ledger, tmp_path):
    first, second = (file_population(tmp_path / name) for name in ("Exam-1.csv", "exam-2.csv"))
    record(ledger, Guarantee(4.0), first)
    record(ledger, Guarantee(1.0), second)
    record(ledger, Guarantee(5.0), FOLDER_POPULATION)
    assert ledger.balance(first).epsilon == 9.0
    assert ledger.balance(second).epsilon == 6.0
    # The folder's learners are those of its files; nobody bears more than the first file's.
    assert ledger.balance().epsilon == 9.0
    with pytest.raises(RefusedError):
        record(ledger, Guarantee(2.0), FOLDER_POPULATION)
    record(ledger, Guarantee(4.0), second)
    assert ledger.balance().remaining() == 0.0
    assert ledger.balance(first).remaining() == 1.0


def test_a_file_links_the_populations_that_it_was_charged_to(ledger, tmp_path):
    exam = tmp_path / "exam.csv"
    ledger.record(
        population=file_population(exam),
        card="c",
        kind="difficulties",
        method="knorm",
        guarantee=Guarantee(4.0),
        files=[exam],
    )
    ledger.record(
        population="Class 7b",
        card="c",
        kind="difficulties",
        method="knorm",
        guarantee=Guarantee(3.0),
        files=[exam],
    )
    other = tmp_path / "other.csv"
    ledger.record(
        population="class 7b",
        card="c",
        kind="difficulties",
        method="knorm",
        guarantee=Guarantee(2.0),
        files=[other],
    )
    for name in ("class 7b", file_population(exam), file_population(other), FOLDER_POPULATION):
        assert ledger.balance(name).epsilon == 9.0
    assert ledger.balance("somebody else").epsilon == 0.0
    assert len(ledger.entries(file_population(other))) == 3
    with pytest.raises(RefusedError):
        record(ledger, Guarantee(2.0), file_population(exam))


def test_a_link_of_the_file_itself_cannot_be_a_way_around(ledger, tmp_path):
    exam = tmp_path / "exam.csv"
    record(ledger, Guarantee(10.0), file_population(exam))
    with pytest.raises(RefusedError):
        ledger.record(
            population="fresh",
            card="c",
            kind="difficulties",
            method="knorm",
            guarantee=Guarantee(1.0),
            files=[exam],
        )


def test_a_symbolic_link_is_the_same_file(tmp_path):
    (tmp_path / "exam.csv").write_text("x")
    (tmp_path / "alias.csv").symlink_to(tmp_path / "exam.csv")
    assert file_population(tmp_path / "alias.csv") == file_population(tmp_path / "exam.csv")


def test_everybody_includes_declared_populations(ledger):
    record(ledger, Guarantee(4.0), "class of 2026")
    record(ledger, Guarantee(3.0), FOLDER_POPULATION)
    assert ledger.balance("class of 2026").epsilon == 7.0
    assert ledger.balance().epsilon == 7.0


def test_simulated_learners_are_nobody(ledger):
    record(ledger, Guarantee(9.0), SIMULATED_POPULATION)
    assert ledger.balance().epsilon == 0.0
    record(ledger, Guarantee(9.0), FOLDER_POPULATION)
    record(ledger, Guarantee(9.0), SIMULATED_POPULATION)
    assert ledger.balance(SIMULATED_POPULATION).epsilon == 18.0


def test_a_files_own_limit_holds_for_what_is_released_about_everybody(ledger, tmp_path):
    ledger.set_limit(file_population(tmp_path / "exam.csv"), 2.0)
    record(ledger, Guarantee(2.0), file_population(tmp_path / "exam.csv"))
    with pytest.raises(RefusedError):
        record(ledger, Guarantee(1.0), FOLDER_POPULATION)


def test_a_limit_of_the_folder_holds_for_its_files(ledger, tmp_path):
    ledger.set_limit(FOLDER_POPULATION, 3.0)
    with pytest.raises(RefusedError):
        record(ledger, Guarantee(4.0), file_population(tmp_path / "exam.csv"))
    ledger.set_limit(file_population(tmp_path / "exam.csv"), 5.0, "a test")
    record(ledger, Guarantee(4.0), file_population(tmp_path / "exam.csv"))


def test_deltas_have_a_limit_that_can_be_declared(ledger):
    with pytest.raises(RefusedError, match=r"delta 1\.00e-03 was asked"):
        record(ledger, Guarantee(1.0, 1e-3))
    ledger.set_delta_limit(FOLDER_POPULATION, 1e-3, "a test")
    record(ledger, Guarantee(1.0, 1e-3))
    assert ledger.balance("class of 2026").delta_limit == 1e-3
    with pytest.raises(RefusedError):
        record(ledger, Guarantee(1.0, 1e-6))
    with pytest.raises(UsageError):
        ledger.set_delta_limit(FOLDER_POPULATION, 1.0)


def test_the_strictest_limit_of_linked_populations_holds(ledger, tmp_path):
    exam = tmp_path / "exam.csv"
    ledger.set_limit("class 7", 1.0)
    ledger.record(
        population="class 7",
        card="c",
        kind="difficulties",
        method="knorm",
        guarantee=Guarantee(1.0),
        files=[exam],
    )
    with pytest.raises(RefusedError):
        record(ledger, Guarantee(5.0), file_population(exam))


def test_files_are_linked_without_spending_and_share_what_is_spent(ledger, tmp_path):
    cohort, log, other = (tmp_path / name for name in ("cohort.csv", "log.csv", "other.csv"))
    for _ in range(2):
        ledger.link(file_population(cohort), [cohort, log])
    assert ledger.entries() == []
    ledger.record(
        population=file_population(log), card="a" * 16, kind="k", method="m", guarantee=Guarantee(2.0)
    )
    assert ledger.balance(file_population(cohort)).epsilon == 2
    assert ledger.balance(file_population(other)).epsilon == 0
    # A release is about the same learners if its population, or this one's file, shares any.
    assert ledger.same_learners(file_population(cohort), [cohort], ["a" * 16]) == file_population(log)
    assert ledger.same_learners("class 7", [cohort], ["b" * 16, "a" * 16]) == file_population(log)
    assert ledger.same_learners("class 7", [other], ["a" * 16]) is None
    assert ledger.same_learners(FOLDER_POPULATION, [other], ["a" * 16]) == file_population(log)
    assert ledger.has_cards(["a" * 16])
    assert not ledger.has_cards(["a" * 16, "b" * 16])


def test_a_data_set_is_the_same_learners_whatever_its_file_is_called(ledger, tmp_path):
    table, copy, other = (tmp_path / name for name in ("table.csv", "copy.csv", "other.csv"))
    assert ledger.unrelated_populations(file_population(table), [table]) == []
    ledger.link(file_population(table), [table], ["a" * 16])
    ledger.record(
        population=file_population(table), card="1" * 16, kind="k", method="m", guarantee=Guarantee(6.0)
    )
    assert ledger.same_learners(file_population(copy), [copy], ["1" * 16]) is None
    assert ledger.same_learners(file_population(copy), [copy], ["1" * 16], ["a" * 16]) == file_population(
        table
    )
    assert ledger.unrelated_populations(file_population(copy), [copy]) == [file_population(table)]
    with pytest.raises(RefusedError):
        ledger.record(
            population=file_population(copy),
            card="2" * 16,
            kind="k",
            method="m",
            guarantee=Guarantee(6.0),
            files=[copy],
            data_sets=["a" * 16],
        )
    ledger.link(file_population(copy), [copy], ["a" * 16])
    assert ledger.balance(file_population(copy)).epsilon == 6
    assert ledger.unrelated_populations(file_population(copy), [copy]) == []
    assert ledger.balance(file_population(other)).epsilon == 0


def test_several_files_of_a_release_bear_its_cost(ledger, tmp_path):
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    ledger.record(population="class 7", card="c", kind="k", method="m", guarantee=Guarantee(2.0), files=files)
    assert [ledger.balance(file_population(file)).epsilon for file in files] == [2, 2]


def test_a_release_that_has_to_be_alone_is_checked_when_it_is_charged(ledger):
    """Two at once may both have seen no other release without a guarantee: the second is refused."""
    record(ledger, NONE)
    with pytest.raises(RefusedError, match="risks add up") as refusal:
        ledger.record(
            population="class of 2026", card="d", kind="release", method="markov", guarantee=NONE, alone=True
        )
    assert refusal.value.code == "risk"
    assert len(ledger.entries()) == 1
    ledger.record(population="others", card="e", kind="release", method="markov", guarantee=NONE, alone=True)


def nearly_gaussian(epsilon=1.0, extra=0.0):
    rho = analytic_rho(epsilon, 1e-6, n_cells=1000, sigma=2.0**15)
    claim = from_gaussians(rho, epsilon, 1e-6, ("Gaussian",), n_cells=1000, sigma=2.0**15)
    return replace(claim, extra_delta=extra)


def test_gaussian_releases_count_as_they_compose_and_the_sum_stands_beside(ledger):
    for _ in range(10):
        record(ledger, nearly_gaussian())
    balance = ledger.balance("class of 2026")
    assert balance.epsilon == pytest.approx(10.0)
    assert balance.counted == pytest.approx(3.14, abs=0.005)
    assert balance.remaining() == pytest.approx(10 - balance.counted, abs=0.01)
    assert str(balance) == "3.14 of 10 is spent (the epsilons add up to 10), and 6.86 can still be asked for"
    record(ledger, nearly_gaussian(extra=5e-7))
    *_, found = ledger.entries()
    assert (found.extra_delta, found.rho > 0, found.slack > 0) == (5e-7, True, True)


PURE = Guarantee(2.0)


@pytest.mark.parametrize("spent", [(), (nearly_gaussian(),), (nearly_gaussian(), PURE), (PURE,)])
@pytest.mark.parametrize("like", [nearly_gaussian(), PURE])
def test_what_remains_is_what_can_still_be_asked_for(ledger, spent, like):
    """To three digits: it fits, and one more in the third digit does not."""
    for guarantee in spent:
        record(ledger, guarantee)
    balance = ledger.balance("class of 2026")
    largest = balance.remaining(like)
    for epsilon, fits in ((largest, True), (largest + 0.02, False)):
        cost = Cost.of(like).at(epsilon)
        wanted = replace(like, epsilon=cost.epsilon, rho=cost.rho)
        assert (counted_epsilon((*balance.costs, Cost.of(wanted))) <= 10 * (1 + 1e-9)) == fits
        if fits:
            assert ledger.check("class of 2026", wanted) is not None
            assert (
                f"; {balance.after(wanted).remaining(wanted):.4g} will remain for a release of this kind"
                in balance.price(wanted)
            )
        else:
            with pytest.raises(RefusedError) as refused:
                ledger.check("class of 2026", wanted)
            assert refused.value.fields["largest"] == largest


def test_the_limit_is_about_the_count_and_nothing_is_written_past_it(ledger):
    ledger.set_limit("class of 2026", 2.0)
    for _ in range(4):  # by their sum 2 would be allowed
        record(ledger, nearly_gaussian())
    assert ledger.balance("class of 2026").counted <= 2.0
    with pytest.raises(RefusedError, match=r"would count 2\.\d+; the largest") as refusal:
        record(ledger, nearly_gaussian())
    assert refusal.value.fields["spent"] <= 2.0 < refusal.value.fields["sum"]
    assert len(ledger.entries()) == 4
    # What the refusal says still fits does, and hardly more.
    largest = refusal.value.fields["largest"]
    assert 0 < 2.0 - ledger.balance("class of 2026").counted < largest < 1
    with pytest.raises(RefusedError):
        record(ledger, nearly_gaussian(largest + 0.01))
    record(ledger, nearly_gaussian(largest))


def test_what_is_about_everybody_composes_with_each_group(ledger):
    record(ledger, nearly_gaussian(), FOLDER_POPULATION)
    for _ in range(3):
        record(ledger, nearly_gaussian(), "north")
    record(ledger, nearly_gaussian(), "south")
    four, two = ([Cost.of(nearly_gaussian())] * n for n in (4, 2))
    assert ledger.balance("north").counted == total_epsilon(four)
    assert ledger.balance("south").counted == total_epsilon(two)
    assert ledger.balance().counted == total_epsilon(four)


def test_entries_of_before_open_and_count_by_their_epsilon(ledger):
    for _ in range(3):
        record(ledger, nearly_gaussian())
    with sqlite3.connect(ledger.path) as book:
        book.execute("DROP TABLE gaussian_costs")
    assert ledger.balance("class of 2026").counted == 3.0
    assert ledger.entries()[0].rho is None
    for _ in range(10):
        record(ledger, nearly_gaussian())
    assert ledger.balance("class of 2026").counted == pytest.approx(3 + 3.14, abs=0.005)


def test_a_charge_that_is_taken_back_does_not_count(ledger):
    for card in ("a", "b"):
        ledger.record(population="x", card=card, kind="k", method="m", guarantee=nearly_gaussian())
    ledger.take_back("b", "nothing was written")
    assert ledger.balance("x").counted == 1.0


@pytest.mark.parametrize("measured", [1.01, 1.9, float("nan")])
def test_a_measured_figure_beyond_its_limit_is_refused(ledger, measured):
    entry = {"population": "class", "kind": "answer", "method": "m", "guarantee": Guarantee.none("measured")}
    with pytest.raises(RefusedError):
        ledger.record(card="a", risk={"mu": measured}, at_most={"mu": 1.0}, **entry)
    ledger.record(card="b", risk={"mu": 1.0}, at_most={"mu": 1.0}, **entry)
    assert [found.card for found in ledger.entries()] == ["b"]
