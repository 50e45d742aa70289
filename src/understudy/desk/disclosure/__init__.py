"""Checks of a result before it leaves: trusted code, outside the sandbox, that counts learners and not rows."""
