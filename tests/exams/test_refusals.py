"""Python and the command refuse the same: the rule is in the library, and the command adds nothing to it."""

import numpy as np
import pytest

from tests.support.command import run
from understudy.core.privacy.noise import seeded_noise
from understudy.errors import UnderstudyError
from understudy.exams.difficulties import DifficultiesOptions, difficulties
from understudy.exams.formats.reading import read_responses

pytestmark = pytest.mark.functional

SHEET = "student,q1,q2\na,1,0\nb,0,1\nc,1,1\n"
LIST = "learner,item,correct\na,q1,1\na,q2,0\nb,q1,0\nb,q2,1\n"

# What is refused: a file, settings for Python, options for the command, and the code of the error.
REFUSED = {
    "names of people": ("student,q1,anna@example.org\nx,1,0\ny,0,1\n", {}, (), "names-of-people"),
    "unnamed learners": ("q1,q2\n1,0\n0,1\n", {}, (), "unnamed-learners"),
    "columns without answers": ("student,q1,remark\nx,1,good\ny,0,bad\n", {}, (), "columns-without-answers"),
    "undeclared items": (LIST, {}, (), "undeclared-items"),
    "one learner": ("student,q1,q2\na,1,0\n", {}, (), "one-learner"),
    "too few for a choice": (SHEET, {"ability_sd": "choose"}, ("--ability-sd", "choose"), "few-learners"),
    "a guess beyond all chances": (SHEET, {"guess": "4/1"}, ("--guess", "4/1"), "usage"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_python_and_the_command_refuse_the_same(name, tmp_path):
    content, settings, options, code = REFUSED[name]
    path = tmp_path / "exam.csv"
    path.write_text(content)
    with pytest.raises(UnderstudyError) as refused:
        difficulties(read_responses(path), epsilon=1.0, **settings)
    assert refused.value.code == code
    done = run("difficulties", "exam.csv", "--epsilon", 1, "-o", "d.json", *options, cwd=tmp_path)
    assert done.returncode == refused.value.exit_code
    assert refused.value.message in done.stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == ["exam.csv"]


def test_a_prior_without_a_guarantee_is_refused_by_both(tmp_path):
    (tmp_path / "exam.csv").write_text(SHEET)
    assert run("difficulties", "exam.csv", "-o", "plain.json", cwd=tmp_path).returncode == 0
    with pytest.raises(UnderstudyError) as refused:
        DifficultiesOptions(epsilon=1.0, prior=tmp_path / "plain.json")
    assert refused.value.code == "prior-not-private"
    options = ("--epsilon", 1, "--prior", "plain.json", "-o", "d.json")
    done = run("difficulties", "exam.csv", *options, cwd=tmp_path)
    assert done.returncode == refused.value.exit_code == 4
    assert refused.value.message in done.stderr
    assert DifficultiesOptions(epsilon=1.0, prior=tmp_path / "plain.json", public_prior=True).expected


def test_what_is_declared_is_not_refused(tmp_path):
    for content, declared in (
        ("q1,q2\n1,0\n0,1\n", {"rows_are_learners": True}),
        (LIST, {"public_items": True}),
        (LIST, {"items": ["q1", "q2", "q9"]}),
        ("student,q1,remark\nx,1,good\ny,0,bad\n", {"items": ["q1"]}),
    ):
        path = tmp_path / "exam.csv"
        path.write_text(content)
        noise = seeded_noise(np.random.default_rng(1))
        found = difficulties(read_responses(path, **declared), epsilon=1.0, noise=noise)
        assert str(found.guarantee) == "no formal guarantee (test: the noise was seeded)"


def test_the_layout_decides_what_a_missing_answer_means(tmp_path):
    for content, missing in ((SHEET, "counted as wrong"), (LIST, "not asked")):
        path = tmp_path / "exam.csv"
        path.write_text(content)
        found = difficulties(read_responses(path, public_items=True), epsilon=1.0)
        assert found.provenance["missing"] == missing
        assert found.guarantee.epsilon == 1.0


def test_without_epsilon_nothing_is_promised(tmp_path):
    (tmp_path / "exam.csv").write_text(SHEET)
    found = difficulties(read_responses(tmp_path / "exam.csv"))
    assert found.provenance["method"] == "marginal"
    assert not found.guarantee.formal
