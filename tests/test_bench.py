"""`make bench`: what became slower is named, instructions are counted, the page shows what was measured.

No time is measured or asserted here.
"""

import json

import pytest

from benchmarks.accepted import ACCEPTED, UNITS, Accepted, compare
from benchmarks.instructions import count
from benchmarks.kernels import KERNELS
from benchmarks.measuring import in_turns
from benchmarks.page import PAGE, page
from benchmarks.results import Part, Rate, Ratio, Results, Spread
from understudy.errors import MissingError


def accepted(tolerance=0.25, **figures):
    return Accepted(figures, tolerance)


@pytest.mark.parametrize(
    ("now", "verdict"),
    [(10.0, "same"), (12.5, "same"), (12.6, "slower"), (8.0, "same"), (7.9, "faster"), (1000.0, "slower")],
)
def test_a_figure_beyond_the_tolerance_is_slower_or_faster(now, verdict):
    found = compare(accepted(fit=10.0), {"fit": now})
    assert [change.name for change in found.slower] == (["fit"] if verdict == "slower" else [])
    assert [change.name for change in found.faster] == (["fit"] if verdict == "faster" else [])
    assert found.ok is (verdict != "slower")


def test_one_slower_job_among_faster_ones_is_named_with_its_factor():
    found = compare(accepted(fit=10.0, read=4.0), {"fit": 1.0, "read": 6.0})
    assert not found.ok
    assert "SLOWER  read: 4 -> 6 (1.50 times)" in found.lines()
    assert "faster  fit: 10 -> 1 (0.10 times)" in found.lines()
    assert found.lines()[-1] == "Find out why, or accept it: make bench ACCEPT=1"


def test_a_job_without_an_accepted_figure_is_not_passed_in_silence():
    found = compare(accepted(fit=10.0), {"fit": 10.0, "new job": 1.0})
    assert not found.ok
    assert "NEW     new job: nothing was accepted yet" in found.lines()


def test_a_job_that_did_not_run_is_named_and_keeps_its_figure():
    before = accepted(fit=10.0, read=4.0)
    found = compare(before, {"fit": 9.0})
    assert found.ok
    assert "left out  read" in found.lines()
    assert before.updated({"fit": 9.0}).figures == {"fit": 9.0, "read": 4.0}


def test_what_was_accepted_is_compared_with_next_time(tmp_path):
    path = tmp_path / "accepted.json"
    accepted(fit=10.0).updated({"fit": 20.004}).write("times", path)
    accepted(walks=7.0, tolerance=0.03).write("instructions", path)
    again = Accepted.read("times", path)
    assert again == Accepted({"fit": 20.0}, 0.25)
    assert Accepted.read("instructions", path) == Accepted({"walks": 7.0}, 0.03)
    assert compare(again, {"fit": 24.0}).ok
    assert not compare(again, {"fit": 26.0}).ok


def test_figures_in_another_unit_are_refused(tmp_path):
    path = tmp_path / "accepted.json"
    path.write_text(json.dumps({"times": {"unit": "seconds", "tolerance": 0.3, "figures": {}}}))
    with pytest.raises(ValueError, match="another unit"):
        Accepted.read("times", path)


def test_the_repository_has_accepted_figures_for_what_it_promises():
    figures = Accepted.read("times").figures
    assert {kind: each["unit"] for kind, each in json.loads(ACCEPTED.read_text()).items()} == UNITS
    for kind in ("ordinary names", "names like simulated ones", "numbers"):
        name = f"private difficulties of a million learners, {kind}"
        # The promises: 12 units, 1 GB, and no more than eleven times a tenth of the learners.
        assert figures[name] <= 12
        assert figures[f"{name}, GB"] <= 1
        assert figures[f"{name}, against a tenth of them"] <= 11
    for method in ("marginal", "conditional", "joint", "private"):
        assert figures[f"sparse answers, {method}"] <= 40
    assert {"inspect a million rows", "markov, a million rows"} <= set(figures)
    assert set(Accepted.read("instructions").figures) == set(KERNELS)


@pytest.mark.slow
def test_a_kernel_that_does_more_is_noticed_and_one_that_does_the_same_is_not():
    """Counted by valgrind: the walks, and twice as many of them in place of a slower kernel."""
    try:
        counts = count(["walks=1", "walks=2"])
    except MissingError as error:
        pytest.skip(error.message)
    before = Accepted({"walks": counts["walks=1"]}, Accepted.read("instructions").tolerance)
    assert compare(before, {"walks": 1.02 * counts["walks=1"]}).lines() == [
        "Nothing became slower by more than 3 %."
    ]
    found = compare(before, {"walks": counts["walks=2"]})
    assert [change.name for change in found.slower] == ["walks"]
    # Twice the walks, and the same few calls around them.
    assert 1.8 < found.slower[0].factor < 2.1


def test_without_valgrind_it_is_said_what_is_missing(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(MissingError, match="valgrind is not installed"):
        count(["walks=1"])


def test_works_take_turns_after_a_run_that_is_not_counted():
    runs = []

    def measure(name, seconds):
        runs.append(name)
        return seconds

    spent = in_turns(lambda: measure("ours", 1.0), lambda: measure("theirs", 8.0), rounds=2)
    assert runs == ["ours", "theirs"] * 3
    assert spent == [[1.0, 1.0], [8.0, 8.0]]


def test_a_ratio_has_its_spread_round_by_round():
    ratio = Ratio("a fit", "a peer", ours=[1.0, 2.0, 1.0], theirs=[10.0, 10.0, 12.0])
    assert ratio.times == Spread(median=10.0, low=5.0, high=12.0)
    assert str(ratio) == "a fit: a peer takes 10 (5 to 12) times as long"
    assert str(Spread.of([78_533.0])) == "78,500 (78,500 to 78,500)"


def test_what_is_not_measured_again_stays_and_what_is_skipped_says_why(tmp_path):
    path, part = tmp_path / "results.json", Part("2026-01-01", "a machine", 0.5)
    results = Results.read(path)
    results.keep("lea", part, {"ratios": [vars(Ratio("walks", "lea", [1.0], [2.0], 3.0))]})
    results.keep("memory", part, {"rates": [vars(Rate("walks", [81.234567]))]})
    results.write(path)
    again = Results.read(path)
    again.skip("lea", "lea does not install.")
    again.write(path)
    kept = Results.read(path)
    assert kept.ratios() == [Ratio("walks", "lea", [1.0], [2.0], 3.0)]
    assert kept.rates() == [Rate("walks", [81.23])]
    assert kept.skipped == {"lea": "lea does not install."}
    kept.keep("lea", part, {})
    assert kept.skipped == {}


def test_the_page_shows_what_was_measured_last():
    assert PAGE.read_text(encoding="utf-8") == page(Results.read())
