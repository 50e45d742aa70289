"""Plain words for measured figures, the same on every page."""

from __future__ import annotations

from typing import TYPE_CHECKING

# For types alone: pages without a measured risk need no scipy.stats, which is slow to load.
if TYPE_CHECKING:
    from understudy.core.attacks.estimate import ChanceLevel, Risk

ATTACK_STORIES = {
    "lcs": "Looks for the longest synthetic sequence contained in what the learner did (as published).",
    "lcs-published": "Looks for the synthetic sequence nearest to what the learner did (as the authors compute it).",
    "lcs-expected": "Looks for a contained sequence just as long as leaving rows out would have made it.",
    "lcs-outcomes": "Looks for a contained sequence with the learner's own successes and failures.",
    "transitions": "Asks whether the synthetic learners make this learner's steps a little too often.",
    "transitions-outcomes": "Asks the same of steps with successes and failures: the density of the whole record.",
    "counts": "Asks whether each step is as frequent as it should be with this learner counted in, or without.",
    "rare": "Looks for steps that hardly anybody but this learner made.",
    "rare-bags": "Looks for mixes of actions that hardly anybody but this learner went through.",
    "tracing": "Asks whether the shares of actions lean towards what this learner did more than others.",
    "tracing-outcomes": "Asks whether success rates lean towards where this learner did better than expected.",
    "timing": "Looks for exact times and gaps that hardly anybody but this learner has.",
    "timing-likelihood": "Asks whether the learner's days, hours and pace are more probable than others make them.",
    "columns": "Looks for rows of the table of learners, and cells of rows, that hardly any other learner has.",
    "columns-likelihood": "Asks whether the learner's cells are more probable together than others make them.",
    "joint": "Weighs whole groups of learners: which of them together explain the steps of the synthetic log?",
    "joint-linear": "Weighs all learners at once: whose presence moved shares, lengths, outcomes, times and columns?",
    "pairwise": "Compares how far the log suits this learner, and how far others, with logs of refits (as RMIA does).",
    "shadow": "Plays the custodian many times, with the learner and without, and asks which fits better.",
    "stacked": "Weighs the scores of all attacks together, as a classifier learned to on refits.",
}

GUESSING = 0.5


def story(attack: str) -> str:
    """What an attack does, in one sentence; nothing for an attack without a story yet."""
    return ATTACK_STORIES.get(attack, "")


def in_100(share: float) -> str:
    """A chance as people count it: `74 times in 100`."""
    times = round(100 * share)
    if times == 100 and share < 1:
        return "more than 99 times in 100"
    return "once in 100" if times == 1 else f"{times} times in 100"


def of_100(share: float) -> str:
    """How many of 100, as a table of percents has it: with a digit more where it is few."""
    return f"{100 * share:.1f}".removesuffix(".0") if share < 0.0995 else f"{100 * share:.0f}"


def sentence(text: str) -> str:
    """A capital at the start and a full stop at the end."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def verdict(attack: str, auc: float, low: float, high: float) -> str:
    """How well the strongest attack does, as a figure and in plain words."""
    return (
        f"The strongest attack ({attack}) distinguishes members from others with AUC {auc:.2f} "
        f"({low:.2f} to {high:.2f}); "
        f"{GUESSING} would be guessing. In plain words: shown one member and one outsider, the attacker "
        f"picks the member {in_100(auc)}."
    )


def certainty(risk: Risk, chance: ChanceLevel) -> str:
    """What the attacks find when they must be careful, and whether luck explains the strongest of them.

    Everything is decided by the figures as they are printed, so that no sentence contradicts them.
    """
    auc, low, high, luck = (round(value, 2) for value in (risk.worst.auc, risk.low, risk.high, chance.high))
    found, usual, luck_found = (
        of_100(value) for value in (risk.most_found.tpr_at_1pct, chance.found, chance.found_high)
    )
    by_luck = f"by luck alone the best of these attacks finds {usual}, and in 95 of 100 draws no more than {luck_found}"
    careful = (
        f"Allowed one false alarm per 100 outsiders, the attack that finds most ({risk.most_found.attack}) finds "
        f"{found} of 100 members; {by_luck}."
    )
    if low <= GUESSING:
        return (
            f"{careful} The interval of the AUC reaches {GUESSING}: with so few learners the attack may do "
            f"better or worse than it looks."
            if high > 0.55
            else f"{careful} The interval of the AUC reaches {GUESSING}, so the attack was not shown to beat guessing."
        )
    if auc <= luck:
        return f"{careful} By luck alone the AUC of the strongest attack reaches {luck:.2f}, so this may be luck."
    return f"{careful} The interval of the AUC lies above {GUESSING}: this is more than luck."
