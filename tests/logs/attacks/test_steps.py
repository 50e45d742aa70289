"""`transitions`, `counts`, `rare` and `rare-bags` against dictionaries, and what no score may depend on."""

import math
from collections import Counter
from itertools import groupby

import numpy as np
import pytest
from scipy.stats import nbinom

from understudy.core.privacy.noise import seeded_noise
from understudy.logs.attacks.fingerprints import RARE
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.steps import (
    PRIOR_STEPS,
    STRAY_STEPS,
    UNEXPLAINED,
    count_scores,
    rare_bag_scores,
    rare_scores,
    transition_outcome_scores,
    transition_scores,
)
from understudy.logs.audit import membership_scores
from understudy.logs.generators.registry import parse_generator
from understudy.logs.interactions import Interactions

pytestmark = pytest.mark.oracle


def sequences_of(log):
    return [log.action[a:b].tolist() for a, b in zip(log.offsets, log.offsets[1:], strict=False)]


def steps(sequence, outside):
    return list(zip([outside, *sequence], [*sequence, outside], strict=True))


def bags(sequence):
    runs = [action for action, _ in groupby(sequence)]
    return {tuple(sorted(window)) for window in zip(runs, runs[1:], runs[2:], strict=False)}


def plain_transition_scores(population, synthetic):
    """The log-likelihood ratio of each learner's steps; the reference is counted without them."""
    outside, width = population.n_actions, population.n_actions + 1
    own = [steps(s, outside) for s in sequences_of(population)]
    known = {step for walk in own for step in walk}
    made = Counter(step for s in sequences_of(synthetic) for step in steps(s, outside) if step in known)
    made_from = Counter()
    for (source, _), n in made.items():
        made_from[source] += n
    scores = []
    for i, walk in enumerate(own):
        others = Counter(step for k, other in enumerate(own) if k != i for step in other)
        others_from = Counter(source for k, other in enumerate(own) if k != i for source, _ in other)
        score = 0.0
        for source, target in walk:
            reference = (others[source, target] + PRIOR_STEPS / width) / (others_from[source] + PRIOR_STEPS)
            chance = (made[source, target] + PRIOR_STEPS * reference) / (made_from[source] + PRIOR_STEPS)
            score += math.log(chance / reference)
        scores.append(score)
    return scores


def plain_count_scores(population, synthetic, share):
    """scipy's negative binomial law of each synthetic count, with the learner and without."""
    outside = population.n_actions
    own = [Counter(steps(s, outside)) for s in sequences_of(population)]
    made = Counter(step for s in sequences_of(synthetic) for step in steps(s, outside))
    size = synthetic.n_rows / (share * population.n_rows)
    scores = []
    for i, mine in enumerate(own):
        score = 0.0
        for step, n in mine.items():
            others = [walk[step] for k, walk in enumerate(own) if k != i]
            without = size * share * sum(others) + STRAY_STEPS
            spread = size**2 * share * (1 - share) * sum(c * c for c in others)
            laws = []
            for mean in (without + size * n, without):
                variance = mean + spread + UNEXPLAINED * mean**2
                laws.append(nbinom.logpmf(made[step], mean**2 / (variance - mean), mean / variance))
            score += laws[0] - laws[1]
        scores.append(score)
    return scores


def plain_rare_scores(features, in_synthetic):
    """`features` is a set per learner; `in_synthetic` the set of all that the release shows."""
    holders = Counter(feature for own in features for feature in own)
    found_by_rarity = {
        r: [f in in_synthetic for f, n in holders.items() if n == r] for r in range(1, RARE + 1)
    }
    return [
        sum(
            (feature in in_synthetic) - np.mean(found_by_rarity[holders[feature]])
            for feature in own
            if holders[feature] <= RARE
        )
        for own in features
    ]


@pytest.fixture(params=["copy", "thinned", "markov", "other learners", "empty"])
def scene(request, make_log):
    """A population with learners of one and two rows, and a release of the named kind."""
    rng = np.random.default_rng(5)
    drawn = make_log(rng, n_learners=30, n_actions=9, mean_length=9, concentration=1.0)
    extra = [[0], [3, 3], [1, 1, 1], [8, 0, 8, 0]]
    population = Interactions.from_sequences(sequences_of(drawn) + extra, actions=drawn.actions)
    training = population.select(np.arange(0, 34, 2))
    release = {
        "copy": lambda: training,
        "thinned": lambda: training.keep_rows(rng.random(training.n_rows) < 0.5),
        "markov": lambda: parse_generator("markov").fit(training, rng, seeded_noise(rng)).sample(None, rng),
        "other learners": lambda: make_log(np.random.default_rng(6), n_learners=30, n_actions=9),
        "empty": lambda: training.select(np.empty(0, dtype=int)),
    }[request.param]()
    return Knowledge(population, training.n_learners), release


def test_transitions_by_dictionary(scene):
    knowledge, release = scene
    wanted = plain_transition_scores(knowledge.population, release)
    np.testing.assert_allclose(transition_scores(knowledge, release), wanted, atol=1e-10)


def with_outcomes(log):
    """Sequences of 2 x action + outcome, by plain lists."""
    pairs = zip(log.action.tolist(), log.outcome.tolist(), strict=True)
    codes = [2 * action + outcome for action, outcome in pairs]
    names = [str(code) for code in range(2 * log.n_actions)]
    walks = [codes[a:b] for a, b in zip(log.offsets, log.offsets[1:], strict=False)]
    return Interactions.from_sequences(walks, actions=names)


def test_transitions_with_outcomes_by_dictionary(scene):
    knowledge, release = scene
    wanted = plain_transition_scores(with_outcomes(knowledge.population), with_outcomes(release))
    np.testing.assert_allclose(transition_outcome_scores(knowledge, release), wanted, atol=1e-10)


def test_counts_by_another_law(scene):
    knowledge, release = scene
    if not release.n_rows:
        assert np.isfinite(count_scores(knowledge, release)).all()
        return
    wanted = plain_count_scores(knowledge.population, release, knowledge.training_share)
    np.testing.assert_allclose(count_scores(knowledge, release), wanted, atol=1e-8)


def test_rare_steps_by_dictionary(scene):
    knowledge, release = scene
    outside = knowledge.population.n_actions
    own = [set(steps(s, outside)) for s in sequences_of(knowledge.population)]
    shown = {step for s in sequences_of(release) for step in steps(s, outside)}
    np.testing.assert_allclose(
        rare_scores(knowledge, release), plain_rare_scores(own, shown), atol=1e-10
    )  # fmt: skip


def test_rare_bags_by_dictionary(scene):
    knowledge, release = scene
    own = [bags(s) for s in sequences_of(knowledge.population)]
    shown = {bag for s in sequences_of(release) for bag in bags(s)}
    np.testing.assert_allclose(
        rare_bag_scores(knowledge, release), plain_rare_scores(own, shown), atol=1e-10
    )  # fmt: skip


def test_learners_who_say_too_little_are_set_aside():
    """The seed's limit by its formula, where every action is common."""
    drawn = [[0], [0, 0], [1], [0, 1], [1, 2]] * (RARE + 1)
    log = Interactions.from_sequences(drawn)
    share = {a: sum(s.count(a) for s in drawn) / sum(map(len, drawn)) for a in range(3)}
    limit = -0.5 * math.log(0.5)
    wanted = [sum(-share[a] * math.log(share[a]) for a in s) > limit for s in drawn]
    assert Knowledge(log, len(drawn) // 2).judged.tolist()[:4] == wanted[:4]
    assert 0 < sum(wanted) < len(wanted)


def test_learners_with_a_rare_action_are_judged_whatever_their_entropy():
    common, rare = [[0]] * 50, [[1]] * RARE
    judged = Knowledge(Interactions.from_sequences(common + rare), 30).judged
    assert not judged[:50].any()
    assert judged[50:].all()
    one_too_many = Knowledge(Interactions.from_sequences(common + [[1]] * (RARE + 1)), 30).judged
    assert not one_too_many.any()


def test_no_score_depends_on_the_order_of_synthetic_learners(scene):
    knowledge, release = scene
    shuffled = release.select(np.random.default_rng(0).permutation(release.n_learners))
    before, after = (membership_scores(knowledge, log, None) for log in (release, shuffled))
    for name in before:
        np.testing.assert_allclose(before[name], after[name], atol=1e-9, err_msg=name)


def test_no_score_depends_on_where_a_learner_stands(scene):
    """Members come first in an audit's files: their position must not help."""
    knowledge, release = scene
    order = np.random.default_rng(1).permutation(knowledge.population.n_learners)
    moved = Knowledge(knowledge.population.select(order), knowledge.n_training)
    before, after = (membership_scores(k, release, None) for k in (knowledge, moved))
    assert set(before) == {
        "lcs",
        "lcs-published",
        "lcs-expected",
        "lcs-outcomes",
        "transitions",
        "transitions-outcomes",
        "counts",
        "rare",
        "rare-bags",
        "tracing",
        "tracing-outcomes",
        "joint",
        "joint-linear",
    }
    for name in before:
        np.testing.assert_allclose(before[name][order], after[name], atol=1e-9, err_msg=name)
    np.testing.assert_array_equal(knowledge.judged[order], moved.judged)


def test_a_learners_own_steps_are_not_their_reference(make_log):
    """A step that Ada alone makes is unexpected however often she makes it."""
    others = sequences_of(make_log(np.random.default_rng(7), n_learners=20, n_actions=6))
    names = [str(j) for j in range(8)]
    population = Interactions.from_sequences([[6, 7] * 50, *others], actions=names)
    release = Interactions.from_sequences([[6, 7]], actions=names)
    score = transition_scores(Knowledge(population, 10), release)[0] / 50
    # Without her, 6 leads to 7 with the prior's 1 in 9; with her in the reference, nearly always,
    # and the score would fall below 0.
    made, back = math.log((1 + 5 / 9) / 6 * 9), math.log(5 / 6)
    assert score == pytest.approx(made + back, abs=0.1)
