"""What can be wrong with a script: a kind from a fixed list and a line, and nothing that the script said.

A finding is sent back to whoever wrote the script and is kept in the report, so it has no room
for a message, a value or a name that a script chose.
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass

ENTRY = "generate"
PARAMETERS = ("n", "label", "summary", "rng")
ALLOWED_IMPORTS = ("numpy", "pandas", "scipy", "math", "typing", "dataclasses")
LONGEST_SCRIPT = 100_000

# What each kind asks of the author.
KINDS = {
    # Found by reading the answer (`checks`).
    "NoScript": "the answer has to hold the script in one fenced block that begins with ```python",
    "TooLong": f"the script has to be shorter than {LONGEST_SCRIPT:,} characters",
    "SyntaxError": "the script has to be valid Python 3.11",
    "WrongEntry": f"there has to be one function {ENTRY}({', '.join(PARAMETERS)}) and no other of this name",
    "ForbiddenImport": f"only {', '.join(ALLOWED_IMPORTS)} may be imported",
    "ForbiddenName": "names that reach files, other programs or the interpreter itself are not allowed",
    "ForbiddenAttribute": "attributes that begin with an underscore, or read and write files, are not allowed",
    "ForbiddenString": "strings may not name attributes with two underscores",
    "ForbiddenStatement": "outside functions only a docstring, imports, constants without calls and plain classes "
    "are allowed; no decorators but dataclass and property, no global statements, no special methods",
    "OtherRandomness": "all chance has to come from the argument rng (scipy: random_state=rng)",
    # Found by running the script.
    "TimedOut": "1,000 rows have to take less than 10 seconds",
    "TooMuchMemory": "1,000 rows have to take less than 500 MB",
    "Stopped": "the script did something that the sandbox does not allow",
    # Found in the table (`tables`).
    "NoTable": "generate has to return a pandas.DataFrame",
    "WrongColumns": "the table has to have exactly the columns of the schema, each once",
    "WrongNumberOfRows": "the table has to have exactly n rows",
    "NotANumber": "every value has to be a finite number",
    "OutOfBounds": "every value has to lie between 0 and the feature's bound",
    "Constant": "the rows have to differ from each other",
    "NotDeterministic": "the same rng state has to give the same table",
}

# Errors that Python and the allowed libraries define; a script may call its own error anything.
_KNOWN_ERRORS = frozenset(
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)
) | {"LinAlgError", "AxisError", "InvalidIndexError", "MergeError", "EmptyDataError"}


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, and in which line (None: in no line of its own)."""

    kind: str
    line: int | None = None

    @classmethod
    def of_error(cls, error_type: str | None, line: int | None) -> Finding:
        """The error that a script ended with; a name that is not known is not repeated."""
        return cls(error_type if error_type in _KNOWN_ERRORS and error_type else "Error", line)

    @property
    def advice(self) -> str:
        """What the author has to change."""
        return KINDS.get(self.kind, "the script has to run without an error")

    def __str__(self) -> str:
        return self.kind if self.line is None else f"{self.kind} in line {self.line}"
