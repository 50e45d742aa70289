"""The division of the budget between actions, times and columns: the least predicted error, by public numbers alone."""

from dataclasses import replace
from itertools import product
from math import inf

import numpy as np
import pytest

from understudy.core.privacy.noise import seeded_noise
from understudy.logs.declared.columns import Column, Declared, Kind
from understudy.logs.generators.detail_split import MOST_DETAILS, WEIGHTS, detail_shares, predicted_loss
from understudy.logs.generators.forecast import forecast
from understudy.logs.generators.private_columns import COLUMN_SHARE, column_shares
from understudy.logs.generators.private_times import SHARES, time_shares
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.utility import Comparison, Real
from understudy.logs.utility.times import gap_ks, hour_tv, session_ks


@pytest.fixture(scope="module")
def log():
    return Classroom(n_learners=200, n_actions=20, timed=True).simulate(np.random.default_rng(0)).declare()


def weights(shares, log):
    """What the usual shares of times and of columns were multiplied by."""
    of_columns = sum(share for name, share in shares.items() if name.startswith("columns"))
    return shares["times hours"] / SHARES["times hours"], of_columns / sum(column_shares(log).values())


@pytest.mark.parametrize("n_learners", [40, 300, 5000, 100_000])
@pytest.mark.parametrize("rho", [0.01, 0.3, 3.0])
def test_no_other_division_is_predicted_to_be_closer(log, n_learners, rho):
    chosen = detail_shares(log, rho, n_learners)
    assert sum(chosen.values()) <= MOST_DETAILS
    least = predicted_loss(log, chosen, rho, n_learners)
    for of_times, of_columns in product(WEIGHTS, repeat=2):
        other = {**time_shares(log, of_times), **column_shares(log, of_columns)}
        if sum(other.values()) <= MOST_DETAILS:
            assert predicted_loss(log, other, rho, n_learners) >= least


def test_times_have_more_where_they_would_be_noise_and_less_where_actions_are(log):
    few = weights(detail_shares(log, 0.5, 300), log)
    assert few[0] == 2.0
    # A hundred thousand learners: times are close anyhow, and a thousand actions are not.
    many = replace(log, actions=tuple(f"a{place:04}" for place in range(1000)))
    assert weights(detail_shares(many, 0.5, 100_000), log)[0] == 0.5


def test_nothing_is_weighed_without_noise_or_without_details(log):
    assert weights(detail_shares(log, inf, 200), log) == (1.0, pytest.approx(1.0))
    assert detail_shares(replace(log, columns=(), term=None), 0.5, 200) == {}


def test_more_columns_than_fit_have_their_usual_share(log):
    outcome = replace(log.columns[0], declared=replace(log.columns[0].declared, name="outcome"))
    crowd = replace(log, columns=(outcome, *log.columns))
    # The outcome alone takes 0.4: only the usual shares, or less, fit beside it.
    assert sum(detail_shares(crowd, 0.1, 60).values()) <= MOST_DETAILS
    assert COLUMN_SHARE * 4 < MOST_DETAILS


def test_categories_that_are_found_do_not_decide(log):
    def with_categories(n):
        values = tuple(f"v{place}" for place in range(n))
        declared = Declared("c", Kind.category, "learner", values=values, found=True)
        return replace(log, columns=(Column(declared, np.arange(log.n_learners) % n),))

    for n_learners, rho in product((40, 300, 5000), (0.01, 0.3, 3.0)):
        assert detail_shares(with_categories(2), rho, n_learners) == detail_shares(
            with_categories(90), rho, n_learners
        )


def test_names_that_are_found_do_not_decide(log):
    found = replace(log, declared=False)
    other = replace(found, actions=tuple(f"a{place:04}" for place in range(1000)))
    for n_learners, rho in product((40, 300, 5000, 100_000), (0.01, 0.3, 3.0)):
        assert detail_shares(found, rho, n_learners) == detail_shares(other, rho, n_learners)


def test_the_forecast_goes_by_the_share(log):
    usual, twice = ({**time_shares(log, weight), **column_shares(log)} for weight in (1.0, 2.0))
    columns = [column.declared for column in log.columns]
    one, two = (forecast(300, 20, 30, 8.0, details=shares, columns=columns) for shares in (usual, twice))
    assert all(two.times[use].noise < one.times[use].noise for use in one.times)
    assert two.shares.noise > one.shares.noise
    assert all(two.columns[name] > one.columns[name] for name in one.columns)


def test_what_is_predicted_to_be_closer_is_closer(log):
    """Times of 200 learners at epsilon 8, with twice their share and with half of it: means of six releases."""
    rng = np.random.default_rng(1)
    off = {}
    for weight in (0.5, 2.0):
        shares = {**time_shares(log, weight), **column_shares(log)}

        class Divided(RunsDP):
            def divided(self, log, n_learners=None, shares=shares):
                return shares

        comparisons = [
            Comparison(Real(log, log), Divided(8.0).fit(log, rng, seeded_noise(rng)).sample(None, rng))
            for _ in range(6)
        ]
        off[weight] = np.mean(
            [[hour_tv(each), gap_ks(each), session_ks(each)] for each in comparisons], axis=0
        )
    assert (off[2.0] < off[0.5]).all()
