"""What each epsilon covers, checked: what one learner with many rows moves, and how much noise covers it.

Every peer's program has a check that looks at the counts or gradients before noise, and at the noise, on two tables
that differ in one learner with 300 rows. Ours and PrivTrace's rule are checked here.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import typer

from reproductions.head_to_head import privtrace
from reproductions.head_to_head.environments import DATASYNTHESIZER, MOSTLYAI, OPENDP, Environment
from reproductions.head_to_head.methods import EPSILON, PROGRAMS
from reproductions.head_to_head.trials import run
from reproductions.pages import tables_of, write_rows
from understudy.core.privacy.noise import IntArray
from understudy.errors import UnderstudyError
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.interactions import Interactions

TABLE = tables_of("head_to_head") / "claims.csv"
CHECKS: dict[str, tuple[Environment, str]] = {
    "mostlyai": (MOSTLYAI, "mostlyai_tabular.py"),
    "opendp": (OPENDP, "opendp_marginals.py"),
    "datasynthesizer": (DATASYNTHESIZER, "datasynthesizer_table.py"),
}
N_OWN_ROWS = 300


def measure_claims() -> None:
    """Run every check; a peer that does not install has a row that says so."""
    found: dict[str, dict[str, Any]] = {"ours": check_ours(), "privtrace": check_privtrace()}
    for peer, (environment, program) in CHECKS.items():
        typer.echo(f"checking {peer}")
        try:
            text, _ = run([str(environment.python()), str(PROGRAMS / program), "check"])
            found[peer] = json.loads(text.splitlines()[-1])
        except UnderstudyError as error:
            typer.echo(f"  skipped: {error.message}")
            found[peer] = {"problem": error.message}
    rows = [(peer, name, value) for peer, facts in found.items() for name, value in facts.items()]
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


def check_ours() -> dict[str, float]:
    """The rho that two neighbouring classes use of what is stated: sums of squared distances over twice the variance.

    The second fit is given the noisy sums of the first, so that both ask the same questions.
    """
    small, large = neighbours()
    generator = MarkovDP(EPSILON)
    heard = _Recorder()
    generator.fresh().fit(small.declare(), np.random.default_rng(1), heard)
    again = _Recorder(heard.answers)
    generator.fresh().fit(large.declare(), np.random.default_rng(1), again)
    used = sum(
        float(((a - b) ** 2).sum()) / (2 * sigma**2)
        for a, b, sigma in zip(heard.asked, again.asked, heard.sigmas, strict=True)
    )
    stated = generator.guarantee_for(small.declare()).rho
    assert stated is not None
    return {"rho_used": used, "rho_stated": stated}


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
        raise NotImplementedError(f"markov-dp draws discrete Gaussian noise alone, not {name}")


def _class(sequences: list[list[int]]) -> Interactions:
    outcomes = [[j % 2 for j in range(len(sequence))] for sequence in sequences]
    return Interactions.from_sequences(sequences, outcomes, actions=[f"a{i}" for i in range(5)])
