"""Bytes to tables and back: reading without quoting a value, writing whole files or none."""
