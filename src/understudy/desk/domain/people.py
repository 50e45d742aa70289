"""Who uses the desk: three roles, and a person as the rest of the desk sees them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What somebody is here for. A custodian can do what a reviewer can, and manages data and people."""

    CUSTODIAN = "custodian"
    REVIEWER = "reviewer"
    RESEARCHER = "researcher"


@dataclass(frozen=True)
class Person:
    """Somebody with an account, or the desk's own worker."""

    id: int
    name: str
    role: Role | None

    @property
    def reviews(self) -> bool:
        """Whether they may look inside: at code, checks and prices."""
        return self.role in (Role.REVIEWER, Role.CUSTODIAN)


# Jobs act in this name; nobody can sign in as it.
WORKER = Person(0, "the desk", None)
