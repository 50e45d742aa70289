"""When an output may leave: the thresholds and limits of a project, from its policy file, and the verdict by them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

from understudy.core.files.documents import ContractError, contract, read_toml
from understudy.desk.domain.results import Check
from understudy.errors import RefusedError

LIBRARIES = (
    *("pandas", "numpy", "scipy", "statsmodels", "sklearn", "lingam"),
    *("collections", "dataclasses", "datetime", "functools", "itertools", "math", "re", "statistics", "typing"),
    "warnings",
)  # fmt: skip
_HEAD = """# What may leave this desk. A line that is left out is as by default.
# A change here counts for data sets that are registered afterwards; `understudy desk data policy` changes the limits
# of one that is there already.
"""


def _key(default: Any, comment: str) -> Any:
    """A key of the policy file with its default and its comment."""
    return field(default=default, metadata={"comment": comment})


@dataclass(frozen=True)
class Policy:
    """Thresholds for the checks, limits for the price, and what a request may use.

    Counts are of learners, never of rows. mu and advantage are limits of the measured price of everything that
    was released about the data set together, stage one included.
    """

    __pydantic_config__: ClassVar = contract()

    minimum_learners: int = _key(10, "Learners (not rows) who have to be behind every number.")
    dominance_learners: int = _key(2, "The n-k rule: so many learners together ...")
    dominance_share: float = _key(0.5, "... may not make up more than this share of a number.")
    p_percent: float = _key(
        10.0, "No learner may work out another learner's part of a total more closely than this, in percent."
    )
    minimum_freedom: int = _key(
        10, "Residual degrees of freedom of a model: learners minus estimated numbers."
    )
    most_numbers: int = _key(200, "Numbers in one answer.")
    most_output_bytes: int = _key(200_000, "Size of one answer.")
    most_code_bytes: int = _key(100_000, "Size of submitted code.")
    share_of_learners: float = _key(
        1.0,
        "Warn when more numbers than this times the learners have been released: from as many numbers as learners, "
        "data can be reconstructed.",
    )
    # Above what `n_shadows` can show (`most_mu`) it holds nothing back, and every output is for a reviewer.
    mu_limit: float = _key(
        1.5,
        "Limit of the measured price of everything released on a data set together, with its summary: mu ...",
    )
    advantage_limit: float = _key(
        0.5,
        "... and how much better than guessing an attacker may know whether the worst-placed learner is in the data "
        "(0: guessing, 1: always right).",
    )
    # By an import statement; against everything else there is the sandbox.
    libraries: tuple[str, ...] = _key(LIBRARIES, "What submitted code may import; other code is not taken.")
    may_override: tuple[str, ...] = _key(
        (),
        'Checks whose "fail" a reviewer may release against, with a written reason. None by default; names are as on '
        'the page of a request, such as "extremes".',
    )
    run_seconds: float = _key(10.0, "Time of one run of the code; it is run some thousand times.")
    n_shadows: int = _key(
        2800, "Data sets that are drawn to measure the price. Fewer are faster, and the interval is wider."
    )
    retention_days: int = _key(30, "Outputs that were held and not released are deleted after so many days.")
    private_epsilon: float = _key(
        1.0, "The largest epsilon of one request with private questions, whose answers carry a guarantee ..."
    )
    private_epsilon_total: float = _key(
        5.0, "... and of all of them on a data set together, composed as the ledger composes."
    )
    private_without_review: bool = _key(
        False,
        "Whether private questions within these limits are answered without a person: true or false. With false a "
        "reviewer approves the questions; the answers then leave without a second decision.",
    )

    def __post_init__(self) -> None:
        for key in fields(self):
            value = getattr(self, key.name)
            if isinstance(value, int | float) and not isinstance(value, bool) and not value > 0:
                raise ContractError(
                    f"`{key.name}` is not above 0.",
                    hint="give a number above 0, or leave the line out.",
                    key=key.name,
                )
        for name in ("dominance_share", "advantage_limit"):
            if getattr(self, name) > 1:
                raise ContractError(f"`{name}` is above 1.", hint="1 is the most.", key=name)

    @classmethod
    def read(cls, path: Path) -> Policy:
        """The policy of a TOML file; keys that it leaves out have their defaults."""
        return read_toml(path, cls, hint="`understudy desk init` writes one to start from.")

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Policy:
        """As `to_json` wrote it."""
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
        }
        return cls(**given)

    def to_json(self) -> dict[str, Any]:
        """For the store."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()
        }

    def to_toml(self) -> str:
        """The policy as a file, every line with a comment."""
        parts = [_HEAD]
        for key in fields(self):
            comment = textwrap.fill(key.metadata["comment"], 100, initial_indent="# ", subsequent_indent="# ")
            value = getattr(self, key.name)
            parts.append(f"{comment}\n{key.name} = {_in_toml(value)}\n")
        return "\n".join(parts)

    def verdict(
        self, checks: Sequence[Check], prices: Mapping[str, Any] | None, *, out_of_date: bool = False
    ) -> Verdict:
        """Whether a result may leave, by its checks and by its prices (`Prices.to_json`; None: not priced).

        The limits hold for the upper ends of what everything together was measured to cost, and are final. A failed
        check is final unless the policy lets reviewers override it.
        """
        found = []
        if prices is None:
            found.append(Objection(Grounds.NOT_PRICED, final=True))
        else:
            for measure, limit in self.limits.items():
                upper_end = float(prices["together"][measure]["high"])
                # NaN is over the limit as well.
                if not upper_end <= limit:
                    found.append(Objection(Grounds.OVER_LIMIT, measure, True, upper_end, limit))
        failed = [check.name for check in checks if check.verdict == "fail"]
        found += [Objection(Grounds.FAILED, name, True) for name in failed if name not in self.may_override]
        if out_of_date and prices is not None:
            found.append(Objection(Grounds.OUT_OF_DATE, final=True))
        found += [Objection(Grounds.FAILED, name) for name in failed if name in self.may_override]
        found += [Objection(Grounds.REVIEW, check.name) for check in checks if check.verdict == "review"]
        return Verdict(tuple(found))

    @property
    def limits(self) -> dict[str, float]:
        """Limits of the price of everything released together, by measure."""
        return {"mu": self.mu_limit, "advantage": self.advantage_limit}


def _in_toml(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(f'"{part}"' for part in value) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


class Grounds(StrEnum):
    """The grounds of objections to a release; also the codes of the refusals."""

    NO_RESULT = "no-result"
    NOT_PRICED = "not-priced"
    OVER_LIMIT = "over-limit"
    FAILED = "check-failed"
    OUT_OF_DATE = "out-of-date"
    REVIEW = "reason-missing"


@dataclass(frozen=True)
class Objection:
    """An objection to a release; if it is not final, a written reason answers it."""

    grounds: Grounds
    name: str = ""
    """Of the check, or of the measure that is over its limit."""
    final: bool = False
    upper_end: float = 0.0
    limit: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """Whether an output may leave: the one decision that pages show and that the desk and its ledger enforce."""

    objections: tuple[Objection, ...] = ()

    @property
    def may_release(self) -> bool:
        """Whether a reviewer may release it."""
        return not any(objection.final for objection in self.objections)

    @property
    def needs_reason(self) -> bool:
        """Whether the reviewer has to write a reason."""
        return bool(self.objections)

    def has(self, grounds: Grounds) -> bool:
        """Whether there is an objection on these grounds."""
        return any(objection.grounds is grounds for objection in self.objections)

    def names(self, grounds: Grounds, *, final: bool | None = None) -> list[str]:
        """Checks or measures of the objections on these grounds."""
        return [
            objection.name
            for objection in self.objections
            if objection.grounds is grounds and final in (None, objection.final)
        ]

    def enforce(self, reason: str) -> None:
        """Raise unless the output may leave with this reason."""
        for objection in self.objections:
            if objection.final:
                raise _refusal(objection)
        if self.needs_reason and len(reason.split()) < 3:
            raise RefusedError(
                "some checks ask for review, and no reason was written.",
                hint="write in a sentence why it may leave.",
                code=Grounds.REVIEW,
            )


NO_RESULT = Verdict((Objection(Grounds.NO_RESULT, final=True),))


def _refusal(objection: Objection) -> RefusedError:
    what = (
        "everything released would cost mu"
        if objection.name == "mu"
        else "the worst-placed learner's advantage would be"
    )
    nothing = "this request has no output that could be released.", "withhold it, or return it."
    message, hint = {
        Grounds.OVER_LIMIT: (
            f"with this answer {what} {objection.upper_end:.2f}; the limit is {objection.limit:.2f}.",
            "withhold it; a smaller or more robust analysis may cost less.",
        ),
        Grounds.FAILED: (
            f"the check '{objection.name}' failed, and the policy allows no release against it.",
            "withhold the output, and write to the researcher what to change.",
        ),
        Grounds.OUT_OF_DATE: (
            "since this answer was priced, another was released, a learner withdrew or the code changed: "
            "its price is not what it would cost now.",
            "run it again, and decide by the new price.",
        ),
    }.get(objection.grounds, nothing)
    return RefusedError(message, hint=hint, code=objection.grounds, name=objection.name)
