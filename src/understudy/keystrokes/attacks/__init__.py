"""Attacks that identify the person who typed."""
