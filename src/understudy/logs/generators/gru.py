"""`gru`: a recurrent network that writes sequences of actions, with Rasch or learned outcomes (extra `deep`)."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from understudy.core.extras import require_extra
from understudy.core.files.source import keeping_values_inside, open_source
from understudy.core.files.storage.arrays import read_arrays
from understudy.core.files.words import counted
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.errors import UsageError
from understudy.logs.generators.generator import Generator
from understudy.logs.interactions import Interactions
from understudy.logs.models.rasch import fit_rasch

if TYPE_CHECKING:
    from understudy.logs.models.recurrent import Shape, TrainingSchedule

# What a saved network consists of, beside its weights.
_LEARNED = (
    *("actions_", "easiness_", "ability_mean_", "ability_spread_", "tried_", "longest_", "loss_"),
    *("n_learners_", "simulated_", "has_outcomes_", "cut_short_", "shift_"),
)
_WEIGHT = "network."
_MODEL_FILE = "give model.npz, which a release keeps in its folder `keep`."
# Rounds in which learned outcomes are held to the difficulties, and how many rows an action needs to be moved half-way.
N_ROUNDS, FEW = 4, 10.0


class Gru(Generator):
    """Sequences of a gated recurrent unit that has read the log.

    By default it is trained with what works best (continuous lanes, cosine decay, early stopping on a tenth of the
    learners); `as=published` trains it as Vie, Rigaux and Minn (2022) did: pieces of a twentieth of the longest
    sequence first, then of a tenth and of a fifth. Outcomes follow the Rasch model, or with
    `outcomes=learned` also what the learner has done so far.
    """

    name: ClassVar[str] = "gru"
    summary: ClassVar[str] = (
        "a recurrent network with Rasch or learned outcomes (a baseline; needs the extra deep)"
    )
    keeps_rows: bool = False
    option_names: ClassVar[dict[str, str]] = {"trained_as": "as"}

    def __init__(
        self,
        trained_as: str = "ours",
        outcomes: str = "rasch",
        units: float = 100,
        layers: float = 1,
        embedding: float = 16,
        batch: float = 64,
        epochs: float = 0,
    ) -> None:
        require_extra("deep", "a recurrent network", "torch")  # said before anything is charged
        sizes = {"units": units, "layers": layers, "embedding": embedding, "batch": batch}
        wrong = [
            *([f"as={trained_as}"] if trained_as not in ("ours", "published") else []),
            *([f"outcomes={outcomes}"] if outcomes not in ("rasch", "learned") else []),
            *(f"{name}={value:g}" for name, value in sizes.items() if value < 1 or value != int(value)),
            *([f"epochs={epochs:g}"] if epochs < 0 or epochs != int(epochs) else []),
        ]
        if wrong:
            raise UsageError(
                f"gru cannot have {', '.join(wrong)}.",
                hint="as is ours or published, outcomes rasch or learned, sizes are whole numbers of at least 1: "
                "for example gru:outcomes=learned:units=200.",
            )
        self.trained_as = trained_as
        self.outcomes = outcomes
        self.units = units
        self.layers = layers
        self.embedding = embedding
        self.batch = batch
        self.epochs = epochs

    def guarantee(self, n_learners: int) -> Guarantee:
        """None: a network may write down what it has read."""
        return Guarantee.none("nothing bounds what a network remembers of a learner")

    def _fit(self, log: Interactions, rng: np.random.Generator, noise: Noise) -> None:
        """Train the network; fit difficulties and the spread of abilities.

        An interrupt is raised after the best weights so far were kept, so that they can be sampled all the same.
        """
        from understudy.logs.models import recurrent

        rasch = fit_rasch(log)
        self.actions_ = log.actions
        self.tried_ = np.bincount(log.action, minlength=log.n_actions) > 0
        self.longest_ = int(log.lengths.max(initial=1))
        self.easiness_ = rasch.intercept - rasch.difficulty
        self.ability_mean_ = float(rasch.ability.mean())
        self.ability_spread_ = float(rasch.ability.std())
        order = rng.permutation(log.n_learners)
        n_aside = max(1, log.n_learners // 10)
        # A log of one learner is set aside and learned from.
        training, aside = (
            recurrent.Tokens.of(log.select(some), self.easiness_, rasch.ability[some])
            for some in (np.sort(order[n_aside:] if log.n_learners > 1 else order), np.sort(order[:n_aside]))
        )
        with recurrent.seeded(rng):
            network = recurrent.Network(self._shape())
            trained = recurrent.train(network, training, aside, self._schedule(len(training.seen)), rng)
        self.loss_ = trained.loss
        self.weights_ = recurrent.to_arrays(network)
        self.shift_ = np.zeros(log.n_actions)
        if self.outcomes == "learned":
            self._hold_difficulties(rng)
        if trained.interrupted:
            self.cut_short_ = (
                f"The training was interrupted after {counted(trained.n_epochs, 'epoch')} of at most "
                f"{trained.most_epochs}."
            )
            raise KeyboardInterrupt

    def _hold_difficulties(self, rng: np.random.Generator) -> None:
        """Move actions until a Rasch fit to sampled sequences finds the difficulties of the log.

        What the network adds for practice would make actions easier or harder than they are for whoever fits them.
        """
        for turn in range(N_ROUNDS):
            sampled = self._sample(None, rng)
            found = fit_rasch(sampled)
            n = np.bincount(sampled.action, minlength=len(self.shift_))
            # Rounds count less and less, so that what chance did in one of them is forgotten.
            pace = 1.0 / (1.0 + turn)
            self.shift_ += pace * n / (n + FEW) * (self.easiness_ - (found.intercept - found.difficulty))

    def losses(self, log: Interactions, ability: NDArray[np.float64]) -> NDArray[np.float64]:
        """Minus the log-likelihood of each learner of a log, in nats: what the weights tell about them."""
        from understudy.logs.models import recurrent

        network = recurrent.from_arrays(self._shape(), self.weights_)
        with recurrent.one_thread():
            return recurrent.learner_losses(network, recurrent.Tokens.of(log, self.easiness_, ability))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The options and what was learned. The weights give members away: they stay inside."""
        options = {name: np.asarray(getattr(self, name)) for name in inspect.signature(Gru).parameters}
        learned = {name: np.asarray(getattr(self, name)) for name in _LEARNED}
        return {**options, **learned, **{_WEIGHT + name: value for name, value in self.weights_.items()}}

    @classmethod
    def load(cls, path: Path | str) -> Gru:
        """The fitted network of a file `model.npz`; reading it runs no code that the file brings along."""
        source = open_source(path)
        damaged = f"{source.name} is not the model of a network, or it is damaged."
        kept = read_arrays(source.data, damaged, hint=_MODEL_FILE)
        with keeping_values_inside(damaged, hint=_MODEL_FILE):
            generator = cls(**{name: kept[name].item() for name in inspect.signature(Gru).parameters})
            for name in _LEARNED:
                setattr(generator, name, kept[name] if kept[name].ndim else kept[name].item())
            generator.actions_ = tuple(str(name) for name in kept["actions_"])
            generator.weights_ = {
                name.removeprefix(_WEIGHT): kept[name] for name in kept if name.startswith(_WEIGHT)
            }
            generator.guarantee_ = generator.guarantee(generator.n_learners_)
        return generator

    def _shape(self) -> Shape:
        from understudy.logs.models.recurrent import Shape

        return Shape(
            n_actions=len(self.actions_),
            units=int(self.units),
            layers=int(self.layers),
            embedding=int(self.embedding),
            dropout=0.0 if self.trained_as == "published" else 0.2,
            learned_outcomes=self.outcomes == "learned",
        )

    def _schedule(self, n_places: int) -> TrainingSchedule:
        from understudy.logs.models.recurrent import TrainingSchedule

        lanes = int(self.batch)
        if self.trained_as == "published":
            epochs = int(self.epochs) or 1000
            return TrainingSchedule(1e-3, lanes, epochs, patience=100, decay=False, cuts=(20, 10, 5, 5))
        # A small log is read more often, so that there are a few hundred steps.
        epochs = int(self.epochs) or max(30, 300 * 32 * lanes // max(n_places, 1))
        return TrainingSchedule(3e-3, lanes, min(epochs, 300), patience=8)

    def _sample(self, n_learners: int | None, rng: np.random.Generator) -> Interactions:
        """Sequences of invented learners whose abilities are drawn from a normal law."""
        from understudy.logs.models import recurrent

        n = self.n_learners_ if n_learners is None else n_learners
        ability = rng.normal(self.ability_mean_, self.ability_spread_, n)
        network = recurrent.from_arrays(self._shape(), self.weights_)
        action, outcome, offsets = recurrent.sample_sequences(
            network, ability, self.easiness_ + self.shift_, self.tried_, self.longest_, rng
        )
        return Interactions(action, outcome, offsets, self.actions_)
