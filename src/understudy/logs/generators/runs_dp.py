"""`runs-dp`: learners who stay until they have mastered an action or give up, differentially private for each learner.

Beside the sums of `markov-dp` it needs a few more: how many stay and succeed beyond what is expected of their actions,
by the run so far and by earlier attempts; how many jumps lead to something new; and, where an order of the actions is
declared, how far they lead in it. The proof, statistic by statistic, is in docs/explanation/guarantee.md.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from understudy.core.privacy.noise import Noise
from understudy.logs.generators.budget import Noisy, Spending, budget, of_actions
from understudy.logs.generators.calibration import CELL_NORM, RunTargets, calibrated, spread_abilities
from understudy.logs.generators.markov_dp import (
    MOST_ABILITY,
    MOST_JUMP_ACTIONS,
    MarkovDP,
    stay_chances,
)
from understudy.logs.generators.private_sums import (
    WalkStatistics,
    signed_sum,
)
from understudy.logs.interactions import IntArray, Interactions, offsets_of, totals
from understudy.logs.models.curriculum import displacement_class, jumps_by_displacement
from understudy.logs.models.denoising import averaged_counts, expected_counts, fit_margins, shrunk_shares
from understudy.logs.models.lengths import spread_lengths

Floats = NDArray[np.float64]

# Shares of the budget (rho). Chosen on simulated classrooms and on ASSISTments 2009, never on the data at hand.
SHARES = {
    "length moments": 0.015,
    "lengths": 0.03,
    "norms": 0.015,
    "starts": 0.01,
    "totals": 0.03,
    "first stays": 0.01,
    "second stays": 0.01,
    "first successes": 0.015,
    "second successes": 0.02,
    "first new jumps": 0.005,
    "second new jumps": 0.005,
    "runs": 0.03,
    "rows": 0.40,
    "jumps": 0.14,
    "curvature": 0.01,
    "last curvature": 0.01,
    "abilities": 0.01,
    "staying": 0.02,
    "practice": 0.015,
}
# Rounds for difficulties: with many learners four, with fewer two, as the others would add noise alone.
FEW_ROUNDS = {"slopes 1": 0.14, "slopes 2": 0.38}
MANY_ROUNDS = {"slopes 1": 0.06, "slopes 2": 0.12, "slopes 3": 0.17, "slopes 4": 0.17}
MANY_LEARNERS = 1500
# What a declared order takes from all others.
ORDER_SHARE = {"order": 0.04}
# Curvature is asked for in the first two rounds; it changes little after them.
CURVATURE = {"slopes 1": "curvature", "slopes 2": "last curvature"}

# Norms of a learner's jumps: as a share of that of the runs, which lie on fewer cells; and by displacement.
JUMP_NORM = 0.25
ORDER_NORM = 10.0
# Where jumps begin to be seen, and how that grows with the number of actions.
FEWEST_JUMPS, JUMPS_GROW = 2.7, 0.65
# Actions with less than this part of the usual share, or with less than so many times the noise, are weighed alike.
RARE, HIDDEN = 0.3, 8.0
# Margins of the jumps are believed where all jumps exceed the noise of their sum so many times.
JUMPS_STAND_OUT = 5.0
# A learner's rate departs from the overall one by about so much. Before anything is seen, shares of rows that stay or
# succeed, and of jumps to something new, lie about here, give or take; afterwards they are known no better than so, and
# before that no better than totals tell, which leave out the end of long sequences.
USUAL_EXCESS = 0.15
USUAL_SHARE, USUAL_NEW = (0.6, 0.2), (0.5, 0.2)
TOTALS_DOUBT, LEAST_DOUBT = 0.04, 0.01
# Abilities have about this variance, as a rule no farther off than this.
USUAL_VARIANCE, VARIANCE_DOUBT = 0.7, 0.3


class RunsDP(MarkovDP):
    """Learner-level (epsilon, delta) differential privacy under replace-one adjacency, as `markov-dp` has it.

    Where the order of the actions is declared (`chapters` of a log), jumps follow it as far as learners do.
    """

    name: ClassVar[str] = "runs-dp"
    summary: ClassVar[str] = (
        "runs that end by outcomes, success that grows with practice, differentially private for each learner"
    )

    @property
    def _shares(self) -> dict[str, float]:
        shares = shares_for(
            self.n_learners_,
            self.n_declared_,
            budget(self.epsilon, self._delta),
            outcomes=self.has_outcomes_,
        )
        return {**shares, **(ORDER_SHARE if self.in_order_ else {})}

    def _fit(self, log: Interactions, rng: np.random.Generator, noise: Noise) -> None:
        self.in_order_ = log.declared and log.chapters is not None
        self.n_declared_ = log.n_actions if log.declared else None
        super()._fit(log, rng, noise)
        self.model_ = calibrated(self.targets_)

    def _fit_sums(self, log: Interactions, spending: Spending) -> None:
        self.in_order_ = "order" in spending.unspent
        super()._fit_sums(log, spending)

    def _fit_chain(self, log: Interactions, spending: Spending) -> None:
        walks = WalkStatistics(log)
        starts, stay_share = self._fit_lengths(walks, spending)
        self.stay_share_, _ = self._closer(
            *self._guessed(stay_share), walks.repeats(), log.lengths, spending, "stays"
        )
        if self.has_outcomes_:
            self.success_rate_, self.success_error_ = self._closer(
                *self._guessed(self.success_rate_), walks.successes(), log.lengths, spending, "successes"
            )
        new, n_jumps = walks.new_jumps()
        self.new_share_, _ = self._closer(
            *USUAL_NEW, new, n_jumps, spending, "new jumps", of_rows=1.0 - self.stay_share_
        )
        row_norm, run_norm = self._norms(walks, spending, self.stay_share_)
        (runs,) = spending.spend("runs", walks.runs(run_norm))
        # About the noise of an action's share of the rows, before it is drawn: by the norm and its budget.
        expected_noise = row_norm / sqrt(spending.rho_of("rows")) / self._n_rows
        (rows,) = spending.spend("rows", walks.rows(row_norm, _row_weights(runs, expected_noise)))
        # Noise of an action's share of the rows, in shares.
        self.share_noise_ = float(np.mean(rows.sigma)) / max(float(rows.values.sum()), 1.0)
        first, _, _ = shares_of_rows(rows, runs)
        some = np.sort(np.argsort(-first)[:MOST_JUMP_ACTIONS])
        jumps = None
        if "jumps" in spending.unspent:
            (jumps,) = spending.spend("jumps", walks.jumps(max(JUMP_NORM * run_norm, 1.0), some))
            runs = _with_margins(runs, jumps)
        self.popularity_, self.expected_popularity_, self.signal_["actions"] = shares_of_rows(rows, runs)
        run_shares, _ = shrunk_shares(runs.values, runs.sigma, float(runs.values.sum()), self.popularity_)
        stay = stay_chances(self.popularity_, run_shares, self.stay_share_, self.share_noise_)
        self.stay_ = self._with_a_next_row(stay)
        self.start_, _ = shrunk_shares(
            starts.values, starts.largest_sigma, self.n_learners_, self.popularity_
        )
        arrivals = self.popularity_ * (1.0 - stay) + 1e-12
        arrivals /= arrivals.sum()
        # Without an order, jumps from all but popular actions lead anywhere by popularity: they share a row.
        own, there = some, arrivals
        if self.in_order_:
            (displaced,) = spending.spend("order", walks.displacements(ORDER_NORM))
            own, there = np.arange(log.n_actions), _in_order(displaced, arrivals)
        self.jump_ = _jump_chances(jumps, some, own, arrivals[own, None] * there)
        self.jump_source_ = np.full(log.n_actions, len(own))
        self.jump_source_[own] = np.arange(len(own))
        if len(own) < log.n_actions:
            self.jump_ = np.vstack([self.jump_, arrivals])
        (self.staying_,) = spending.spend("staying", walks.staying(self.stay_, CELL_NORM))

    def _with_a_next_row(self, stay: Floats) -> Floats:
        """Chances to stay among rows that have a next one; a learner's last row has none, and is no row that leaves.

        All actions together stay as often as is known; noise in single actions must not move that.
        """
        mean_rows = max(self._n_rows / self.n_learners_, 1.5)
        level = stay + self.stay_share_ - self.popularity_ @ stay
        chances: Floats = np.clip(level * mean_rows / (mean_rows - 1.0), 0.02, 0.98)
        return chances

    def _guessed(self, share: float) -> tuple[float, float]:
        """A share of the totals drawn to what is usual as far as it is noise, and how far it may be off."""
        usual, spread = USUAL_SHARE
        known = spread**2 / (spread**2 + self.share_doubt_**2)
        return usual + known * (share - usual), sqrt(known) * self.share_doubt_ + TOTALS_DOUBT

    def _closer(
        self,
        rate: float,
        doubt: float,
        yes: Floats,
        n: NDArray[Any],
        spending: Spending,
        name: str,
        *,
        of_rows: float = 1.0,
    ) -> tuple[float, float]:
        """A share of all rows, or of a share of them, by what learners have beyond it, each cut on both sides.

        That is far less than they have in all, so it can be cut at far less. In two rounds: what is cut is
        wrong by as much as the share was off. Returned with how far it is off at most, as a rule.
        """
        rows = np.arange(1, self.longest_ + 1)
        limits = np.geomspace(1.0, self.longest_, 60)
        cut = (self.length_law_ * rows) @ (rows[:, None] * (of_rows * USUAL_EXCESS) > limits)
        cut /= self.length_law_ @ rows
        for turn in ("first", "second"):
            noise = 2.0 * limits / np.sqrt(2.0 * spending.rho_of(f"{turn} {name}")) / (of_rows * self._n_rows)
            best = int(np.argmin(noise + doubt * cut))
            (beyond,) = spending.spend(f"{turn} {name}", signed_sum(yes - rate * n, float(limits[best])))
            known = doubt**2 / (doubt**2 + noise[best] ** 2)
            # What noise leaves, and what is cut of a share that was off.
            doubt = max(sqrt(known) * float(noise[best]) + doubt * float(cut[best]), LEAST_DOUBT)
            rate = float(np.clip(rate + known * beyond.values[0] / (of_rows * self._n_rows), 0.02, 0.98))
        return rate, min(2.0 * doubt, 1.0)

    def _fit_outcomes(self, log: Interactions, spending: Spending) -> None:
        slopes = [name for name in spending.unspent if name.startswith("slopes")]
        rounds = [(name, CURVATURE.get(name)) for name in slopes]
        walks = WalkStatistics(log)
        self._fit_difficulties(walks, spending, rounds)
        (moments,) = spending.spend("abilities", walks.abilities(self.easiness_, MOST_ABILITY))
        mean, square = moments.values / self.n_learners_
        noise = moments.largest_sigma / self.n_learners_
        known = VARIANCE_DOUBT**2 / (VARIANCE_DOUBT**2 + noise**2)
        variance = USUAL_VARIANCE + known * (square - mean**2 - USUAL_VARIANCE)
        self.ability_spread_ = float(np.sqrt(np.clip(variance, 0.05, 4.0)))
        (self.practice_,) = spending.spend("practice", walks.practice(self.easiness_, CELL_NORM))

    @property
    def targets_(self) -> RunTargets:
        """What the sums say about walks."""
        return RunTargets(
            n_learners=self.n_learners_,
            length_law=self.length_law_,
            popularity=self.popularity_,
            start=self.start_,
            jump=self.jump_,
            jump_source=self.jump_source_,
            stay=self.stay_,
            staying=self.staying_,
            new_share=self.new_share_,
            easiness=self.easiness_,
            ability_spread=self.ability_spread_,
            success_rate=self.success_rate_,
            practice=self.practice_ if self.has_outcomes_ else None,
        )

    def _sample(self, n_learners: int | None, rng: np.random.Generator) -> Interactions:
        """Walks of invented learners."""
        n = self.n_learners_ if n_learners is None else n_learners
        lengths = spread_lengths(self.length_law_, n, rng)
        ability = spread_abilities(lengths, self.ability_spread_, rng)
        action, outcome = self.model_.walk(ability, lengths, rng, self.popularity_)
        return Interactions(action, outcome, offsets_of(lengths), self.actions_)


def shares_for(
    n_learners: int, n_actions: int | None, rho: float, *, outcomes: bool = True
) -> dict[str, float]:
    """What each statistic takes of the budget `rho`, of their sum, where no order is declared.

    All of it follows from public numbers; where names are found, the number of actions is not known yet.
    """
    shares = {**SHARES, **(MANY_ROUNDS if n_learners >= MANY_LEARNERS else FEW_ROUNDS)}
    shares["jumps"] *= 1.0 if n_actions is None else jumps_seen(n_learners, n_actions, rho)
    asked = {name: share for name, share in shares.items() if share}
    return asked if outcomes else of_actions(asked)


def jumps_seen(n_learners: int, n_actions: int, rho: float) -> float:
    """How far jumps can be seen through their noise: 0 where they are not asked for, 1 where they have all their share.

    The number of learners, in units of the noise for one of them, against a power of the number of actions. On
    simulated classrooms (30 to 300 learners, 20 to 500 actions, epsilon 0.5 to 8) jumps begin to bring steps closer
    than the same budget for rows does at about 1.5 times the lower limit.
    """
    times: float = n_learners * sqrt(2.0 * rho) / (FEWEST_JUMPS * n_actions**JUMPS_GROW)
    return min(max((times - 1.0) / 2.0, 0.0), 1.0)


def _row_weights(runs: Noisy, noise: float) -> Floats:
    """Weights of actions, of which rare ones get less noise than popular ones; `noise` is that of a share without them.

    All errors of shares count alike. With noise s on an action whose rows have the sum of squares q, their sum is least
    for a given sum of q / s^2 if s goes with the cube root of q, and q goes with popularity. An action that is hidden
    in noise is off by no more than its own share, though, however much noise it has: below some noise all count alike.
    """
    n = len(runs.values)
    shares, _ = shrunk_shares(runs.values, runs.largest_sigma, float(runs.values.sum()), np.full(n, 1.0 / n))
    weight = np.cbrt(1.0 / (shares + RARE / n + HIDDEN * noise))
    weighed: Floats = weight / np.sqrt(shares @ weight**2)
    return weighed


def _with_margins(runs: Noisy, jumps: Noisy) -> Noisy:
    """Noisy runs, and what noisy jumps tell of them: every run but a learner's last is left, every one but the first
    arrived at. Shares of all three are averaged by their noise; with few actions that of the margins is far smaller.

    Where jumps are counted among some actions only, or hardly stand out from their noise, runs are left as they are.
    """
    n = len(runs.values)
    if len(jumps.values) != n * n or n < 2:
        return runs
    matrix = np.where(np.eye(n, dtype=bool), 0.0, jumps.values.reshape(n, n))
    total, noise = float(matrix.sum()), jumps.largest_sigma * sqrt(n - 1)
    if total < JUMPS_STAND_OUT * sqrt(n) * noise:
        return runs
    scale = max(float(runs.values.sum()), 1.0) / total
    of_runs, of_margin = runs.largest_sigma**-2.0, (scale * noise) ** -2.0
    margins = scale * (matrix.sum(axis=0) + matrix.sum(axis=1))
    weight = of_runs + 2.0 * of_margin
    return Noisy((of_runs * runs.values + of_margin * margins) / weight, weight**-0.5)


def shares_of_rows(rows: Noisy, runs: Noisy | None) -> tuple[Floats, Floats, float]:
    """Shares of actions: the mean of two estimates, the second of them, and how much of the first is signal.

    One draws all noisy counts to the same share, by one factor: good where little is noise, and weighed by that. The
    other expects each count by itself, around the same share or around that of its runs, and sets none to zero.
    """
    n = len(rows.values)
    same = np.full(n, 1.0 / n)
    n_rows = max(float(rows.values.sum()), 1.0)
    guesses = [n_rows * same]
    if runs is not None:
        around = averaged_counts(runs.values, runs.sigma, [max(float(runs.values.sum()), 1.0) * same])
        around = np.maximum(around, 1e-6)
        guesses.append(n_rows * around / around.sum())
    expected = averaged_counts(rows.values, rows.sigma, guesses)
    expected /= expected.sum()
    shrunk, signal = shrunk_shares(rows.values, rows.sigma, n_rows, same)
    return expected + signal / 2.0 * (shrunk - expected), expected, signal


def _in_order(displaced: Noisy, arrivals: Floats) -> Floats:
    """Where a jump leads by the declared order; displacements are drawn to what popularity alone would give."""
    n = len(arrivals)
    source, target = np.divmod(np.flatnonzero(~np.eye(n, dtype=bool)), n)
    usual = totals(
        displacement_class(target - source, n), arrivals[source] * arrivals[target], len(displaced.values)
    )
    shares, _ = shrunk_shares(
        displaced.values,
        displaced.largest_sigma,
        float(displaced.values.sum()),
        usual / max(usual.sum(), 1e-12),
    )
    return jumps_by_displacement(shares, arrivals)


def _jump_chances(jumps: Noisy | None, some: IntArray, own: IntArray, guess: Floats) -> Floats:
    """Where a jump from each of `own` leads: as guessed, and between popular actions by the noisy matrix as far as
    noise allows. Popular actions are among `own`; both are sorted."""
    jump = guess.copy()
    jump[np.arange(len(own)), own] = 0.0
    n = len(some)
    if n > 1 and jumps is not None:
        popular = np.ix_(np.searchsorted(own, some), some)
        among = jump[popular]
        apart = ~np.eye(n, dtype=bool)
        total = max(float(jumps.values.sum()), 1.0)
        noisy = jumps.values.reshape(n, n)[apart]
        expected = np.zeros((n, n))
        expected[apart] = expected_counts(
            noisy, jumps.largest_sigma, total * among[apart] / max(among.sum(), 1e-12)
        )
        # Among popular actions there are as many jumps to and from each as were guessed.
        fitted = fit_margins(np.maximum(expected, 1e-9 * total), among.sum(axis=1), among.sum(axis=0))
        jump[popular] = np.where(apart, fitted * among.sum(), 0.0)
    chances: Floats = jump / np.maximum(jump.sum(axis=1, keepdims=True), 1e-15)
    return chances
