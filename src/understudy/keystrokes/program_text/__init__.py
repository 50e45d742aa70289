"""Text of programs with fewer identifiers: tokens, what to replace, consistent replacement, a report.

`scrub_texts` replaces in the texts of one learner; `files` reads and writes files, folders and
tables. What remains in a scrubbed program (structure, style, the words of names that were not
declared, how it was typed) can still identify its author: docs/explanation/scrubbing.md.
"""

from understudy.keystrokes.program_text.people import Addresses, People
from understudy.keystrokes.program_text.replacements import Replacements
from understudy.keystrokes.program_text.scrubbing import DEFAULT, KINDS, Report, Scrubbed, Wanted, scrub_texts

__all__ = [
    "DEFAULT",
    "KINDS",
    "Addresses",
    "People",
    "Replacements",
    "Report",
    "Scrubbed",
    "Wanted",
    "scrub_texts",
]
