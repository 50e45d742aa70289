"""Timings: `make bench` runs the jobs and compares; the other files are programs of their own."""
