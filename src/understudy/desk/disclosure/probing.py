"""Measures who stands behind each number: the analysis again without each learner, and without some pairs.

What code says about its own results is not believed. A number in which a learner has a part moves when
they are left out; a number that nobody's absence moves was not made from anybody.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.desk.learners import LearnerTable
from understudy.desk.results import Floats, Results
from understudy.desk.running import Analysis, Answer, Progress, RunsJobs
from understudy.errors import DataError

# Up to so many learners are left out one by one; beyond it in so many blocks of neighbours.
MOST_BLOCKS = 1000
N_PAIRS = 60
# Numbers past these are not measured. An answer as long as that fails by its size.
MOST_PROBED = 2000


@dataclass(frozen=True, eq=False, repr=False)
class Probes:
    """What the answers without some learners were. A function of the real data: it stays inside.

    Learners are in the order of their table, which is drawn once per data set, so that the rows of two
    requests' probes are about the same people.
    """

    names: tuple[str, ...]
    """Of the numbers of the full answer, `d` of them."""
    full: Floats
    """(d,) the full answer."""
    without_one: Floats
    """(m, d) the answer without learner i, or block i of learners; NaN where a number is missing."""
    pairs: NDArray[np.int64]
    """(p, 2) which two learners or blocks were left out."""
    without_two: Floats
    """(p, d) the answer without them."""
    forms: NDArray[np.int64]
    """(1 + m + p,) which texts, names and shape each answer had; the full answer's are 0, and -1 is a failure."""
    n_learners: int

    @property
    def n_blocks(self) -> int:
        """How many learners, or blocks of them, were left out one by one."""
        return len(self.without_one)

    @property
    def one_by_one(self) -> bool:
        """Whether each learner was left out on their own."""
        return self.n_blocks == self.n_learners

    @property
    def failed(self) -> NDArray[np.bool_]:
        """(m,) without whom the analysis gave no answer."""
        return np.asarray(self.forms[1 : 1 + self.n_blocks] < 0)

    def to_bytes(self) -> bytes:
        """For the store: plain arrays, nothing that could run when it is read."""
        sink = io.BytesIO()
        np.savez_compressed(
            sink,
            names=np.frombuffer(json.dumps(self.names).encode(), np.uint8),
            full=self.full,
            without_one=self.without_one,
            pairs=self.pairs,
            without_two=self.without_two,
            forms=self.forms,
            n_learners=np.int64(self.n_learners),
        )
        return sink.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> Probes:
        """As `to_bytes` wrote it."""
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as kept:
                return cls(
                    tuple(json.loads(kept["names"].tobytes())),
                    kept["full"],
                    kept["without_one"],
                    kept["pairs"],
                    kept["without_two"],
                    kept["forms"],
                    int(kept["n_learners"]),
                )
        except (ValueError, KeyError, OSError, EOFError) as error:
            raise DataError(
                f"kept probes of an earlier answer cannot be read ({type(error).__name__}).",
                hint="restore the desk's store from its backup.",
            ) from None


def blocks_of(n_learners: int) -> list[NDArray[np.int64]]:
    """Who is left out together: one learner each, or neighbours of the drawn order when there are many."""
    return np.array_split(np.arange(n_learners), min(n_learners, MOST_BLOCKS))


def probe(
    analysis: Analysis,
    table: LearnerTable,
    sandbox: RunsJobs,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> tuple[Answer, Probes | None]:
    """The answer on all learners and what re-runs without some showed; no probes when there is no answer.

    All runs go to the sandbox at once, in an order that it cannot guess.
    """
    blocks = blocks_of(table.n_learners)
    pairs = _some_pairs(len(blocks), rng)
    tables = [table.whole()]
    tables += [table.without(block.tolist()) for block in blocks]
    tables += [table.without([*blocks[a].tolist(), *blocks[b].tolist()]) for a, b in pairs.tolist()]
    answers = analysis.answers(sandbox, tables, progress)
    full = answers[0]
    if not isinstance(full, Results):
        return full, None
    names = tuple(full.numbers)[:MOST_PROBED]
    values = np.array([_vector(answer, names) for answer in answers]).reshape(len(answers), len(names))
    m = len(blocks)
    return full, Probes(
        names,
        values[0],
        values[1 : 1 + m],
        pairs,
        values[1 + m :],
        _forms(answers),
        table.n_learners,
    )


def _some_pairs(n_blocks: int, rng: np.random.Generator) -> NDArray[np.int64]:
    # With three learners, leaving out two leaves one: nothing to compare.
    if n_blocks < 4:
        return np.empty((0, 2), dtype=np.int64)
    drawn = [rng.choice(n_blocks, size=2, replace=False) for _ in range(N_PAIRS)]
    return np.sort(np.array(drawn, dtype=np.int64), axis=1)


def _vector(answer: Answer, names: Sequence[str]) -> Floats:
    return answer.vector(names) if isinstance(answer, Results) else np.full(len(names), np.nan)


def _forms(answers: Sequence[Answer]) -> NDArray[np.int64]:
    seen: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
    codes = []
    for answer in answers:
        if isinstance(answer, Results):
            form = (answer.texts, tuple(answer.numbers))
            codes.append(seen.setdefault(form, len(seen)))
        else:
            codes.append(-1)
    return np.array(codes, dtype=np.int64)
