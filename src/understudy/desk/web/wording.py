"""The desk in plain words: what a state means, what happens next, what a check or a policy asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from understudy.core.files.words import counted
from understudy.desk.domain.people import Person, Role
from understudy.desk.domain.policy import Policy

if TYPE_CHECKING:
    from understudy.logs.declared.columns import Declared

# The sentence that confirms an action, by the code that stands in the address of the page.
CONFIRMATIONS = {
    "drafted": "Your draft is saved. Only you can see it until you submit it.",
    "edited": "Your changes are saved.",
    "submitted": "Submitted. The code runs on the synthetic data first.",
    "withdrawn": "The request is withdrawn.",
    "approved": "Approved. The code will run on the real data; this releases nothing.",
    "answered": "Approved. The ledger is charged, and the answers leave with their guarantee.",
    "returned": "The request went back to its researcher.",
    "refused": "The request is refused, and its researcher can read why.",
    "cancelled": "The run is cancelled. The request waits for review again.",
    "release": "You released it. The ledger is charged, and then the researcher sees the result.",
    "withheld": "The output is withheld and deleted.",
    "again": "The code runs and is priced again.",
    "reported": "Thank you. What you reported helps to improve the synthetic data.",
    "signed-out": "You are signed out.",
    "password": "Your password is set.",
    "invited": "The person is invited.",
    "changed": "The change is saved.",
    "revoked": "The token no longer works.",
}


# What a page calls the data on which code runs, if the learners are simulated.
_SIMULATED = "the simulated data that stands in for the real data"


def of_data(text: str, simulated: bool) -> str:
    """The text as it is said of simulated learners, whose data is not real."""
    return text.replace("the real data", _SIMULATED) if simulated else text


@dataclass(frozen=True)
class CheckText:
    """A check for a reader: its title, and what holds if it passes."""

    title: str
    holds: str


CHECKS = {
    "learners": CheckText("Enough learners", "Enough learners are behind every number."),
    "dominance": CheckText("No learner dominates", "No one or two learners make up most of a number."),
    "freedom": CheckText("Degrees of freedom", "There are enough learners for what the model estimates."),
    "extremes": CheckText(
        "Extremes and quantiles", "No number is the value of a single learner, or close to it."
    ),
    "individuals": CheckText("No table of learners", "No table has a row for each learner."),
    "digits": CheckText("Digits", "There are no more digits than the number of learners supports."),
    "size": CheckText("Size of the output", "There are no more numbers or bytes than the policy allows."),
    "shape": CheckText(
        "Names and shape", "Names, texts and the shape of tables do not depend on single learners."
    ),
    "differencing": CheckText(
        "Difference to earlier results",
        "This result and an earlier one together do not give a few learners away.",
    ),
    "reconstruction": CheckText(
        "Numbers released so far", "Too few numbers have been released to reconstruct data from them."
    ),
    "shadows": CheckText(
        "Same on drawn data",
        "On data drawn from the learners the code behaves as on the learners themselves.",
    ),
    "price": CheckText("Reach of the price", "Can the price come near the policy's limit at all?"),
    "consistency": CheckText(
        "Same code for all runs", "The code does not behave differently when it sees all learners."
    ),
    "replacement": CheckText(
        "No learner decides", "No learner who was tried in another's place changes the verdict."
    ),
    "others": CheckText("Other releases", "The price leaves out no release about these learners."),
}


def check_text(name: str) -> CheckText:
    """What a check is about."""
    return CHECKS.get(name) or CheckText(name.replace("_", " ").capitalize(), "")


def severity(verdict: str) -> int:
    """The rank of a verdict, the worst first."""
    return ("fail", "review", "pass").index(verdict)


def menu(person: Person) -> list[tuple[str, str]]:
    """The main menu of a person."""
    found = [("/", "Waiting"), ("/requests", "Requests"), ("/data", "Data")]
    if person.role is Role.CUSTODIAN:
        found.append(("/people", "People"))
    return found


def is_here(path: str, address: str) -> bool:
    """Whether a page belongs to an entry of the menu."""
    return path == address if address == "/" else path == address or path.startswith(address + "/")


def sentence(text: str) -> str:
    """The text with a capital and a full stop: errors begin with a small letter."""
    text = text.strip()
    if not text:
        return text
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")


def everything(n_released: int, stage_one: bool) -> str:
    """What the price of everything counts."""
    first = "stage one (the private summary that the synthetic data was made from)"
    if not n_released:
        before = (
            f"Nothing was released before, but {first} counts"
            if stage_one
            else ("Nothing was released before, and no stage one is registered")
        )
        return (
            f"Everything is {first} and this answer. {before}."
            if stage_one
            else f"{before}: everything is this answer."
        )
    answers = f"{counted(n_released, 'request')} released before, those being released included"
    return (
        f"Everything is {first}, {answers}, and this answer."
        if stage_one
        else (f"Everything is {answers}, and this answer; no stage one is registered.")
    )


def size(n_numbers: int, n_tables: int) -> str:
    """How many numbers an answer has, as the checks count them."""
    if not n_tables:
        return counted(n_numbers, "number")
    rows = "the number of rows of its table" if n_tables == 1 else "the number of rows of each table"
    return f"{counted(n_numbers, 'number')} ({rows} counts as one)"


def guaranteed(guarantee: Mapping[str, Any]) -> str:
    """What a guarantee says, in sentences."""
    delta = f", delta {guarantee['delta']:.0e}" if guarantee["delta"] else ""
    return (
        f"Epsilon {guarantee['epsilon']:g}{delta}: had any one learner been another, every answer would be nearly as "
        f"likely (differential privacy; unit: {guarantee['unit']}; {guarantee['adjacency']})."
    )


def widths(expected: float, n_learners: int) -> str:
    """How wide intervals will be, before anything is spent."""
    share = f"{100 * min(expected, 1.0):.0f} %"
    useless = " That is too wide to be of use: ask less, or with a larger EPSILON." if expected > 0.5 else ""
    return (
        f"To be expected on the real data of {counted(n_learners, 'learner')}: intervals of up to {share} of what was "
        f"possible before.{useless}"
    )


def p_value(value: float | None) -> str:
    """A p-value as people write it."""
    if value is None:
        return "p is lost in the noise"
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def holds(column: Declared) -> str:
    """What is public about a column."""
    if column.bounds is not None:
        low, high = column.bounds
        return f"{column.kind.value}, {low:g} to {high:g}{f' {column.unit}' if column.unit else ''}"
    return f"{column.kind.value}: {', '.join(column.names)}"


def policy_lines(policy: Policy, spent: float = 0.0) -> list[tuple[str, str]]:
    """What a policy asks for, as title and sentence; `spent` is the epsilon of private answers so far."""
    override = ", ".join(check_text(name).title.lower() for name in policy.may_override)
    return [
        ("Behind every number", f"at least {policy.minimum_learners} learners, counted by the desk itself"),
        (
            "Dominance",
            f"{counted(policy.dominance_learners, 'learner')} together make up at most "
            f"{policy.dominance_share:.0%} of a number; no learner can work out another's share of a total to within "
            f"{policy.p_percent:g} %",
        ),
        (
            "Models",
            f"at least {policy.minimum_freedom} more learners than numbers that a model estimates",
        ),
        (
            "Size of an answer",
            f"at most {policy.most_numbers} numbers and {bytes_of(policy.most_output_bytes)}",
        ),
        (
            "Price of everything released together",
            f"mu at most {policy.mu_limit:g}, advantage at most {policy.advantage_limit:g}; the upper end of the "
            "measured interval has to stay below",
        ),
        (
            "Reconstruction",
            f"reviewers are warned when the released numbers exceed {policy.share_of_learners:g} per learner",
        ),
        (
            "Private questions",
            f"epsilon at most {policy.private_epsilon:g} for one request and {policy.private_epsilon_total:g} for all "
            f"of them together, of which {spent:.3g} is spent; "
            + (
                "answered without a person"
                if policy.private_without_review
                else "a reviewer approves them, and the answers then leave"
            ),
        ),
        ("Libraries", ", ".join(policy.libraries)),
        (
            "One run",
            f"at most {policy.run_seconds:g} seconds, code of at most {bytes_of(policy.most_code_bytes)}",
        ),
        ("Held outputs", f"deleted after {counted(policy.retention_days, 'day')} unless they are released"),
        (
            "Released against a failed check",
            f"only for: {override}; with a written reason" if override else "never",
        ),
    ]


def bytes_of(size: int) -> str:
    """`100 kB`, `12 MB`."""
    return f"{size / 1000:.3g} kB" if size < 999_500 else f"{size / 1_000_000:.3g} MB"


KINDS = (
    "description",
    "trends",
    "comparison",
    "correlation",
    "regression",
    "clustering",
    "prediction",
    "causal",
)

# What researchers say after comparing: 0, 0.5 or 1 (Ito et al. 2026, section IV-D).
PRECISIONS = (("1", "most held on the real data"), ("0.5", "some held"), ("0", "none held"))


def precision(value: float) -> str:
    """A reported or counted precision as the end of a sentence."""
    said = {float(number): text for number, text in PRECISIONS}
    return f"{said.get(value, f'{value:g}')} ({value:g} of 1)."


def greeting(n_waiting: int) -> str:
    """What a person reads first."""
    if n_waiting == 0:
        return "Nothing waits for you"
    return "One request waits for you" if n_waiting == 1 else f"{n_waiting} requests wait for you"


def work(kind: str) -> str:
    """What a worker does with a request."""
    return {"trial": "Trial on the synthetic data", "run": "Run on the real data", "release": "Release"}.get(
        kind, kind.capitalize()
    )


@dataclass(frozen=True)
class Remark:
    """A remark of the static review aid: where, on which piece of code, and what a reviewer should know."""

    words: str
    line: int | None = None
    code: str = ""


@dataclass(frozen=True)
class Read:
    """The remarks of one kind; `look` if a reviewer should look at them."""

    title: str
    look: bool
    remarks: tuple[Remark, ...]


# In the order of a reviewer's interest, and whether it asks for a look.
_READ = {
    "findings": ("Why it cannot run", True),
    "not_allowed": ("Imports that the policy does not allow", True),
    "warnings": ("What an honest analysis seldom needs", True),
    "sensitive": ("Methods that react to single learners", True),
    "imports": ("Imports", False),
    "columns": ("Columns used", False),
    "subsets": ("Subsets taken", False),
    "chance": ("Lines that use chance", False),
}


def reading(found: Mapping[str, Any] | None) -> list[Read]:
    """What the static review aid saw in the code; what it did not see is left out."""
    return [
        Read(title, look, tuple(_remarks(parts)))
        for key, (title, look) in _READ.items()
        if (parts := (found or {}).get(key))
    ]


def _remarks(parts: Sequence[Any]) -> Iterator[Remark]:
    if not any(isinstance(part, Mapping) for part in parts):
        yield Remark(", ".join(str(part) for part in parts))
        return
    for part in parts:
        yield Remark(part["remark"], part["line"], part["code"])
