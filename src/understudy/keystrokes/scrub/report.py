"""What was replaced, by kind and count: totals only, never a value and never one learner's figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

# Names inside of a string count in both kinds: the report says what was there.
KINDS: dict[str, str] = {
    "names": "mentions of listed names and numbers",
    "emails": "e-mail addresses",
    "urls": "web addresses",
    "paths": "user names in paths",
    "strings": "string literals",
    "comments": "comments",
    "identifiers": "names in the code that no library has",
    "uncertain": "pieces whose kind a broken program does not tell",
}


@dataclass(frozen=True)
class Report:
    """Totals over all texts; `n_broken` counts the texts that do not parse."""

    n_texts: int = 0
    n_broken: int = 0
    n_learners: int = 0
    replaced: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Report) -> Report:
        return Report(
            self.n_texts + other.n_texts,
            self.n_broken + other.n_broken,
            self.n_learners + other.n_learners,
            Counter(self.replaced) + Counter(other.replaced),
        )

    def to_json(self) -> dict[str, object]:
        """The figures under plain names, every kind present."""
        return {
            "n_texts": self.n_texts,
            "n_broken": self.n_broken,
            "n_learners": self.n_learners,
            "replaced": {kind: int(self.replaced.get(kind, 0)) for kind in KINDS},
        }
