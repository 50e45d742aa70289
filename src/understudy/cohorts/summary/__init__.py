"""The private summary of a cohort: what is measured, what it costs, its file."""
