"""Keystrokes to latencies to typing profiles; coarser ones for release; text without names."""
