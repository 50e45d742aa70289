"""Where files are kept for a while, and what a disk refuses."""
