"""Plain words for measured figures, the same on every page."""

from __future__ import annotations

ATTACK_STORIES = {
    "lcs": "Looks for the longest synthetic sequence contained in what the learner did (as published).",
    "lcs-published": "Looks for the synthetic sequence nearest to what the learner did (as the authors compute it).",
    "lcs-expected": "Looks for a contained sequence just as long as leaving rows out would have made it.",
    "lcs-outcomes": "Looks for a contained sequence with the learner's own successes and failures.",
    "transitions": "Asks whether the synthetic learners make this learner's steps a little too often.",
    "counts": "Asks whether each step is as frequent as it should be with this learner counted in, or without.",
    "rare": "Looks for steps that hardly anybody but this learner made.",
    "rare-bags": "Looks for mixes of actions that hardly anybody but this learner went through.",
    "tracing": "Asks whether the shares of actions lean towards what this learner did more than others.",
    "tracing-outcomes": "Asks whether success rates lean towards where this learner did better than expected.",
    "joint": "Weighs whole groups of learners: which of them together explain the steps of the synthetic log?",
    "joint-linear": "Weighs all learners at once: whose presence moved shares, lengths, jumps and success rates?",
    "shadow": "Plays the custodian many times, with the learner and without, and asks which fits better.",
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


def certainty(low: float, high: float, tpr_at_1pct: float) -> str:
    """What the strongest attack finds when it must be careful, and what the interval allows to say."""
    found = round(100 * tpr_at_1pct)
    careful = (
        f"Allowed one false alarm per 100 outsiders, it finds {found} of 100 members; guessing finds one."
    )
    if low <= GUESSING:
        return (
            f"{careful} The interval reaches {GUESSING}: with so few learners the attack may do "
            f"better or worse than it looks."
            if high > 0.55
            else f"{careful} The interval reaches {GUESSING}, so the attack was not shown to beat guessing."
        )
    return f"{careful} The interval lies above {GUESSING}: this is more than luck."
