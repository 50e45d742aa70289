"""`markov-dp`: a chain of actions with Rasch outcomes, differentially private for each learner.

What the fit needs to know about the log is a handful of sums over learners, each learner's part
bounded (`private_sums`), each sum released once with discrete Gaussian noise (`budget`).
Everything after the noise is post-processing. The proof, statistic by statistic, is in
docs/explanation/guarantee.md.

The model: a walk has a length of its own; it starts somewhere, stays at an action or jumps to
another; outcomes follow a Rasch model. Staying is modelled apart from jumping, since most rows
stay and only jumps need a matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log1p, sqrt
from typing import ClassVar, Self

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.sparse import csr_array, vstack
from scipy.special import expit, logit

from understudy.core.attacks.transcript import LearnerSums
from understudy.core.names import natural_order
from understudy.core.privacy.composition import default_delta
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.core.privacy.risk import RiskLimit
from understudy.errors import UsageError
from understudy.logs.generators.budget import (
    SHARES,
    VOCABULARY_SHARE,
    Noisy,
    Replay,
    Spending,
    budget,
    choose_longest,
    choose_most_rows,
    choose_norm,
    of_actions,
    slope_norm,
    stated,
    vocabulary_threshold,
)
from understudy.logs.generators.detail_split import detail_shares
from understudy.logs.generators.details import fit_details
from understudy.logs.generators.found_columns import Unknown, as_found, with_found_columns
from understudy.logs.generators.generator import DetailsBy, Generator
from understudy.logs.generators.private_sums import (
    WalkStatistics,
    bin_edges,
    first_rows,
)
from understudy.logs.generators.sums_in_database import ChainStatistics, chain_statistics
from understudy.logs.interactions import IntArray, Interactions
from understudy.logs.large.parts import ranges_of
from understudy.logs.models.curriculum import by_chapter
from understudy.logs.models.denoising import (
    NO_ZEROS,
    expected_counts,
    fit_margins,
    match_popularity,
    shrink_jumps,
    shrunk_shares,
)
from understudy.logs.models.lengths import Lengths, spread_lengths
from understudy.logs.models.markov import AliasTables, TransitionCounts, sample_walks

Floats = NDArray[np.float64]

# At most so many different actions of a learner count when the vocabulary is looked for.
MOST_OWN_ACTIONS = 64
# Jumps are counted between the most popular actions only; a larger matrix would be all noise.
MOST_JUMP_ACTIONS = 300
# Bound of a learner's curvature in the Newton rounds, where sequences are not very long; a row has this much.
MOST_CURVATURE, ROW_CURVATURE = 20.0, 0.2
# What a learner's curvature usually is, by row and by the root of rows where slopes are scaled down, give or take: so
# on ASSISTments 2009 and 2017 and on simulated classrooms with 5 to 500 actions.
USUAL_CURVATURE, CLIPPED_CURVATURE, CURVATURE_DOUBT = 0.11, 0.33, 0.3
# No action is easier or harder than this, whatever the noise; at 10 one of twenty thousand attempts goes the other way.
MOST_EASINESS = 10.0
# Rows of a learner that are read at the most, unless another number is declared.
MOST_ROWS = 20_000
MOST_ABILITY = 4.0
# Norms of learners' rows and runs grow with their number to these powers, times a factor whose logarithm is this unsure
# before it is asked for: so on ASSISTments 2009 and 2017 and on simulated classrooms with 6 to 600 actions.
ROW_NORM_GROWS, RUN_NORM_GROWS, NORM_DOUBT = 0.7, 0.6, 0.4
# Abilities have about this spread, for the purpose of curvature.
USUAL_ABILITY_SPREAD = 0.8
# A round: its slopes, and its curvature if that is asked for again.
Round = tuple[str, str | None]
ROUNDS: tuple[Round, ...] = (("first slopes", "first curvature"), ("second slopes", "second curvature"))
# The doubt that stays however small the noise, since a step is linear where the likelihood is not: after the first
# round, of which each one leaves a half, and at least.
FIRST_STAYS, LEAST_STAYS = 0.04, 0.01


class MarkovDP(Generator):
    """Learner-level (epsilon, delta) differential privacy under replace-one adjacency.

    `delta` is by default the smaller of 1e-6 and one over the squared number of learners. Rows of a
    learner past the first `longest` are ignored; it is public, so choose what is plausible for the
    course and do not read it off the data. Above 1,000 rows it is an upper bound: noisy lengths decide
    how many are read (`longest_`). The number of learners is public, and so is
    the vocabulary of a log that is declared; otherwise names are released when enough learners share
    them, for a part of the budget, and other actions are pooled.
    """

    name: ClassVar[str] = "markov-dp"
    summary: ClassVar[str] = "a chain with Rasch outcomes, differentially private for each learner"
    keeps_rows: bool = False
    details: ClassVar[DetailsBy] = "own"
    easiness_: Floats

    def __init__(self, epsilon: float = 8.0, delta: float = 0.0, longest: float = MOST_ROWS) -> None:
        if not 0 < epsilon < 100 or not 0 <= delta < 0.1 or not 2 <= longest <= 100_000:
            raise UsageError(
                f"markov-dp cannot have epsilon {epsilon:g}"
                + (f", delta {delta:.2e}" if delta else "")
                + f" and a longest sequence of {longest:g} rows.",
                hint="epsilon lies above 0 and below 100, delta below 0.1, longest between 2 and 100,000: "
                "for example markov-dp:epsilon=2:longest=200.",
            )
        self.epsilon = epsilon
        self.delta = delta
        self.longest = int(longest)

    def guarantee(self, n_learners: int) -> Guarantee:
        """Proved for the sums below and for whatever is computed from them; half of delta is for names."""
        delta = self.delta or default_delta(n_learners)
        claim = stated(self.epsilon, delta, "discrete Gaussian mechanism on clipped sums over learners")
        return replace(claim, extra_delta=delta / 2)

    @property
    def in_database(self) -> bool:
        """See `Generator.in_database`: not so for methods that are made of this one and ask for other sums."""
        return type(self) is MarkovDP

    def at(self, epsilon: float) -> Self:
        """The same generator with another epsilon."""
        return type(self)(epsilon, self.delta, self.longest)

    def within(self, limit: RiskLimit, log: Interactions) -> Self:
        """The same generator with as little noise as keeps to a risk."""
        return self.at(limit.epsilon(lambda epsilon: self.at(epsilon).guarantee_for(log)))

    def guarantee_for(self, log: Interactions) -> Guarantee:
        """What is proved where this log's names are declared, or else are found."""
        return self.claim(log.n_learners, names_found=n_thresholds(log) > 0)

    def claim(self, n_learners: int, *, names_found: bool) -> Guarantee:
        """Where names are declared, all of delta is for the sums; where they are found, the sums spend less."""
        claim = self.guarantee(n_learners)
        if not names_found:
            return replace(claim, extra_delta=0.0)
        sums = self._sums_beside_names(claim.delta)
        return replace(claim, rho=sums.rho, slack=sums.slack)

    def divided(self, log: Interactions, n_learners: int | None = None) -> dict[str, float]:
        """What times and columns of this log, or of one of other learners, take where all else takes 1 together."""
        n_learners = n_learners or log.n_learners
        claim = self.claim(n_learners, names_found=n_thresholds(log) > 0)
        assert claim.rho is not None
        return detail_shares(log, claim.rho * (1.0 if log.declared else 1.0 - VOCABULARY_SHARE), n_learners)

    def _sums_beside_names(self, delta: float) -> Guarantee:
        """What the sums may spend where names are found: d = delta / 2 is for names, and 1 / (1 - d) of e^epsilon."""
        return stated(self.epsilon + log1p(-delta / 2), delta / 2, "")

    def _fit(self, log: Interactions, rng: np.random.Generator, noise: Noise) -> None:
        """Release the noisy sums, then make a chain and difficulties of them."""
        self.n_thresholds_ = n_thresholds(log)
        self.detail_shares_ = self.divided(log)
        rho = self._rho(found=self.n_thresholds_ > 0)
        spending = Spending(rho, noise, vocabulary=not log.declared, shares=self._all_shares)
        log = first_rows(log, self.longest)
        # Each list of names that is found has the same part of what is for names.
        delta = self._delta / 2 / max(self.n_thresholds_, 1)
        if not log.declared:
            log = _with_private_vocabulary(log, spending, delta)
        log = with_found_columns(log, spending, delta)
        self.declared_columns_ = tuple(column.declared for column in log.columns)
        self._fit_sums(log, spending)
        # Noisy, so it may be kept like everything that is computed from it.
        self.transcript_ = spending.released

    @property
    def found_names_(self) -> bool:
        """Whether the names of actions were found privately."""
        return "vocabulary 0" in self.transcript_

    @property
    def _delta(self) -> float:
        return self.delta or default_delta(self.n_learners_)

    @property
    def _shares(self) -> dict[str, float]:
        """What each statistic takes of the budget."""
        return SHARES if self.has_outcomes_ else of_actions(SHARES)

    @property
    def _all_shares(self) -> dict[str, float]:
        """The same with those of times and columns, which the log has or has not."""
        total = sum(self._shares.values())
        return {name: share / total for name, share in self._shares.items()} | self.detail_shares_

    def _rho(self, *, found: bool) -> float:
        """The budget of all sums together, that of names included, where any are found."""
        if found:
            rho = self._sums_beside_names(self._delta).rho
            assert rho is not None
            return rho
        return budget(self.epsilon, self._delta)

    def _fit_sums(self, log: Interactions, spending: Spending) -> None:
        self.actions_ = log.actions
        self.signal_: dict[str, float] = {}
        log = self._cut(log, spending)
        self._fit_chain(log, spending)
        if self.has_outcomes_:
            self._fit_outcomes(log, spending)
        else:
            self.easiness_, self.ability_mean_, self.ability_spread_ = np.zeros(log.n_actions), 0.0, 0.0
        included = log if self.has_outcomes_ else log.without_outcomes()
        self.details_ = fit_details(included, spending, self.n_learners_)
        if spending.unspent:
            raise ValueError(f"the budget of {spending.unspent} was not spent")

    def _cut(self, log: Interactions, spending: Spending) -> Interactions:
        """The rows that are read: up to the last length that stands out from the noise, if that is beyond the usual."""
        edges = bin_edges(self.longest)
        (lengths,) = spending.spend("lengths", chain_statistics(log).lengths(edges))
        self.longest_ = choose_longest(lengths.values, lengths.largest_sigma, edges)
        # Learners with more rows are cut, and are in the last bin with the noise of all bins from there on.
        last = int(np.searchsorted(edges, self.longest_ + 1)) - 1
        counts = np.append(lengths.values[:last], lengths.values[last:].sum())
        noise = lengths.sigma * np.sqrt(np.append(np.ones(last), len(lengths.values) - last))
        self.length_bins_ = edges[: last + 2], Noisy(counts, noise)
        return first_rows(log, self.longest_)

    def learner_sums(self, log: Interactions) -> LearnerSums:
        """What each learner of a log would have added to the sums that this fit released; names aside."""
        # A large log would be summed in parts, without what each learner adds; no learner depends on the others.
        learners = ranges_of(log.offsets) or [(0, 0)]
        parts = [self._learner_sums(log.select(np.arange(first, last))) for first, last in learners]
        return LearnerSums(csr_array(vstack([part.added for part in parts])), parts[0].released)

    def _learner_sums(self, log: Interactions) -> LearnerSums:
        found = self.found_names_
        rho = self._rho(found=self.n_thresholds_ > 0)
        replay = Replay(rho, self.transcript_, vocabulary=found, shares=self._all_shares)
        for name in Unknown.of(log).shares():
            replay.skip(name)
        log = as_found(first_rows(log.with_failures(), self.longest), self.declared_columns_)
        if found:
            log = log.with_vocabulary(self.actions_)
            replay.skip("vocabulary")
        again = self.fresh()
        again.n_learners_, again.has_outcomes_ = self.n_learners_, self.has_outcomes_
        again._fit_sums(log, replay)
        return replay.learner_sums(log.n_learners)

    def _sample(self, n_learners: int | None, rng: np.random.Generator) -> Interactions:
        """Walks of invented learners."""
        n = self.n_learners_ if n_learners is None else n_learners
        lengths = spread_lengths(self.length_law_, n, rng)
        ability = rng.normal(self.ability_mean_, self.ability_spread_, n)
        action, outcome, offsets = sample_walks(self.tables_, self.easiness_, ability, lengths, rng)
        return Interactions(action, outcome, offsets, self.actions_)

    def _fit_chain(self, log: Interactions, spending: Spending) -> None:
        walks = chain_statistics(log)
        starts, stay_share = self._fit_lengths(walks, spending)
        row_norm, run_norm = self._norms(walks, spending, stay_share)
        (rows,) = spending.spend("rows", walks.rows(row_norm))
        (runs,) = spending.spend("runs", walks.runs(run_norm))
        same = np.full(log.n_actions, 1.0 / log.n_actions)
        self.popularity_, self.signal_["actions"] = _believed(rows, float(rows.values.sum()), same)
        n_rows = max(float(rows.values.sum()), 1.0)
        expected = expected_counts(rows.values, rows.sigma, n_rows * same, NO_ZEROS)
        self.expected_popularity_ = expected / expected.sum()
        run_shares, _ = _believed(runs, float(runs.values.sum()), self.popularity_)
        # Noise of an action's share of the rows, in shares.
        self.share_noise_ = rows.largest_sigma / max(float(rows.values.sum()), 1.0)
        stay = stay_chances(self.popularity_, run_shares, stay_share, self.share_noise_)
        arrivals = self.popularity_ * (1.0 - stay) + 1e-12
        arrivals /= arrivals.sum()
        some = np.sort(np.argsort(-self.popularity_)[:MOST_JUMP_ACTIONS])
        (jumps,) = spending.spend("jumps", walks.jumps(run_norm, some))
        start, _ = _believed(starts, self.n_learners_, self.popularity_)
        survival = 1.0 - np.concatenate([[0.0], np.cumsum(self.length_law_)[:-1]])
        jump = _jump_chances(jumps, some, arrivals)
        chain = match_popularity(start, stay, jump, survival, self.popularity_)
        self.tables_ = _tables(start, stay, chain, self.n_learners_, self.longest_)

    def _fit_lengths(self, walks: ChainStatistics, spending: Spending) -> tuple[Noisy, float]:
        """How many rows learners have and how many of them succeed; returns noisy starts and the share that stays."""
        edges, lengths = self.length_bins_
        (moments,) = spending.spend("length moments", walks.length_moments(self.longest_))
        (starts,) = spending.spend("starts", walks.starts())
        believed = Lengths(self.n_learners_, edges)
        believed.observe_moments(moments.values, moments.largest_sigma)
        believed.observe_bins(lengths.values, lengths.sigma)
        law, _ = believed.law()
        most, self.success_error_ = choose_most_rows(law, self.n_learners_, spending.rho_of("totals"))
        (overall,) = spending.spend("totals", walks.totals(most))
        # Successes and failures together are rows, with the noise of both.
        noise_of_rows = sqrt(2.0) * overall.largest_sigma
        believed.observe(np.minimum(believed.rows, most), float(overall.values[1:].sum()), noise_of_rows)
        self.length_law_, self.rows_factor_ = believed.law()
        self.unseen_ = believed.unseen
        n_runs, successes, failures = np.maximum(overall.values, 1.0)
        # How far shares of these rows may be off.
        self.share_doubt_ = overall.largest_sigma / (successes + failures)
        self.success_rate_ = float(np.clip(successes / (successes + failures), 0.02, 0.98))
        return starts, float(np.clip(1.0 - n_runs / (successes + failures), 0.0, 0.98))

    @property
    def _n_rows(self) -> float:
        """Rows of all learners, by what is believed of their lengths."""
        return self.n_learners_ * float(self.length_law_ @ np.arange(1, self.longest_ + 1))

    def _norms(self, walks: ChainStatistics, spending: Spending, stay_share: float) -> list[float]:
        """Where learners' rows and runs are clipped.

        Norms grow with lengths in much the same way everywhere; how large they are was asked for.
        """
        noisy = spending.spend("norms", walks.row_norms(self.longest_), walks.run_norms(self.longest_))
        rows = np.arange(1.0, self.longest_ + 1)
        norms = []
        for name, each, entries, grows in (
            ("rows", noisy[0], rows, ROW_NORM_GROWS),
            ("runs", noisy[1], np.maximum(rows * (1.0 - stay_share), 1.0), RUN_NORM_GROWS),
        ):
            usual = grows * np.log(entries)
            error = each.largest_sigma * np.log(self.longest_) / self.n_learners_
            mean = float(each.values[0]) * np.log(self.longest_) / self.n_learners_
            known = NORM_DOUBT**2 / (NORM_DOUBT**2 + error**2)
            size = np.exp(usual + known * (mean - float(self.length_law_ @ usual)))
            mass = self.n_learners_ * float(self.length_law_ @ entries)
            norms.append(
                choose_norm(
                    np.clip(size, 1.0, self.longest_),
                    self.n_learners_ * self.length_law_,
                    mass,
                    walks.log.n_actions,
                    spending.rho_of(name),
                )
            )
        return norms

    def _fit_outcomes(self, log: Interactions, spending: Spending) -> None:
        walks = chain_statistics(log)
        self._fit_difficulties(walks, spending, ROUNDS)
        (moments,) = spending.spend("abilities", walks.abilities(self.easiness_, MOST_ABILITY))
        mean, square = moments.values / self.n_learners_
        self.ability_mean_ = float(np.clip(mean, -2.0, 2.0))
        self.ability_spread_ = float(np.sqrt(np.clip(square - mean**2, 0.05, 4.0)))
        self.easiness_ = self.easiness_ + self._shift_to_success_rate()

    def _fit_difficulties(self, walks: ChainStatistics, spending: Spending, rounds: Sequence[Round]) -> None:
        """Newton rounds on the penalised likelihood of difficulties, each learner's ability taken out."""
        log, popularity = walks.log, self.expected_popularity_
        norm = slope_norm(self.n_learners_, spending.rho)
        # Slopes of very long sequences are scaled down to the norm, and their curvature with them.
        mean_rows = self._n_rows / self.n_learners_
        most_curvature = max(MOST_CURVATURE, norm * sqrt(ROW_CURVATURE * mean_rows))
        # An action's error counts by its popularity p, and equal noise would make it fall with p:
        # weights 1 / sqrt(p) balance the two; rare actions are held in check.
        weight = 1.0 / np.sqrt(popularity + 0.15 / log.n_actions)
        weight /= np.sqrt(np.sum(popularity * weight**2))
        easiness = np.full(log.n_actions, float(logit(self.success_rate_)))
        rows = np.arange(1.0, self.longest_ + 1)
        usual = np.minimum(USUAL_CURVATURE * rows, CLIPPED_CURVATURE * norm * np.sqrt(rows))
        doubt, total = np.empty(0), max(self.n_learners_ * float(self.length_law_ @ usual), 1.0)
        for number, (slopes, curvature) in enumerate(rounds):
            (slope,) = spending.spend(slopes, walks.slopes(easiness, weight, norm))
            if curvature:
                (bends,) = spending.spend(curvature, walks.curvature(easiness, weight, norm, most_curvature))
                # Drawn to what is usual for such lengths: taken as it is, noise would have steps of any size.
                known = 1.0 / (1.0 + (bends.largest_sigma / (CURVATURE_DOUBT * total)) ** 2)
                total = max(total + known * (float(bends.values[0]) - total), 1.0)
            share = popularity * _usual_variance(easiness)
            bend = total * share / share.sum() + 1.0
            step, error = slope.values / bend, (slope.sigma / bend) ** 2
            if not len(doubt):
                spread = float(np.clip(np.sum(popularity * (step**2 - error)), 0.05, 2.0))
                # Rare actions differ more: on ASSISTments 2009 they have twice the variance and more.
                doubt = spread * (1.0 + np.exp(-2.0 * popularity * log.n_actions))
            gain = doubt / (doubt + error)
            middle = 0.0 if log.chapters is None else by_chapter(step, doubt + error, log.chapters)
            easiness = np.clip(easiness + middle + gain * (step - middle), -MOST_EASINESS, MOST_EASINESS)
            doubt = doubt * (1.0 - gain) + max(FIRST_STAYS / 2**number, LEAST_STAYS)
        self.easiness_ = easiness
        spread = float(np.sum(popularity * (easiness - popularity @ easiness) ** 2))
        self.signal_["difficulties"] = spread / (spread + float(np.sum(popularity * doubt)))

    def _shift_to_success_rate(self) -> float:
        """By how much all actions have to be easier for the model to succeed as often as the learners did."""
        nodes, weights = hermegauss(21)
        ability = self.ability_mean_ + self.ability_spread_ * nodes

        def excess(shift: float) -> float:
            chance = expit(self.easiness_[:, None] + ability + shift) @ weights / weights.sum()
            return float(self.popularity_ @ chance) - self.success_rate_

        reach = 20.0 + float(np.abs(self.easiness_).max())
        return float(brentq(excess, -reach, reach))


def n_thresholds(log: Interactions) -> int:
    """How many lists of names are found by a threshold: of actions, and of columns' categories."""
    return len(Unknown.of(log).values) + (not log.declared)


def _with_private_vocabulary(log: Interactions, spending: Spending, delta: float) -> Interactions:
    """The log with actions that enough learners share; the others become one.

    Only names among a learner's first actions are candidates: so one learner has at most
    `MOST_OWN_ACTIONS` of their own, which is what the threshold's union bound rests on. Released names
    are put in an order that does not depend on those that are not, and only their noisy counts are kept:
    how many candidates there were is exact, and nobody's to know.
    """
    total = WalkStatistics(log).shared_actions(MOST_OWN_ACTIONS)
    candidate = np.flatnonzero(total.values > 0)
    (shared,) = spending.spend("vocabulary", replace(total, values=total.values[candidate]))
    threshold = vocabulary_threshold(shared.largest_sigma, delta, MOST_OWN_ACTIONS)
    counts = {log.actions[code]: count for code, count in zip(candidate, shared.values, strict=True)}
    released = natural_order([name for name, count in counts.items() if count > threshold])
    spending.released["vocabulary 0"] = Noisy(np.array([counts[name] for name in released]), shared.sigma)
    return log.with_vocabulary(released)


def _believed(noisy: Noisy, total: float, prior: Floats) -> tuple[Floats, float]:
    """Shares of a noisy count vector and how much of them is signal; without any, the prior."""
    return shrunk_shares(noisy.values, noisy.largest_sigma, total, prior)


def _usual_variance(easiness: Floats) -> Floats:
    """Variance of one outcome at each action, over usual abilities."""
    nodes, weights = hermegauss(9)
    chance = expit(easiness[:, None] + USUAL_ABILITY_SPREAD * nodes)
    variance: Floats = (chance * (1.0 - chance)) @ (weights / weights.sum())
    return variance


def stay_chances(popularity: Floats, runs: Floats, stay_share: float, share_noise: float) -> Floats:
    """Chance to stay at each action: by its own rows and runs as far as they stand out from noise."""
    own = 1.0 - (1.0 - stay_share) * runs / np.maximum(popularity, 1e-12)
    trust = popularity / (popularity + 2.0 * share_noise)
    chances: Floats = np.clip(trust * own + (1.0 - trust) * stay_share, 0.02, 0.98)
    return chances


def _jump_chances(jumps: Noisy, some: IntArray, arrivals: Floats) -> Floats:
    """Where a jump leads: by the noisy matrix between popular actions, elsewhere by popularity."""
    jump = np.tile(arrivals, (len(arrivals), 1))
    if len(some) > 1:
        among = arrivals[some] / arrivals[some].sum()
        matrix = jumps.values.reshape(len(some), len(some))
        known = fit_margins(shrink_jumps(matrix, jumps.largest_sigma, among), among)
        known /= np.maximum(known.sum(axis=1, keepdims=True), 1e-15)
        jump[np.ix_(some, some)] = known * arrivals[some].sum()
        np.fill_diagonal(jump, 0.0)
    return jump


def _tables(start: Floats, stay: Floats, chain: Floats, n_learners: int, longest: int) -> AliasTables:
    n = len(start)
    step = chain * (1.0 - stay)[:, None]
    step[np.diag_indices(n)] += stay
    whole = np.vstack([step, start])
    source, target = np.nonzero(whole > 1e-9)
    counts = TransitionCounts(
        source.astype(np.int32), target.astype(np.int32), whole[source, target], n, longest, n_learners
    )
    return AliasTables.of(counts)
