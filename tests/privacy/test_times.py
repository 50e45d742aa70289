"""Times: what their sums really spend on the worst neighbours, in the budgets of `markov-dp` and `runs-dp`."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from tests.privacy.support.transcripts import costs, transcripts
from tests.privacy.support.worst_pairs import random_timed_logs, released_log, timed_logs
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.declared.term import Term
from understudy.logs.generators.budget import Spending, budget
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.private_times import (
    SHARES,
    TERM_SHARES,
    TimeStatistics,
    found_term,
    most_bins,
    time_shares,
)
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.interactions import Interactions, joined
from understudy.logs.models.sessions import Calendar
from understudy.logs.simulated.classroom import Classroom

# The draws of times, in order, after all others: one for each statistic, but two for days and four for norms.
WITH_DAYS = ("gaps", "session_rows", "hours", "days_and_hours", "pauses")
COUNTED = ("times gaps", "times session rows", "times hours", "times pauses")
OF_TERM = ("times years", "times years", "times months", "times months")
OF_TIMES = (
    "times sessions", "times starts", "times stops", "times spans", *(("times norms",) * 4), *COUNTED, "times pace",
)  # fmt: skip
# Of their share the worst neighbours lose at least this much. The norm of so few rows is far below the largest, and no
# learner's scores have a negative mean product and a weight of 1.
LEAST = dict.fromkeys((*OF_TIMES, *OF_TERM), 0.98) | {"times norms": 0.1, "times pace": 0.1}
EPSILON, DELTA = 8.0, 1e-6


def losses(pair, kind=MarkovDP, epsilon=EPSILON):
    """What each draw of times loses, and all draws together."""
    found = transcripts(lambda log, noise: released_log(log, noise, kind=kind, epsilon=epsilon), pair)
    lost = np.array([cost.rho for cost in costs(*found)])
    n = len(draws(pair[0].term))
    return lost[-n:], lost


def draws(term):
    return OF_TIMES if term.declared else (*OF_TERM, *OF_TIMES)


def allowed(log, epsilon=EPSILON):
    names = draws(log.term)
    shares = MarkovDP(epsilon, DELTA).divided(log)
    total = 1.0 + sum(shares.values())
    return np.array([budget(epsilon, DELTA) * shares[name] / total / names.count(name) for name in names])


@pytest.mark.parametrize("term", [None, Term()])
def test_no_sum_of_times_loses_more_than_its_share_and_nearly_all_of_them_that(term):
    pair = timed_logs() if term is None else [replace(log, term=term) for log in timed_logs()]
    lost, everything = losses(pair)
    limit = allowed(pair[0])
    assert (lost <= limit).all()
    for name, share in zip(draws(pair[0].term), lost / limit, strict=True):
        assert share >= LEAST[name], name
    assert 0.9 * budget(EPSILON, DELTA) < everything.sum() <= budget(EPSILON, DELTA)


def test_runs_dp_pays_for_times_like_markov_dp():
    pair = timed_logs()
    lost, everything = losses(pair, RunsDP)
    assert (lost <= allowed(pair[0])).all()
    assert everything.sum() <= budget(EPSILON, DELTA)


@pytest.mark.parametrize("epsilon", [8.0, 0.5])
@pytest.mark.parametrize("term", [Term(date(2024, 1, 1), date(2024, 3, 15), 60.0), Term()])
def test_no_pair_that_was_drawn_loses_more(term, epsilon):
    """Times out of the term, equal ones, ones that run backwards, learners without rows, with one, and with 1,200."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        pair = random_timed_logs(rng, term)
        lost, everything = losses(pair, epsilon=epsilon)
        assert (lost <= allowed(pair[0], epsilon)).all()
        assert everything.sum() <= budget(epsilon, DELTA)


def test_statistics_of_one_learner_move_no_further_than_stated():
    """Against sums of whole logs, learner by learner: everybody is replaced by everybody else."""
    rng = np.random.default_rng(1)
    term = Term(date(2024, 1, 1), date(2024, 6, 30))
    calendar = Calendar.of(term, 30)
    laws = rng.dirichlet(np.ones(len(calendar.gap_edges) - 1), 4)
    # Gaps so even that all scores are alike, and others so that they alternate.
    steps = {
        "none": np.empty(0), "one": np.zeros(1), "even": np.full(300, 1.0), "slow": np.full(40, 1700.0),
        "two": np.array([0.0, 0.0, 1799.0]), "pauses": np.full(80, 90_000.0), "mixed": rng.integers(0, 4000, 200),
    }  # fmt: skip
    parts = {}
    for gap in steps.values():
        action = rng.integers(0, 2, len(gap))
        log = Interactions.from_sequences([action], [rng.integers(0, 2, len(gap))], actions=["a", "b"])
        seconds = (np.datetime64("2024-02-01", "s").astype(np.int64) + np.cumsum(gap)).astype(np.int64)
        log = replace(log, time=seconds.astype("datetime64[s]").astype("datetime64[us]"), term=term)
        sums = TimeStatistics(log, calendar)
        counted = {name: getattr(sums, name) for name in WITH_DAYS}
        for name, total in {
            "sessions": sums.sessions(), "starts": sums.starts(), "stops": sums.stops(), "spans": sums.spans(),
            "pace": sums.pace(laws),
            **{f"norm of {name}": sums.log_norm(entries) for name, entries in counted.items()},
            **{name: sums.counts(entries, 3.0) for name, entries in counted.items()},
        }.items():  # fmt: skip
            parts.setdefault(name, []).append((total.values.astype(float), total.sensitivity))
    for name, found in parts.items():
        distances = [np.linalg.norm(a - b) for a, _ in found for b, _ in found]
        assert 0 < max(distances) <= found[0][1], name


def test_the_pair_of_the_pace_has_the_diameter_that_is_stated():
    """Two gaps with opposite scores have the product -1, equal ones +1, at the largest weight that two can have."""
    rng = np.random.default_rng(0)
    corners = np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, 1.0]])
    inside = rng.dirichlet(np.ones(3), 2000) @ corners
    assert (np.abs(inside[:, 0]) <= inside[:, 1] + 1e-12).all()
    apart = np.linalg.norm(inside[:, None] - inside[None], axis=2).max()
    assert apart <= 2.0
    assert np.linalg.norm(corners[1] - corners[2]) == 2.0


def test_bins_and_shares_follow_from_public_numbers():
    """The same for every log of so many learners with this term, whatever is in it."""
    pair = timed_logs()
    assert time_shares(pair[0]) == time_shares(pair[1]) == SHARES
    assert time_shares(replace(pair[0], term=None)) == {}
    assert set(time_shares(replace(pair[0], term=Term()))) == {*SHARES, *TERM_SHARES}
    assert [most_bins(n, 0.04) for n in (10, 400, 10**6)] == [4, 13, 60]
    fitted = [MarkovDP().fit(log, noise=seeded_noise(np.random.default_rng(0))) for log in pair]
    assert len({each.details_.times.calendar for each in fitted}) == 1


def test_what_each_learner_adds_explains_the_released_sums():
    """The attack that sees the noisy sums gets each learner's part of those of times, also for a log of other size."""
    log = Classroom(n_learners=300, n_actions=6, timed=True).simulate(np.random.default_rng(1)).declare()
    log = replace(log, columns=(), term=Term())
    fitted = MarkovDP(8.0).fit(log, np.random.default_rng(0), seeded_noise(np.random.default_rng(0)))
    sums = fitted.learner_sums(log)
    left = sums.released - np.asarray(sums.added.sum(axis=0)).ravel()
    assert np.std(left) == pytest.approx(1.0, abs=0.1)
    assert sum(name.startswith("times ") for name in fitted.transcript_) == len(OF_TERM) + len(OF_TIMES)
    assert fitted.learner_sums(log.select(np.arange(40))).added.shape[0] == 40


@pytest.mark.parametrize("term", [Term(date(2024, 1, 1), date(2025, 12, 31)), Term()])
def test_what_a_learner_adds_does_not_depend_on_others(term):
    """Learner by learner: the one who is replaced changes no other learner's part of any sum that is released."""
    others = Classroom(n_learners=60, n_actions=6, timed=True).simulate(np.random.default_rng(1))
    pair = [
        joined(others.select(np.arange(30)), log.select([2000]), others.select(np.arange(30, 60)))
        for log in timed_logs()
    ]
    pair = [replace(log.declare(), term=term, columns=()) for log in pair]
    fitted = MarkovDP(8.0).fit(pair[0], np.random.default_rng(0), seeded_noise(np.random.default_rng(0)))
    first, second = (fitted.learner_sums(log).added.toarray() for log in pair)
    same = np.arange(61) != 30
    np.testing.assert_array_equal(first[same], second[same])
    assert (first[30] != second[30]).any()


class Zero:
    """Noise that adds nothing."""

    secret = False

    def discrete_gaussian(self, values, sigma):
        return values


@pytest.mark.parametrize("first", ["1970-01-01T00:00:05", "2024-09-02T08:00:00", "2100-12-30T00:00:00"])
def test_a_term_that_is_not_declared_is_found_where_learners_are(first):
    log = Classroom(n_learners=600, timed=True).simulate(np.random.default_rng(2)).declare()
    moved = log.time - log.time.min() + np.datetime64(first, "us")
    log = replace(log, time=moved, term=Term(resolution=1.0), columns=())
    fitted = MarkovDP(8.0).fit(log, noise=seeded_noise(np.random.default_rng(0)))
    calendar = fitted.details_.times.calendar
    day = moved.astype("datetime64[D]").astype(date)
    inside = (day >= calendar.first_day) & (day <= calendar.last_day)
    # Those outside of the grid of years are moved to its end.
    assert inside.mean() > 0.98 or first.startswith("2100")
    assert calendar.n_days < 300
    assert "found privately" in fitted.details_.notes[0]


def test_where_no_year_stands_out_the_user_is_told_and_times_lie_in_one_year():
    log = replace(timed_logs()[0].select(np.arange(1998, 2003)), term=Term())
    fitted = MarkovDP(0.05).fit(log, noise=seeded_noise(np.random.default_rng(0)))
    assert "no year stands out" in fitted.details_.notes[0]
    calendar = fitted.details_.times.calendar
    assert calendar.n_days in (365, 366)
    drawn = fitted.sample(30, np.random.default_rng(0))
    assert (drawn.time >= np.datetime64(calendar.first_day)).all()
    assert (drawn.time < np.datetime64(calendar.last_day) + np.timedelta64(1, "D")).all()
    assert drawn.term.declared


def test_the_days_of_a_term_are_paid_for_before_they_are_used():
    log = replace(timed_logs()[0], term=Term())
    spending = Spending(1.0, Zero(), vocabulary=False, shares={**SHARES, **TERM_SHARES})
    found_term(log, log.term, spending)
    assert not {"times years", "times months"} & set(spending.unspent)
    with pytest.raises(KeyError):
        found_term(log, log.term, spending)
