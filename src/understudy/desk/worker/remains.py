"""What stays of a release's own measurements once it is measured on other learners: its numbers' names and digits.

How far each learner moved a number is about learners who may have left since; it goes. To measure the release
again one needs its code, which numbers it had and to what they were rounded, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from understudy.errors import DataError


@dataclass(frozen=True)
class Remains:
    """Names of a released answer's numbers, and the unit that each was rounded to (0: not rounded)."""

    units: Mapping[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        """In the order of the answer."""
        return tuple(self.units)

    def to_bytes(self) -> bytes:
        """For the store, in place of the probes."""
        return json.dumps({"units": dict(self.units)}).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Remains:
        """As `to_bytes` wrote it."""
        try:
            units = json.loads(content)["units"]
            return cls({str(name): float(unit) for name, unit in units.items()})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"what was kept of an earlier answer cannot be read ({type(error).__name__}).",
                hint="restore the desk's database from a backup.",
            ) from None
