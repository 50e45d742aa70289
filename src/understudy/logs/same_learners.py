"""Whether the logs of an audit are of different learners: who is on both sides makes every figure wrong."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from understudy.core.files.people.learner_ids import Digests, are_only_numbered
from understudy.core.files.words import counted
from understudy.errors import DataError
from understudy.logs.interactions import Interactions


def check_different(members: Interactions, outsiders: Interactions, synthetic: Interactions) -> list[str]:
    """Refuse outsiders who are members; notes on what looks like it, and on a synthetic log that is a real one.

    Learners are the same if their ids and their rows are. Ids alone may be those of other people, as of two
    classes that number their learners; rows alone may agree by chance.
    """
    shared, alike = _n_shared(members, outsiders), _n_same_rows(members, outsiders)
    if _is_same(members, outsiders) or (shared and 2 * alike >= shared):
        raise DataError(
            f"{counted(shared or alike, 'learner')} of the outsiders are among the members, with the same rows.",
            hint="outsiders are learners whom the generator never saw: split the log by learners before it sees any.",
            code="shared-learners",
            n_learners=shared or alike,
        )
    notes = []
    if shared:
        notes.append(
            f"{counted(shared, 'id')} of outsiders are also those of members, with other rows. If they are the same "
            "people, the audit does not hold: split the log by learners."
        )
    for name, real in (("members", members), ("outsiders", outsiders)):
        if _is_same(real, synthetic):
            notes.append(
                f"The synthetic log has the rows of the {name}: it is their log, not a synthetic one."
            )
        elif n_shared := _n_shared(real, synthetic):
            notes.append(
                f"The synthetic log has {counted(n_shared, 'id')} of {name}: it may hold real learners."
            )
    return notes


def _n_shared(one: Interactions, other: Interactions) -> int:
    """How many ids occur in both logs; none where they only count learners, or belong to more than the log's."""
    ids, others = _own_ids(one), _own_ids(other)
    if ids is None or others is None or are_only_numbered(ids) or are_only_numbered(others):
        return 0
    return len(np.intersect1d(ids, others))


def _own_ids(log: Interactions) -> Digests | None:
    digests = log.origin.digests
    # Part of a log keeps the ids of all of it.
    return digests if digests is not None and len(digests) <= log.n_learners else None


def _n_same_rows(one: Interactions, other: Interactions) -> int:
    """How many learners of the other log have the rows of a learner of this one, in the same order."""
    known = set(_sequences(one))
    return sum(sequence in known for sequence in _sequences(other))


def _is_same(one: Interactions, other: Interactions) -> bool:
    return one.n_rows == other.n_rows and sorted(_sequences(one)) == sorted(_sequences(other))


def _sequences(log: Interactions) -> list[bytes]:
    rows = np.ascontiguousarray(log.code, dtype=np.int32)
    return [rows[begin:end].tobytes() for begin, end in pairwise(log.offsets.tolist())]
