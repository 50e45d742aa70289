"""Understudy: share what learners' data can teach without sharing the learners."""

__version__ = "0.1.0"
