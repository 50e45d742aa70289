"""The deep baseline: M1 pretrained on surrogate data, a private M2 on top, replay for the next cycle.

The comparison method of Ito, Hsu and Ogata (2026, sections IV-B1 and IV-C1, appendix A): see `vae.py` for the
networks. What is not legible in its text and chosen here is in the settings.

Why this carries a guarantee although it trains in floating point: what depends on a learner is
that learner's gradient, computed from their row, the weights and public randomness alone, in a
computation whose shape is fixed (all learners, whether they take part or not). It is rounded to integers
and its norm checked in integers; the noise is an exact discrete Gaussian from the operating
system; everything after it is post-processing. Opacus' own noise would be a floating-point
Gaussian of a Mersenne Twister, and the result would have no formal guarantee.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.deep.vae import (
    Latents,
    LatentSettings,
    LatentVae,
    SeriesSettings,
    SeriesVae,
)
from understudy.cohorts.schema import Schema
from understudy.cohorts.summary.mechanism import refuse_cuts_from_data
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise, os_noise
from understudy.core.privacy.private_training import PrivateSteps, calibrated
from understudy.errors import UsageError

Floats = NDArray[np.float64]

# Rows of a label from a public source: (how many, the label's number, rng) to learners x features x weeks.
Source = Callable[[int, int, np.random.Generator], Floats]

# The publication pretrains on 100,000 rows and replays 5,000 from each model; the default number of
# rows keeps the whole job for 120 learners below 5 minutes on two cores.
ROWS = 20_000
REPLAYED = 5_000


# --- surrogates ----------------------------------------------------------------------------------


def surrogates(source: Source, schema: Schema, rng: np.random.Generator, rows: int = ROWS) -> Cohort:
    """A public cohort of `rows` learners, the same number of each label, from any source."""
    labels = _even_labels(rows, schema.n_labels)
    values = [source(int((labels == k).sum()), k, rng) for k in range(schema.n_labels)]
    return Cohort(np.concatenate(values), labels.astype(np.int8), schema)


@dataclass(frozen=True)
class RoughHabits:
    """A source without learners: what is commonly known of their weeks, in round numbers.

    Zero-inflated log-normal minutes: lessons are most of it, nights are rare, learners differ
    widely, an active week follows an active one, and the better learners do a little more.
    """

    schema: Schema
    label_effect: float = 0.3
    log_minutes: float = 3.0
    activity: float = 0.0

    def __call__(self, n: int, label: int, rng: np.random.Generator) -> Floats:
        """Rows of one label."""
        schema = self.schema
        standing = label - (schema.n_labels - 1) / 2
        usual = np.array([_usual_chance(f.hours) for f in schema.features])
        logit = np.log(usual / (1 - usual))[None, :] + self.activity
        logit = logit + self.label_effect * standing
        logit = logit + rng.normal(0.0, 0.7, (n, 1)) + rng.normal(0.0, 0.7, (n, schema.n_features))
        weekly = rng.normal(0.0, 0.4, (1, 1, schema.n_weeks))
        slow = _smooth(rng.normal(0.0, 1.0, (n, schema.n_features, schema.n_weeks)))
        active = rng.logistic(size=slow.shape) < logit[:, :, None] + weekly + slow
        centre = self.log_minutes + 0.3 * self.label_effect * standing
        log_minutes = centre + rng.normal(0.0, 0.4, (n, schema.n_features, 1))
        minutes = np.exp(log_minutes + rng.normal(0.0, 0.8, slow.shape))
        return np.where(active, np.minimum(minutes, schema.highs[None, :, None]), 0.0)


def _usual_chance(hours: tuple[int, int] | None) -> float:
    """The chance of a week with activity in a window of the day."""
    if hours is None:
        return 0.35
    first, last = hours
    if last <= 6:
        return 0.05
    return 0.6 if first < 12 else 0.35


def _smooth(weeks: Floats) -> Floats:
    """Each week with the one before: a first-order moving average of the same variance."""
    before = np.concatenate([weeks[:, :, :1], weeks[:, :, :-1]], axis=2)
    return np.asarray((weeks + before) / math.sqrt(2.0))


def widened(cohort: Cohort, rng: np.random.Generator, activity: float, minutes: float) -> Cohort:
    """Public rows, each moved to another school: how often and how long, by learner and by feature.

    The log-odds of an active week move by a normal draw of standard deviation `activity`, the
    logarithm of minutes by one of `minutes`; half of each variance is common to a learner's
    features. A source of surrogates is one guess, and an autoencoder that saw nothing else cannot
    write what lies beside it: no private step in its latent repairs that.
    """
    values, highs = cohort.values, cohort.schema.highs[None, :, None]
    n, n_features, n_weeks = values.shape

    def moved(spread: float) -> Floats:
        by_learner, by_feature = rng.normal(size=(n, 1, 1)), rng.normal(size=(n, n_features, 1))
        return np.asarray(spread * math.sqrt(0.5) * (by_learner + by_feature))

    active = values > 0
    share = (active.sum(axis=2, keepdims=True) + 0.5) / (n_weeks + 1)
    wanted = 1.0 / (1.0 + (1.0 - share) / share * np.exp(-moved(activity)))
    chance = rng.random(values.shape)
    kept = active & (chance < wanted / share)
    added = ~active & (chance < (wanted - share) / (1.0 - share))
    stretched = np.where(kept, values, 0.0)
    for feature in range(n_features):
        places = added[:, feature]
        pool = values[:, feature][active[:, feature]]
        if len(pool):
            stretched[:, feature][places] = rng.choice(pool, size=int(places.sum()))
    return replace(cohort, values=np.minimum(stretched * np.exp(moved(minutes)), highs))


def _even_labels(n: int, n_labels: int) -> NDArray[np.int64]:
    return np.sort(np.arange(n) % n_labels).astype(np.int64)


# --- the baseline --------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeepSettings:
    """Both models and the private steps; tuned on surrogates only.

    `private_batch_size` is expected, since each learner takes part on their own (Poisson
    sampling); None means that all take part in every step. The spreads are those of `widened`.
    """

    series: SeriesSettings = field(default_factory=SeriesSettings)
    latent: LatentSettings = field(default_factory=LatentSettings)
    private_batch_size: int | None = 60
    n_steps: int = 20
    clip: float = 4.0
    activity_spread: float = 1.0
    minutes_spread: float = 0.7


class DeepBaseline:
    """M1 + M2: `pretrain` on public rows, `fit` on learners, `sample`, `replay` for the next cycle.

    Each `fit` costs its learners (epsilon, delta) once; a learner who is in the cohorts of two
    cycles pays twice. Sampling and replay are post-processing. After `fit` the baseline holds
    weights and the latents of public rows, nothing of a learner.
    """

    def __init__(self, epsilon: float, delta: float, settings: DeepSettings | None = None) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.settings = settings or DeepSettings()

    def pretrain(self, surrogate: Cohort, rng: np.random.Generator) -> DeepBaseline:
        """Train M1 on public rows. Never give it real learners: nothing here protects them."""
        self.schema_ = surrogate.schema
        self.replayed_secret_ = True  # nothing is replayed yet
        self.series_ = SeriesVae(surrogate.schema.highs, surrogate.schema.n_weeks, self.settings.series)
        wider = widened(surrogate, rng, self.settings.activity_spread, self.settings.minutes_spread)
        self.series_.fit(wider.values, rng)
        self.public_ = self._latents(surrogate)
        return self

    def fit(self, cohort: Cohort, rng: np.random.Generator, noise: Noise | None = None) -> DeepBaseline:
        """Train a fresh M2 on the learners; `noise` is for tests and takes the guarantee away."""
        if not hasattr(self, "series_"):
            raise UsageError(
                "the deep baseline was not pretrained.", hint="call pretrain with public rows first."
            )
        if cohort.schema != self.schema_:
            raise UsageError(
                "the cohort has another schema than the rows of the pretraining.",
                hint="make the surrogate rows for the schema of the cohort.",
            )
        refuse_cuts_from_data(cohort)
        Guarantee(
            self.epsilon, self.delta
        )  # refuses what is not an epsilon or delta, before anything is spent
        if not (cohort.n_learners and math.isfinite(self.epsilon) and self.delta > 0):
            raise UsageError(
                "the deep baseline needs learners, a finite epsilon and a delta above 0.",
                hint="epsilon 3 and delta 1e-3 are the values of our comparison.",
            )
        chosen = noise or os_noise()
        latent = LatentVae(self.settings.series.latent, self.schema_.n_labels, self.settings.latent)
        steps = self._steps(cohort.n_learners, latent.n_parameters)
        self.latent_ = latent.fit(self.public_, self._latents(cohort), steps, rng, chosen)
        self.steps_ = steps
        mechanism = (
            f"DP-Adam of {steps.n_steps} steps with discrete Gaussian noise of {steps.noise_multiplier:.3g} "
            f"clipping norms, each learner in a step with probability {steps.rate:.3g}"
        )
        claim = Guarantee(self.epsilon, self.delta, mechanisms=(mechanism,))
        # After a seeded year the replayed rows show that year's learners without any guarantee.
        secret = chosen.secret and self.replayed_secret_
        self.guarantee_ = claim if secret else Guarantee.seeded(claim)
        return self

    def sample(self, n: int | Sequence[int], rng: np.random.Generator) -> Cohort:
        """A synthetic cohort: so many of each label, or `n` spread evenly.

        Evenly, since the real shares of the labels are the learners' and are not paid for here:
        sizes that are given have to be public too.
        """
        self._check_fitted()
        labels = (
            _even_labels(n, self.schema_.n_labels)
            if isinstance(n, int)
            else np.repeat(np.arange(self.schema_.n_labels), np.asarray(n, dtype=np.int64))
        )
        values = self.series_.decode(self.latent_.sample(labels, rng), rng)
        return Cohort(values, labels.astype(np.int8), self.schema_)

    def replay(self, rng: np.random.Generator, n: int = REPLAYED) -> DeepBaseline:
        """The baseline of the next cycle, ready for `fit`: generative replay.

        M1 is trained on with `n` rows of its own and `n` of M1 + M2. The same rows are the
        public ones of the next M2; those of M1 get their label from M2's classifier.
        """
        self._check_fitted()
        stacked = self.sample(n, rng)
        own = self.series_.sample(n, rng)
        chances = self.latent_.classify(self.series_.encode(own)[0])
        label = (rng.random((n, 1)) > chances.cumsum(axis=1)[:, :-1]).sum(axis=1).astype(np.int8)
        rows = Cohort.joined([Cohort(own, label, self.schema_), stacked])
        following = DeepBaseline(self.epsilon, self.delta, self.settings)
        following.schema_ = self.schema_
        following.replayed_secret_ = self.guarantee_.formal
        following.series_ = copy.deepcopy(self.series_).update(rows.values, rng)
        following.public_ = following._latents(rows)
        return following

    def _steps(self, n_learners: int, n_parameters: int) -> PrivateSteps:
        batch = self.settings.private_batch_size
        rate = 1.0 if batch is None else min(1.0, batch / n_learners)
        return calibrated(
            self.epsilon, self.delta, rate, self.settings.n_steps, self.settings.clip, n_parameters
        )

    def _latents(self, cohort: Cohort) -> Latents:
        mean, deviation = self.series_.encode(cohort.values)
        return Latents(mean, deviation, cohort.label.astype(np.int64))

    def _check_fitted(self) -> None:
        if not hasattr(self, "latent_"):
            raise UsageError("the deep baseline was not fitted.", hint="call fit with a cohort first.")
