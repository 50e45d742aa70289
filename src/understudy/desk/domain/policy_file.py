"""The policy as a file that explains itself, to start from."""

from __future__ import annotations

import textwrap
from dataclasses import fields

from understudy.desk.domain.policy import Policy

_HEAD = """# What may leave this desk. A line that is left out is as by default.
# A change here counts for data sets that are registered afterwards; for one that is there already:
#     understudy desk data policy NAME --file policy.toml
"""

WORDS = {
    "minimum_learners": "Learners (not rows) who have to stand behind every number.",
    "dominance_learners": "The n-k rule: so many learners together ...",
    "dominance_share": "... may not make up more than this share of a number.",
    "p_percent": "Nobody may work out another learner's part of a total more closely than this, in percent.",
    "minimum_freedom": "Residual degrees of freedom of a model: learners minus estimated numbers.",
    "most_numbers": "Numbers in one answer.",
    "most_output_bytes": "Size of one answer.",
    "most_code_bytes": "Size of submitted code.",
    "share_of_learners": "Warn when more numbers than this times the learners have been released: from as many "
    "numbers as learners, data can be reconstructed.",
    "mu_limit": "Limit of the measured price of everything released on a data set together, with its summary: mu ...",
    "advantage_limit": "... and how much better than guessing an attacker may tell whether the worst-placed learner "
    "is in the data (0: guessing, 1: always right).",
    "libraries": "What submitted code may import; other code is not taken.",
    "may_override": 'Checks whose "fail" a reviewer may release against, with a written reason. None by default; names '
    'are as on the page of a request, such as "extremes".',
    "run_seconds": "Time of one run of the code; it is run some thousand times.",
    "n_shadows": "Data sets that are drawn to measure the price. Fewer are faster, and the interval is wider.",
    "retention_days": "Outputs that were held and not released are deleted after so many days.",
}


def commented(policy: Policy) -> str:
    """The policy as TOML, with a comment for every line."""
    given = dict(line.split(" = ", 1) for line in policy.to_toml().splitlines())
    parts = [_HEAD]
    for one in fields(policy):
        words = textwrap.fill(WORDS[one.name], 100, initial_indent="# ", subsequent_indent="# ")
        parts.append(f"{words}\n{one.name} = {given[one.name]}\n")
    return "\n".join(parts)
