"""What every attack reports: estimates with intervals, and what chance alone would give."""
