"""Every verb that releases, by command and by Python, for the tests that all of them have to pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Verb:
    """A verb that releases: how its data is made, and how it is called with a price.

    `command` gives the arguments of the command, `python` calls the library; both write to `out`.
    `epsilon` is the price in the ledger.
    """

    name: str
    make: Callable[[Path], Path]
    command: Callable[[Path, Path], list[str]]
    python: Callable[..., Any]
    out: str
    epsilon: float
    patch: str
    """Something that it needs once it has charged: made to fail, it is a fit that fails."""


def _log(folder: Path) -> Path:
    from understudy.logs.simulate import Classroom

    log = Classroom(n_learners=40, n_actions=5).simulate(np.random.default_rng(3))
    log.to_polars("pupil-").write_csv(folder / "log.csv")
    return folder / "log.csv"


def _release(path: Path, out: Path, **spending: Any) -> Any:
    import understudy as us

    return us.release(us.read_log(path, public_actions=True), out, epsilon=4, **spending)


def _synthesize(path: Path, out: Path, **spending: Any) -> Any:
    import understudy as us

    return us.synthesize(us.read_log(path, public_actions=True), epsilon=4, out=out, **spending)


VERBS = [
    Verb(
        "synthesize",
        _log,
        lambda path, out: [
            *("synthesize", str(path), "-o", str(out), "-m", "markov-dp:epsilon=4", "--public-actions")
        ],
        _synthesize,
        "out.csv",
        4.0,
        "understudy.logs.generators.markov_dp.MarkovDP._fit",
    ),
    Verb(
        "release",
        _log,
        lambda path, out: [
            *("release", str(path), "-o", str(out), "-m", "markov-dp:epsilon=4", "--public-actions")
        ],
        _release,
        "bundle",
        4.0,
        "understudy.logs.release.bundle.card_content",
    ),
]
