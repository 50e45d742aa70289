"""The desk's study in small: real code, the real sandbox, few learners and shadows."""

import csv
import io
import runpy
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from reproductions.validation_desk.study import (
    Studied,
    StudyPlan,
    answer_all,
    from_rows,
    rows_of,
    run_study,
    year_of,
)
from understudy.core.files.writing import results_csv
from understudy.desk.disclosure.probing import N_TRIPLES
from understudy.desk.domain.analysis import Analysis
from understudy.desk.researcher.examples import ANALYSES, path_of, read_examples
from understudy.desk.service.views import PricedRequest
from understudy.errors import DataError, MissingError
from understudy.sandbox import Sandbox, require_sandbox

SMALL = StudyPlan(n_learners=24, n_shadows=24, n_each=60)
CHOSEN = ("minutes_by_time_of_day", "evening_share", "cause_of_evening_work")


@pytest.fixture(scope="module")
def asked():
    return read_examples()


def test_as_many_requests_a_year_as_in_the_case_study(asked):
    assert Counter(one.year for one in asked) == {1: 9, 2: 11, 3: 5}
    assert {one.researcher for one in asked} == {"P1", "P2", "P3", "P4"}
    assert {one.researcher for one in asked if one.kind == "causal"} == {"P4"}
    assert all(one.question.endswith("?") for one in asked)
    assert {path.stem for path in ANALYSES.glob("year_*/*.py")} == {one.name for one in asked}
    assert {path.stem for path in ANALYSES.glob("first/*.py")} == {one.name for one in asked if one.first}


def test_every_analysis_runs_on_simulated_and_synthetic_learners(asked):
    # As many as every group of every analysis needs.
    year = year_of(replace(SMALL, n_learners=90, n_shadows=1), 1)
    frames = [part.rows.to_pandas() for part in (year.real, year.synthetic)]
    for one in asked:
        for path in (path_of(ANALYSES, one.name, one.year), ANALYSES / "first" / f"{one.name}.py"):
            if path.exists():
                analyze = runpy.run_path(str(path))["analyze"]
                simulated, synthetic = (shape_of(analyze(frame)) for frame in frames)
                assert simulated == synthetic, path


def shape_of(answer):
    """The keys of an answer, and of a table its size."""
    return {
        key: part.shape if isinstance(part, pd.DataFrame) else np.size(part) for key, part in answer.items()
    }


def test_an_index_that_names_a_missing_file_is_refused(tmp_path):
    (tmp_path / "index.toml").write_text(
        '[[analysis]]\nname = "a"\nresearcher = "P1"\nkind = "x"\nyear = 1\n'
    )
    with pytest.raises(DataError, match="cannot be read"):
        read_examples(tmp_path)


class Counting:
    """The sandbox, with a count of the jobs that it was given."""

    def __init__(self, sandbox):
        self.sandbox, self.n_jobs = sandbox, 0

    def run_many(self, jobs, progress=None):
        self.n_jobs += len(jobs)
        return self.sandbox.run_many(jobs, progress)


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        try:
            require_sandbox()
        except MissingError as error:
            pytest.skip(error.message)
        with Sandbox(workers=2) as opened:
            yield opened


@pytest.fixture(scope="module")
def studied(asked, sandbox, tmp_path_factory):
    """The study in small, once; with the sandbox that counts and the folder in which it is kept."""
    chosen = [one for one in asked if one.name in CHOSEN]
    counting, kept = Counting(sandbox), tmp_path_factory.mktemp("study")
    return chosen, run_study(SMALL, chosen, counting, kept), counting, kept


@pytest.mark.sandbox
def test_the_study_in_small(studied):
    chosen, found, _, _ = studied
    assert list(found) == ["first", "mended"]
    stage_one = year_of(SMALL, 1).stage_one.mu
    for name, sizes in (("first", [12, 6, 2]), ("mended", [9, 6, 2])):
        requests = [one.request for one in found[name][1]]
        assert [one.label for one in requests] == [one.label for one in chosen]
        assert [one.n_outputs for one in requests] == sizes
        for one in requests:
            assert one.simulated
            assert one.mu[1] <= one.mu[0] <= one.mu[2]
            # An attacker can leave the other answers aside.
            assert one.together_mu[0] >= one.mu[0]
            assert one.published_mu >= stage_one - 1e-12
        assert all(0 < one.influence < 1.1 for one in found[name][1])
    # With so few learners a group is too small for the checks.
    assert "learners" in found["first"][1][0].failed


@pytest.mark.sandbox
def test_what_was_done_is_not_done_again(studied):
    chosen, found, counting, kept = studied
    # The trial, the answer, without each learner, without some pairs and triples, and the shadows.
    assert counting.n_jobs == 1 + 1 + SMALL.n_learners + 4 * N_TRIPLES + SMALL.n_shadows
    counting.n_jobs = 0
    assert run_study(SMALL, chosen, counting, kept) == found
    assert counting.n_jobs == 0


@pytest.mark.sandbox
def test_answers_of_one_run_are_those_of_runs_of_their_own(asked, sandbox, tmp_path):
    year = year_of(replace(SMALL, n_learners=3, n_shadows=1), 1)
    codes = {
        name: f"def analyze(data):\n    data['{name}'] = 1\n    return {{'n': data.shape[1] + {k}}}"
        for k, name in enumerate("ab")
    }
    done = answer_all(codes, year, sandbox, 1, tmp_path)
    for name, code in codes.items():
        alone = Analysis(code, 1).answer(sandbox, year.real.of(year.bank.learners(0)))
        # Neither sees the column that the other added.
        assert done[name].answers.names == ("n",)
        assert done[name].answers.values.tolist() == [[alone.numbers["n"]]]


ONE = PricedRequest(
    *("a", "P1", "trends", 10, None),
    *((0.3, 0.2, 0.4), (0.1, 0.05, 0.15), (1.0, 0.9, 1.1), (0.4, 0.3, 0.5), 1.1, True),
)


def test_a_table_of_requests_can_be_read_back():
    failing = Studied(replace(ONE, precision=0.5), ("learners", "extremes"), 0.9)
    found = {
        "first": {1: [failing], 3: [failing, Studied(ONE, (), 0.25)]},
        "mended": {1: [Studied(ONE, (), 0.25)]},
    }
    text = results_csv(rows_of(found))
    assert from_rows(list(csv.DictReader(io.StringIO(text)))) == found
