"""The commands of `understudy keystrokes`."""
