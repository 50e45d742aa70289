"""`gru-dp`: a recurrent network trained with differential privacy for each learner (extra `deep`).

Everything that a synthetic log needs is learned by one network in a fixed number of noisy steps: which action comes
next, the outcome, and the end. Nothing else of the log is looked at: there is no early stopping, no loss on learners
set aside, no Rasch fit, and no setting that follows from the data. The proof is in docs/explanation/guarantee.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from understudy.core.extras import require_extra
from understudy.core.privacy.composition import default_delta
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.core.privacy.private_training import PrivateSteps, calibrated
from understudy.errors import UsageError
from understudy.logs.generators.generator import DetailsBy, Generator
from understudy.logs.generators.private_sums import first_rows
from understudy.logs.interactions import Interactions

if TYPE_CHECKING:
    from understudy.logs.models.private_recurrent import Shape

# How many learners take part in a step on average, where there are more.
BATCH = 512


class GruDP(Generator):
    """Learner-level (epsilon, delta) differential privacy under replace-one adjacency.

    `delta` is by default the smaller of 1e-6 and one over the squared number of learners. Rows of a learner past the
    first `longest` are ignored. `longest`, the number of learners and the names of actions are public: a log whose
    names are not declared is refused.
    """

    name: ClassVar[str] = "gru-dp"
    summary: ClassVar[str] = (
        "a recurrent network, differentially private for each learner (needs the extra deep and declared names)"
    )
    keeps_rows: bool = False
    needs_names: bool = True
    details: ClassVar[DetailsBy] = "none"

    def __init__(
        self,
        epsilon: float = 8.0,
        delta: float = 0.0,
        longest: float = 1000.0,
        units: float = 24,
        embedding: float = 16,
        steps: float = 100,
    ) -> None:
        require_extra("deep", "a recurrent network", "torch")  # said before anything is charged
        sizes = {"units": units, "embedding": embedding, "steps": steps}
        if (
            not 0 < epsilon < 100
            or not 0 <= delta < 0.1
            or not 2 <= longest <= 100_000
            or any(not 1 <= value <= 10_000 or value != int(value) for value in sizes.values())
        ):
            raise UsageError(
                f"gru-dp cannot have epsilon {epsilon:g}"
                + (f", delta {delta:.2e}" if delta else "")
                + f", a longest sequence of {longest:g} rows"
                + "".join(f", {name}={value:g}" for name, value in sizes.items())
                + ".",
                hint="epsilon lies above 0 and below 100, delta below 0.1, longest between 2 and 100,000; units, "
                "embedding and steps are whole numbers of at least 1: for example gru-dp:epsilon=2:units=16.",
            )
        self.epsilon = epsilon
        self.delta = delta
        self.longest = int(longest)
        self.units = units
        self.embedding = embedding
        self.steps = steps

    def guarantee(self, n_learners: int) -> Guarantee:
        """Proved for the noisy sums of gradients and for whatever is computed from them."""
        mechanism = "discrete Gaussian mechanism on sums of learners' clipped gradients, learners sampled"
        return Guarantee(self.epsilon, self.delta or default_delta(n_learners), mechanisms=(mechanism,))

    def guarantee_for(self, log: Interactions) -> Guarantee:
        """The same; a log whose names are not declared has none, and nothing is spent on it."""
        if not log.declared:
            raise UsageError(
                "gru-dp needs the names of the actions to be public.",
                hint="declare them if they are, as those of a curriculum; runs-dp can find names privately.",
                code="names-not-public",
                settings=("public_actions", "method"),
            )
        return self.guarantee(log.n_learners)

    def _fit(self, log: Interactions, rng: np.random.Generator, noise: Noise) -> None:
        """Train the network with noisy steps."""
        from understudy.logs.models import private_recurrent, recurrent

        self.actions_ = log.actions
        shape = self._shape()
        learners = private_recurrent.Learners.of(first_rows(log, self.longest))
        with recurrent.one_thread():
            weights = private_recurrent.train(shape, learners, self._steps(shape.n_weights), rng, noise)
        self.weights_ = {name: value.numpy() for name, value in weights.items()}

    def losses(self, log: Interactions) -> NDArray[np.float64]:
        """Minus the log-likelihood of each learner of a log, in nats: what the weights tell about them."""
        import torch

        from understudy.logs.models import private_recurrent, recurrent

        weights = {name: torch.from_numpy(value) for name, value in self.weights_.items()}
        learners = private_recurrent.Learners.of(first_rows(log.recode(self.actions_), self.longest))
        with recurrent.one_thread():
            return private_recurrent.learner_losses(self._shape(), weights, learners)

    def _steps(self, n_weights: int) -> PrivateSteps:
        """The steps with their noise: from public numbers alone."""
        claim = self.guarantee(self.n_learners_)
        rate = min(1.0, BATCH / self.n_learners_)
        return calibrated(claim.epsilon, claim.delta, rate, int(self.steps), 1.0, n_weights)

    def _shape(self) -> Shape:
        from understudy.logs.models.private_recurrent import Shape

        return Shape(len(self.actions_), int(self.units), int(self.embedding), self.longest)

    def _sample(self, n_learners: int | None, rng: np.random.Generator) -> Interactions:
        """Sequences of invented learners."""
        import torch

        from understudy.logs.models import private_recurrent, recurrent

        weights = {name: torch.from_numpy(value) for name, value in self.weights_.items()}
        n = self.n_learners_ if n_learners is None else n_learners
        with recurrent.one_thread():
            action, outcome, offsets = private_recurrent.sample_sequences(self._shape(), weights, n, rng)
        return Interactions(action, outcome, offsets, self.actions_)
