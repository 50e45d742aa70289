"""The brief of a panelist: the context, the schema, the private summary and the script's contract.

The only thing about learners that can get into the text is a `PrivateSummary`, which only a
mechanism makes; everything else is declared by the custodian and public.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from understudy.cohorts.panel.scripts import ALLOWED_IMPORTS
from understudy.cohorts.schema import Schema
from understudy.cohorts.summary import caveats
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.core.privacy.guarantee import Guarantee
from understudy.errors import RefusedError


@dataclass(frozen=True)
class Brief:
    """The exact text that every panelist gets as its one message."""

    text: str

    @property
    def prompt_hash(self) -> str:
        """SHA-256 of the text in UTF-8."""
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()


def for_scripts(summary: PrivateSummary) -> dict[str, Any]:
    """What the prompt shows and `generate` gets: the summary without its provenance."""
    return {key: value for key, value in summary.to_json().items() if key != "provenance"}


def write_brief(summary: PrivateSummary, suggestions: Sequence[str] = ()) -> Brief:
    """The brief for a private summary; `suggestions` come from the last cycle's published feedback."""
    # The type is the privacy rule: a dictionary of statistics could come from anywhere.
    if not isinstance(summary, PrivateSummary):
        raise TypeError(f"a brief is written from a PrivateSummary, not from {type(summary).__name__}")
    simulated = summary.provenance.get("simulated") is True
    if not (summary.guarantee.formal or simulated):
        raise RefusedError(
            "this summary of real learners carries no formal guarantee, and a prompt leaves.",
            hint="make one with `understudy cohort summarize`; only simulated learners need no guarantee.",
        )
    schema = summary.schema
    parts = [
        _TASK,
        _section("Context", _context(schema)),
        _section("Schema", _schema(schema)),
        _section("Private summary", _noise(summary) + "\n\n" + _json(for_scripts(summary))),
    ]
    if suggestions:
        parts.append(_section("Suggestions from the last cycle", _SUGGESTIONS + "\n" + _list(suggestions)))
    parts.append(_section("The script", _contract(schema)))
    return Brief("\n".join(parts))


def panel_guarantee(summary: PrivateSummary, suggestions: Sequence[str]) -> Guarantee:
    """What holds for everything that is made with these suggestions in the prompt, from the prompt on."""
    stated = summary.guarantee
    return stated.with_caveats(caveats.FEEDBACK) if suggestions and stated.formal else stated


_TASK = """\
You are one of several experts who write, independently of each other, a small Python program that invents learners.
The learners it invents stand in for real ones in a data set that is shared with researchers. What is true of the real
group should be true of the invented one: levels, spread, days without activity, heavy tails, rhythm over the weeks,
how features go together, and how they differ between labels. What is not known about the real group should look
plausible and must not carry an effect. No record of a learner is available, to you or to the program: only this text.
"""

_PRIVATE = """\
These numbers were computed from the real group under differential privacy: noise was added to each, once, and its
scale (a standard deviation, `noise_sd`) is given with it. """
_SIMULATED = """\
These numbers were computed from simulated learners, and no guarantee holds for them: noise was added to each, once, and
its scale (a standard deviation, `noise_sd`) is given with it. """

_NOISE = """\
Read a number as "value, give or take twice its scale". Do
not build an effect that the noise could have made: where two numbers differ by less than about twice the scale of
their difference, treat them as equal, and shrink uncertain numbers towards what the groups have in common. A
missed effect costs less than an invented one. Numbers may lie outside their possible range because of the noise;
bring them back into it."""

_SUGGESTIONS = """\
Researchers compared findings on the last synthetic data with published ones on the real data. Use these suggestions
where the summary does not contradict them:"""


def _noise(summary: PrivateSummary) -> str:
    """How to read the numbers; differential privacy is named only where it holds."""
    return (_PRIVATE if summary.guarantee.formal else _SIMULATED) + _NOISE


def _section(title: str, body: str) -> str:
    return f"# {title}\n{body.strip()}\n"


def _json(content: dict[str, Any]) -> str:
    return "```json\n" + _lines(content, depth=3) + "\n```"


def _lines(content: Any, depth: int, indent: str = "") -> str:
    """JSON with objects spread over lines down to `depth`, and each list of numbers on one line."""
    if not isinstance(content, dict) or not depth or not content:
        return json.dumps(content, ensure_ascii=False, allow_nan=False)
    inner = indent + " "
    entries = [
        f"{inner}{json.dumps(key, ensure_ascii=False)}: {_lines(value, depth - 1, inner)}"
        for key, value in content.items()
    ]
    return "{\n" + ",\n".join(entries) + "\n" + indent + "}"


def _list(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _context(schema: Schema) -> str:
    words = [text for text in (schema.title, schema.context) if text]
    words.append(
        f"One row is one learner: {schema.n_features} features in each of {schema.n_weeks} weeks of a term, and the "
        f"label '{schema.label}' with the values {', '.join(schema.labels)}, from low to high."
    )
    return "\n".join(words)


def _schema(schema: Schema) -> str:
    columns = schema.columns()
    lines = []
    for place, feature in enumerate(schema.features):
        first, last = columns[place * schema.n_weeks], columns[(place + 1) * schema.n_weeks - 1]
        hours = (
            ""
            if feature.hours is None
            else f", from {feature.hours[0]:02}:00 to before {feature.hours[1]:02}:00"
        )
        lines.append(f"{first} ... {last}: {feature.unit} in each week, from 0 to {feature.high:g}{hours}")
    return _list(lines)


def _contract(schema: Schema) -> str:
    columns = schema.columns()
    labels = ", ".join(repr(label) for label in schema.labels)
    return f"""\
Write one Python 3.11 script with the function

    def generate(n, label, summary, rng) -> pandas.DataFrame

- n: how many learners to invent. label: one of {labels}; all rows are of this label.
- summary: the private summary above, as a dictionary with the same keys. rng: a numpy.random.Generator, the only source
  of chance: the same rng state gives the same table (for scipy: random_state=rng).
- The table has exactly n rows and these {len(columns)} columns, in this order: {columns[0]}, {columns[1]}, ...,
  {columns[-1]} (feature by feature, week by week, as in the schema). Nothing else, no label column.
- Every value is a finite number of at least 0 and at most the feature's bound. Rows differ from each other.
- Imports: {", ".join(ALLOWED_IMPORTS)} and nothing else. No files, no network, no printing,
  no other programs, no attributes that begin with an underscore; outside functions only imports and constants
  without calls, no `if __name__` block.
- 1,000 rows take less than 10 seconds and 500 MB. Helper functions are welcome. A person reviews the
  script: say briefly why you do what you do.

It runs in a closed sandbox. If it fails you are told the kind of error and the line, once.
Answer with the script in one fenced block that begins with ```python, and nothing else.
"""
