"""Generators that turn a log into a synthetic one."""
