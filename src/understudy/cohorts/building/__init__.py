"""From events and scores to a cohort."""
