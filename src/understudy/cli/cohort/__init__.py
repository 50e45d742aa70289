"""The commands of `understudy cohort`."""
