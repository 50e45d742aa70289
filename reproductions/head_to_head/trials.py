"""A method on one half of a log: its process, its synthetic log, utility, attacks and cost."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from reproductions.head_to_head.environments import MOSTLYAI, SDV
from reproductions.head_to_head.flat_table import domain, flatten, walk
from reproductions.head_to_head.generators import generator_of
from reproductions.head_to_head.methods import EPSILON, PROGRAMS, Method
from reproductions.pages import ROOT
from understudy.core.privacy.composition import default_delta
from understudy.errors import DataError, UnderstudyError
from understudy.logs.audit import judged_chance, judged_risk, membership_scores
from understudy.logs.generators.budget import budget
from understudy.logs.generators.private_sums import first_rows
from understudy.logs.interactions import Interactions, joined
from understudy.logs.trial import Split, attacker_knowledge, shadow_attack_on
from understudy.logs.utility import measure

# Halves of a method whose first fit takes at most so many seconds of processor time; of others there is one.
N_HALVES, FAST_SECONDS = 3, 120.0
# No process of a method may take more processor time.
MOST_SECONDS = 12 * 60
# Attacks that refit a method do so this often, with methods that run here and are fitted in at most so many seconds.
N_REFITS, REFITTED_SECONDS = 8, 20.0
# Runs a program in a child with limited processor time, and writes what it took: the largest memory of a process counts
# that of the process which started it, so a small one has to start it.
LIMITED = """
import os, resource, signal, sys
n = int(sys.argv[1])
child = os.fork()
if not child:
    resource.setrlimit(resource.RLIMIT_CPU, (n, n + 5))
    os.execv(sys.argv[3], sys.argv[3:])
_, status, used = os.wait4(child, 0)
with open(sys.argv[2], "w") as file:
    print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, file=file)
code = os.waitstatus_to_exitcode(status)
sys.exit(code if code >= 0 else 128 - code)
"""
# Seconds of the clock per second of processor time after which a process is taken to wait for something. On a busy
# machine a process that computes may have a tenth of a processor.
MOST_WAITING = 30
# Rows of a synthetic learner whom nothing ends.
LONGEST = 1000


@dataclass(frozen=True)
class Cost:
    """What a process took: seconds of processor time, and its largest memory."""

    seconds: float
    megabytes: float


def try_method(
    log: Interactions, method: Method, seed: int, before: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The row of one method on one half of the log.

    Where a program that changed makes the same log as `before`, as far as its row tells, only the cost is new: attacks
    and scores would find the same.
    """
    split = Split(log, seed)
    rng = np.random.default_rng(seed)
    used = split.real.training
    if method.most_learners is not None and used.n_learners > method.most_learners:
        used = used.select(np.sort(rng.permutation(used.n_learners)[: method.most_learners]))
    synthetic, cost = run_method(method, used, seed, rng)
    of_log = {
        "trained_learners": used.n_learners,
        "n_rows": synthetic.n_rows,
        **measure(split.real, synthetic),
    }
    if before and all(before.get(name) == as_written(value) for name, value in of_log.items()):
        return {**before, **vars(cost)}
    refitted = method.label if method.refitted and cost.seconds <= REFITTED_SECONDS else None
    row: dict[str, Any] = {
        "method": method.label,
        "seed": seed,
        **of_log,
        **_attacked(split, used, synthetic, rng, refitted),
        **vars(cost),
    }
    # On one half: they take longer than everything else together.
    return row if seed else row | own_scores(split.real.training, synthetic)


def as_written(value: Any) -> str:
    """A value as the table of results has it."""
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def run(words: list[str], most_seconds: float = MOST_SECONDS) -> tuple[str, Cost]:
    """What a process printed, and its cost; one thread, so that seconds compare."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    # The clone that asks is the one that is measured, also where another one is installed.
    environment = os.environ | one_thread | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    with (
        tempfile.NamedTemporaryFile("r", encoding="utf-8") as used,
        tempfile.TemporaryFile("w+", encoding="utf-8") as printed,
        open(os.devnull, "w") as nowhere,
    ):
        limited = [sys.executable, "-c", LIMITED, str(ceil(most_seconds)), used.name, *words]
        process = subprocess.Popen(
            limited, stdout=printed, stderr=nowhere, env=environment, cwd=ROOT, start_new_session=True
        )
        try:
            # One that waits for something uses no processor.
            process.wait(MOST_WAITING * most_seconds)
            was_killed = False
        except subprocess.TimeoutExpired:
            was_killed = True
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        printed.seek(0)
        text, taken = printed.read(), used.read()
    if was_killed or process.returncode == 128 + signal.SIGXCPU:
        limit, of = (
            (MOST_WAITING * most_seconds, "by the clock")
            if was_killed
            else (most_seconds, "of processor time")
        )
        raise DataError(
            f"not finished in {limit / 60:g} minutes {of}.",
            hint="try it by hand.",
            code="program-too-slow",
        )
    if process.returncode:
        # What it printed may quote rows.
        raise DataError(
            f"the program ended with {process.returncode}.", hint="try it by hand.", code="program-failed"
        )
    return text, Cost(*map(float, taken.split()))


def run_method(
    method: Method, log: Interactions, seed: int, rng: np.random.Generator
) -> tuple[Interactions, Cost]:
    """The synthetic log that the method's process makes of a log, and what the process took."""
    delta = default_delta(log.n_learners)
    with tempfile.TemporaryDirectory(prefix="understudy-peer-") as name:
        folder = Path(name)
        train, out, values = folder / "train.csv", folder / "out.csv", folder / "domain.json"
        values.write_text(json.dumps(domain(log.actions)), encoding="utf-8")
        if method.form == "table":
            flatten(log, method.most_steps).write_csv(train)
        else:
            rows = log if method.most_steps is None else first_rows(log, method.most_steps)
            rows.to_polars("learner-").write_csv(train)
        words = method.words(
            {
                "train": train,
                "out": out,
                "domain": values,
                "seed": seed,
                "delta": delta,
                "rho": budget(EPSILON, delta),
            }
        )
        _, cost = run(words)
        written = pl.read_csv(out, infer_schema=False)
    if method.form == "table":
        return walk(written, log.n_learners, log.actions, LONGEST, rng), cost
    known = written.filter(pl.col("action").is_in(list(log.actions)) & pl.col("outcome").is_in(["0", "1"]))
    drawn = Interactions.from_frame(known.with_columns(pl.col("outcome").cast(pl.Int8)), single_rows=True)
    return drawn.recode(log.actions), cost


def _attacked(
    split: Split, used: Interactions, synthetic: Interactions, rng: np.random.Generator, refitted: str | None
) -> dict[str, Any]:
    """The strongest attack without refits, and with those of the method `refitted`."""
    outsiders = split.real.held_out
    if used.n_learners < split.real.training.n_learners:
        outsiders = outsiders.select(np.sort(rng.permutation(outsiders.n_learners)[: used.n_learners]))
    population = joined(used, outsiders).declare()
    member = np.arange(population.n_learners) < used.n_learners
    knowledge = attacker_knowledge(population)
    scores = membership_scores(knowledge, synthetic, None)
    risk = judged_risk(knowledge, member, scores, rng)
    chance = judged_chance(knowledge, member, scores, rng)
    row: dict[str, Any] = {
        "auc": risk.worst.auc,
        "auc_low": risk.low,
        "auc_high": risk.high,
        "attack": risk.worst.attack,
        "auc_chance_high": chance.high,
        "found_at_1pct": risk.most_found.tpr_at_1pct,
    }
    if refitted:
        shadow = shadow_attack_on(generator_of(refitted), knowledge, N_REFITS)
        worst = judged_risk(knowledge, member, shadow.scores(synthetic, scores), rng).worst
        row |= {"auc_refits": max(risk.worst.auc, worst.auc)}
    return row


def own_scores(real: Interactions, synthetic: Interactions) -> dict[str, float]:
    """The scores that peers give a synthetic log, of those peers that install."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="understudy-peer-") as name:
        paths = [Path(name) / "real.csv", Path(name) / "synthetic.csv"]
        for log, path in zip((real, synthetic), paths, strict=True):
            log.to_polars("learner-").write_csv(path)
        for environment in (SDV, MOSTLYAI):
            # A score that its peer cannot give is left out.
            with contextlib.suppress(UnderstudyError):
                program = PROGRAMS / f"{environment.name}_quality.py"
                text, _ = run([str(environment.python()), str(program), *map(str, paths)])
                scores = json.loads(text.splitlines()[-1])
                found |= {f"{environment.name}_{name}": value for name, value in scores.items()}
    return found
