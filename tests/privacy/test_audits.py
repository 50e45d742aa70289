"""Claimed and measured: on the worst neighbours known, what is spent is nearly what is claimed, and never more."""

from pathlib import Path

import pytest

from tests.privacy.support.worst_pairs import AUDITS

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "audits.md"


@pytest.mark.parametrize("name", AUDITS)
def test_the_worst_neighbours_cost_nearly_the_claim_and_the_page_says_so(name):
    found = AUDITS[name]()
    assert found.measured <= found.claimed * (1 + 1e-9)
    assert found.share > 0.95
    assert found.row() in PAGE.read_text(encoding="utf-8").splitlines()


def test_the_page_has_no_other_row():
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert sum(line.split(" | ")[1] in ("mu", "epsilon", "delta") for line in rows) == len(AUDITS)
