"""Rebuilds the papers' tables."""
