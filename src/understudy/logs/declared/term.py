"""Term: what is public about the times of a log, when times are part of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from typing import Annotated

from understudy.errors import UsageError

# Two rows of a learner that are further apart belong to two sessions, unless another limit is declared.
SESSION_MINUTES = 30.0
# Resolutions that have a name, in seconds.
RESOLUTIONS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}


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


@dataclass(frozen=True)
class TermOptions:
    """What is declared about times, and whether they are included at all."""

    term: Annotated[
        str | None,
        "First and last day of the course, which are public: 2024-09-01..2025-02-28. Where times are included and the "
        "days are not given, they are found privately, for a part of the budget.",
    ] = None
    resolution: Annotated[
        float | str | None,
        "How finely the platform writes times: second, minute, hour, day, or a number of seconds (default: what is "
        "known about the format, else second).",
    ] = None
    session_minutes: Annotated[
        float | None, f"Minutes without a row that end a session (default: {SESSION_MINUTES:g})."
    ] = None
    time_for_order: Annotated[
        bool, "The column that was named for the time puts the rows in order, and its times are left out."
    ] = False

    @property
    def declares_term(self) -> bool:
        """Whether anything was said about times that only makes sense if they are included."""
        return any(given is not None for given in (self.term, self.resolution, self.session_minutes))

    def declared_term(self, usual_resolution: float = 1.0) -> Term:
        """The term as declared; `usual_resolution` is that of the format."""
        first, last = (None, None) if self.term is None else _days(self.term)
        return Term(
            first,
            last,
            usual_resolution if self.resolution is None else _seconds(self.resolution),
            SESSION_MINUTES if self.session_minutes is None else float(self.session_minutes),
        )


def _days(text: str) -> tuple[date, date]:
    parts = [part.strip() for part in str(text).split("..")]
    try:
        first, last = (date.fromisoformat(part) for part in parts)
    except ValueError:
        raise UsageError(
            f"'{text}' is not a term.",
            hint="write its first and last day as 2024-09-01..2025-02-28.",
            code="bad-term",
            settings=("term",),
        ) from None
    return first, last


def _seconds(resolution: float | str) -> float:
    text = str(resolution).strip().lower()
    try:
        seconds = RESOLUTIONS.get(text.removesuffix("s")) or float(text)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise UsageError(
            f"'{resolution}' is not a resolution of times.",
            hint=f"write {', '.join(RESOLUTIONS)}, or a number of seconds.",
            code="bad-term",
            settings=("resolution",),
        )
    return seconds
