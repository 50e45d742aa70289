"""Joins an activity log and a list of scores to learners with minutes and a score, with counts of what was left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.cohorts.building.activity import Activity
from understudy.cohorts.building.scores import Match, Scores, match_scores
from understudy.cohorts.building.sessions import (
    Rule,
    Sessions,
    Term,
    check_windows,
    find_sessions,
    hours_in_words,
    hours_without_window,
    minutes_per_week,
)
from understudy.cohorts.cohort import Cohort
from understudy.cohorts.schema import CutsSource, Feature, Schema
from understudy.core.files.people.withdrawals import Withdrawn
from understudy.core.files.source import refuse_guesses
from understudy.core.files.words import counted
from understudy.errors import DataError

# From scores to the cuts between labels.
ChooseCuts = Callable[[NDArray[np.float64]], tuple[float, ...]]


@dataclass(frozen=True)
class Counts:
    """What went into a cohort and what did not: measured on the learners, so kept inside."""

    events: int
    events_outside: int
    sessions: int
    without_events: int
    without_events_kept: bool
    not_listed: int
    listed_without_score: int
    withdrawn: int
    scores_cut: int
    cells_cut: int
    minutes_without_window: float


@dataclass(frozen=True, repr=False)
class Joined:
    """Learners with minutes and a score, before they are binned."""

    minutes: NDArray[np.float64]
    scores: NDArray[np.float64]
    schema: Schema
    simulated: bool
    counts: Counts
    notes: tuple[str, ...]

    @property
    def n_learners(self) -> int:
        """Number of learners."""
        return len(self.scores)

    def binned(
        self, choose: ChooseCuts | None = None, source: CutsSource = "declared", epsilon: float | None = None
    ) -> Cohort:
        """The cohort, by the declared cuts or by those that `choose` finds in the scores, at the price `epsilon`."""
        schema = self.schema
        if choose is not None:
            schema = replace(schema, cuts=choose(self.scores), cuts_source=source, cuts_epsilon=epsilon)
        return Cohort(self.minutes, schema.bin(self.scores), schema, simulated=self.simulated)


def join(
    activity: Activity,
    scores: Scores,
    schema: Schema,
    term: Term,
    *,
    rule: Rule = Rule(),  # noqa: B008 (frozen)
    match: Match = Match.name,
    keep_without_events: bool = True,
    withdrawn: Withdrawn | None = None,
    simulated: bool = False,
) -> Joined:
    """The learners of the list of scores, with their minutes; in the order of the list.

    A learner without an event did nothing, and is kept with zeros unless asked otherwise. A learner without a
    score has no label and is left out, and the schema states that some were: the number of learners is public.
    """
    check_windows(schema)
    in_term = term.contains(activity.time)
    if not in_term.any():
        raise DataError(
            f"none of {activity.n_events} events lies in the {schema.n_weeks} weeks from {term.start} on.",
            hint="check when the term starts, and `weeks` in cohort.toml.",
            settings=("term_start",),
        )
    matched = match_scores(activity, scores, match)
    if matched.ambiguous:
        # Taken for learners without an event they would be in the cohort with zeros that are not theirs.
        first = scores.places[matched.ambiguous[0]] if scores.places else f"score {matched.ambiguous[0] + 1}"
        raise DataError(
            f"{counted(len(matched.ambiguous), 'name')} of the list of scores could be several learners of the log, or "
            f"share one with another name (first on {first}).",
            hint="names are compared but for case, spaces and leading zeros, or by the number in them: write these "
            "names in both files so that they differ, or choose other columns.",
            settings=("match", "learner", "scores_learner"),
        )
    keep = np.ones(len(scores.values), dtype=bool)
    notes: list[str] = []
    n_withdrawn = 0
    if withdrawn is not None:
        known = activity.names.gather(np.maximum(matched.position, 0))
        alias = pl.select(
            pl.when(pl.Series(matched.position >= 0)).then(known).otherwise(scores.names)
        ).to_series()
        rows = pl.int_range(len(keep), eager=True)
        frame = pl.DataFrame({"learner": scores.names, "alias": alias, "row": rows})
        left = withdrawn.leave_out(frame, "learner")
        keep = np.zeros(len(keep), dtype=bool)
        keep[left.frame["row"].to_numpy()] = True
        n_withdrawn = left.n_learners
        notes.append(left.note)
        refuse_guesses(left.guesses)
    active = np.zeros(activity.n_learners, dtype=bool)
    active[activity.learner[in_term]] = True
    has_events = (matched.position >= 0) & active[np.maximum(matched.position, 0)]
    without_events = int((keep & ~has_events).sum())
    if not keep_without_events:
        keep &= has_events
    if not keep.any():
        raise DataError("no learner is left.", hint="keep learners without events, or check the term.")
    sessions = find_sessions(activity.learner, activity.time, rule)
    minutes = minutes_per_week(sessions, activity.n_learners, schema, term)
    position = matched.position[keep]
    values = np.where(position[:, None, None] >= 0, minutes[np.maximum(position, 0)], 0.0)
    low, high = schema.score_bounds
    chosen = scores.values[keep]
    counts = Counts(
        events=activity.n_events,
        events_outside=int((~in_term).sum()),
        sessions=_n_sessions(sessions, position, term),
        without_events=without_events,
        without_events_kept=keep_without_events,
        not_listed=matched.n_not_listed,
        listed_without_score=scores.n_without,
        withdrawn=n_withdrawn,
        scores_cut=int(((chosen < low) | (chosen > high)).sum()),
        cells_cut=int((values > schema.highs[None, :, None]).sum()),
        minutes_without_window=_minutes_without_window(sessions, position, values, schema, term),
    )
    return Joined(
        values,
        np.clip(chosen, low, high),
        replace(schema, without_score="dropped") if counts.listed_without_score else schema,
        simulated,
        counts,
        (*([term.note] if term.note else []), *notes, *_sentences(counts, schema)),
    )


def even_cuts(scores: NDArray[np.float64], n_groups: int) -> tuple[float, ...]:
    """Cuts that split these scores evenly: a function of the data that no guarantee covers."""
    shares = np.arange(1, n_groups) / n_groups
    cuts = np.quantile(scores, shares, method="higher")
    if len(np.unique(cuts)) < len(cuts) or cuts[0] <= scores.min():
        raise DataError(
            f"the scores cannot be split into {n_groups} groups: too many are the same.",
            hint="declare fewer `labels`, or `cuts`, in cohort.toml.",
        )
    return tuple(float(cut) for cut in cuts)


def _sentences(counts: Counts, schema: Schema) -> list[str]:
    kept = "kept with zeros" if counts.without_events_kept else "dropped"
    sentences = (
        (counts.events_outside, "event", "outside the term, not counted"),
        (counts.without_events, "learner", f"with a score and no event in the term, {kept}"),
        (counts.not_listed, "learner", "of the log not in the list of scores, left out"),
        (counts.listed_without_score, "learner", "of the list without a score, left out"),
        (counts.scores_cut, "score", "beyond the declared bounds, cut to them"),
        (counts.cells_cut, "weekly value", "beyond the declared bound of the feature, cut to it"),
    )
    found = [f"{counted(number, what)} {text}." for number, what, text in sentences if number]
    open_hours = hours_without_window(schema)
    if len(open_hours):
        found.append(
            f"{counted(len(open_hours), 'hour')} of the day ({hours_in_words(open_hours)}) in no window: what happens "
            f"then is not counted. That was {counted(round(counts.minutes_without_window), 'minute')} of these "
            "learners (internal: a fact about them, not for release)."
        )
    return found


def _n_sessions(sessions: Sessions, learners: NDArray[np.int64], term: Term) -> int:
    """Sessions of these learners that begin or end in the term."""
    theirs = np.isin(sessions.learner, learners[learners >= 0])
    return int((theirs & (term.contains(sessions.start) | term.contains(sessions.end))).sum())


def _minutes_without_window(
    sessions: Sessions, learners: NDArray[np.int64], values: NDArray[np.float64], schema: Schema, term: Term
) -> float:
    if not len(hours_without_window(schema)):
        return 0.0
    some = learners[learners >= 0]
    day = replace(schema, features=(Feature("all hours", 1.0, hours=(0, 24)),))
    whole = minutes_per_week(sessions, int(sessions.learner.max(initial=0)) + 1, day, term)
    return max(float(whole[some[some < len(whole)]].sum() - values.sum()), 0.0)
