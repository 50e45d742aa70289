"""Measures which learners are behind each number: the analysis again without each learner, some pairs and triples.

What code says about its own results is not believed. A number in which a learner has a part moves when
they are left out; a number that no learner's absence moves was made from none of them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from understudy.core.files.source import keeping_values_inside
from understudy.core.files.storage.arrays import read_arrays
from understudy.desk.disclosure.replacement import Kind, ReplacementPlan
from understudy.desk.domain.analysis import Analysis, Answer, Progress, RunsJobs
from understudy.desk.domain.learners import LearnerTable
from understudy.desk.domain.results import Floats, Results

# Up to so many learners are left out one by one; beyond it in so many blocks of neighbours.
MOST_BLOCKS = 1000
# So many triples are drawn, and each is left out with its three pairs: what two and three say can be held together.
N_TRIPLES = 30
# Leaving out three must leave two: of one there is nothing to compare.
LEAST_FOR_TRIPLES = 5
# Numbers past these are not measured. An answer as long as that fails by its size.
MOST_PROBED = 2000
_RESTORE = "restore the desk's store from its backup."


@dataclass(frozen=True, eq=False, repr=False)
class ReplacedAnswers:
    """The answers with some learners replaced by others (`replacement`), `r` of them. It never leaves."""

    learners: tuple[tuple[int, ...], ...]
    """(r,) who was replaced; nobody where all learners are in another order."""
    natural: NDArray[np.bool_]
    """(r,) whether by learners like those who are there."""
    kinds: tuple[Kind, ...]
    """(r,) what they are like."""
    values: Floats
    """(r, d) the numbers; NaN where one is missing."""
    failed: NDArray[np.bool_]
    """(r,) whether there was no answer."""
    entries: tuple[str, ...]
    """Where the answers differ apart from numbers."""
    differs: NDArray[np.bool_]
    """(r, entries) whether an answer has something else there than the full answer."""
    other_texts: NDArray[np.bool_]
    """(r, entries) whether both have a text there, and not the same."""
    complete: bool
    """Whether all values that the code writes were tried."""

    def of_kinds(self, *kinds: Kind) -> ReplacedAnswers:
        """Those with learners of these kinds."""
        kept = np.array([kind in kinds for kind in self.kinds], dtype=bool)
        places = np.flatnonzero(kept).tolist()
        return ReplacedAnswers(
            tuple(self.learners[place] for place in places),
            self.natural[kept],
            tuple(self.kinds[place] for place in places),
            self.values[kept],
            self.failed[kept],
            self.entries,
            self.differs[kept],
            self.other_texts[kept],
            self.complete,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Probes:
    """The answers without some learners. A function of the real data: it never leaves.

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
    """(3 q, 2) which two learners or blocks were left out: first and second of each triple, first and third, others."""
    without_two: Floats
    """(3 q, d) the answer without them."""
    triples: NDArray[np.int64]
    """(q, 3) which three were left out."""
    without_three: Floats
    """(q, d) the answer without them."""
    forms: NDArray[np.int64]
    """(1 + m + 4 q,) which texts, names and shape each answer had; the full answer's are 0, and -1 is a failure."""
    n_learners: int
    entries: tuple[str, ...] = ()
    """Where the answers differ apart from numbers (`Results.form`): texts, rows and names that are not always so."""
    differs: NDArray[np.bool_] = field(default_factory=lambda: np.empty((0, 0), dtype=bool))
    """(as forms, entries) whether an answer has something else there than the full answer."""
    replaced: ReplacedAnswers | None = None
    """What learners who are not there would change; for the checks of this answer, and not stored."""

    @classmethod
    def unmoved(cls, names: Sequence[str]) -> Probes:
        """Of an analysis that gives no answer any more: its numbers, which no learner moves."""
        d = len(names)
        none, triples = np.empty((0, d)), np.empty((0, 3), dtype=np.int64)
        failed = np.full(1, -1, dtype=np.int64)
        return cls(tuple(names), np.full(d, np.nan), none, triples[:, :2], none, triples, none, failed, 0)

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

    @property
    def forms_of_two(self) -> NDArray[np.int64]:
        """(3 q,) of `forms` those without two."""
        return self.forms[1 + self.n_blocks :][: len(self.pairs)]

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
            triples=self.triples,
            without_three=self.without_three,
            forms=self.forms,
            n_learners=np.int64(self.n_learners),
            entries=np.frombuffer(json.dumps(self.entries).encode(), np.uint8),
            differs=self.differs,
        )
        return sink.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> Probes:
        """As `to_bytes` wrote it."""
        damaged = "kept probes of an earlier answer cannot be read: they are damaged."
        kept = read_arrays(content, damaged, hint=_RESTORE)
        with keeping_values_inside(damaged, hint=_RESTORE):
            return cls(
                tuple(json.loads(kept["names"].tobytes())),
                kept["full"],
                kept["without_one"],
                kept["pairs"],
                kept["without_two"],
                kept["triples"],
                kept["without_three"],
                kept["forms"],
                int(kept["n_learners"]),
                tuple(json.loads(kept["entries"].tobytes())),
                kept["differs"],
            )


def blocks_of(n_learners: int) -> list[NDArray[np.int64]]:
    """The learners who are left out together: one each, or neighbours of the drawn order when there are many."""
    return np.array_split(np.arange(n_learners), min(n_learners, MOST_BLOCKS))


def probe(
    analysis: Analysis,
    table: LearnerTable,
    sandbox: RunsJobs,
    rng: np.random.Generator,
    progress: Progress | None = None,
    plan: ReplacementPlan | None = None,
) -> tuple[Answer, Probes | None]:
    """The answer on all learners and what re-runs without some showed; no probes when there is no answer.

    With a plan, some learners are also replaced by others. All runs go to the sandbox at once, in an order that it
    cannot guess.
    """
    blocks = blocks_of(table.n_learners)
    triples = _some_triples(len(blocks), rng)
    pairs = np.concatenate([triples[:, both] for both in ([0, 1], [0, 2], [1, 2])])
    tables = [table.whole()]
    tables += [table.without(block.tolist()) for block in blocks]
    tables += [
        table.without(np.concatenate([blocks[one] for one in left_out]).tolist())
        for left_out in [*pairs.tolist(), *triples.tolist()]
    ]
    n_without = len(tables)
    if plan is not None:
        tables += [table.replaced(replacement.rows) for replacement in plan.replacements]
        tables += [table.of(order) for order in plan.orders]
    answers = analysis.answers(sandbox, tables, progress)
    full, answers, with_others = answers[0], answers[:n_without], answers[n_without:]
    if not isinstance(full, Results):
        return full, None
    names = tuple(full.numbers)[:MOST_PROBED]
    values = np.array([_vector(answer, names) for answer in answers]).reshape(len(answers), len(names))
    m, p = len(blocks), len(pairs)
    return full, Probes(
        names,
        values[0],
        values[1 : 1 + m],
        pairs,
        values[1 + m : 1 + m + p],
        triples,
        values[1 + m + p :],
        _forms(answers),
        table.n_learners,
        *_differing(full, answers),
        None if plan is None else _replaced_answers(plan, full, names, with_others),
    )


def _replaced_answers(
    plan: ReplacementPlan, full: Results, names: Sequence[str], answers: Sequence[Answer]
) -> ReplacedAnswers:
    usual: list[Kind] = ["usual" for _ in plan.orders]
    entries, differs = _differing(full, answers)
    texts = [[_is_text(answer, name) and _is_text(full, name) for name in entries] for answer in answers]
    return ReplacedAnswers(
        (*(tuple(replacement.rows) for replacement in plan.replacements), *[()] * len(plan.orders)),
        np.array([replacement.natural for replacement in plan.replacements] + [True] * len(plan.orders)),
        (*(replacement.kind for replacement in plan.replacements), *usual),
        np.array([_vector(answer, names) for answer in answers]).reshape(len(answers), len(names)),
        np.array([not isinstance(answer, Results) for answer in answers], dtype=bool),
        entries,
        differs,
        differs & np.array(texts, dtype=bool).reshape(differs.shape),
        plan.complete,
    )


def _is_text(answer: Answer, name: str) -> bool:
    return isinstance(answer, Results) and answer.form.get(name, "").startswith("text ")


def _some_triples(n_blocks: int, rng: np.random.Generator) -> NDArray[np.int64]:
    if n_blocks < LEAST_FOR_TRIPLES:
        return np.empty((0, 3), dtype=np.int64)
    drawn = [rng.choice(n_blocks, size=3, replace=False) for _ in range(N_TRIPLES)]
    return np.sort(np.array(drawn, dtype=np.int64), axis=1)


def _vector(answer: Answer, names: Sequence[str]) -> Floats:
    return answer.vector(names) if isinstance(answer, Results) else np.full(len(names), np.nan)


def _forms(answers: Sequence[Answer]) -> NDArray[np.int64]:
    seen: dict[tuple[tuple[str, str], ...], int] = {}
    codes = []
    for answer in answers:
        if isinstance(answer, Results):
            # Their order does not leave.
            codes.append(seen.setdefault(tuple(sorted(answer.form.items())), len(seen)))
        else:
            codes.append(-1)
    return np.array(codes, dtype=np.int64)


def _differing(full: Results, answers: Sequence[Answer]) -> tuple[tuple[str, ...], NDArray[np.bool_]]:
    forms = [answer.form if isinstance(answer, Results) else full.form for answer in answers]
    found = {name for form in forms for name, _ in form.items() ^ full.form.items()}
    # As many as that fail whoever is behind them.
    entries = tuple(sorted(found)[:MOST_PROBED])
    differs = [[form.get(name) != full.form.get(name) for name in entries] for form in forms]
    return entries, np.array(differs, dtype=bool).reshape(len(forms), len(entries))
