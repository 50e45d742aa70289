"""Variational autoencoders of cohorts: a large one of series (M1), a small private one of its latent (M2).

The deep baseline of Ito, Hsu and Ogata (2026, section IV-B1, appendix A), after the stacked semi-supervised
model of Kingma et al. (2014). M1 sees public data only. M2 is trained on learners with DP-Adam:
Opacus gives each learner's gradient; clipping, sum and noise happen on an integer lattice, so that
the noise is the discrete Gaussian of `privacy.noise` and not a floating-point one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy.core.privacy.noise import Noise
from understudy.core.privacy.private_training import (
    PrivateSteps,
    lattice_optimizer_class,
    load_opacus,
    load_torch,
    poisson_sample,
)

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Positive values below this are as good as this, in the transformed unit: a gamma of shape below
# one has an infinite density at 0.
_SMALLEST = 1e-3
# Bounds of predicted logarithms: far from anything a series needs, near enough for finite gradients.
_LOG_SHAPE = (-2.0, 7.0)
_LOG_MEAN = (-7.0, 1.0)
_LOG_VARIANCE = (-8.0, 4.0)
_FIRST_LOG_VARIANCE = -4.0


# --- what both share -----------------------------------------------------------------------------


def cyclical_beta(step: int, n_steps: int, n_cycles: int, highest: float) -> float:
    """Weight of the KL term (Fu et al. 2019): in each cycle a ramp over its first half, then `highest`."""
    place = (step % max(1.0, n_steps / n_cycles)) / max(1.0, n_steps / n_cycles)
    return highest * min(1.0, 2.0 * place)


def gated_gamma_log_likelihood(values: Tensor, gate: Tensor, log_mean: Tensor, log_shape: Tensor) -> Tensor:
    """Log-likelihood of transformed values, place by place: a gate for zeros, a gamma for what is positive.

    A value is positive with probability sigmoid(gate); then it has the gamma density with shape
    a = exp(log_shape) and mean m = exp(log_mean): a log(a/m) + (a - 1) log t - a t/m - log Gamma(a).
    """
    torch = load_torch()
    positive = values > 0
    of_gate = torch.where(
        positive, torch.nn.functional.logsigmoid(gate), torch.nn.functional.logsigmoid(-gate)
    )
    t = values.clamp(min=_SMALLEST)
    shape = log_shape.exp()
    of_value = (
        shape * (log_shape - log_mean)
        + (shape - 1) * t.log()
        - shape * t * (-log_mean).exp()
        - torch.lgamma(shape)
    )
    total: Tensor = of_gate + torch.where(positive, of_value, torch.zeros_like(of_value))
    return total


def _moments(transformed: Floats) -> Floats:
    """Gate, log-mean and log-shape (rows) that fit each feature (columns) as a whole."""
    found = []
    for feature in np.moveaxis(transformed, 1, 0):
        positive = feature[feature > 0]
        share = (len(positive) + 1) / (feature.size + 2)
        mean = positive.mean() if len(positive) else 0.5
        variance = max(float(positive.var()), 1e-4) if len(positive) > 1 else 0.1
        found.append([math.log(share / (1 - share)), math.log(mean), math.log(mean**2 / variance)])
    return np.array(found).T


def _normal_divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL of a diagonal normal from the standard one, by row."""
    total: Tensor = 0.5 * (mean**2 + log_variance.exp() - 1.0 - log_variance).sum(dim=1)
    return total


def _halves(parameters: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and bounded log-variance, predicted side by side."""
    mean, log_variance = parameters.chunk(2, dim=1)
    return mean, log_variance.clamp(*_LOG_VARIANCE)


@contextmanager
def _seeded(rng: np.random.Generator) -> Iterator[None]:
    """torch's own draws (weights, dropout, latent noise) follow from `rng`; its global state is left alone."""
    torch = load_torch()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**62)))
        yield


# --- M1 ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SeriesSettings:
    """M1. Hidden sizes and annealing are the published ones; the rest is not legible there and tuned on surrogates.

    The published dropout (0.2 and 0.5) is not kept: on widened surrogates half of the decoder dropped blurs what it
    writes, and is worth more AJS than all the noise of the private steps. A latent of 6 has no unused
    places, each of which would be noise in M2.

    `stretch` c is the preprocessing: x of a feature with the bound `high` becomes
    t = log(1 + c x / high) / log(1 + c), which is 0 at 0 and 1 at the bound.
    """

    latent: int = 6
    hidden: tuple[int, int] = (32, 64)
    encoder_dropout: float = 0.1
    decoder_dropout: float = 0.05
    learning_rate: float = 4e-3
    batch_size: int = 128
    epochs: int = 10
    n_cycles: int = 4
    beta: float = 0.3
    stretch: float = 20.0


class SeriesVae:
    """M1: series (features by weeks) to a normal latent and back, by convolutions over the weeks.

    Trained on public data only. It keeps weights and bounds, no rows.
    """

    def __init__(self, highs: Floats, n_weeks: int, settings: SeriesSettings | None = None) -> None:
        self.highs = highs
        self.n_weeks = n_weeks
        self.settings = settings or SeriesSettings()

    def fit(self, values: Floats, rng: np.random.Generator) -> SeriesVae:
        """Train from fresh weights; `values` are learners by features by weeks, 0 to `highs`."""
        torch = load_torch()
        with _seeded(rng):
            self.encoder_, self.decoder_ = self._networks()
        with torch.no_grad():
            # Start from the moments of each feature: training then only has to learn what differs.
            last: Any = self.decoder_[-1]
            last.bias.copy_(torch.as_tensor(_moments(self.transformed(values)).ravel()))
            # A posterior that is narrow at first: otherwise the decoder learns to ignore the latent.
            code: Any = self.encoder_[-1]
            code.bias[self.settings.latent :] = _FIRST_LOG_VARIANCE
        return self.update(values, rng)

    def update(self, values: Floats, rng: np.random.Generator) -> SeriesVae:
        """Train on from the weights there are, for generative replay."""
        torch = load_torch()
        setting = self.settings
        rows = torch.as_tensor(self.transformed(values), dtype=torch.float32)
        networks = torch.nn.ModuleList([self.encoder_, self.decoder_])
        optimizer = torch.optim.Adam(networks.parameters(), lr=setting.learning_rate)
        n_batches = math.ceil(len(rows) / setting.batch_size)
        n_steps = setting.epochs * n_batches
        networks.train()
        with _seeded(rng):
            for step in range(n_steps):
                if step % n_batches == 0:
                    order = torch.randperm(len(rows))
                start = step % n_batches * setting.batch_size
                batch = rows[order[start : start + setting.batch_size]]
                mean, log_variance = self._posterior(batch)
                latent = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
                likelihood = gated_gamma_log_likelihood(batch, *self._places(latent)).sum(dim=(1, 2))
                beta = cyclical_beta(step, n_steps, setting.n_cycles, setting.beta)
                loss: Any = (beta * _normal_divergence(mean, log_variance) - likelihood).mean()
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(networks.parameters(), 20.0 * self.n_weeks)
                optimizer.step()
        networks.eval()
        networks.zero_grad()
        return self

    def encode(self, values: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of each row's latent; a row's result depends on that row only."""
        torch = load_torch()
        with torch.no_grad():
            parts = [
                self._posterior(torch.as_tensor(chunk, dtype=torch.float32))
                for chunk in np.array_split(self.transformed(values), max(1, len(values) // 4096))
            ]
        mean = torch.cat([part for part, _ in parts]).double().numpy()
        log_variance = torch.cat([part for _, part in parts]).double().numpy()
        return mean, np.exp(0.5 * log_variance)

    def decode(self, latent: Floats, rng: np.random.Generator) -> Floats:
        """Draw series from latents: gates, then gammas; what exceeds a bound is cut to it."""
        torch = load_torch()
        with torch.no_grad():
            places = self._places(torch.as_tensor(latent, dtype=torch.float32))
        gate, log_mean, log_shape = (part.double().numpy() for part in places)
        active = rng.random(gate.shape) < 1.0 / (1.0 + np.exp(-gate))
        shape = np.exp(log_shape)
        drawn = rng.gamma(shape, np.exp(log_mean) / shape)
        return np.where(active, self.restored(np.clip(drawn, _SMALLEST, 1.0)), 0.0)

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Series from the prior: what M1 alone generates."""
        return self.decode(rng.normal(size=(n, self.settings.latent)), rng)

    def transformed(self, values: Floats) -> Floats:
        """Values between 0 and 1; see `SeriesSettings.stretch`."""
        c = self.settings.stretch
        result: Floats = np.log1p(c * values / self.highs[None, :, None]) / np.log1p(c)
        return result

    def restored(self, transformed: Floats) -> Floats:
        """The inverse of `transformed`."""
        c = self.settings.stretch
        result: Floats = np.expm1(transformed * np.log1p(c)) / c * self.highs[None, :, None]
        return np.minimum(result, self.highs[None, :, None])

    def _posterior(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """From values and whether they are positive, side by side."""
        torch = load_torch()
        return _halves(self.encoder_(torch.cat([rows, (rows > 0).to(rows.dtype)], dim=1)))

    def _places(self, latent: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        gate, log_mean, log_shape = self.decoder_(latent).chunk(3, dim=1)
        return gate, log_mean.clamp(*_LOG_MEAN), log_shape.clamp(*_LOG_SHAPE)

    def _networks(self) -> tuple[torch.nn.Sequential, torch.nn.Sequential]:
        nn = load_torch().nn
        setting, n_features = self.settings, len(self.highs)
        first, second = setting.hidden
        encoder = nn.Sequential(
            nn.Conv1d(2 * n_features, first, 3, padding=1),
            nn.ReLU(),
            nn.Dropout(setting.encoder_dropout),
            nn.Conv1d(first, second, 3, padding=1),
            nn.ReLU(),
            nn.Dropout(setting.encoder_dropout),
            nn.Flatten(),
            nn.Linear(second * self.n_weeks, 2 * setting.latent),
        )
        decoder = nn.Sequential(
            nn.Linear(setting.latent, second * self.n_weeks),
            nn.ReLU(),
            nn.Dropout(setting.decoder_dropout),
            nn.Unflatten(1, (second, self.n_weeks)),
            nn.Conv1d(second, first, 3, padding=1),
            nn.ReLU(),
            nn.Dropout(setting.decoder_dropout),
            nn.Conv1d(first, 3 * n_features, 3, padding=1),
        )
        return encoder, decoder


# --- M2 ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Latents:
    """Rows as M1 sees them: mean and deviation of the latent, and the label."""

    mean: Floats
    deviation: Floats
    label: Ints

    def __len__(self) -> int:
        return len(self.label)


@dataclass(frozen=True)
class LatentSettings:
    """M2. `warm_steps` on public rows alone come first; then each private step has a public batch too.

    With `public_labels` false the public rows count as unlabelled: their labels are summed over,
    weighted by the classifier (Kingma et al. 2014, equation 7). `averaged` is the share of private
    steps, the last ones, whose weights are averaged.
    """

    latent: int = 1
    learning_rate: float = 0.06
    warm_learning_rate: float = 0.02
    warm_steps: int = 300
    public_batch_size: int = 256
    public_weight: float = 0.05
    public_labels: bool = True
    classifier_weight: float = 1.0
    n_cycles: int = 4
    beta: float = 1.0
    averaged: float = 0.5


class LatentVae:
    """M2: a linear classifier of M1's latent z and a linear conditional autoencoder p(z | a, label).

    After `fit` it holds weights only: no row, no learner's gradient, no optimizer.
    """

    def __init__(self, n_latent: int, n_labels: int, settings: LatentSettings | None = None) -> None:
        self.n_latent = n_latent
        self.n_labels = n_labels
        self.settings = settings or LatentSettings()

    @property
    def n_parameters(self) -> int:
        """How many numbers each private step adds noise to."""
        a, z, k = self.settings.latent, self.n_latent, self.n_labels
        return (z + 1) * k + (z + k + 1) * 2 * a + (a + k + 1) * 2 * z

    def fit(
        self,
        public: Latents,
        private: Latents,
        steps: PrivateSteps,
        rng: np.random.Generator,
        noise: Noise,
    ) -> LatentVae:
        """Train on public rows, then on both; only the noisy sums of `steps` depend on private ones.

        `rng` governs weights, public batches and latent noise: none of that is secret. Who takes
        part in a step and the noise come from the operating system, unless `noise` is a test's.
        """
        torch = load_torch()
        keep_examples, _ = load_opacus()
        with _seeded(rng):
            parts = self._parts()
            warm = torch.optim.Adam(parts.parameters(), lr=self.settings.warm_learning_rate)
            for step in range(self.settings.warm_steps):
                warm.zero_grad()
                self._public_loss(parts, public, self._beta(step, self.settings.warm_steps)).backward()
                warm.step()
            warm.zero_grad()
            examples = keep_examples(parts, loss_reduction="sum")
            optimizer = lattice_optimizer_class()(
                torch.optim.Adam(parts.parameters(), lr=self.settings.learning_rate),
                noise_multiplier=steps.noise_multiplier,
                max_grad_norm=steps.clip,
                expected_batch_size=steps.rate * len(private),
                noise=noise,
            )
            n_averaged = max(1, round(self.settings.averaged * steps.n_steps))
            weights = {name: value.detach().clone() for name, value in parts.state_dict().items()}
            for step in range(steps.n_steps):
                self._private_step(examples, optimizer, public, private, steps.rate, rng, noise)
                # The mean of the last weights: their noise averages out, and it is post-processing.
                n_before = max(0, step - (steps.n_steps - n_averaged))
                for name, value in parts.state_dict().items():
                    weights[name] = (n_before * weights[name] + value.detach()) / (n_before + 1)
            # Parameters that Opacus has seen carry each learner's gradient: they are left behind.
            self.parts_ = self._parts()
            self.parts_.load_state_dict(weights)
        return self

    def sample(self, labels: Ints, rng: np.random.Generator) -> Floats:
        """A latent z for each label."""
        torch = load_torch()
        hidden = rng.normal(size=(len(labels), self.settings.latent))
        given = np.concatenate([hidden, np.eye(self.n_labels)[labels]], axis=1)
        with torch.no_grad():
            mean, log_variance = _halves(self.parts_["decoder"](torch.as_tensor(given, dtype=torch.float32)))
        spread = np.exp(0.5 * log_variance.double().numpy())
        return np.asarray(mean.double().numpy() + spread * rng.normal(size=spread.shape))

    def classify(self, latent: Floats) -> Floats:
        """Chances of each label."""
        torch = load_torch()
        with torch.no_grad():
            scores = self.parts_["classifier"](torch.as_tensor(latent, dtype=torch.float32))
            chances: Floats = scores.softmax(dim=1).double().numpy()
        return chances

    def losses(self, parts: Any, latent: Tensor, label: Tensor, hidden_noise: Tensor, beta: float) -> Tensor:
        """Each labelled row's loss: -L(z, y) - alpha log q(y | z) of Kingma et al. (2014)."""
        torch = load_torch()
        known = torch.nn.functional.one_hot(label, self.n_labels).to(latent.dtype)
        scores = parts["classifier"](latent).log_softmax(dim=1)
        total: Tensor = self._reconstruction(parts, latent, known, hidden_noise, beta)
        total = total - self.settings.classifier_weight * (scores * known).sum(dim=1)
        return total

    def _private_step(
        self,
        examples: Any,
        optimizer: Any,
        public: Latents,
        private: Latents,
        rate: float,
        rng: np.random.Generator,
        noise: Noise,
    ) -> None:
        torch = load_torch()
        parts = examples._module
        optimizer.zero_grad()
        examples.disable_hooks()
        self._public_loss(parts, public, self.settings.beta).backward()
        weight = self.settings.public_weight
        of_public = [weight * p.grad.detach().clone() for p in parts.parameters()]
        optimizer.zero_grad()
        examples.enable_hooks()
        # All learners, taken or not: the shape of the computation, and so each learner's rounding
        # and share of the stream of `rng`, does not depend on which learners take part.
        latent, label = self._drawn(private, np.arange(len(private)))
        loss: Any = self.losses(
            parts, latent, label, torch.randn(len(private), self.settings.latent), self.settings.beta
        )
        loss.sum().backward()
        optimizer.taking_part = poisson_sample(len(private), rate, rng if not noise.secret else None)

        def add_public(_: Any) -> None:
            for parameter, gradient in zip(parts.parameters(), of_public, strict=True):
                parameter.grad += gradient

        optimizer.attach_step_hook(add_public)
        optimizer.step()
        optimizer.zero_grad()

    def _public_loss(self, parts: Any, public: Latents, beta: float) -> Any:
        torch = load_torch()
        chosen = torch.randint(len(public), (min(self.settings.public_batch_size, len(public)),)).numpy()
        latent, label = self._drawn(public, chosen)
        hidden_noise = torch.randn(len(chosen), self.settings.latent)
        if self.settings.public_labels:
            return self.losses(parts, latent, label, hidden_noise, beta).mean()
        scores = parts["classifier"](latent).log_softmax(dim=1)
        by_label = torch.stack(
            [
                self._reconstruction(
                    parts, latent, torch.eye(self.n_labels)[k].expand(len(chosen), -1), hidden_noise, beta
                )
                for k in range(self.n_labels)
            ],
            dim=1,
        )
        return (scores.exp() * (by_label + scores)).sum(dim=1).mean()

    def _reconstruction(
        self, parts: Any, latent: Tensor, known: Tensor, hidden_noise: Tensor, beta: float
    ) -> Tensor:
        torch = load_torch()
        mean, log_variance = _halves(parts["encoder"](torch.cat([latent, known], dim=1)))
        hidden = mean + (0.5 * log_variance).exp() * hidden_noise
        of_z, spread = _halves(parts["decoder"](torch.cat([hidden, known], dim=1)))
        surprise = 0.5 * ((latent - of_z) ** 2 * (-spread).exp() + spread).sum(dim=1)
        total: Tensor = surprise + beta * _normal_divergence(mean, log_variance)
        return total

    def _drawn(self, rows: Latents, chosen: NDArray[Any]) -> tuple[Tensor, Tensor]:
        """Latents drawn from M1's posterior, and labels."""
        torch = load_torch()
        mean = torch.as_tensor(rows.mean[chosen], dtype=torch.float32)
        deviation = torch.as_tensor(rows.deviation[chosen], dtype=torch.float32)
        latent = mean + deviation * torch.randn_like(mean)
        # Opacus' hooks warn when a layer's input needs no gradient.
        return latent.requires_grad_(), torch.as_tensor(rows.label[chosen])

    def _beta(self, step: int, n_steps: int) -> float:
        return cyclical_beta(step, n_steps, self.settings.n_cycles, self.settings.beta)

    def _parts(self) -> Any:
        nn = load_torch().nn
        a, z, k = self.settings.latent, self.n_latent, self.n_labels
        return nn.ModuleDict(
            {
                "classifier": nn.Linear(z, k),
                "encoder": nn.Linear(z + k, 2 * a),
                "decoder": nn.Linear(a + k, 2 * z),
            }
        )
