"""Term: what is public about the times of a log, when times are part of what is told about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from understudy.errors import UsageError

# Two rows of a learner that are further apart belong to two sessions, unless another limit is declared.
SESSION_MINUTES = 30.0


@dataclass(frozen=True)
class Term:
    """When a course ran, how finely its platform writes times, and what ends a session: all declared, none measured.

    `first` is the first day, `last` the last one; both are None where they are to be found privately. `resolution`
    is in seconds: synthetic times are multiples of it.
    """

    first: date | None = None
    last: date | None = None
    resolution: float = 1.0
    session_minutes: float = SESSION_MINUTES

    def __post_init__(self) -> None:
        if (self.first is None) != (self.last is None):
            raise UsageError(
                "a term has a first and a last day, or neither.", hint="declare both.", code="bad-term"
            )
        if self.first is not None and self.last is not None and self.first > self.last:
            raise UsageError("the term ends before it begins.", hint="check its days.", code="bad-term")
        if not self.resolution > 0 or not self.session_minutes > 0:
            raise UsageError(
                "resolution and the length of a pause are positive.", hint="check them.", code="bad-term"
            )

    @property
    def declared(self) -> bool:
        """Whether its days are public; otherwise a private generator pays for finding them."""
        return self.first is not None

    @property
    def n_days(self) -> int:
        """Days of a declared term, the last one included."""
        if self.first is None or self.last is None:
            raise ValueError("the days of this term are not declared")
        return (self.last - self.first).days + 1
