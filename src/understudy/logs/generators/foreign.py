"""Generators of others: an object with fit and sample, or any program that reads a file and writes one."""

from __future__ import annotations

import contextlib
import copy
import fcntl
import inspect
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from understudy.core.files.storage.faults import explaining_disk
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.errors import DataError, UsageError
from understudy.logs.generators.generator import DetailsBy, Generator
from understudy.logs.interactions import Interactions

_PREFIX = "understudy-run-"
_SECONDS_TO_LOCK = 60


class Adapted(Generator):
    """An object with `fit(log)` and `sample()`; it may return a log or a data frame.

    Nothing is proved here about what it gives out: a guarantee that it declares is its author's word. That
    goes for a subclass of `Generator`, or of one of ours, as well.
    """

    name: ClassVar[str] = "adapted"
    details: ClassVar[DetailsBy] = "none"

    def __init__(self, generator: Any) -> None:
        self.generator = generator
        self.text = (
            generator.label
            if isinstance(generator, Generator)
            else str(getattr(generator, "name", type(generator).__name__))
        )
        self.keeps_rows = bool(getattr(generator, "keeps_rows", False))

    def guarantee(self, n_learners: int) -> Guarantee:
        """None of ours."""
        return Guarantee.none(f"nothing is proved here about {self.label}, which others wrote")

    def fresh(self) -> Self:
        """A copy of the whole object: what it learns, and where, is not known here."""
        unfitted = type(self)(copy.deepcopy(self.generator))
        unfitted.text = self.text
        return unfitted

    def _fit(self, log: Interactions, rng: np.random.Generator, noise: Noise) -> None:
        self.actions_ = log.actions
        _call(self.generator.fit, log, rng=rng, noise=noise)

    def _sample(self, n_learners: int | None, rng: np.random.Generator) -> Interactions:
        drawn = _call(self.generator.sample, n_learners=n_learners, rng=rng)
        return _as_log(drawn, self.actions_)


class Program(Generator):
    """A program that is given the training log as csv and writes a synthetic one: `{train}` and `{out}`.

    It runs with the rights of whoever calls it, and sees real rows: run only what you would run yourself.
    """

    name: ClassVar[str] = "run"
    details: ClassVar[DetailsBy] = "none"
    needs_outcomes: bool = False
    summary: ClassVar[str] = "any program that reads one csv and writes another"

    def __init__(self, command: str) -> None:
        if "{train}" not in command or "{out}" not in command:
            raise UsageError(
                "a program is given as a command with {train} and {out} in it.",
                hint="for example run:python gen.py {train} {out}; columns are learner, action, outcome.",
                code="not-a-command",
                settings=("method",),
            )
        self.command = command
        self.text = f"run:{command}"

    def guarantee(self, n_learners: int) -> Guarantee:
        """None of ours."""
        return Guarantee.none("nothing is proved here about a program that others wrote")

    def _fit(self, log: Interactions, rng: np.random.Generator, noise: Noise) -> None:
        with _own_folder() as folder:
            train, out = folder / "train.csv", folder / "out.csv"
            with explaining_disk(train, settings=()):
                log.to_polars("learner-").write_csv(train)
            words = [
                word.replace("{train}", str(train)).replace("{out}", str(out))
                for word in shlex.split(self.command)
            ]
            try:
                done = subprocess.run(words, capture_output=True, check=False)
            except OSError as error:
                raise UsageError(
                    f"the program {words[0]} cannot be started ({type(error).__name__}).",
                    hint="check the command.",
                    code="program-failed",
                ) from None
            if done.returncode or not out.is_file():
                # What it printed may quote rows.
                raise DataError(
                    f"the program {Path(words[0]).name} ended with exit code {done.returncode} and "
                    f"{'wrote' if out.is_file() else 'did not write'} {{out}}.",
                    hint="try it by hand on a simulated log.",
                    code="program-failed",
                )
            import polars as pl

            self.log_ = _as_log(pl.read_csv(out, infer_schema_length=None), log.actions)

    def _sample(self, n_learners: int | None, rng: np.random.Generator) -> Interactions:
        if n_learners is None:
            return self.log_
        if n_learners > self.log_.n_learners:
            raise UsageError(
                f"asked for {n_learners} learners; the program wrote {self.log_.n_learners}.",
                hint="ask for fewer.",
            )
        return self.log_.select(rng.permutation(self.log_.n_learners)[:n_learners])


@contextlib.contextmanager
def _own_folder() -> Iterator[Path]:
    """A folder that only its owner may read, removed afterwards; one that a killed process left is removed first.

    Its process holds a lock on it, which ends with the process however that ends.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            # A younger one may not be locked yet.
            if time.time() - left.stat().st_mtime > _SECONDS_TO_LOCK:
                with _locked(left):
                    shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder, _locked(Path(folder)):
        yield Path(folder)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(place)


def _call(function: Any, *arguments: Any, **offered: Any) -> Any:
    """Call a function with those of the offered arguments that it takes."""
    parameters = inspect.signature(function).parameters
    any_name = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    return function(
        *arguments, **{name: value for name, value in offered.items() if any_name or name in parameters}
    )


def _as_log(drawn: Any, actions: tuple[str, ...]) -> Interactions:
    """What a foreign generator drew, as a log with the vocabulary of the real one, where it fits."""
    if isinstance(drawn, Interactions):
        log = drawn
    elif not len(drawn):
        log = Interactions.from_sequences([], [], actions=list(actions))  # no learner was asked for
    else:
        outcome = "outcome" if "outcome" in drawn.columns else None
        log = Interactions.from_frame(drawn, outcome=outcome, single_rows=True)
    plain = replace(log, item=None, items=(), time=None, group=None, groups=())
    return plain.recode(actions) if set(plain.actions) <= set(actions) else plain
