"""LinearPosterior against the closed form, where a release is exact noisy sums."""

import numpy as np
import pytest

from understudy.core.attacks.estimate import auc_with_error
from understudy.core.attacks.linear import LinearPosterior

pytestmark = pytest.mark.oracle

N_LEARNERS, SHARE = 60, 0.5
KIND = np.repeat([0, 1], [25, 15])
SLOPE = np.where(KIND == 0, 0.8, 0.3)


@pytest.fixture(scope="module")
def truth():
    """Contributions of learners, and the noise of each statistic."""
    rng = np.random.default_rng(0)
    contributions = rng.exponential(size=(N_LEARNERS, len(KIND))) * (
        rng.random((N_LEARNERS, len(KIND))) < 0.5
    )
    return contributions, np.exp(rng.normal(1.0, 0.3, len(KIND)))


def release(truth, member, rng):
    """Noisy sums over the members, less what arrives of them."""
    contributions, noise = truth
    return 7.0 + SLOPE * ((member - SHARE) @ contributions) + noise * rng.normal(size=len(KIND))


def closed_form(truth, statistics):
    """The posterior mean of m - p by the covariance of memberships and statistics, K x K."""
    contributions, noise = truth
    prior = SHARE * (1 - SHARE)
    loading = contributions * SLOPE
    covariance = prior * loading.T @ loading + np.diag(noise**2)
    return prior * loading @ np.linalg.solve(covariance, statistics - 7.0)


def half(rng):
    return rng.permutation(N_LEARNERS) < N_LEARNERS // 2


def test_known_slopes_and_noise_give_the_closed_form(truth):
    rng = np.random.default_rng(1)
    contributions, noise = truth
    statistics = release(truth, half(rng), rng)
    posterior = LinearPosterior(contributions, SHARE, np.full(len(KIND), 7.0), SLOPE, noise**2)
    np.testing.assert_allclose(posterior.scores(statistics), closed_form(truth, statistics), atol=1e-5)


def learned(truth, n_shadows):
    rng = np.random.default_rng(2)
    member = np.array([half(rng) for _ in range(n_shadows)])
    statistics = np.array([release(truth, m, rng) for m in member])
    return LinearPosterior.from_shadows(truth[0], KIND, SHARE, member, statistics)


def test_shadows_teach_the_closed_form(truth):
    """48 shadows give scores that correlate with the best possible ones; 5,000 give the same."""
    rng = np.random.default_rng(3)
    released = [release(truth, half(rng), rng) for _ in range(20)]
    wanted = np.array([closed_form(truth, y) for y in released])
    few, many = (np.array([*map(learned(truth, n).scores, released)]) for n in (48, 5000))
    assert np.corrcoef(few.ravel(), wanted.ravel())[0, 1] > 0.9
    assert np.corrcoef(many.ravel(), wanted.ravel())[0, 1] > 0.995
    np.testing.assert_allclose(many, wanted, atol=0.05)


def test_it_finds_members_and_nothing_where_there_is_nothing(truth):
    """Forty releases of 60 learners: the mean area has a standard error of 0.012."""
    rng = np.random.default_rng(4)
    posterior = learned(truth, 48)
    found, control = [], []
    for _ in range(40):
        member = half(rng)
        found.append(auc_with_error(posterior.scores(release(truth, member, rng)), member)[0])
        control.append(auc_with_error(posterior.scores(release(truth, half(rng), rng)), member)[0])
    assert np.mean(found) > 0.6
    assert np.mean(control) == pytest.approx(0.5, abs=4 * 0.012)


def test_a_release_of_unknown_making_is_judged_by_itself(truth):
    """Without shadows: a faithful release with little noise is seen through, one of noise alone is not trusted."""
    contributions, noise = truth
    spread = SHARE * (1 - SHARE) * (contributions**2).sum(axis=0)
    rng = np.random.default_rng(5)
    areas, sizes = [], []
    for _ in range(20):
        member = half(rng)
        real = contributions.sum(axis=0) * SHARE
        for scale in (0.1, 30.0):
            released = real + (member - SHARE) @ contributions + scale * noise * rng.normal(size=len(KIND))
            posterior = LinearPosterior.from_release(contributions, spread, KIND, SHARE, real, released)
            scores = posterior.scores(released)
            areas.append(auc_with_error(scores, member)[0])
            sizes.append(np.abs(scores).mean())
    assert np.mean(areas[0::2]) > 0.8
    assert np.mean(sizes[1::2]) < 0.3 * np.mean(sizes[0::2])
