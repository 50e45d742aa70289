"""Caveats of a summary: what went into it beside its own measurement.

Files of before name a caveat by its sentence, so a sentence can only change together with its old form.
"""

from __future__ import annotations

from understudy.cohorts.schema import DROPPED, UNSCORED
from understudy.core.privacy.guarantee import Caveat

# Of an earlier summary that this ledger charged, and of one that it does not know.
PREVIOUS = Caveat(
    "earlier-summary",
    "this epsilon covers this year's learners, through this measurement only; the numbers also hold an earlier "
    "summary, whose learners were charged in their own year, and whoever is in both bears both",
    "for this year's learners only; an earlier summary is in it",
)
PREVIOUS_CLAIMED = Caveat(
    "earlier-summary-claimed",
    "this epsilon covers this year's learners, through this measurement only; the numbers also hold an earlier "
    "summary, which no ledger here knows: that its learners were charged, and were other ones, is as its file claims",
    "for this year's learners only; an earlier summary that no ledger here knows is in it",
)
FEEDBACK = Caveat(
    "feedback",
    "suggestions from validation were used: that feedback came from real data without noise, and no epsilon covers "
    "the learners it is about",
    "feedback from validation is in it without one",
)
# Of a guarantee that was read: that the numbers were noisy cannot be seen on them.
FROM_FILE = Caveat(
    "from-file",
    "as the file claims (that its stated noise is enough for this was checked; that it was drawn cannot be)",
    "as the summary's file states",
)
EARLIER_FROM_FILE = Caveat(
    "earlier-summary-from-file",
    "of the earlier summary: as its file claims (that its stated noise is enough was checked; that it was drawn cannot "
    "be)",
    "of the earlier summary: as its file states",
)

KNOWN = (PREVIOUS, PREVIOUS_CLAIMED, EARLIER_FROM_FILE, FEEDBACK, DROPPED, UNSCORED, FROM_FILE)
