"""Cycles on simulated schools: what a year hands on to the next, and what it gains."""

import numpy as np
import pytest

from reproductions.two_stage.cycles import ARMS, CyclesPlan, as_feedback, gains, levels, run_cycles
from understudy.cohorts.findings import compare_findings
from understudy.cohorts.simulate import School


@pytest.fixture(scope="module")
def cycles():
    return run_cycles(CyclesPlan(n_schools=2, n_learners=60, n_each=60))


def test_cycles_have_a_row_for_each_school_year_and_arm(cycles):
    assert len(cycles) == 2 * 3 * len(ARMS)
    first = [row for row in cycles if row["school"] == 0 and row["year"] == 1]
    assert len({row["ajs"] for row in first}) == 1


def test_gains_are_paired_and_the_first_year_has_none(cycles):
    found = gains(cycles, np.random.default_rng(0))
    assert {one.year for one in found} == {0, 2, 3}
    (one,) = [g for g in found if (g.arm, g.year, g.measure) == ("cycles", 2, "ajs")]
    values = {(row["school"], row["arm"]): row["ajs"] for row in cycles if row["year"] == 2}
    expected = np.mean([values[school, "cycles"] - values[school, "one-shot"] for school in (0, 1)])
    assert one.interval.mean == pytest.approx(expected)
    assert one.interval.low <= one.interval.mean <= one.interval.high
    assert len(levels(cycles, np.random.default_rng(0))) == 3 * len(ARMS) * 6


def test_researchers_report_analyses_in_which_they_found_something():
    real, synthetic = (School(n_learners=60).simulate(0, np.random.default_rng(seed)) for seed in (4, 9))
    found = compare_findings(real, synthetic)
    told = as_feedback(found, 60, 5, np.random.default_rng(0))
    assert len(told.entries) == 5
    assert all(any(one.synthetic.significant for one in entry.findings) for entry in told.entries)
