"""Claimed and measured: on the worst neighbours known, what is spent is nearly what is claimed, and never more."""

from pathlib import Path

import pytest

from tests.privacy.support.worst_pairs import AUDITS

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "audits.md"
# Where less is seen the page says why.
LESS = {"markov-dp, names found": 0.84}


@pytest.mark.parametrize("name", AUDITS)
def test_the_worst_neighbours_cost_nearly_the_claim_and_the_page_says_so(name):
    found = AUDITS[name]()
    assert found.measured <= found.claimed * (1 + 1e-9)
    assert found.share > LESS.get(name, 0.95)
    row = f"| {found.mechanism} | {found.measure} | {found.claimed:.3f} | {found.measured:.3f} | {found.share:.0%} |"
    assert row.replace("%", " %") in PAGE.read_text(encoding="utf-8")


def test_the_page_has_no_other_row():
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert sum("| mu |" in line or "| epsilon |" in line for line in rows) == len(AUDITS)
