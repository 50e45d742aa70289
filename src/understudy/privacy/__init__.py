"""Guarantees, the mechanisms that give them, and the ledger that adds them up."""

from understudy.privacy.guarantee import Guarantee
from understudy.privacy.ledger import Ledger

__all__ = ["Guarantee", "Ledger"]
