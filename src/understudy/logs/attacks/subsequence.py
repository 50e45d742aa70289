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

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import LCSseq
from scipy.special import gammaln

from understudy.logs.attacks.knowledge import Knowledge, with_outcomes
from understudy.logs.interactions import IntArray, Interactions, totals
from understudy.logs.models.markov import steps_of

Floats = NDArray[np.float64]

BLOCK_CELLS = 4_000_000
SURPRISE_SHARE = 0.2
# By which power of the learner's own length the authors' program divides; the rest is the synthetic one's.
OWN_POWER = 0.03
NO_MATCH = -np.inf


def subsequence_scores(knowledge: Knowledge, synthetic: Interactions, workers: int = 1) -> dict[str, Floats]:
    """The scores `lcs`, `lcs-published` and `lcs-expected` of each learner, by actions alone."""
    log = knowledge.population
    kept = _kept_share(knowledge, synthetic)
    share, published = np.zeros(log.n_learners), np.zeros(log.n_learners)
    expected = np.full(log.n_learners, NO_MATCH)
    fakes = as_strings(synthetic.action, synthetic.offsets)
    bonus = 2.0 * np.log(np.maximum(synthetic.lengths, 1))
    fake_power = np.maximum(synthetic.lengths, 1) ** (1.0 - OWN_POWER)
    for rows, common in blocks_of_common_lengths(as_strings(log.action, log.offsets), fakes, workers):
        lengths, contained = log.lengths[rows], common == synthetic.lengths
        nearest = (common / fake_power).max(axis=1, initial=0.0)
        published[rows] = nearest / np.maximum(lengths, 1) ** OWN_POWER
        match = np.where(contained, synthetic.lengths, 0)
        share[rows] = match.max(axis=1, initial=0) / np.maximum(lengths, 1)
        expected[rows] = _best(contained, lengths, synthetic.lengths, kept, bonus)
    return {"lcs": share, "lcs-published": published, "lcs-expected": expected}


def outcome_scores(knowledge: Knowledge, synthetic: Interactions, workers: int = 1) -> Floats:
    """The score `lcs-outcomes` of each learner, by (action, outcome) pairs."""
    log = knowledge.population
    kept = _kept_share(knowledge, synthetic)
    best = np.full(log.n_learners, NO_MATCH)
    fakes = as_strings(synthetic.code, synthetic.offsets)
    bonus = SURPRISE_SHARE * _surprise(synthetic)
    originals = as_strings(log.code, log.offsets)
    for rows, common in blocks_of_common_lengths(originals, fakes, workers):
        best[rows] = _best(common == synthetic.lengths, log.lengths[rows], synthetic.lengths, kept, bonus)
    return best


def common_lengths(originals: list[str], fakes: list[str], workers: int = 1) -> NDArray[np.int32]:
    """Length of the longest common subsequence of every original with every fake, exact."""
    return process.cdist(originals, fakes, scorer=LCSseq.similarity, workers=workers, dtype=np.int32)


def blocks_of_common_lengths(
    originals: list[str], fakes: list[str], workers: int
) -> Iterator[tuple[slice, NDArray[np.int32]]]:
    """Blocks of originals, and their common lengths with all fakes; memory stays bounded."""
    block = max(1, BLOCK_CELLS // max(len(fakes), 1))
    for begin in range(0, len(originals), block):
        rows = slice(begin, min(begin + block, len(originals)))
        if fakes:
            yield rows, common_lengths(originals[rows], fakes, workers)


def _best(
    contained: NDArray[np.bool_], lengths: IntArray, fake_lengths: IntArray, kept: float, bonus: Floats
) -> Floats:
    """Best over the contained fakes of log Binomial(their length; learner's length, kept) + bonus."""
    i, j = np.nonzero(contained)
    n, m = lengths[i].astype(np.float64), fake_lengths[j].astype(np.float64)
    log_binomial = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)
    score = log_binomial + m * np.log(kept) + (n - m) * np.log1p(-kept) + bonus[j]
    best = np.full(len(lengths), NO_MATCH)
    np.maximum.at(best, i, score)
    return best


def _kept_share(knowledge: Knowledge, synthetic: Interactions) -> float:
    """The share of rows kept, as the attacker estimates it from public numbers of rows."""
    log = knowledge.population
    expected_rows = max(log.n_rows * knowledge.training_share, 1.0)
    return float(np.clip(synthetic.n_rows / expected_rows, 1e-4, 1 - 1e-4))


def _surprise(synthetic: Interactions) -> Floats:
    """Minus the log-probability of each synthetic sequence under the synthetic Markov chain."""
    pairs = with_outcomes(synthetic)
    source, target = steps_of(pairs)
    step = source.astype(np.int64) * (pairs.n_actions + 1) + target
    _, index, count = np.unique(step, return_inverse=True, return_counts=True)
    leaves = np.bincount(source, minlength=pairs.n_actions + 1)
    surprise = -np.log(count[index] / leaves[source])
    learner = np.repeat(np.arange(pairs.n_learners), pairs.lengths + 1)
    return totals(learner, surprise, pairs.n_learners)


def as_strings(codes: IntArray, offsets: IntArray) -> list[str]:
    """One character per code; characters that UTF-16 reserves are stepped over."""
    points = codes.astype(np.uint32) + 0x21
    points[points >= 0xD800] += 0x800
    text = points.astype("<u4").tobytes().decode("utf-32-le")
    return [text[begin:end] for begin, end in pairwise(offsets)]
