"""Logs that never happened, for tests that need one of a certain shape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from desk_postgresql import find_postgresql
from real_browser import CHROMIUM
from understudy.logs.interactions import Interactions

MakeLog = Callable[..., Interactions]


def _simulated_log(
    rng: np.random.Generator,
    n_learners: int = 30,
    n_actions: int = 8,
    mean_length: float = 12.0,
    concentration: float = 0.5,
    easiness: float = 0.5,
) -> Interactions:
    """Walks on a random chain with Rasch outcomes; every learner has at least two rows.

    The chain depends on the sizes only, so that logs drawn with different generators come
    from the same law.
    """
    law = np.random.default_rng([n_learners, n_actions])
    chain = law.dirichlet(np.full(n_actions, concentration), size=n_actions).cumsum(axis=1)
    difficulty = law.normal(size=n_actions)
    sequences, outcomes = [], []
    for length in 2 + rng.poisson(mean_length - 2, n_learners):
        walk = [int(rng.integers(n_actions))]
        for u in rng.random(length - 1):
            walk.append(min(int(np.searchsorted(chain[walk[-1]], u)), n_actions - 1))
        chance = 1 / (1 + np.exp(difficulty[walk] - rng.normal() - easiness))
        sequences.append(walk)
        outcomes.append((rng.random(length) < chance).astype(int))
    return Interactions.from_sequences(sequences, outcomes, actions=[str(j) for j in range(n_actions)])


@pytest.fixture(scope="session")
def make_log() -> MakeLog:
    """Makes a simulated log: `make_log(rng, n_learners=..., n_actions=..., mean_length=...)`."""
    return _simulated_log


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the machine lacked, where it is easy to miss among the skipped tests."""
    if not CHROMIUM.exists():
        terminalreporter.write_line(
            "No browser here: no page was looked at (.ci/browser installs Debian's chromium as root)."
        )
    if find_postgresql() is None:
        terminalreporter.write_line(
            "No PostgreSQL here: the desk was tested on SQLite only (.ci/postgres installs it)."
        )
