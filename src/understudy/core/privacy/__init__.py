"""Guarantees, the mechanisms that give them, and the ledger that adds them up."""
