"""The codebook and the citation file that travel with the data."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from understudy.logs.interactions import Interactions


def codebook(synthetic: Interactions, keeps_rows: bool) -> str:
    """What each column of the log means, as CSV; a method may have kept rows of real learners."""
    who = "A real learner under a new number" if keeps_rows else "A synthetic learner"
    number = "is arbitrary." if keeps_rows else "is arbitrary and belongs to no real learner."
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["column", "type", "meaning", "values"])
    writer.writerow(
        [
            "learner",
            "text",
            f"{who}. The number {number}",
            f"{synthetic.n_learners} different values",
        ]
    )
    writer.writerow(
        [
            "action",
            "text",
            "What the learner attempted; rows of a learner are in order.",
            f"{n_occurring(synthetic)} different names",
        ]
    )
    writer.writerow(["outcome", "integer", "Whether the attempt succeeded.", "1 success, 0 failure"])
    return text.getvalue()


def n_occurring(synthetic: Interactions) -> int:
    """Actions that occur. The vocabulary may have more, but that would be a fact about the real log."""
    return len(set(synthetic.action.tolist()))


def citation(card: dict[str, Any]) -> str:
    """A CITATION.cff for the data set; its values are JSON strings, which YAML reads too."""
    author = card["provenance"]["custodian"] or "The data's custodian"
    lines = [
        "cff-version: 1.2.0",
        "type: dataset",
        "message: " + json.dumps("Please cite this synthetic data set with its card.", ensure_ascii=False),
        "title: " + json.dumps(card["title"], ensure_ascii=False),
        "authors:",
        "  - name: " + json.dumps(author, ensure_ascii=False),
        "date-released: " + json.dumps(card["provenance"]["made"]),
        "version: " + json.dumps(card["provenance"]["card"]),
        "abstract: " + json.dumps(card["what"], ensure_ascii=False),
    ]
    return "\n".join(lines) + "\n"
