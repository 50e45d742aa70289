"""Times and declared columns: what is found with them, and what they cost."""
