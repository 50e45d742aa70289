"""One-run auditing: many canary learners are put in at once, each by the toss of a coin, and one release is looked at.

Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run" (2023). Each of m canaries is in the log or
has an ordinary learner in their place, by a fair coin of their own. From one release the auditor guesses the coins
and may abstain. Under (epsilon, delta)-DP for replacing one learner, every guess is right with a chance of at most
p = e^epsilon / (1 + e^epsilon) whatever the other coins were, so the number of right guesses among r is at most
binomial(r, p), but for 2 m delta (their theorem 5.2, with the largest of its terms bounded by 1). More right guesses
than that refute the claim.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.schema import Schema
from understudy.exams.responses import Responses
from understudy.keystrokes.keystrokes import Keystrokes
from understudy.logs.generators.generator import Generator
from understudy.logs.interactions import Interactions

# Canary i jumps between two actions that nobody else has; many others do little else than one action, so that
# what is kept of the shares of actions stands out from noise.
N_CANARIES = 100
N_GUESSES = 80
_ORDINARY = 4
_N_ORDINARY = 500
_ROWS = 20


def log_with(canaries: np.ndarray) -> Interactions:
    """The canaries whose coin shows 1, ordinary learners in place of the others, and ordinary ones beside."""
    rng = np.random.default_rng(5)
    ordinary = rng.choice(
        _ORDINARY, (len(canaries) + _N_ORDINARY, _ROWS), p=[0.85, 0.05, 0.05, 0.05]
    ).tolist()
    walks = [
        [_ORDINARY + 2 * i, _ORDINARY + 2 * i + 1] * (_ROWS // 2) if coin else ordinary[i]
        for i, coin in enumerate(canaries)
    ]
    walks += ordinary[len(canaries) :]
    outcomes = [[place % 2 for place in range(len(walk))] for walk in walks]
    actions = [f"action {i}" for i in range(_ORDINARY + 2 * len(canaries))]
    return Interactions.from_sequences(walks, outcomes, actions=actions).declare()


def epsilon_from_one_run(
    generator: Generator,
    rng: np.random.Generator,
    *,
    noise: object = None,
    delta: float = 0.0,
    error: float = 1e-3,
) -> float:
    """A lower bound of epsilon, right but for a chance of `error`, from one fit and one sample."""
    coins = toss(rng)
    fitted = generator.fresh().fit(log_with(coins), rng, noise)  # type: ignore[arg-type]
    # As many learners as can be had: what is sampled is post-processing, and only blurs what the fit knows.
    synthetic = fitted.sample(None if fitted.keeps_rows else 4000, rng)
    counts = np.zeros(_ORDINARY + 2 * N_CANARIES)
    place = np.array([int(name.split()[1]) for name in synthetic.actions], dtype=np.int64)
    np.add.at(counts, place[synthetic.action], 1)
    scores = counts[_ORDINARY:].reshape(N_CANARIES, 2).sum(axis=1)
    return epsilon_from_scores(coins, scores, rng, delta=delta, error=error)


def toss(rng: np.random.Generator) -> np.ndarray:
    """A coin for each canary."""
    return rng.integers(0, 2, N_CANARIES)


def epsilon_from_scores(
    coins: np.ndarray, scores: np.ndarray, rng: np.random.Generator, *, delta: float, error: float = 1e-3
) -> float:
    """The bound from a score per canary, high for those who seem to be in; ties are broken by chance."""
    # The most extreme ones are guessed, the others are left open.
    order = np.lexsort((rng.random(len(scores)), scores))
    low, high = order[: N_GUESSES // 2], order[-N_GUESSES // 2 :]
    n_right = int((coins[low] == 0).sum() + (coins[high] == 1).sum())
    return least_epsilon(n_right, N_GUESSES, error - 2 * N_CANARIES * delta)


def exam_with(coins: np.ndarray) -> Responses:
    """A learner and an item for each canary, who is right on that item alone, or on none; and others."""
    others = np.repeat([0, 1], 30)[:, None] * np.ones(len(coins))
    items = tuple(f"q{i}" for i in range(len(coins)))
    return Responses(np.vstack([np.diag(coins), others]).astype(np.int8), items, declared=True)


def cohort_with(coins: np.ndarray) -> Cohort:
    """A learner, a window and a week for each canary, who is active then, or never."""
    schema = Schema(n_weeks=len(coins) // len(Schema().features))
    values = np.zeros((len(coins), len(coins)))
    np.fill_diagonal(values, 30.0 * coins)
    label = (np.arange(len(coins)) % schema.n_labels).astype(np.int8)
    return Cohort(values.reshape(len(coins), schema.n_features, schema.n_weeks), label, schema)


def typing_with(coins: np.ndarray) -> tuple[Keystrokes, tuple[str, ...]]:
    """A learner and a digraph for each canary, who typed it, or one that nobody asks for; and the names of digraphs."""
    names = tuple(chr(0x4E00 + i) for i in range(len(coins) + 1))
    keys = [[i, i] if coin else [len(coins)] * 2 for i, coin in enumerate(coins)]
    zero = np.zeros(2 * len(coins), dtype=np.int32)
    typed = Keystrokes(
        np.array(keys, dtype=np.int32).ravel(),
        np.tile([0, 150_000_000], len(coins)),
        np.tile([False, True], len(coins)),
        np.arange(0, 2 * len(coins) + 1, 2),
        names,
        zero,
        zero,
    )
    return typed, tuple(f"{name} → {name}" for name in names[:-1])


def least_epsilon(n_right: int, n_guesses: int, error: float) -> float:
    """The smallest epsilon under which so many right guesses have a chance above `error`; 0 if guessing does."""

    def excess(epsilon: float) -> float:
        return float(binom.sf(n_right - 1, n_guesses, 1 / (1 + math.exp(-epsilon)))) - error

    return 0.0 if excess(0.0) >= 0 else float(brentq(excess, 0.0, 50.0))
