"""Autoencoders of cohorts: likelihoods, what M1 learns, and that M2's private steps are what they claim."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from understudy.cohorts.deep import vae
from understudy.core.privacy import private_training
from understudy.core.privacy.noise import os_noise, seeded_noise
from understudy.errors import MissingError

torch = pytest.importorskip("torch", reason="the extra `deep` is not installed")
pytest.importorskip("opacus", reason="the extra `deep` is not installed")

HIGHS = np.array([100.0, 50.0])
N_WEEKS = 6


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def series(n, rng):
    """Active half and a fifth of the weeks, with minutes around 20 and 5."""
    active = rng.random((n, 2, N_WEEKS)) < np.array([0.5, 0.2])[None, :, None]
    minutes = rng.gamma(4.0, np.array([5.0, 1.25])[None, :, None], active.shape)
    return np.where(active, np.minimum(minutes, HIGHS[None, :, None]), 0.0)


def latents(n, rng, n_labels=3, shift=0.0):
    label = rng.integers(n_labels, size=n)
    mean = rng.normal(size=(n, 4)) + shift + label[:, None]
    return vae.Latents(mean, np.full((n, 4), 0.3), label)


# --- likelihood ----------------------------------------------------------------------------------


def test_likelihood_is_a_gate_and_scipys_gamma():
    rng = np.random.default_rng(0)
    t = np.array([0.0, 0.01, 0.2, 0.7, 1.0])
    gate, log_mean, log_shape = rng.normal(size=(3, 5))
    found = vae.gated_gamma_log_likelihood(*(torch.tensor(one) for one in (t, gate, log_mean, log_shape)))
    chance, shape = 1 / (1 + np.exp(-gate)), np.exp(log_shape)
    positive = np.log(chance) + stats.gamma.logpdf(t, shape, scale=np.exp(log_mean) / shape)
    np.testing.assert_allclose(found.numpy(), np.where(t > 0, positive, np.log1p(-chance)), rtol=1e-10)


def test_likelihoods_gradient_is_that_of_finite_differences():
    rng = np.random.default_rng(1)
    t = torch.tensor([0.0, 0.05, 0.4, 1.0], dtype=torch.float64)
    parameters = [torch.tensor(one, requires_grad=True) for one in rng.normal(size=(3, 4))]
    assert torch.autograd.gradcheck(lambda *p: vae.gated_gamma_log_likelihood(t, *p), parameters)


def test_zeros_leave_the_gamma_without_gradient():
    parameters = [torch.zeros(3, requires_grad=True) for _ in range(3)]
    vae.gated_gamma_log_likelihood(torch.zeros(3), *parameters).sum().backward()
    assert all(bool((one.grad == 0).all()) for one in parameters[1:])


def test_annealing_rises_in_the_first_half_of_each_cycle():
    beta = [vae.cyclical_beta(step, 40, 2, 0.5) for step in range(40)]
    np.testing.assert_allclose(beta[:11], 0.05 * np.arange(11))
    assert beta[10:20] == [0.5] * 10
    assert beta[20:] == beta[:20]


# --- M1 ------------------------------------------------------------------------------------------


def test_preprocessing_keeps_zero_and_the_bound_and_is_undone():
    m1 = vae.SeriesVae(HIGHS, N_WEEKS)
    values = series(50, np.random.default_rng(2))
    values[0] = HIGHS[:, None]
    transformed = m1.transformed(values)
    assert ((transformed == 0) == (values == 0)).all()
    np.testing.assert_allclose(transformed[0], 1.0)
    np.testing.assert_allclose(m1.restored(transformed), values, atol=1e-9)


def test_m1_learns_zero_shares_and_means_and_respects_bounds():
    rng = np.random.default_rng(3)
    values = series(800, rng)
    m1 = vae.SeriesVae(HIGHS, N_WEEKS, vae.SeriesSettings(latent=3, epochs=8, batch_size=64))
    drawn = m1.fit(values, rng).sample(800, rng)
    assert drawn.shape == values.shape
    assert drawn.min() == 0
    assert (drawn <= HIGHS[None, :, None]).all()
    np.testing.assert_allclose((drawn == 0).mean(axis=(0, 2)), (values == 0).mean(axis=(0, 2)), atol=0.06)
    np.testing.assert_allclose(drawn.mean(axis=(0, 2)), values.mean(axis=(0, 2)), rtol=0.2)
    mean, deviation = m1.encode(values)
    assert mean.shape == deviation.shape == (800, 3)
    assert (deviation > 0).all()


def test_m1_follows_from_the_seed_and_leaves_torchs_own_alone():
    values = series(60, np.random.default_rng(4))
    settings = vae.SeriesSettings(latent=2, hidden=(4, 4), epochs=2, batch_size=32)
    torch.manual_seed(5)
    undisturbed = torch.rand(1)
    drawn = []
    for _ in range(2):
        torch.manual_seed(5)
        rng = np.random.default_rng(6)
        drawn.append(vae.SeriesVae(HIGHS, N_WEEKS, settings).fit(values, rng).sample(20, rng))
        assert torch.equal(torch.rand(1), undisturbed)
    np.testing.assert_array_equal(*drawn)


def test_a_learners_encoding_does_not_depend_on_the_others():
    rng = np.random.default_rng(7)
    values = series(40, rng)
    settings = vae.SeriesSettings(latent=2, hidden=(4, 4), epochs=1)
    m1 = vae.SeriesVae(HIGHS, N_WEEKS, settings).fit(values, rng)
    changed = values.copy()
    changed[0] = HIGHS[:, None]
    np.testing.assert_array_equal(m1.encode(values)[0][1:], m1.encode(changed)[0][1:])


# --- M2 ------------------------------------------------------------------------------------------

STEPS = private_training.PrivateSteps(rate=0.5, n_steps=3, clip=0.7, noise_multiplier=2.0)
SMALL = vae.LatentSettings(latent=2, warm_steps=10, public_batch_size=16)


def fitted(private, rng, noise=None, steps=STEPS, settings=SMALL):
    public = latents(40, np.random.default_rng(8))
    return vae.LatentVae(4, 3, settings).fit(public, private, steps, rng, noise or seeded_noise(rng))


def test_m2_counts_its_parameters():
    m2 = fitted(latents(12, np.random.default_rng(9)), np.random.default_rng(10))
    assert sum(p.numel() for p in m2.parts_.parameters()) == m2.n_parameters


def test_opacus_gradient_is_each_learners_own_and_what_is_summed_is_clipped(monkeypatch):
    """By hand: a plain copy of the model, one learner at a time."""
    seen = {}
    private = latents(9, np.random.default_rng(11), shift=3.0)
    original = vae.LatentVae.losses

    def spied(self, parts, latent, label, hidden_noise, beta):
        if len(label) == len(private):
            seen.update(
                latent=latent.detach().clone(),
                label=label,
                hidden=hidden_noise,
                beta=beta,
                weights={name: value.clone() for name, value in parts.state_dict().items()},
            )
        return original(self, parts, latent, label, hidden_noise, beta)

    class Recording:
        secret = True

        def discrete_gaussian(self, values, sigma):
            seen.update(sum=values.copy(), sigma=sigma)
            return values

    monkeypatch.setattr(vae.LatentVae, "losses", spied)
    once = private_training.PrivateSteps(rate=1.0, n_steps=1, clip=0.7, noise_multiplier=2.0)
    m2 = fitted(private, np.random.default_rng(12), Recording(), once)

    plain = m2._parts()
    plain.load_state_dict(seen["weights"])
    rows = []
    for one in range(len(private)):
        plain.zero_grad()
        chosen = slice(one, one + 1)
        loss = original(
            m2, plain, seen["latent"][chosen], seen["label"][chosen], seen["hidden"][chosen], seen["beta"]
        )
        loss.sum().backward()
        rows.append(torch.cat([p.grad.reshape(-1) for p in plain.parameters()]).double().numpy())
    gradients = np.array(rows)
    norms = np.linalg.norm(gradients, axis=1)
    assert norms.max() > 0.7  # something is cut
    expected = (gradients * np.minimum(1.0, 0.7 / norms)[:, None]).sum(axis=0)
    np.testing.assert_allclose(seen["sum"] * 0.7 / private_training.LATTICE, expected, atol=1e-4)
    assert seen["sigma"] == 2.0 * private_training.LATTICE


def test_replacing_a_learner_changes_no_other_contribution(monkeypatch):
    """To the last bit: the sensitivity is proved for one row of integers."""
    seen = []
    original = private_training.lattice_contributions
    monkeypatch.setattr(
        private_training,
        "lattice_contributions",
        lambda rows, clip: seen.append(original(rows, clip)) or seen[-1],
    )
    private = latents(33, np.random.default_rng(30))
    once = private_training.PrivateSteps(rate=0.5, n_steps=1, clip=0.7, noise_multiplier=2.0)
    fitted(private, np.random.default_rng(31), steps=once)
    private.mean[5] = 100.0
    fitted(private, np.random.default_rng(31), steps=once)
    before, after = seen
    assert (before[5] != after[5]).any()
    np.testing.assert_array_equal(np.delete(before, 5, axis=0), np.delete(after, 5, axis=0))


def test_no_contribution_is_longer_than_the_sensitivity():
    rng = np.random.default_rng(13)
    rows = rng.normal(size=(200, 30)) * 10.0 ** rng.uniform(-8, 30, size=(200, 1))
    rows[0], rows[1, 3], rows[2, 4] = 0.0, np.nan, np.inf
    cells = private_training.lattice_contributions(rows, 0.5)
    assert ((cells**2).sum(axis=1) <= private_training.LATTICE**2).all()
    assert (cells[:3] == 0).all()
    norms = np.linalg.norm(rows[3:], axis=1)
    expected = rows[3:] * np.minimum(1.0, 0.5 / norms)[:, None]
    np.testing.assert_allclose(cells[3:] * 0.5 / private_training.LATTICE, expected, atol=1e-6)


def test_clipping_norm_and_noise_reach_the_optimizer():
    parts = torch.nn.Linear(2, 1)
    optimizer = private_training.lattice_optimizer_class()(
        torch.optim.Adam(parts.parameters()),
        noise_multiplier=3.0,
        max_grad_norm=0.25,
        expected_batch_size=1,
        noise=os_noise(),
    )
    assert (optimizer.noise_multiplier, optimizer.max_grad_norm) == (3.0, 0.25)
    drawn = []
    for _ in range(150):
        optimizer.taking_part = np.zeros(5, dtype=bool)
        for p in parts.parameters():
            p.grad_sample = torch.ones(5, *p.shape)
        optimizer.pre_step()
        drawn += [float(value) for p in parts.parameters() for value in p.grad.reshape(-1)]
        optimizer.zero_grad()
    # Nobody takes part: what is left is noise. 450 draws: 5 standard errors, a false alarm in 10^6 runs.
    assert abs(np.std(drawn) / 0.75 - 1) < 5 / np.sqrt(2 * len(drawn))


class Silence:
    """No noise, from a source that passes for secret."""

    secret = True

    def discrete_gaussian(self, values, sigma):
        return values


def test_only_those_who_take_part_are_in_the_sum():
    parts = torch.nn.Linear(1, 1, bias=False)
    optimizer = private_training.lattice_optimizer_class()(
        torch.optim.SGD(parts.parameters(), lr=1.0),
        noise_multiplier=1.0,
        max_grad_norm=10.0,
        expected_batch_size=1,
        noise=Silence(),
    )
    optimizer.taking_part = np.array([True, False, True])
    parts.weight.grad_sample = torch.tensor([1.0, 2.0, 4.0]).reshape(3, 1, 1)
    optimizer.pre_step()
    assert float(parts.weight.grad) == pytest.approx(5.0, abs=1e-4)


def test_who_takes_part_is_as_secret_as_the_noise():
    """All that the seed governs is the same in both fits; who is sampled of 40 learners differs (but for 2^-120)."""
    private = latents(40, np.random.default_rng(14))
    one, two = (fitted(private, np.random.default_rng(15), Silence()).parts_.state_dict() for _ in range(2))
    assert any((one[name] != two[name]).any() for name in one)
    one, two = (
        fitted(private, np.random.default_rng(15), seeded_noise(np.random.default_rng(1))).parts_.state_dict()
        for _ in range(2)
    )
    assert all((one[name] == two[name]).all() for name in one)


def test_everybody_takes_part_with_the_rate():
    taken = np.array([private_training.poisson_sample(1000, 0.3) for _ in range(40)])
    assert abs(taken.mean() - 0.3) < 5 * np.sqrt(0.21 / taken.size)
    # Independent of each other: the batch's size varies as a binomial does.
    assert 5 < taken.sum(axis=1).std() < 30
    assert private_training.poisson_sample(7, 1.0).all()
    assert not private_training.poisson_sample(7, 0.0).any()


def test_a_step_in_which_nobody_takes_part_is_a_step_of_noise():
    private = latents(5, np.random.default_rng(14))
    steps = private_training.PrivateSteps(rate=1e-12, n_steps=2, clip=1.0, noise_multiplier=1.0)
    m2 = fitted(private, np.random.default_rng(15), steps=steps)
    assert np.isfinite(m2.sample(np.array([0, 1, 2]), np.random.default_rng(0))).all()


def test_m2_learns_where_a_label_lies_when_noise_is_small():
    rng = np.random.default_rng(16)
    private = latents(300, rng, shift=2.0)
    steps = private_training.PrivateSteps(rate=1.0, n_steps=150, clip=5.0, noise_multiplier=0.1)
    settings = vae.LatentSettings(latent=2, warm_steps=50, public_weight=0.0, learning_rate=0.05)
    m2 = fitted(private, rng, steps=steps, settings=settings)
    for label in range(3):
        drawn = m2.sample(np.full(2000, label), rng)
        np.testing.assert_allclose(drawn.mean(axis=0), private.mean[private.label == label].mean(0), atol=0.5)
    chances = m2.classify(private.mean)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-6)
    assert (chances.argmax(axis=1) == private.label).mean() > 0.6


@pytest.mark.parametrize(("averaged", "n_last"), [(0.5, 3), (1.0, 6), (0.0, 1)])
def test_weights_are_the_mean_of_the_last_private_steps(monkeypatch, averaged, n_last):
    seen = []
    original = vae.LatentVae._private_step

    def spied(self, examples, *others):
        original(self, examples, *others)
        seen.append({name: value.clone() for name, value in examples._module.state_dict().items()})

    monkeypatch.setattr(vae.LatentVae, "_private_step", spied)
    steps = private_training.PrivateSteps(rate=1.0, n_steps=6, clip=1.0, noise_multiplier=1.0)
    settings = vae.LatentSettings(latent=2, warm_steps=5, averaged=averaged)
    m2 = fitted(latents(9, np.random.default_rng(25)), np.random.default_rng(26), None, steps, settings)
    for name, value in m2.parts_.state_dict().items():
        expected = torch.stack([one[name] for one in seen[-n_last:]]).mean(dim=0)
        torch.testing.assert_close(value, expected)


def test_public_rows_may_count_as_unlabelled():
    settings = vae.LatentSettings(latent=2, warm_steps=5, public_labels=False)
    m2 = fitted(latents(6, np.random.default_rng(17)), np.random.default_rng(18), settings=settings)
    assert m2.sample(np.array([0, 2]), np.random.default_rng(0)).shape == (2, 4)


def test_fitted_model_holds_no_row_and_no_learners_gradient():
    canary = 0.7310585786300049
    private = latents(7, np.random.default_rng(19))
    private.mean[3, 2] = canary
    m2 = fitted(private, np.random.default_rng(20))
    for p in m2.parts_.parameters():
        assert p.grad is None
        assert not hasattr(p, "grad_sample")
        assert not hasattr(p, "summed_grad")
    stored = pickle.dumps(m2)
    for form in (np.float64, np.float32):
        assert form(canary).tobytes() not in stored
    assert len(stored) < 4 * m2.n_parameters + 4000


def test_m2_follows_from_the_seed_except_for_secret_noise():
    private = latents(8, np.random.default_rng(21))
    labels = np.array([0, 1, 2])

    def drawn(secret):
        rng = np.random.default_rng(22)
        m2 = fitted(private, rng, os_noise() if secret else seeded_noise(np.random.default_rng(23)))
        return m2.sample(labels, np.random.default_rng(24))

    np.testing.assert_array_equal(drawn(secret=False), drawn(secret=False))
    assert not np.array_equal(drawn(secret=True), drawn(secret=True))


@pytest.mark.parametrize("secret", [True, False])
def test_who_takes_part_is_secret_where_the_noise_is(monkeypatch, secret):
    """Amplification by sampling is part of the guarantee: whoever knows the seed must not know the samples."""
    generators, taken = [], []
    original = vae.poisson_sample

    def spied(n, rate, rng=None):
        generators.append(rng)
        taken[-1].append(original(n, rate, rng))
        return taken[-1][-1]

    monkeypatch.setattr(vae, "poisson_sample", spied)
    steps = private_training.PrivateSteps(rate=0.5, n_steps=4, clip=1.0, noise_multiplier=1.0)
    for _ in range(2):
        taken.append([])
        noise = os_noise() if secret else seeded_noise(np.random.default_rng(23))
        fitted(latents(40, np.random.default_rng(21)), np.random.default_rng(22), noise, steps)
    assert len(generators) == 8
    assert all((rng is None) == secret for rng in generators)
    # The same by chance with 2^-160.
    assert np.array_equal(taken[0], taken[1]) != secret


# --- without the extra ---------------------------------------------------------------------------


def test_models_are_imported_without_torch():
    code = (
        "import sys, understudy.cohorts.deep.vae; sys.exit('torch' in sys.modules or 'opacus' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("missing", ["torch", "opacus"])
def test_a_missing_extra_is_told_in_one_sentence(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingError, match=r"pip install -e '\.\[deep\]'"):
        private_training.load_opacus()
