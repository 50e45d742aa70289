"""Every reader of the package by name: each is given a file, or a folder of files that belong together.

To add one, write a line here and put an entry or more into `corpus/NAME`: tiny files, of simulated learners only.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from types import MappingProxyType
from unittest import mock

import numpy as np

from understudy.cli.app import app
from understudy.cohorts.building.activity import read_activity
from understudy.cohorts.building.scores import read_scores
from understudy.cohorts.building.sessions import Term
from understudy.cohorts.cohort import read_cohort
from understudy.cohorts.feedback import read_feedback
from understudy.cohorts.panel.providers import read_panel
from understudy.cohorts.panel.scripts import read_script
from understudy.cohorts.panel.scripts import read_table as read_panel_table
from understudy.cohorts.schema import Schema
from understudy.cohorts.summary.suggestions import read_suggestions
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.core.engine.cells import FinishedCells
from understudy.core.events import partitions
from understudy.core.files import streams
from understudy.core.files.simulated import is_simulated
from understudy.core.privacy.ledger import Ledger
from understudy.desk.disclosure.code_review import read_code
from understudy.desk.disclosure.probing import Probes
from understudy.desk.domain.learners import learner_table, read_table
from understudy.desk.domain.policy import Policy
from understudy.desk.risk.pricing import ShadowAnswers
from understudy.exams.formats.item_list import read_items
from understudy.exams.formats.own_answers import read_answers
from understudy.exams.formats.own_points import read_points
from understudy.exams.formats.reading import read_responses
from understudy.exams.released_file import Difficulties
from understudy.exams.responses import Points
from understudy.exams.student_page import read_strings
from understudy.keystrokes.card import read_attacks
from understudy.keystrokes.coarsening import parse_coarsening
from understudy.keystrokes.formats.labels import read_labels
from understudy.keystrokes.formats.reading import read_keystrokes
from understudy.keystrokes.group_statistics import read_digraphs
from understudy.keystrokes.program_text.files import scrub
from understudy.keystrokes.program_text.people import read_people
from understudy.logs.declared.course import read_course
from understudy.logs.generators.gru import Gru
from understudy.logs.reading import read_log
from understudy.sandbox.outcome import read_result


def _command(*words: object) -> None:
    """A command whose reading is its own; what is unforeseen is raised."""
    with contextlib.redirect_stdout(io.StringIO()):
        app([str(word) for word in words], standalone_mode=False)


def _ledger(path: Path) -> object:
    ledger = Ledger(path)
    return ledger.entries(), ledger.populations(), ledger.balance(), ledger.declarations()


def _desk_data(path: Path) -> object:
    return learner_table(read_table(path), np.random.default_rng(0))


def _cells(folder: Path) -> object:
    cells = FinishedCells(folder, "study", {"n_rows": 4}, ["data"])
    return cells.find("markov seed 0"), cells.all()


def _in_pieces(read: Callable[[Path], object]) -> Callable[[Path], object]:
    """A reader of files that are read in pieces, however small they are."""
    small = {"LARGE_ROWS": 0, "LARGE_TEXT": 0, "LARGE_PACKED": 0, "BLOCK_ROWS": 3, "BLOCK_BYTES": 200}

    def read_pieces(path: Path) -> object:
        with mock.patch.multiple(streams, **small), mock.patch.object(partitions, "PARTITION_ROWS", 4):
            return read(path)

    return read_pieces


def _panel_table(path: Path) -> object:
    """A table as it comes out of the sandbox, of whose result it is a part."""
    outcome = read_result(path.read_bytes(), 10)
    return [read_panel_table(content, _SCHEMA, 4) for content in outcome.tables.values()]


def _scrubbed(path: Path) -> object:
    return scrub(path, path.with_name(f"out{path.suffix}"), language="python")


READERS: Mapping[str, Callable[[Path], object]] = MappingProxyType(
    {
        "activity": lambda path: read_activity(path, Term(date(2024, 9, 2), 10, "Europe/Vienna")),
        "answers": read_answers,
        "certificate": lambda path: _command("desk", "certificate", path),
        "cells": _cells,
        "cohort": lambda folder: read_cohort(folder / "cohort.csv"),
        "cohort-parquet": lambda folder: read_cohort(folder / "cohort.parquet"),
        "desk-code": lambda path: read_code(path.read_bytes().decode(errors="replace"), ["score"], Policy()),
        "desk-probes": lambda path: Probes.from_bytes(path.read_bytes()),
        "desk-shadows": lambda path: ShadowAnswers.from_bytes(path.read_bytes()),
        "desk-table": _desk_data,
        "difficulties": Difficulties.read,
        "digraphs": read_digraphs,
        "feedback": read_feedback,
        "items": read_items,
        "keystrokes": read_keystrokes,
        "labels": lambda path: read_labels(path, None, None),
        "large-keystrokes": _in_pieces(read_keystrokes),
        "large-log": _in_pieces(read_log),
        "large-responses": _in_pieces(read_responses),
        "ledger": _ledger,
        "log": read_log,
        "log-all": lambda path: read_log(path, learner="learner", time="time", no_outcomes=True),
        "mark": lambda folder: is_simulated(folder / "log.csv"),
        "model": Gru.load,
        "names": read_course,
        "own-points": lambda path: read_points(path, {f"item {n}": Points(3) for n in (1, 2, 3)}),
        "panel": read_panel,
        "panel-table": _panel_table,
        "people": read_people,
        "plan": lambda folder: read_log(folder / "log.csv", plan=folder / "plan.toml"),
        "policy": Policy.read,
        "programs": _scrubbed,
        "responses": read_responses,
        "sandbox-result": lambda path: read_result(path.read_bytes(), 10),
        "schema": Schema.read,
        "scores": read_scores,
        "script": read_script,
        "strings": read_strings,
        "suggestions": read_suggestions,
        "summary": PrivateSummary.read,
        "sweep": lambda path: read_attacks(path, parse_coarsening("round:100"), 30),
        "withdrawals": lambda folder: read_log(folder / "log.csv", exclude=folder / "withdrawn.txt"),
    }
)

_SCHEMA = Schema.read(Path(__file__).parent / "corpus" / "schema" / "cohort.toml")
