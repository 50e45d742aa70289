"""Attacks: each tells its story and scores learners; a risk comes with interval and baseline."""

from understudy.attacks.audit import MEMBERSHIP_ATTACKS, attack, rehearse
from understudy.attacks.estimate import Risk, RiskEstimate

__all__ = ["MEMBERSHIP_ATTACKS", "Risk", "RiskEstimate", "attack", "rehearse"]
