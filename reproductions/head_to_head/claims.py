"""What each epsilon covers, checked: what one learner with many rows moves, and how much noise covers it.

Every peer's program has a check that looks at the counts or gradients before noise, and at the noise, on two tables
that differ in one learner with 300 rows. Ours and PrivTrace's rule are checked here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from reproductions.head_to_head import privtrace
from reproductions.head_to_head.environments import DATASYNTHESIZER, MOSTLYAI, OPENDP, Environment
from reproductions.head_to_head.methods import EPSILON, PROGRAMS
from reproductions.head_to_head.trials import run
from reproductions.pages import rows_of, tables_of, write_rows
from understudy.core.privacy.noise import IntArray
from understudy.core.privacy.private_training import LATTICE
from understudy.errors import UnderstudyError
from understudy.logs.generators.generator import Generator
from understudy.logs.generators.gru_dp import GruDP
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.interactions import Interactions

Floats = NDArray[np.float64]
TABLE = tables_of("head_to_head") / "claims.csv"
N_OWN_ROWS = 300
# Steps of the network of the check.
N_STEPS = 10


def measure_claims() -> None:
    """Run every check; what does not install keeps the facts that were found before, or has a row that says so."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows_of(TABLE) if TABLE.exists() else ():
        found.setdefault(row["peer"], {})[row["fact"]] = row["value"]
    for peer, check in CHECKS.items():
        typer.echo(f"checking {peer}")
        try:
            found[peer] = check()
        except UnderstudyError as error:
            typer.echo(f"  skipped: {error.message}")
            found.setdefault(peer, {"problem": error.message})
    rows = [(peer, name, value) for peer in CHECKS for name, value in found[peer].items()]
    write_rows(TABLE, ("peer", "fact", "value"), rows)


def neighbours() -> tuple[Interactions, Interactions]:
    """Two classes of 41 learners that differ in one: four rows of hers, or three hundred."""
    others = [[(i + j) % 5 for j in range(4)] for i in range(40)]
    return _class([*others, [0, 1, 2, 3]]), _class([*others, [0] * N_OWN_ROWS])


def check_privtrace() -> dict[str, float]:
    """What adding the learner with many rows moves of each sum, in L1; the scale of the noise."""
    _, with_her = neighbours()
    without = with_her.select(np.arange(with_her.n_learners - 1))
    sums = (privtrace.first_order, privtrace.outcome_counts, lambda log: privtrace.second_order(log, 0))
    return {
        "counts_moved": max(float(np.abs(total(with_her) - total(without)).sum()) for total in sums),
        "laplace_scale": 1.0 / (privtrace.FIRST_ORDER * EPSILON),
    }


def check_sums(generator: MarkovDP) -> dict[str, float]:
    """The rho that two neighbouring classes use, squared distances over twice the variances, and what is stated."""
    moved, sigmas = _moved(generator)
    stated = generator.guarantee_for(neighbours()[0].declare()).rho
    assert stated is not None
    return {"rho_used": float(((moved / sigmas) ** 2).sum() / 2), "rho_stated": stated}


def check_steps() -> dict[str, float]:
    """How far the learner with many rows moves a sum of clipped gradients, in clipping norms: the most of all steps."""
    moved, _ = _moved(GruDP(EPSILON, steps=N_STEPS))
    return {"gradient_moved": float(moved.max() / LATTICE), "steps": len(moved)}


def _moved(generator: Generator) -> tuple[Floats, Floats]:
    """The distance of each sum of two neighbouring classes, and the deviation of its noise.

    The second fit is given the noisy sums of the first, so that both ask the same questions.
    """
    small, large = neighbours()
    heard = _Recorder()
    generator.fresh().fit(small.declare(), np.random.default_rng(1), heard)
    again = _Recorder(heard.answers)
    generator.fresh().fit(large.declare(), np.random.default_rng(1), again)
    distances = [
        float(np.linalg.norm((a - b).astype(float))) for a, b in zip(heard.asked, again.asked, strict=True)
    ]
    return np.array(distances), np.array(heard.sigmas)


def _of_peer(environment: Environment, program: str) -> dict[str, Any]:
    """What the check of a peer's program printed."""
    text, _ = run([str(environment.python()), str(PROGRAMS / program), "check"])
    facts: dict[str, Any] = json.loads(text.splitlines()[-1])
    return facts


class _Recorder:
    """Noise that writes down the sums it is given, and repeats the answers of another where it has them."""

    secret = False

    def __init__(self, answers: list[IntArray] | None = None) -> None:
        self._given = answers
        self.asked: list[IntArray] = []
        self.sigmas: list[float] = []
        self.answers: list[IntArray] = []
        self._rng = np.random.default_rng(0)

    def discrete_gaussian(self, values: IntArray, sigma: float) -> IntArray:
        self.asked.append(values)
        self.sigmas.append(sigma)
        if self._given is not None:
            return self._given[len(self.asked) - 1]
        answer = values + np.round(self._rng.normal(scale=sigma, size=values.shape)).astype(np.int64)
        self.answers.append(answer)
        return answer

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(f"generators draw discrete Gaussian noise alone, not {name}")


def _class(sequences: list[list[int]]) -> Interactions:
    outcomes = [[j % 2 for j in range(len(sequence))] for sequence in sequences]
    return Interactions.from_sequences(sequences, outcomes, actions=[f"a{i}" for i in range(5)])


CHECKS: dict[str, Callable[[], dict[str, Any]]] = {
    "markov-dp": partial(check_sums, MarkovDP(EPSILON)),
    "runs-dp": partial(check_sums, RunsDP(EPSILON)),
    "gru-dp": check_steps,
    "privtrace": check_privtrace,
    "opendp": partial(_of_peer, OPENDP, "opendp_marginals.py"),
    "mostlyai": partial(_of_peer, MOSTLYAI, "mostlyai_tabular.py"),
    "datasynthesizer": partial(_of_peer, DATASYNTHESIZER, "datasynthesizer_table.py"),
}
