"""The comparison of `make bench`: what became slower is named, whatever else changed; no time is measured here."""

import json

import pytest

from benchmarks.ratios import ACCEPTED, UNIT, Accepted, compare


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
    accepted(fit=10.0).updated({"fit": 20.04}).write(path)
    again = Accepted.read(path)
    assert again == Accepted({"fit": 20.0}, 0.25)
    assert compare(again, {"fit": 24.0}).ok
    assert not compare(again, {"fit": 26.0}).ok


def test_figures_in_another_unit_are_refused(tmp_path):
    path = tmp_path / "accepted.json"
    path.write_text(json.dumps({"unit": "seconds", "tolerance": 0.3, "figures": {}}))
    with pytest.raises(ValueError, match="another unit"):
        Accepted.read(path)


def test_the_repository_has_accepted_figures_for_what_it_promises():
    figures = Accepted.read(ACCEPTED).figures
    assert json.loads(ACCEPTED.read_text())["unit"] == UNIT
    for kind in ("ordinary names", "names like simulated ones", "numbers"):
        name = f"private difficulties of a million learners, {kind}"
        # The promises: 12 units, 1 GB, and no more than eleven times a tenth of the learners.
        assert figures[name] <= 12
        assert figures[f"{name}, GB"] <= 1
        assert figures[f"{name}, against a tenth of them"] <= 11
    for method in ("marginal", "conditional", "joint", "private"):
        assert figures[f"sparse answers, {method}"] <= 40
    assert {"inspect a million rows", "markov, a million rows"} <= set(figures)
