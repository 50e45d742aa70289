"""`lcs`, `lcs-published`, `lcs-expected`, `lcs-outcomes`: is a synthetic sequence contained in the learner's own?

The attacker's story: if rows were only left out, what remains of Ada is a subsequence of what
Ada did. The attacker compares her sequence with each synthetic one by their longest common
subsequence and looks at those that are contained in hers whole.

Four scores, from the published one to the strongest we know:

- `lcs` (Vie, Rigaux and Minn 2022, section 5.3): length of the longest contained sequence, over the learner's
  length. Read literally, the paper divides by the length of the synthetic sequence, which
  gives every learner 1 as soon as there is a synthetic sequence of length 1; this reading
  reproduces its figures (findings, section 1).
- `lcs-published`: what the authors' own program computes, which is neither: the largest length of a common
  subsequence over (own length^0.03 x synthetic length^0.97).
- `lcs-expected`: a learner of length n whose rows were kept with probability q leaves about
  q n of them. The score is the best log-probability of the contained length under that
  binomial law, with a bonus of 2 log(length), since long matches are rarely a coincidence.
- `lcs-outcomes`: the same with (action, outcome) pairs, where the bonus is how surprising the
  matched sequence is under a Markov chain: a fifth of its surprise, because practice runs
  make most of a sequence easy to contain.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from understudy.core.attacks.subsequences import MatchingWork, Sequences, best_contained, largest_common
from understudy.logs.attacks.knowledge import Knowledge, with_outcomes
from understudy.logs.interactions import Interactions, pair_codes, totals
from understudy.logs.models.markov import steps_of

Floats = NDArray[np.float64]

SURPRISE_SHARE = 0.2
# By which power of the learner's own length the authors' program divides; the rest is the synthetic one's.
OWN_POWER = 0.03
NO_MATCH = -np.inf


def subsequence_scores(
    knowledge: Knowledge, synthetic: Interactions, workers: int = 1, work: MatchingWork | None = None
) -> dict[str, Floats]:
    """The scores `lcs`, `lcs-published` and `lcs-expected` of each learner, by actions alone.

    What was compared is added to `work`.
    """
    log, longest = knowledge.population, synthetic.lengths
    own, fakes = (Sequences(each.action, each.offsets, log.n_actions) for each in (log, synthetic))
    contained, of_length = best_contained(own, fakes, lambda _: longest.astype(np.float64), workers)
    share = np.where(contained >= 0, np.append(longest, 0)[contained], 0) / np.maximum(log.lengths, 1)
    law = _score_of(knowledge, synthetic, 2.0 * np.log(np.maximum(longest, 1)))
    expected, of_law = _best_scores(own, fakes, law, workers)
    divisor = np.maximum(longest, 1) ** (1.0 - OWN_POWER)
    # The longest fake that is contained is common as a whole: only fakes that may exceed it are looked at.
    reached = np.append(longest / divisor, 0.0)[contained]
    nearest, of_common = largest_common(own, fakes, divisor, workers, reached)
    if work is not None:
        # Three searches among the same pairs, which are counted once.
        for part in (of_length, of_law, of_common):
            work.compared_pairs += part.compared_pairs
            work.compared_cells += part.compared_cells
        work.pairs += of_common.pairs
        work.cells += of_common.cells
    return {
        "lcs": share,
        "lcs-published": nearest / np.maximum(log.lengths, 1) ** OWN_POWER,
        "lcs-expected": expected,
    }


def outcome_scores(
    knowledge: Knowledge, synthetic: Interactions, workers: int = 1, work: MatchingWork | None = None
) -> Floats:
    """The score `lcs-outcomes` of each learner, by (action, outcome) pairs."""
    log = knowledge.population
    own, fakes = (Sequences(each.code, each.offsets, 2 * log.n_actions) for each in (log, synthetic))
    law = _score_of(knowledge, synthetic, SURPRISE_SHARE * _surprise(synthetic))
    best, done = _best_scores(own, fakes, law, workers)
    if work is not None:
        work.add(done)
    return best


def _best_scores(
    own: Sequences, fakes: Sequences, score: Callable[[int], Floats], workers: int
) -> tuple[Floats, MatchingWork]:
    """The best score of a contained fake, per learner."""
    contained, work = best_contained(own, fakes, score, workers)
    best = np.full(len(own), NO_MATCH)
    for length in np.unique(own.lengths):
        found = np.flatnonzero((own.lengths == length) & (contained >= 0))
        if len(found):
            best[found] = score(int(length))[contained[found]]
    return best, work


def _score_of(knowledge: Knowledge, synthetic: Interactions, bonus: Floats) -> Callable[[int], Floats]:
    """For a learner of some length: log Binomial(a fake's length; the learner's, share kept) + bonus, per fake."""
    kept = _kept_share(knowledge, synthetic)
    m = synthetic.lengths
    longest = max(int(m.max(initial=0)), int(knowledge.population.lengths.max(initial=0)))
    log_factorial = gammaln(np.arange(longest + 1) + 1.0)

    def score(length: int) -> Floats:
        n = np.maximum(length, m)
        log_binomial = log_factorial[n] - log_factorial[m] - log_factorial[n - m]
        law: Floats = log_binomial + m * np.log(kept) + (n - m) * np.log1p(-kept) + bonus
        return law

    return score


def _kept_share(knowledge: Knowledge, synthetic: Interactions) -> float:
    """The share of rows kept, as the attacker estimates it from public numbers of rows."""
    log = knowledge.population
    expected_rows = max(log.n_rows * knowledge.training_share, 1.0)
    return float(np.clip(synthetic.n_rows / expected_rows, 1e-4, 1 - 1e-4))


def _surprise(synthetic: Interactions) -> Floats:
    """Minus the log-probability of each synthetic sequence under the synthetic Markov chain."""
    pairs = with_outcomes(synthetic)
    source, target = steps_of(pairs)
    step = pair_codes(source, target, pairs.n_actions + 1)
    _, index, count = np.unique(step, return_inverse=True, return_counts=True)
    leaves = np.bincount(source, minlength=pairs.n_actions + 1)
    surprise = -np.log(count[index] / leaves[source])
    learner = np.repeat(np.arange(pairs.n_learners), pairs.lengths + 1)
    return totals(learner, surprise, pairs.n_learners)
