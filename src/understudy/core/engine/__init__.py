"""Runs independent pieces of work on this machine."""
