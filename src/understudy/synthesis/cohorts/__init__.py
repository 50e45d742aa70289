"""Synthetic cohorts from a private summary: what is measured, what it costs, who writes the generators."""
