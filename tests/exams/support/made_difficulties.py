"""Released difficulties that no class stands behind, for tests of the student's side."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

from understudy.core.privacy.guarantee import Guarantee
from understudy.exams.released_file import Ability, Difficulties, Item

PROVED = Guarantee(2.0, 1e-6, mechanisms=("Gaussian mechanism",), rho=0.08)


def make_difficulties(
    difficulty: Sequence[float | None] = (-1.5, -0.4, 0.3, 1.2),
    standard_error: float | Sequence[float | None] | None = 0.3,
    *,
    names: Sequence[str] | None = None,
    mean: float = 0.0,
    sd: float = 1.0,
    guarantee: Guarantee = PROVED,
    title: str = "",
    step: int = 2,
    guess: float = 0.0,
) -> Difficulties:
    """Items of these difficulties, named `Task 1` on; `step` neighbours at a time cannot be told apart."""
    errors = (
        list(standard_error) if isinstance(standard_error, Sequence) else [standard_error] * len(difficulty)
    )
    names = names or [f"Task {k + 1}" for k in range(len(difficulty))]
    ladder = sorted(
        (k for k, d in enumerate(difficulty) if d is not None), key=lambda k: float(difficulty[k] or 0.0)
    )
    steps = [ladder[k : k + step] for k in range(0, len(ladder), step)]
    place = {
        k: (1 + sum(map(len, steps[:s])), sum(map(len, steps[: s + 1])))
        for s, g in enumerate(steps)
        for k in g
    }
    items = tuple(
        Item(
            name=names[k],
            difficulty=d,
            standard_error=None if d is None else errors[k],
            chance=1.0
            if d is None
            else guess + (1 - guess) / (1 + math.exp((d - mean) / math.sqrt(1 + sd**2 / 2.89))),
            reading="as hard as it is",
            rank_from=place.get(k, (1, 1))[0],
            rank_to=place.get(k, (1, 1))[1],
            unbounded="easy" if d is None else None,
            guess=guess,
        )
        for k, d in enumerate(difficulty)
    )
    return Difficulties(
        items=items,
        steps=tuple(tuple(names[k] for k in group) for group in steps),
        ability=Ability(mean, sd),
        guarantee=guarantee,
        provenance={"made": "2026-01-31", "method": "test"},
        title=title,
    )


def write_difficulties(path: Path, difficulties: Difficulties) -> Path:
    """The file as the teacher's side writes it."""
    path.write_text(json.dumps(difficulties.to_json(), ensure_ascii=False), encoding="utf-8")
    return path
