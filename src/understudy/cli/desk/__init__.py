"""The commands of `understudy desk`."""
