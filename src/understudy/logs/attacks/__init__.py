"""Attacks on synthetic logs: each says what the attacker knows and scores learners."""
