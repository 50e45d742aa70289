"""What a sweep works on: its options, the learners who typed enough, and the digraphs they have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from understudy.core.files.words import counted
from understudy.errors import DataError, UsageError
from understudy.keystrokes.keystrokes import Keystrokes
from understudy.keystrokes.latencies import count_latencies
from understudy.keystrokes.profiles import (
    ProfileSize,
    Split,
    by_sessions,
    by_weeks,
    enough_typed,
    most_common,
)
from understudy.keystrokes.traits.inference import TraitEstimate, infer_trait

# Digraphs for attackers who look at more than a profile has; only distributions of latencies gain from so many.
N_MANY = 300
# Digraphs from which a label is inferred.
N_TRAIT_FEATURES = 500

# Profiles and labels become an estimate per classifier.
Infer = Callable[[NDArray[np.float64], NDArray[np.int32], np.random.Generator], Mapping[str, TraitEstimate]]


@dataclass(frozen=True)
class SweepOptions(ProfileSize):
    """What a sweep tries: sizes from 0 to `largest` milliseconds."""

    largest: Annotated[float, "Largest size, in milliseconds."] = 750.0
    step: Annotated[float, "Nearest-profile attacks run at every such step."] = 10.0
    trained_step: Annotated[float, "Trained attackers and inference run at every such step."] = 50.0
    guesses: Annotated[str, "Numbers of guesses an attacker has; the advice is for the largest."] = "1,5,10"
    split: Annotated[
        Literal["weeks", "sessions"],
        "What is known and what is to be identified: earlier and last week, or sessions.",
    ] = "weeks"
    seed: Annotated[int, "Seed of everything left to chance."] = 1

    def __post_init__(self) -> None:
        if not 0 < self.step <= self.trained_step <= self.largest:
            raise UsageError(
                f"asked for sizes up to {self.largest:g} ms in steps of {self.step:g} ms, with trained attackers "
                f"every {self.trained_step:g} ms; each must be at most the next: step, trained step, largest.",
                hint="for example 10, 50 and 750 ms.",
                settings=("step", "trained_step", "largest"),
            )
        if not all(number.strip().isdigit() and int(number) > 0 for number in self.guesses.split(",")):
            raise UsageError(
                f"asked for '{self.guesses}' guesses.",
                hint="give whole numbers of 1 or more, such as 1,5,10.",
                settings=("guesses",),
            )

    @property
    def numbers_of_guesses(self) -> tuple[int, ...]:
        """How many guesses attackers have."""
        return tuple(int(number) for number in self.guesses.split(","))

    @property
    def most_guesses(self) -> int:
        """The guesses that the advice is for."""
        return max(self.numbers_of_guesses)

    @property
    def sizes(self) -> list[float]:
        """All sizes, from the finest."""
        return [float(size) for size in np.arange(0.0, self.largest + 1e-6, self.step)]

    def is_full(self, size: float) -> bool:
        """Whether attackers who learn, and the inference, run at this size."""
        steps = size / self.trained_step
        return abs(steps - round(steps)) < 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Course:
    """Learners who typed enough, with their typing split into what is known and what is to be identified."""

    keystrokes: Keystrokes
    labels: NDArray[np.int32] | None
    split: Split
    features: tuple[str, ...]
    many_features: tuple[str, ...]
    trait_features: tuple[str, ...]
    n_left_out: int
    infer: Infer = infer_trait


def prepare(keystrokes: Keystrokes, labels: NDArray[np.int32] | None, options: SweepOptions) -> Course:
    """Choose learners and features as Leinonen (2016) does; refuse where there are too few."""
    _refuse_at_once(keystrokes, options)
    # Without weeks there is no first one to ask for.
    by_week = options.split == "weeks"
    chosen = enough_typed(keystrokes, options.min_characters, first_week_only=by_week)
    split = _split(keystrokes.learners(chosen), options)
    counts = [np.bincount(side[side >= 0], minlength=len(chosen)) for side in (split.known, split.unknown)]
    chosen = chosen[(counts[0] > 0) & (counts[1] > 0)]
    _refuse_few(len(chosen), keystrokes.n_learners, options)
    kept = keystrokes.learners(chosen)
    split = _split(kept, options)
    known, unknown, whole = (
        count_latencies(kept, owner, kept.n_learners) for owner in (split.known, split.unknown, kept.learner)
    )
    common = most_common([known, unknown.named(known.features)], max(options.digraphs, N_MANY))
    features = tuple(known.features[j] for j in common[: options.digraphs])
    if not features:
        raise DataError(
            "no digraph is typed by half of the learners in both parts.",
            hint="ask for learners with more text.",
            settings=("min_characters",),
        )
    return Course(
        kept,
        None if labels is None else labels[chosen],
        split,
        features,
        tuple(known.features[j] for j in common[:N_MANY]),
        tuple(whole.features[j] for j in most_common([whole], N_TRAIT_FEATURES)),
        keystrokes.n_learners - len(chosen),
    )


def _split(keystrokes: Keystrokes, options: SweepOptions) -> Split:
    return by_weeks(keystrokes) if options.split == "weeks" else by_sessions(keystrokes)


def _refuse_at_once(keystrokes: Keystrokes, options: SweepOptions) -> None:
    """Refuse all that stands in the way of a sweep in one error, with the settings that would change it."""
    if keystrokes.n_learners < 2:
        raise DataError(
            f"a sweep asks which of several learners typed; here is {counted(keystrokes.n_learners, 'learner')}.",
            hint="give the typing of a class.",
            code="too-little-typing",
        )
    found: list[str] = []
    declare: dict[str, str] = {}
    split = options.split
    if split == "weeks" and (n_weeks := len(np.unique(keystrokes.week[keystrokes.week >= 0]))) < 2:
        found.append(f"the typing is of {counted(n_weeks, 'week')}, and a split by weeks needs two weeks")
        split = declare["split"] = "sessions"
    if split == "sessions" and keystrokes.session.max(initial=-1) < 1:
        found.append("no learner has two sessions, and a split by sessions needs them")
        declare["session"] = "COLUMN"
    n_needed = options.most_guesses + 1
    if keystrokes.n_learners < n_needed:
        found.append(
            f"an attacker with {options.most_guesses} guesses would name all {keystrokes.n_learners} learners"
        )
        declare["guesses"] = "1"
        n_needed = min(2, keystrokes.n_learners)
    by_week = split == "weeks"
    n_enough = len(enough_typed(keystrokes, options.min_characters, first_week_only=by_week))
    if n_enough < n_needed:
        found.append(
            f"{n_enough} of {keystrokes.n_learners} learners typed {options.min_characters} characters, and "
            f"at least {n_needed} are needed"
        )
        declare["min_characters"] = str(_fewer_characters(keystrokes, options, n_needed, by_week))
    if found:
        hint = "change these settings together"
        if "session" in declare:
            hint += ", with the column that tells one sitting from the next (such as the exercise)"
        raise DataError(
            f"this sweep cannot be run: {'; '.join(found)}.",
            hint=f"{hint}, or give a file with more typing.",
            code="too-little-typing",
            settings=tuple(declare),
            declare=declare,
        )


def _fewer_characters(keystrokes: Keystrokes, options: SweepOptions, n_needed: int, by_week: bool) -> int:
    """A number of characters, halved until enough learners typed as many: no learner's own number."""
    least = options.min_characters
    while least > 1 and len(enough_typed(keystrokes, least, first_week_only=by_week)) < n_needed:
        least //= 2
    return least


def _refuse_few(n_learners: int, n_all: int, options: SweepOptions) -> None:
    """Refuse where too few of those who typed enough did so on both sides of the split."""
    if n_learners <= options.most_guesses:
        raise DataError(
            f"{n_learners} of {n_all} learners typed {options.min_characters} characters and something on both sides "
            f"of the split; more than {options.most_guesses} are needed, because the attacker has as many guesses.",
            hint="allow fewer guesses"
            + ("." if n_learners == n_all else ", or include learners who typed less."),
            settings=("guesses",) if n_learners == n_all else ("guesses", "min_characters"),
        )
