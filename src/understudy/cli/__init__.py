"""The command line: one module per verb, each parses, calls and prints.

Nothing heavy is imported here, so that help answers at once.
"""

from understudy.cli.app import main

__all__ = ["main"]
