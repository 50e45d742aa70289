"""Names that we give: learners under numbers, and orders of names that do not depend on the data."""

from __future__ import annotations

from collections.abc import Sequence

# How learners are called whose own names are not kept, real ones and invented ones. That learners are simulated is
# a declared fact, never read off these names.
REAL_PREFIX = "learner-"
SIMULATED_PREFIX = "simulated-"
SYNTHETIC_PREFIX = "synthetic-"


def natural_order(names: set[str] | Sequence[str]) -> tuple[str, ...]:
    """Names sorted so that 2 comes before 10, whatever order they were met in."""
    try:
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    except ValueError:
        return tuple(sorted(names))
