"""The verbs of exams from Python: values that show themselves, and write only where they are asked to."""

import json

import numpy as np
import polars as pl
import pytest

import understudy as us
from tests.exams.support.made_difficulties import make_difficulties
from understudy.errors import UsageError
from understudy.exams.student_page import page


@pytest.fixture
def exam():
    return us.Exam(200, 5).simulate(np.random.default_rng(1)).responses


def test_difficulties_show_themselves(exam, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = us.difficulties(exam, epsilon=4, title="Spring")
    assert found.guarantee.epsilon == 4
    assert found.lines()[-1] == found.charge.sentence()
    frame = found.to_frame()
    assert frame["name"].to_list() == [name for step in found.steps for name in step]
    assert set(frame["name"]) == set(exam.items)
    assert "item 1" in found._repr_html_()
    assert found.plot().to_dict()["layer"]
    content = found.to_json()
    assert content["card"] == found.provenance["card"]
    assert us.Difficulties.from_json(found.content()) == found
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_private_is_shown_as_such(exam):
    assert "NOT PRIVATE" in us.difficulties(exam)._repr_html_()


def test_a_file_is_written_where_it_is_asked_for_and_not_twice(exam, tmp_path):
    found = us.difficulties(exam, epsilon=1, out=tmp_path / "d.json")
    assert us.Difficulties.read(tmp_path / "d.json") == found
    assert json.loads((tmp_path / "d.json").read_text()) == found.content()
    with pytest.raises(UsageError) as caught:
        us.difficulties(exam, epsilon=1, out=tmp_path / "d.json")
    assert caught.value.code == "already-exists"


def test_real_learners_in_memory_need_a_population_and_a_place_for_their_ledger(tmp_path):
    responses = us.Responses.from_matrix([[1, 0], [0, 1], [1, 1]])
    with pytest.raises(UsageError) as caught:
        us.difficulties(responses, epsilon=1)
    assert caught.value.code == "unknown-population"
    found = us.difficulties(responses, epsilon=1, ledger=tmp_path / "l", population="7b")
    assert us.Ledger(tmp_path / "l").balance("7b").epsilon == 1
    assert found.charge.account.population == "7b"


def test_abilities_show_one_student_and_hide_a_class(exam, tmp_path):
    made = us.difficulties(exam, epsilon=4)
    own = us.ability(made, exam.select([0]))
    assert own.students == ("you",)
    assert "item 1" in own._repr_html_()
    everyone = us.ability(made, exam, missing="wrong", out=tmp_path / "a.csv")
    assert everyone.to_frame().height == 200
    assert pl.read_csv(tmp_path / "a.csv").height == 200
    assert f"{everyone.abilities.ability[3]:.3f}" not in everyone._repr_html_()
    assert everyone.plot().to_dict()["layer"]
    assert len(everyone.to_json()["students"]) == 200
    with pytest.raises(UsageError):
        us.ability(made, exam, pass_mark=0)


def test_a_page_shows_itself_and_takes_a_value_or_a_file(tmp_path):
    made = make_difficulties(title='A "test"')
    (tmp_path / "d.json").write_text(json.dumps(made.content()))
    for given in (made, tmp_path / "d.json", str(tmp_path / "d.json")):
        shown = page(given, language="de")
        assert shown._repr_html_().startswith("<iframe")
        assert shown.out is None
    assert page(made, out=tmp_path / "page.html").html == (tmp_path / "page.html").read_text()
    with pytest.raises(UsageError, match="both"):
        page(made, language="de", strings=tmp_path / "x.json")
