"""Finished cells: kept, found again, and refused for other data or another plan."""

import json
import stat

import numpy as np
import pytest

from understudy.core.engine.cells import FinishedCells
from understudy.errors import UsageError

DATA = (np.arange(5), "actions", None)


def test_a_finished_cell_is_found_by_who_opens_the_folder_again(tmp_path):
    cells = FinishedCells(tmp_path / "study", "study", {"seed": 1}, DATA)
    assert cells.find("markov seed 0") is None
    cells.keep("markov seed 0", {"epsilon": float("inf"), "auc": 0.5})
    again = FinishedCells(tmp_path / "study", "study", {"seed": 1}, DATA)
    assert again.find("markov seed 0") == {"epsilon": float("inf"), "auc": 0.5}
    assert stat.S_IMODE((tmp_path / "study").stat().st_mode) == 0o700


def test_labels_that_look_alike_as_names_of_files_stay_apart(tmp_path):
    cells = FinishedCells(tmp_path / "study", "study", {}, DATA)
    cells.keep("run:a b", 1)
    cells.keep("run:a/b", 2)
    assert (cells.find("run:a b"), cells.find("run:a/b")) == (1, 2)


@pytest.mark.parametrize(
    ("plan", "data"),
    [
        ({"seed": 2}, DATA),
        ({"seed": 1, "guesses": (1, 5)}, DATA),
        ({"seed": 1}, (np.arange(6), "actions", None)),
        ({"seed": 1}, (np.arange(5), "action", "s")),
        ({"seed": 1}, (np.arange(5), "actions", "none")),
    ],
)
def test_another_study_is_refused(tmp_path, plan, data):
    FinishedCells(tmp_path / "study", "study", {"seed": 1}, DATA)
    with pytest.raises(UsageError, match="holds another study") as caught:
        FinishedCells(tmp_path / "study", "study", plan, data)
    assert caught.value.code == "another-study"


def test_the_digest_says_nothing_outside_of_its_folder(tmp_path):
    digests = set()
    for name in "ab":
        FinishedCells(tmp_path / name, "study", {}, DATA)
        digests.add(json.loads((tmp_path / name / "study.json").read_text())["data"])
    assert len(digests) == 2
