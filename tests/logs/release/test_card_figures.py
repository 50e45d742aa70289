"""Every figure on a card, computed again from the shared files; and what it says of the real log, from that log."""

import json
import re

import numpy as np
import polars as pl
import pytest

from understudy.core.privacy.noise import seeded_noise
from understudy.logs.generators.budget import predict
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.interactions import POOLED
from understudy.logs.release.bundle import release
from understudy.logs.simulate import Classroom


@pytest.fixture(scope="module")
def log():
    """Forty actions for a hundred learners: too many for all their names to be told."""
    return Classroom(n_learners=100, n_actions=40).simulate(np.random.default_rng(5))


@pytest.fixture(scope="module", params=["names found", "names declared"])
def shared(request, log, tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures") / "bundle"
    given = log.declare() if request.param == "names declared" else log
    release(given, folder, "markov-dp:epsilon=4", ledger=folder.with_name("l"))
    card = json.loads((folder / "share/card.json").read_text())
    return card, pl.read_csv(folder / "share/synthetic.csv")


def pooled_share(rows):
    return float((rows["action"].cast(pl.String) == POOLED).mean())


def test_the_first_sentence_counts_what_is_in_the_file(shared):
    card, rows = shared
    found = [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", card["what"])]
    expected = [rows.height, rows["action"].n_unique(), rows["learner"].n_unique()]
    if pooled_share(rows) > 0.05:
        expected.append(round(100 * pooled_share(rows)))
    assert found == expected
    assert [card["n_rows"], card["n_actions"], card["n_learners"]] == expected[:3]


def test_what_is_pooled_counts_as_wrong_and_has_no_difficulty(shared):
    card, rows = shared
    assert card["expected"]["action_shares"] >= min(1.0, pooled_share(rows))
    assert (card["expected"]["difficulty"] is None) == (pooled_share(rows) > 0.05)


def test_the_two_kinds_of_card_are_both_tried(log):
    rng = np.random.default_rng(0)
    found = MarkovDP(4.0).fit(log, rng, seeded_noise(rng)).sample(None, rng)
    assert np.mean(found.action == found.actions.index(POOLED)) > 0.05


def test_accuracy_is_that_of_told_actions(shared):
    card, rows = shared
    told = rows.filter(pl.col("action").cast(pl.String) != POOLED)["action"].value_counts()["count"]
    assert [line["rows"] for line in card["accuracy"]] == (
        [told.max(), told.sort(descending=True)[len(told) // 2]] if len(told) else []
    )
    assert all(0 < line["plus_minus"] <= 0.5 for line in card["accuracy"])


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_success_rate_and_number_of_rows_lie_within_their_stated_errors(epsilon):
    """Two standard deviations and an allowance: of 30 fits at most 3 may be outside (chance below 0.2 % at 2.5 %)."""
    log = Classroom(n_learners=300, n_actions=12).simulate(np.random.default_rng(3)).declare()
    outside, rows_outside = 0, 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        fitted = MarkovDP(epsilon).fit(log, rng, seeded_noise(rng))
        drawn = fitted.sample(None, rng)
        outside += abs(drawn.outcome.mean() - log.outcome.mean()) > fitted.success_error_
        ratio = drawn.n_rows / log.n_rows
        rows_outside += not 1 / fitted.rows_factor_ <= ratio <= fitted.rows_factor_
    assert max(outside, rows_outside) <= 3


def test_the_predicted_factor_of_rows_is_about_what_a_fit_states():
    log = Classroom(n_learners=300, n_actions=12).simulate(np.random.default_rng(3)).declare()
    for epsilon in (1.0, 4.0, 8.0):
        predicted = predict(300, 12, log.n_rows / 300, epsilon).rows_factor
        stated = [
            MarkovDP(epsilon).fit(log, rng, seeded_noise(rng)).rows_factor_
            for rng in map(np.random.default_rng, range(5))
        ]
        assert np.log(predicted) == pytest.approx(np.mean(np.log(stated)), rel=0.4)
