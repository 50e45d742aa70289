"""compare_groups(): groups of a sheet, verdicts, refusals, the command."""

import json

import numpy as np
import polars as pl
import pytest

from tests.exams.estimators.test_group_differences import exam
from tests.support.command import run
from understudy.core.privacy.noise import seeded_noise
from understudy.errors import DataError, UsageError
from understudy.exams.compare import CompareOptions, compare_groups, foresee
from understudy.exams.formats.reading import read_responses
from understudy.exams.responses import Responses


def usual_noise():
    """Seed 1 draws a radius that happens about once in a thousand times: noise twice as large as it should be."""
    return seeded_noise(np.random.default_rng(2))


def sheet(path, seed=3, sizes=(1500, 1200), items=8, amount=1.5):
    differences = np.zeros(items)
    differences[0] = amount
    responses = exam(np.random.default_rng(seed), sizes, differences)
    frame = pl.DataFrame(responses.correct, schema=[f"Q{i + 1}" for i in range(items)])
    frame = frame.with_columns(
        student=pl.Series([f"s{n}" for n in range(responses.n_learners)]),
        track=pl.Series(["north" if group == 1 else "south" for group in responses.group_of]),
    )
    frame.write_csv(path)
    return responses


def test_the_column_of_the_groups_is_no_item_and_other_values_are_no_group(tmp_path):
    path = tmp_path / "exam.csv"
    path.write_text("student,track,Q1,Q2,Q3,Q4\na,1,1,0,1,0\nb, 2 ,1,1,1,0\nc,,0,0,1,0\nd,3,1,0,1,1\n")
    found = read_responses(path, group="Track", groups="1, 2")
    assert found.items == ("Q1", "Q2", "Q3", "Q4")
    assert found.groups == ("1", "2")
    assert found.group_of.tolist() == [1, 2, 0, 0]
    # Even where it could be one by its cells, and where it stands first.
    path.write_text("Q9,student,Q1,Q2,Q3,Q4\n1,a,1,0,1,0\n0,b,1,1,1,0\n")
    found = read_responses(path, group="Q9", groups=["0", "1"])
    assert found.items == ("Q1", "Q2", "Q3", "Q4")
    assert found.group_of.tolist() == [2, 1]


def test_a_declared_group_without_learners_is_noted_for_the_custodian(tmp_path):
    path = tmp_path / "exam.csv"
    path.write_text("learner,track,Q1,Q2\na,x,1,0\nb,Y,0,1\n", encoding="utf-8")
    found = read_responses(path, group="track", groups="x,y")
    assert [note for note in found.origin.notes if "declared group" in note] == [
        "No learner is in the declared group 'y': check how it is written."
    ]
    assert "declared group" not in " ".join(read_responses(path, group="track", groups="x,Y").origin.notes)


def test_groups_stay_with_their_learners_where_rows_are_left_out(tmp_path):
    path, gone = tmp_path / "exam.csv", tmp_path / "gone.txt"
    path.write_text(
        "student,track,Q1,Q2,Q3,Q4\na,x,1,0,1,0\n,y,,,,\nb,y,1,1,1,0\nc,x,0,0,1,0\naverage,y,0,0,1,0\n"
    )
    gone.write_text("a\n")
    found = read_responses(path, group="track", groups="x,y", exclude=gone)
    assert found.correct.tolist() == [[1, 1, 1, 0], [0, 0, 1, 0]]
    assert found.group_of.tolist() == [2, 1]


@pytest.mark.parametrize("cell", ["", "north", "elsewhere", "Max", "average", "1", '"a,b"', "\u2028", "=1+1"])
def test_what_one_learner_has_as_their_group_moves_no_other_learner(tmp_path, cell):
    path = tmp_path / "exam.csv"
    rows = ["s1,north,1,0,1,0", "s2,{},0,1,1,0", "s3,south,1,1,0,0"]
    path.write_text("student,track,Q1,Q2,Q3,Q4\n" + "\n".join(rows).format(cell) + "\n", encoding="utf-8")
    found = read_responses(path, group="track", groups="north,south")
    assert found.correct.tolist() == [[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 0]]
    assert found.group_of.tolist() == [1, int(cell == "north"), 2]


def test_an_item_that_differs_is_found_and_the_file_says_so(tmp_path):
    sheet(tmp_path / "exam.csv")
    responses = read_responses(tmp_path / "exam.csv", group="track", groups="north,south")
    found = compare_groups(
        responses,
        epsilon=4.0,
        simulated=True,
        out=tmp_path / "compared.json",
        noise=usual_noise(),
    )
    first = found.items[0]
    assert (first.item, first.verdict) == ("Q1", "differs")
    assert found.count("alike") >= 4
    assert first.low < 1.5 < first.high
    assert first.in_words(0.5) == "differs: harder"
    content = json.loads((tmp_path / "compared.json").read_text())
    assert content["format"] == "understudy comparison of groups"
    assert content["items"][0]["verdict"] == "differs"
    assert content == json.loads(json.dumps(found.content()))
    assert "'Q1' is harder for south than for north" in found.lines()[0]
    assert not found.warnings()
    assert found.to_frame().height == 8
    assert found.plot() is not None


def test_few_learners_are_told_that_nothing_can_be_decided():
    responses = exam(np.random.default_rng(2), (25, 25), np.zeros(5))
    found = compare_groups(responses, epsilon=1.0, noise=usual_noise())
    assert found.count("undecided") == 5
    assert found.items[0].in_words(0.5) == "cannot be decided at this size"
    assert found.warnings()


def test_how_wide_alike_is_can_be_declared():
    responses = exam(np.random.default_rng(2), (900, 900), np.zeros(6))

    def alike(width):
        noise = usual_noise()
        return compare_groups(responses, epsilon=2.0, alike=width, noise=noise).count("alike")

    assert alike(0.05) == 0
    assert alike(3.0) == 6


def test_what_cannot_be_compared_is_refused_with_a_reason(tmp_path):
    few = exam(np.random.default_rng(2), (9, 9), np.zeros(3))
    path = tmp_path / "long.csv"
    path.write_text("learner,item,correct\na,q1,1\na,q2,0\nb,q1,1\nb,q2,1\n")
    whole = Responses.from_matrix(np.eye(6, dtype=np.int8))
    for code, kind, call in (
        ("few-items", UsageError, lambda: compare_groups(few, epsilon=1.0)),
        ("no-groups", UsageError, lambda: compare_groups(whole, epsilon=1.0)),
        ("no-epsilon", UsageError, lambda: compare_groups(few)),
        ("no-such-method", UsageError, lambda: CompareOptions(method="joint")),
        ("groups-need-a-sheet", UsageError, lambda: read_responses(path, group="g", groups="a,b")),
        ("no-groups", UsageError, lambda: read_responses(path, group="g", groups="a")),
        ("no-groups", UsageError, lambda: read_responses(path, groups="a,b")),
    ):
        with pytest.raises(kind) as error:
            call()
        assert error.value.code == code
    sheet(tmp_path / "exam.csv", sizes=(20, 20))
    for column, code in (("nowhere", "no-such-column"), ("student", "ambiguous-column")):
        with pytest.raises(DataError) as missing:
            read_responses(tmp_path / "exam.csv", group=column, groups="a,b")
        assert missing.value.code == code


def test_labels_in_memory_are_groups():
    found = Responses.from_matrix(np.eye(4, dtype=np.int8)).with_groups(["x", "y", None, "z"], ["y", "x"])
    assert found.group_of.tolist() == [2, 1, 0, 0]
    assert found.select([1, 3]).group_of.tolist() == [1, 0]


def test_what_is_foreseen_uses_public_numbers_only_and_is_about_right():
    one, other = (exam(np.random.default_rng(seed), (1000, 1000), np.zeros(12)) for seed in (1, 2))
    options = CompareOptions(epsilon=2.0)
    assert foresee(one, options) == foresee(other, options)
    row = next(row for row in foresee(one, options) if (row.epsilon, row.solved) == (2.0, 0.5))
    found = compare_groups(one, options, noise=usual_noise())
    # The item that about half have right has the smallest error.
    assert min(item.standard_error for item in found.items) == pytest.approx(row.standard_error, rel=0.35)
    assert foresee(one, options, "1900,100")[0].standard_error > foresee(one, options)[0].standard_error
    with pytest.raises(UsageError):
        foresee(one, options, "5")


@pytest.mark.functional
def test_the_command_explains_compares_and_charges_once(tmp_path):
    sheet(tmp_path / "exam.csv", sizes=(300, 300))
    arguments = "difficulties", "compare", "exam.csv", "--group", "track", "--groups", "north,south"
    explained = run(*arguments, "--explain", "--json", cwd=tmp_path)
    assert explained.returncode == 0, explained.stderr
    assert json.loads(explained.stdout)["spent"] == 0
    assert not (tmp_path / "understudy.ledger").exists()
    done = run(*arguments, "--epsilon", "1", "-o", "compared.json", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["sum"] == 1
    assert len(answer["items"]) == 8
    shown = run(*arguments, "--epsilon", "1", "-o", "again.json", cwd=tmp_path)
    assert "cannot be decided at this size" in shown.stdout
    without = run(*arguments, "--epsilon", "1", cwd=tmp_path)
    assert without.returncode == 2
