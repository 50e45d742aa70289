"""Exams: private item difficulties, and what a student can compute from them at home."""
