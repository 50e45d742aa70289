"""Guarantees, and the ledger that adds them up."""

from understudy.privacy.guarantee import Guarantee

__all__ = ["Guarantee"]
