"""A simulated classroom: learners who never existed, for the demonstration and the tests.

Skills have prerequisites; a learner practises one skill for a while (a run), grows on it, and
goes on to a following skill or wanders off; learners drop out, earlier when things go badly;
lengths are irregular, as in real logs: many short sequences, a few very long ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from understudy.logs.interactions import Interactions
from understudy.logs.simulated.term import Habits, with_term

TOPICS = (
    "fractions",
    "decimals",
    "ratios",
    "percentages",
    "angles",
    "areas",
    "equations",
    "graphs",
    "primes",
    "statistics",
)
SCHOOLS = ("north", "south", "west")


@dataclass(frozen=True)
class Classroom:
    """How large the classroom is and how its learners behave.

    `median_length` and `length_spread` (standard deviation of the logarithm) shape the lengths
    within `shortest` and `longest`; `run` is the mean length of a practice run; `wander` the
    chance that a run is followed by any skill instead of a following one; `branches` the number
    of skills that usually follow a skill; `quit` the chance to drop out after a run gone badly.
    `timed` adds the times of a term, declared columns of rows, and a table of the learners, who work by `habits`.
    """

    n_learners: int = 600
    n_actions: int = 40
    median_length: float = 25.0
    length_spread: float = 1.1
    shortest: int = 2
    longest: int = 400
    run: float = 4.0
    wander: float = 0.08
    branches: int = 3
    quit: float = 0.03
    timed: bool = False
    habits: Habits = Habits()  # noqa: RUF009 (frozen)

    def simulate(self, rng: np.random.Generator) -> Interactions:
        """The log of one such classroom, labelled as simulated."""
        n, m = self.n_learners, self.n_actions
        school = rng.integers(len(SCHOOLS), size=n)
        ability = rng.normal(0.6, 0.9, n) + 0.3 * (school - 1)
        difficulty = rng.normal(0.0, 1.0, m) + np.linspace(-0.4, 0.4, m)
        position = np.arange(m)
        # A skill builds on one of the ten before it; the first ones, and some others, on none.
        prerequisite = np.where(
            (position > 0) & (rng.random(m) < 0.7),
            np.maximum(position - rng.integers(1, 11, m), 0),
            -1,
        )
        following = (position[:, None] + rng.integers(1, 9, (m, self.branches))) % m
        length = np.exp(rng.normal(np.log(self.median_length), self.length_spread, n))
        length = np.clip(np.round(length), self.shortest, self.longest).astype(np.int64)
        action, outcome, offsets = _live(
            rng,
            ability,
            difficulty,
            prerequisite,
            following,
            length,
            self.shortest,
            self.run,
            self.wander,
            self.quit,
        )
        width = len(str(max(1, -(-m // len(TOPICS)))))
        names = [f"{TOPICS[j % len(TOPICS)]} {j // len(TOPICS) + 1:0{width}}" for j in range(m)]
        order = np.argsort(names)
        place = np.empty(m, dtype=np.int32)
        place[order] = np.arange(m, dtype=np.int32)
        log = Interactions(
            place[action],
            outcome,
            offsets,
            tuple(names[j] for j in order),
            group=school.astype(np.int32),
            groups=SCHOOLS,
            simulated=True,
        )
        return with_term(log, ability, rng, self.habits) if self.timed else log


# Few learners, many actions, rare paths: where transition counts give members away.
RARE_PATHS = Classroom(
    n_learners=330,
    n_actions=1200,
    median_length=500.0,
    length_spread=0.5,
    shortest=60,
    longest=3000,
    run=2.0,
    wander=0.25,
    branches=4,
    quit=0.0,
)


@njit(cache=True, nogil=True)
def _live(  # type: ignore[no-untyped-def]
    rng, ability, difficulty, prerequisite, following, length, shortest, run, wander, quit
):
    """Rows of all learners, one after the other."""
    n_actions = len(difficulty)
    room = np.sum(length)
    action = np.empty(room, dtype=np.int32)
    outcome = np.empty(room, dtype=np.int8)
    offsets = np.zeros(len(length) + 1, dtype=np.int64)
    row = 0
    for i in range(len(length)):
        practice = np.zeros(n_actions, dtype=np.int64)
        current = rng.integers(0, max(1, n_actions // 8))
        begin = row
        growth = 0.15 + 0.25 * rng.random()
        while row - begin < length[i]:
            wanted = current
            # What a skill builds on comes first, if it was never practised.
            while prerequisite[wanted] >= 0 and practice[prerequisite[wanted]] == 0:
                wanted = prerequisite[wanted]
            streak = 0
            failures = 0
            steps = 0
            while row - begin < length[i]:
                eta = ability[i] - difficulty[wanted] + growth * np.log1p(practice[wanted])
                success = rng.random() * (1.0 + np.exp(-eta)) < 1.0
                action[row] = wanted
                outcome[row] = success
                row += 1
                steps += 1
                practice[wanted] += 1
                streak = streak + 1 if success else 0
                failures += 0 if success else 1
                if rng.random() < 1.0 / run or (streak >= 3 and rng.random() < 0.5):
                    break
            if row - begin >= shortest and 2 * failures > steps and rng.random() < quit:
                break
            if wanted == current or rng.random() < 0.5:
                if rng.random() < wander:
                    current = rng.integers(0, n_actions)
                else:
                    # Earlier branches are the usual way on.
                    branch = min(int(rng.random() ** 2 * following.shape[1]), following.shape[1] - 1)
                    current = following[wanted, branch]
        offsets[i + 1] = row
    return action[:row].copy(), outcome[:row].copy(), offsets
