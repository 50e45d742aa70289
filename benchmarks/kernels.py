"""Runs kernels once each, and has valgrind count the instructions of each: `python -m benchmarks.kernels walks=1 ...`.

`instructions.py` starts it. A kernel's name comes with a factor of its size; data are made and the kernel is compiled
before counting begins. Without valgrind nothing is counted, and the kernels run all the same.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import sys
from collections.abc import Callable

import numpy as np

Kernel = Callable[[], object]

# How a program speaks to the valgrind that runs it (valgrind.h, for amd64): four rotations that undo each other and an
# exchange of a register with itself do nothing, but valgrind takes them for a request at the address in rax.
REQUEST = bytes.fromhex(
    "4889f8"  # mov rax, rdi
    "31d2"  # xor edx, edx
    "48c1c703 48c1c70d 48c1c73d 48c1c733"  # rol rdi, 3, 13, 61 and 51
    "4887db"  # xchg rbx, rbx
    "4889d0"  # mov rax, rdx
    "c3"  # ret
)
# Requests to callgrind (callgrind.h).
ZERO, DUMP_AS, START, STOP = (0x4354_0000 + number for number in (1, 3, 4, 5))


class Callgrind:
    """The requests of this process to callgrind."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._page.write(REQUEST)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._page))
        self._ask = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(address)

    def ask(self, request: int, argument: int = 0) -> None:
        words = (ctypes.c_uint64 * 6)(request, argument)
        self._ask(ctypes.addressof(words))

    def count(self, name: str, kernel: Kernel) -> None:
        """Run a kernel; its count is written under the name."""
        title = ctypes.create_string_buffer(name.encode())
        self.ask(START)
        self.ask(ZERO)
        kernel()
        self.ask(DUMP_AS, ctypes.addressof(title))
        self.ask(STOP)


def _tables():  # type: ignore[no-untyped-def]
    """A chain of 100 actions, each of which may follow each, with walks of 40 rows on average."""
    from understudy.logs.models.markov import AliasTables

    n, rng = 100, np.random.default_rng(1)
    weight = rng.gamma(1.0, size=(n + 1, n + 1))
    weight[:, n] = weight[:, :n].sum(axis=1) / 40
    weight[n, n] = 0.0
    source, target = np.nonzero(weight)
    return AliasTables.from_steps(source, target, weight[source, target], n + 1)


def _log(n_learners: int):  # type: ignore[no-untyped-def]
    from understudy.logs.simulated.classroom import Classroom

    return Classroom(n_learners=n_learners, n_actions=100).simulate(np.random.default_rng(1))


def walks(factor: int) -> Kernel:
    from understudy.logs.models.markov import draw_walks

    tables, limits = _tables(), np.full(2_000 * factor, 1000)
    return lambda: draw_walks(tables, limits, np.uint64(1))


def outcomes(factor: int) -> Kernel:
    from understudy.logs.models.markov import draw_outcomes, draw_walks

    action, offsets = draw_walks(_tables(), np.full(2_000 * factor, 1000), np.uint64(1))
    easiness, ability = np.linspace(-2, 2, 100), np.linspace(-1, 1, len(offsets) - 1)
    return lambda: draw_outcomes(easiness, ability, action, offsets, np.uint64(2))


def alias_tables(factor: int) -> Kernel:
    from understudy.logs.models.markov import AliasTables

    n = 300
    source, target = np.divmod(np.arange(n * n * factor), n)
    weight = np.random.default_rng(1).gamma(1.0, size=len(source))
    return lambda: AliasTables.from_steps(source, target, weight, n * factor)


def run_walks(factor: int) -> Kernel:
    from understudy.logs.models.runs import N_CELLS, RunModel

    n, rng = 100, np.random.default_rng(1)
    stay_by_cell = rng.normal(size=N_CELLS)
    model = RunModel(_jump_tables(), rng.normal(size=n), stay_by_cell, rng.normal(size=n))
    ability, lengths = rng.normal(size=1_000 * factor), np.full(1_000 * factor, 40)
    return lambda: model.walk(ability, lengths, np.random.default_rng(2))


def _jump_tables():  # type: ignore[no-untyped-def]
    """From each action and from the start to each action."""
    from understudy.logs.models.markov import AliasTables

    weight = np.random.default_rng(1).gamma(1.0, size=(101, 100))
    source, target = np.nonzero(weight)
    return AliasTables.from_steps(source, target, weight[source, target], 101)


def rasch(factor: int) -> Kernel:
    from understudy.logs.models.rasch import fit_rasch

    log = _log(200 * factor)
    # Its iterations, and not how many there are.
    return lambda: fit_rasch(log, tolerance=0.0, max_iterations=6)


def contained(factor: int) -> Kernel:
    from understudy.core.attacks.subsequences import best_contained

    originals, fakes = _sequences(100 * factor)
    return lambda: best_contained(originals, fakes, lambda length: fakes.lengths.astype(float))


def common(factor: int) -> Kernel:
    from understudy.core.attacks.subsequences import largest_common

    originals, fakes = _sequences(100 * factor)
    return lambda: largest_common(originals, fakes, fakes.lengths**0.97)


def _sequences(n_originals: int):  # type: ignore[no-untyped-def]
    from understudy.core.attacks.subsequences import Sequences

    log = _log(n_originals + 400)
    fake = np.arange(log.n_learners) < 400
    return [
        Sequences(some.action, some.offsets, some.n_actions) for some in (log.select(~fake), log.select(fake))
    ]


def marginal(factor: int) -> Kernel:
    from understudy.exams.estimators.marginal import fit_marginal
    from understudy.exams.simulate import Exam

    correct = Exam(400 * factor, 30).simulate(np.random.default_rng(1)).responses.correct
    return lambda: fit_marginal(correct, sd=None)


def joint(factor: int) -> Kernel:
    from understudy.exams.estimators.joint import fit_joint
    from understudy.exams.simulate import Exam

    correct = Exam(400 * factor, 30).simulate(np.random.default_rng(1)).responses.correct
    mask = np.random.default_rng(2).random(correct.shape) < 0.7
    right = mask & (correct > 0)
    return lambda: fit_joint(right.sum(axis=1), right.sum(axis=0), mask=mask, max_iterations=6)


KERNELS: dict[str, Callable[[int], Kernel]] = {
    "walks": walks,
    "outcomes": outcomes,
    "alias_tables": alias_tables,
    "run_walks": run_walks,
    "rasch": rasch,
    "contained": contained,
    "common": common,
    "marginal": marginal,
    "joint": joint,
}


def main(words: list[str]) -> None:
    # It would collect in the middle of some kernel or other.
    gc.disable()
    callgrind = Callgrind()
    for word in words:
        name, _, factor = word.partition("=")
        kernel = KERNELS[name](int(factor))
        kernel()
        callgrind.count(word, kernel)


if __name__ == "__main__":
    main(sys.argv[1:])
