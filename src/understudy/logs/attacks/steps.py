"""`counts`: are the learner's own steps counted in?

The attacker's story: the attacker knows how often each learner made each step, so can say how
often the synthetic log should show a step if Ada trained the generator, and how often if not.
For each of Ada's steps the synthetic count is judged under both laws; the log-likelihood
ratios add up.

A count is the sum of what a random part of the others contributes and of the generator's own
chance, so its law is wider than Poisson's: negative binomial with

    mean      m = s p (others' count), plus s (Ada's count) if she trained
    variance  m + s^2 p (1 - p) (sum of the others' squared counts) + 0.4 m^2

where p is the training share and s the size of the synthetic log against the training data.
The last term stands for all that the law does not know; 0.4 was found on ASSISTments and on
simulated classrooms.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from understudy.logs.attacks.fingerprints import found_beyond_chance
from understudy.logs.attacks.knowledge import Knowledge, StepTable, with_outcomes
from understudy.logs.interactions import Interactions, totals

Floats = NDArray[np.float64]

UNEXPLAINED = 0.4
# A step that no other learner made may still turn up by chance.
STRAY_STEPS = 0.02


def count_scores(knowledge: Knowledge, synthetic: Interactions) -> Floats:
    """Sum over the learner's steps of log P(synthetic count | member) / P(synthetic count | outsider)."""
    table, share = knowledge.steps, knowledge.training_share
    size = synthetic.n_rows / max(share * knowledge.population.n_rows, 1.0)
    squares = totals(table.step, table.count**2, len(table.keys))
    others = table.total[table.step] - table.count
    others_squared = squares[table.step] - table.count**2
    without = size * share * others + STRAY_STEPS
    wanted = without + size * table.count
    spread = size**2 * share * (1.0 - share) * others_squared
    found = table.counts_in(synthetic)[table.step]
    ratio = _log_law(found, wanted, spread) - _log_law(found, without, spread)
    return totals(table.learner, ratio, knowledge.population.n_learners)


def _log_law(count: Floats, mean: Floats, spread: Floats) -> Floats:
    """Log-probability of a count under the negative binomial law (the count's factorial left out)."""
    shape = mean**2 / (spread + UNEXPLAINED * mean**2)
    law: Floats = (
        gammaln(count + shape)
        - gammaln(shape)
        + shape * np.log(shape / (shape + mean))
        + count * np.log(mean / (shape + mean))
    )
    return law


# Steps that the reference lends to a source: a source seen rarely says little.
PRIOR_STEPS = 5.0


def transition_scores(knowledge: Knowledge, synthetic: Interactions) -> NDArray[np.float64]:
    """Sum over the learner's steps of log(synthetic probability / reference probability)."""
    return _density_ratios(knowledge.steps, synthetic)


def _density_ratios(table: StepTable, synthetic: Interactions) -> NDArray[np.float64]:
    """The log-density of each learner's record under the synthetic chain less that under the chain of all others.

    A density ratio with a reference population (van Breugel et al. 2023, DOMIAS): what a record gains in the synthetic
    log over what learners like the others give it.
    """
    occurs = table.counts_in(synthetic)
    leaves = totals(table.source, occurs, table.width)
    source = table.source[table.step]
    others = table.total[table.step] - table.count
    others_left = table.source_total[source] - table.left
    reference = (others + PRIOR_STEPS / table.width) / (others_left + PRIOR_STEPS)
    probability = (occurs[table.step] + PRIOR_STEPS * reference) / (leaves[source] + PRIOR_STEPS)
    return totals(table.learner, table.count * np.log(probability / reference), table.n_learners)


def transition_outcome_scores(knowledge: Knowledge, synthetic: Interactions) -> NDArray[np.float64]:
    """The same with (action, outcome) for the action: the ratio of the densities of whole records."""
    return _density_ratios(knowledge.steps_with_outcomes, with_outcomes(synthetic))


def rare_scores(knowledge: Knowledge, synthetic: Interactions) -> NDArray[np.float64]:
    """Rare steps found, less those expected."""
    table = knowledge.steps
    found = table.counts_in(synthetic) > 0
    return found_beyond_chance(
        table.learner, table.step, table.n_learners_with, found, knowledge.population.n_learners
    )


def rare_bag_scores(knowledge: Knowledge, synthetic: Interactions) -> NDArray[np.float64]:
    """Rare bags of actions found, less those expected."""
    table = knowledge.bags
    found = table.found_in(synthetic)
    return found_beyond_chance(
        table.learner, table.bag, table.n_learners_with, found, knowledge.population.n_learners
    )
