"""Matching: who is who, when every unnamed record belongs to a different known person.

The attacker's story: a file holds a whole class without names. If this record is Ada's, then no other one is, so Bob
does not ask about one record at a time: he looks for the matching of all records with all people that explains
everything best. Of one record he then asks by how much that would get worse if it were Ada's: her regret.

With costs c(i, j), such as minus the log-likelihood of record i under person j, the regret of (i, j) is the least cost
of a matching that gives j to i, less the least cost of any. The person with regret 0 is the one in the best matching;
the others come in the order in which Bob would give that up. All of it is exact: after one best matching (an
assignment problem), giving j to i sets off a chain of replacements, and the cheapest chains are shortest paths.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

Floats = NDArray[np.float64]


def regrets(costs: Floats) -> Floats:
    """The regret of naming each person (columns) for each record (rows); there may be more people than records."""
    n_records, n_people = costs.shape
    if n_records > n_people:
        raise ValueError("there are more records than people to match them with")
    # People without a record take part as records that fit everybody alike.
    square = np.zeros((n_people, n_people))
    square[:n_records] = costs
    _, person = linear_sum_assignment(square)
    # A step of a chain: record i takes the person of record s, instead of its own.
    taken = square[:, person] - np.take_along_axis(square, person[:, None], axis=1)
    # Cheapest chains by Floyd and Warshall. None that closes is cheaper than nothing: the matching is the best one.
    chain = taken.copy()
    for through in range(n_people):
        np.minimum(chain, chain[:, [through]] + chain[through], out=chain)
    found = np.empty_like(taken)
    found[:, person] = np.maximum(taken + chain.T, 0.0)
    return found[:n_records]
