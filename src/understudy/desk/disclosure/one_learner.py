"""Check for what a single learner decides, also one who is not there: the verdict has to be the same for both.

A statement about one learner is held when it is "yes", because it moves when they are left out. If "no" could leave, a
release would be as good as the answer. So the answer is judged beside those with a learner replaced by another from
the range of the data, and is held if one of them would be: a number, text or row that no absence changes and a
replacement does, a number that is missing then, an analysis that fails then, a group that one learner less would make
too small, and a learner who would move a number far more than any does now, so that it would cost more than the limits
of the price or be mostly theirs.

Learners with a missing value, with another number of rows, or with a value from far outside surprise honest code, too.
A single number or text that only they change is held; an entry among others that move, such as an empty class of a
histogram, is for a person, and so is code that fails then.

The check says what was tried, and no more. It cannot see values that the plan did not try: conditions on many columns
at once, values behind a hash or worked out from the data, several learners who have to change together differently.
A limit itself has an edge, too: for an attacker who knows how many others there are, a group that is one learner above
it tells that.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from understudy.core.files.words import counted
from understudy.desk.disclosure.influences import Flags, Influences, beyond_noise
from understudy.desk.disclosure.people_checks import MAX_SHARE_OF_INFLUENCE, in_columns
from understudy.desk.disclosure.probing import ReplacedAnswers
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import N_ROWS, Check, Floats

# A replaced learner who moves a number so many times as far as anybody who is there is not one like them.
MIN_JUMP = 2.0
# A price is measured up to the upper end of its interval: a jump counts below the limit already.
SHARE_OF_LIMIT = 0.8


def replacement(influences: Influences, replaced: ReplacedAnswers, policy: Policy) -> Check:
    """Whether the answer would be held with a learner replaced by another, so that it must be held without."""
    check = Check.about("replacement", influences.shown)
    usual, unusual = replaced.of_kinds("usual"), replaced.of_kinds("missing", "gap", "rows", "far")
    if n_failed := int(usual.failed.sum()):
        return check.fails(
            f"The analysis gives no answer in {counted(n_failed, 'run')} with a learner replaced by another from the "
            "range of the data: that it gives one reveals something about single learners."
        )
    if n_entries := _n_stated(influences, usual.entries, usual.differs | unusual.other_texts.any(axis=0)):
        return check.fails(
            f"{n_entries} texts, rows or names are the same whoever is left out, and others if a learner is replaced "
            "by another: they state something about single learners."
        )
    changed, listed = _changed(influences, unusual), _beside_others(influences)
    if stated := np.flatnonzero(_stated(influences, usual) | (changed & ~listed)).tolist():
        return check.fails(
            f"'{influences.shown[stated[0]]}' is the same whoever is left out, and another number, or missing, if a "
            "learner is replaced by another: it states something about single learners.",
            stated,
        )
    if few := np.flatnonzero(_too_few(influences, usual, policy.minimum_learners)).tolist():
        return check.fails(
            f"If one of the {influences.support[few[0]]} learners behind '{influences.shown[few[0]]}' were replaced by "
            f"another, fewer than {policy.minimum_learners} would be left: one learner decides whether it may leave.",
            few,
        )
    if jumps := np.flatnonzero(_jumps(influences, replaced, policy)).tolist():
        return check.fails(
            f"A learner who is replaced by another would move '{influences.shown[jumps[0]]}' far more than any does "
            "now, or it is another number if learners come in another order: the code adds something for some of them.",
            jumps,
        )
    if empty := np.flatnonzero(changed).tolist():
        return check.asks(
            f"'{influences.shown[empty[0]]}' is the same whoever is left out, and another number with a learner who "
            "has a value from far outside, no value, or another number of rows. It may be an empty class of a table of "
            "counts; see that it is no question about single learners.",
            empty,
        )
    if n_odd := _n_odd(influences, replaced.of_kinds("missing", "rows", "far")):
        return check.asks(
            f"In {counted(n_odd, 'run')} with a learner who has a value from far outside, no value, or another number "
            "of rows, the analysis gives no answer, or numbers or rows come or go: see that it does not ask for such a "
            "learner."
        )
    if not replaced.complete:
        return check.asks(
            "The code writes out more values than can be tried: see whether it compares single learners with them."
        )
    return check.passes(
        f"No learner who was tried decides anything ({counted(len(replaced.learners), 'run')} with other learners)."
    )


def _changed(influences: Influences, replaced: ReplacedAnswers) -> Flags:
    """(d,) numbers that a replacement changes to others, and no absence."""
    changed = beyond_noise(influences.probes.full[None, :], replaced.values).any(axis=0)
    return np.asarray(changed & ~influences.moved.any(axis=0))


def _beside_others(influences: Influences) -> Flags:
    """(d,) numbers of rows, and numbers in a list or column with some that learners move: a class of a histogram."""
    moved = np.asarray(influences.moved.any(axis=0))
    found = np.array([name.endswith(N_ROWS) for name in influences.names], dtype=bool)
    for column, places in in_columns(influences.names).items():
        found[places] |= bool(column) and bool(moved[places].any())
    return found


def _n_odd(influences: Influences, replaced: ReplacedAnswers) -> int:
    """Runs without an answer, and those in which a number or an entry comes or goes that no absence changes."""
    full, known = influences.probes.full, set(influences.probes.entries)
    gaps = (np.isnan(full)[None, :] != np.isnan(replaced.values)) & ~influences.gone.any(axis=0)
    new = np.array([entry not in known for entry in replaced.entries], dtype=bool)
    return int((replaced.failed | gaps.any(axis=1) | (replaced.differs & new).any(axis=1)).sum())


def _n_stated(influences: Influences, entries: Sequence[str], differs: Flags) -> int:
    """Texts, rows and names that only a replacement changes; those that an absence changes are looked at by `shape`."""
    known = set(influences.probes.entries)
    return sum(entries[place] not in known for place in np.flatnonzero(differs.any(axis=0)).tolist())


def _stated(influences: Influences, replaced: ReplacedAnswers) -> Flags:
    """(d,) numbers that only a replacement changes, and those that are there or missing by a replacement."""
    full = influences.probes.full
    # Where an absence makes it missing, other checks have seen that.
    gaps = (np.isnan(full)[None, :] != np.isnan(replaced.values)).any(axis=0)
    return np.asarray(_changed(influences, replaced) | (gaps & ~influences.gone.any(axis=0)))


def _too_few(influences: Influences, replaced: ReplacedAnswers, least: int) -> Flags:
    """(d,) numbers that rest on just enough learners, one of whom a replacement takes away."""
    found = np.zeros(len(influences.names), dtype=bool)
    if not influences.probes.one_by_one:
        return found
    for learners, values in zip(replaced.learners, replaced.values, strict=True):
        if len(learners) == 1:
            # Then the new learner is not behind the number: it is what it is without the old one.
            gone = ~beyond_noise(values, influences.probes.without_one[learners[0]])
            found |= influences.moved[learners[0]] & gone
    return np.asarray(found & (influences.support == least))


def _jumps(influences: Influences, replaced: ReplacedAnswers, policy: Policy) -> Flags:
    """(d,) numbers that a new learner would move far more than any learner does, or that go by learners' numbers."""
    sized, full = influences.sized, influences.probes.full
    found = np.zeros(len(influences.names), dtype=bool)
    if not influences.probes.one_by_one or len(sized) < 3:
        return found
    size = np.sort(np.abs(sized), axis=0)
    # The jackknife's standard error without the learner who moves it most: how far shadows of the others are apart.
    error = np.sqrt((size[:-1] ** 2).sum(axis=0))
    limit = SHARE_OF_LIMIT * _largest_mu(policy)
    in_order = np.array([not learners for learners in replaced.learners])
    # A split into folds by place is another one in every order. What goes by a learner's number takes a few values.
    by_number = np.array([_takes_few_values(column) for column in replaced.values[in_order].T], dtype=bool)
    runs = zip(replaced.learners, replaced.values, replaced.natural, replaced.kinds, strict=True)
    for learners, values, natural, kind in runs:
        with np.errstate(all="ignore"):
            moved = np.where(influences.by_ratio, np.log(values) - np.log(full), values - full)
        # The part of the new learners is what they change, and what the old ones had added. Another order adds none.
        part = np.abs(
            np.nan_to_num(moved + sized[list(learners)].sum(axis=0), nan=0.0, posinf=0.0, neginf=0.0)
        )
        unlike = part > MIN_JUMP * len(learners) * size[-1]
        most = part > MAX_SHARE_OF_INFLUENCE * (part + size.sum(axis=0))
        # A learner at the end of every range is far from all others, and moves an honest number far.
        if kind == "far" or (len(learners) > 1 and len(learners) >= policy.minimum_learners):
            # A value from far outside may move any number far. So many together are no single learner.
            continue
        counts = np.asarray(bool(learners) | by_number)
        found |= counts & unlike & (most | (natural & (part > limit * error)))
    return np.asarray(found & influences.moved.any(axis=0))


def _takes_few_values(values: Floats) -> bool:
    there = np.sort(values[~np.isnan(values)])
    return bool(1 + beyond_noise(there[1:], there[:-1]).sum() <= len(there) / 2)


def _largest_mu(policy: Policy) -> float:
    """The mu that the policy's limits allow; an advantage of a is a mu of twice the normal quantile of (1 + a) / 2."""
    if policy.advantage_limit >= 1:
        return policy.mu_limit
    return min(policy.mu_limit, 2 * NormalDist().inv_cdf((1 + policy.advantage_limit) / 2))
