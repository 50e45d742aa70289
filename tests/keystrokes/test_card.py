"""Every figure on the card of coarsened events, computed again: from the table, the options and the sweep."""

import polars as pl
import pytest

import understudy
from tests.support.figures import numbers, unexplained
from understudy.core.pages.render import percent
from understudy.keystrokes.card import card_content, card_page
from understudy.keystrokes.coarsening import parse_coarsening
from understudy.keystrokes.released_events import ReleasedColumns

ATTACK = {
    "attack": "histograms",
    "k": 3,
    "rate": 0.875,
    "low": 0.61,
    "high": 0.954,
    "chance": 0.2143,
    "n_learners": 14,
}


@pytest.mark.parametrize("attacks", [[], [ATTACK]], ids=["no attack", "attacks of a sweep"])
@pytest.mark.parametrize("coarsening", ["round:100", "bucket:300"])
def test_every_figure_on_the_card_is_computed_again(coarsening, attacks):
    table = pl.DataFrame(
        {
            "learner": [f"learner {place % 15}" for place in range(1200)],
            "time_ms": [100 * place for place in range(1200)],
            "key": ["letter"] * 1200,
        }
    )
    provenance = {"card": "0123456789abcdef", "made": "today", "simulated": False}
    card = card_content(table, parse_coarsening(coarsening), ReleasedColumns(), provenance, attacks)
    size = int(coarsening.split(":")[1])
    # The ends of 10 to 750 ms, made coarse: rounded with halves up, or the upper ends of their buckets.
    low, high = (
        (int(end / size + 0.5) * size if coarsening.startswith("round") else -(-end // size) * size)
        for end in (10, 750)
    )
    shares = [round(ATTACK[name], 2) for name in ("rate", "low", "high", "chance")]
    expected = {
        "Key presses of": [size],
        "learners": [table["learner"].n_unique()],
        "key presses": [table.height],
        "coarsening": [size],
        "These figures were computed": [14, 15],
        "attack guesses": [95],
        "histograms": [3, 14, *(n for share in shares for n in numbers(percent(share)))],
        "Latencies were": [size],
        "Pauses count as": [5000],
        "Every learner starts": [0],
        "Of each key only": [ReleasedColumns().fewest],
        "Count latencies from": [low, high, 10, 750],
    }
    names = ("0123456789abcdef", "012345", understudy.__version__)
    assert unexplained(card_page(card), expected, names) == []
