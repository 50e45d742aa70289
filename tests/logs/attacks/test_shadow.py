"""The shadow attack: its likelihood ratios against the analytic ones, its weights, its strength."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from understudy.core.attacks.shadows import MembershipLaws, fit_score_weights
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.scores import scores_without_refits
from understudy.logs.attacks.shadow import STACKING_PENALTY, Refits, ShadowAttack, fit_shadow, pairwise_scores
from understudy.logs.audit import attack, train_shadow_attack
from understudy.logs.generators.registry import parse_generator

pytestmark = pytest.mark.oracle

N_LEARNERS = 60


def toy(rng, n_shadows):
    """Two scores per learner, normal with known laws: mean, spread, and shift when a member."""
    laws = np.random.default_rng(0)
    mean = laws.normal(size=(N_LEARNERS, 2)) * 3
    spread = np.exp(laws.normal(size=(N_LEARNERS, 2)) * 0.5)
    shift = laws.uniform(0.2, 2.0, size=(N_LEARNERS, 2)) * spread
    member = rng.random((n_shadows, N_LEARNERS)) < 0.5
    noise = rng.normal(size=(n_shadows, N_LEARNERS, 2))
    return member, mean + member[:, :, None] * shift + noise * spread, (mean, spread, shift)


def analytic_ratio(observed, laws):
    """log N(x; in) - log N(x; out) of each score."""
    mean, spread, shift = laws
    return norm.logpdf(observed, mean + shift, spread) - norm.logpdf(observed, mean, spread)


def test_the_ratio_approaches_the_analytic_one():
    everybody = np.ones(N_LEARNERS, dtype=bool)
    _, new, truth = toy(np.random.default_rng(99), 200)
    wanted = np.array([analytic_ratio(x, truth) for x in new])
    errors = []
    for n_shadows in (16, 256, 8192):
        member, scores, _ = toy(np.random.default_rng(n_shadows), n_shadows)
        laws = MembershipLaws(member, scores, everybody)
        found = np.array([laws.log_ratios(x) for x in new])
        errors.append(np.sqrt(np.mean((found - wanted) ** 2)) / wanted.std())
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.03
    assert errors[0] < 1.0  # 16 shadows are few, and shrinking keeps them usable


def test_learners_without_evidence_get_none():
    """A score that never changes says nothing; one that is the same in and out says nothing."""
    rng = np.random.default_rng(1)
    member = rng.random((400, N_LEARNERS)) < 0.5
    scores = rng.normal(size=(400, N_LEARNERS, 1)) + 1.5 * member[:, :, None]
    scores[:, :20] = 4.0
    scores[:, 20:40] = rng.normal(size=(400, 20, 1))
    laws = MembershipLaws(member, scores, np.ones(N_LEARNERS, dtype=bool))
    constant = np.concatenate([np.full((20, 1), 4.0), np.full((40, 1), 3.0)])
    ratio = laws.log_ratios(constant)[:, 0]
    assert np.abs(ratio[:20]).max() < 1e-9
    # At 3, two spreads from the middle, a learner with shift 1.5 has the ratio 3.4.
    assert np.abs(ratio[20:40]).mean() < 0.3 * ratio[40:].mean()
    assert ratio[40:].mean() == pytest.approx(1.5 * (3.0 - 0.75), rel=0.1)


def test_the_weights_are_those_of_a_logistic_regression():
    rng = np.random.default_rng(2)
    member = rng.random((10, N_LEARNERS)) < 0.5
    evidence = rng.normal(size=(10, N_LEARNERS, 3)) * [1.0, 5.0, 0.2]
    evidence[:, :, 1] += 3.0 * member
    flat = evidence.reshape(-1, 3)
    oracle = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(flat / flat.std(axis=0), member.ravel())
    np.testing.assert_allclose(
        fit_score_weights(evidence, member), oracle.coef_[0] / flat.std(axis=0), rtol=1e-4
    )


def test_separable_evidence_gives_finite_weights():
    member = np.random.default_rng(0).random((4, N_LEARNERS)) < 0.5
    weights = fit_score_weights(10.0 * member[:, :, None] - 5.0, member)
    assert np.isfinite(weights).all()
    assert weights[0] > 0


def generate(name, log, rng):
    return parse_generator(name).fit(log, rng, seeded_noise(rng)).sample(None, rng)


@pytest.fixture(scope="module")
def audits(make_log):
    """Eight audits of `markov`, each on its own population and half."""
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        population = make_log(rng, n_learners=120, n_actions=40, mean_length=25)
        member = np.zeros(120, dtype=bool)
        member[rng.permutation(120)[:60]] = True
        knowledge = Knowledge(population, 60)
        method = partial(generate, "markov")
        shadow = train_shadow_attack(knowledge, method, np.random.SeedSequence(seed), n_shadows=24)
        risk = attack(knowledge, member, method(population.select(member), rng), shadow, rng)
        found.append({estimate.attack: estimate.auc for estimate in risk.estimates})
    return found


def test_pairwise_scores_are_shares_of_pairs():
    """Zarifzadeh, Liu and Shokri (2024), equation 2, by all pairs."""
    ratio = np.array([0.3, -2.0, 0.3, 1.7, 0.0])
    wanted = [np.mean([np.exp(x) / np.exp(z) >= 1.0 for z in ratio]) for x in ratio]
    np.testing.assert_allclose(pairwise_scores(ratio), wanted)


@pytest.fixture(scope="module")
def scene(make_log):
    """Refits of a chain on 40 learners, on four of which every attack was run, and a released log."""
    knowledge = Knowledge(make_log(np.random.default_rng(4), n_learners=40, n_actions=15), 20)
    method = partial(generate, "markov")
    shadows = [
        fit_shadow(knowledge, method, np.random.default_rng(seed), stacked=seed < 4) for seed in range(16)
    ]
    released = method(knowledge.population.select(np.arange(20)), np.random.default_rng(99))
    return knowledge, shadows, released, scores_without_refits(knowledge, released)


def test_pairwise_is_the_ratio_to_the_mean_of_refits(scene):
    """Oracle: the geometric mean over refits with the learner and over refits without, a learner at a time."""
    knowledge, shadows, released, others = scene
    ratio = []
    for i, density in enumerate(others["transitions"]):
        inside = [s.scores[i, 0] for s in shadows if s.member[i]]
        outside = [s.scores[i, 0] for s in shadows if not s.member[i]]
        ratio.append(density - (np.mean(inside) + np.mean(outside)) / 2)
    wanted = [np.mean([z <= x + 1e-12 for z in ratio]) for x in ratio]
    found = ShadowAttack(knowledge, shadows).scores(released, others)["pairwise"]
    np.testing.assert_allclose(found, wanted)


def test_stacked_is_the_regression_on_refits_that_calibrated_nothing(scene):
    """Oracle: scikit-learn on normal quantiles of ranks by pairs; the parts come from the other refits."""
    knowledge, shadows, released, others = scene
    judged = knowledge.judged
    rest = Refits(knowledge, [s for s in shadows if s.all_scores is None])

    def quantiles(scores):
        columns = np.column_stack([scores[name] for name in names])
        below = (columns[:, None] > columns).sum(axis=1) + 0.5 * (columns[:, None] == columns).sum(axis=1)
        return norm.ppf(below / len(columns))

    final = ShadowAttack(knowledge, shadows).scores(released, others)
    names = [*others, *(name for name in final if name != "stacked")]
    whole = [{**s.all_scores, **rest.scores(s.scores, s.statistics)} for s in shadows[:4]]
    x = np.concatenate([quantiles(scores)[judged] for scores in whole])
    y = np.concatenate([s.member[judged] for s in shadows[:4]])
    oracle = LogisticRegression(C=1 / STACKING_PENALTY, tol=1e-10, max_iter=1000).fit(x / x.std(axis=0), y)
    wanted = quantiles({**others, **final}) @ (oracle.coef_[0] / x.std(axis=0))
    np.testing.assert_allclose(final["stacked"], wanted, atol=1e-4)


@pytest.mark.parametrize("other", ["transitions", "rare", "counts"])
def test_the_shadow_attack_is_not_weaker_than_its_parts(audits, other):
    """Paired over eight audits; it may fall short by two standard errors (false alarm 2.5 %)."""
    gain = np.array([audit["shadow"] - audit[other] for audit in audits])
    assert gain.mean() > -2 * gain.std(ddof=1) / np.sqrt(len(gain))
    assert np.mean([audit["shadow"] for audit in audits]) > 0.7


def test_rehearsals_are_reproducible_and_balanced(make_log):
    knowledge = Knowledge(make_log(np.random.default_rng(3), n_learners=30), 15)
    ticks = []
    seen = []

    def spy(log, rng):
        seen.append(log.n_learners)
        return generate("markov", log, rng)

    first, again = (
        train_shadow_attack(
            knowledge, spy, np.random.SeedSequence(5), n_shadows=8, tick=lambda: ticks.append(1)
        )
        for _ in range(2)
    )
    release = knowledge.population.select(np.arange(15))
    others = scores_without_refits(knowledge, release)
    for name, scores in first.scores(release, others).items():
        np.testing.assert_array_equal(scores, again.scores(release, others)[name])
    assert (len(ticks), set(seen)) == (16, {15})


def test_stacked_is_about_as_strong_as_the_strongest_of_its_parts(audits):
    """Paired over eight audits, as above; on these chains that is `joint`."""
    gain = np.array([audit["stacked"] - audit["joint"] for audit in audits])
    assert gain.mean() > -2 * gain.std(ddof=1) / np.sqrt(len(gain)) - 0.01
    assert np.mean([audit["pairwise"] for audit in audits]) > 0.65
