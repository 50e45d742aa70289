"""The student's page as text: its policy, its strings, and what it must not say or hold."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import understudy.exams.student_page as page_module
from tests.exams.support.made_difficulties import make_difficulties
from understudy.core.privacy.guarantee import Guarantee
from understudy.errors import DataError, RefusedError, UsageError
from understudy.exams.student_page import (
    check_strings,
    english_strings,
    languages,
    read_strings,
    student_page,
)

HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>&\"'"


def placeholders(text):
    return sorted(re.findall(r"\{\w+\}", text))


def test_every_language_has_the_same_texts_and_placeholders():
    english = read_strings("en")
    assert languages() == ("de", "en")
    for language in languages():
        strings = read_strings(language)
        assert list(strings) == list(english), language
        assert strings["lang"] == language
        for key, text in strings.items():
            assert text.strip() == text != "", (language, key)
            assert placeholders(text) == placeholders(english[key]), (language, key)


def test_every_text_is_used():
    folder = Path(page_module.__file__).parent / "templates"
    used = (folder / "student.html").read_text() + (folder / "student.js").read_text()
    unused = [key for key in read_strings("en") if f"strings.{key}" not in used and key != "title"]
    assert unused == []


@pytest.mark.parametrize("word", ["anonym", "safe", "sicher vor", "re-identif"])
def test_no_text_promises_too_much(word):
    for language in languages():
        assert word not in json.dumps(read_strings(language), ensure_ascii=False).lower()


def test_texts_that_do_not_fit_are_named(tmp_path):
    strings = read_strings("en")
    del strings["right"], strings["wrong"]
    strings |= {"extra": "x", "entered": "entered {m}"}
    path = tmp_path / "fr.json"
    path.write_text(json.dumps(strings))
    with pytest.raises(DataError) as caught:
        read_strings(path)
    message = caught.value.message
    assert "fr.json" in message
    assert "2 texts are missing (right, wrong)" in message
    assert "1 key is unknown (extra)" in message
    assert "1 text has other {placeholders} than the English ones (entered)" in message
    assert caught.value.settings == ("print_strings",)


@pytest.mark.parametrize("content", ["", "[]", '{"lang": 1}', "[" * 100_000, '{"lang": "\\ud800"}'])
def test_a_file_without_texts_is_told(tmp_path, content):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(DataError, match=r"x\.json"):
        read_strings(tmp_path / "x.json")


def test_unknown_languages_and_absent_files_are_wrong_use(tmp_path):
    with pytest.raises(UsageError, match="'xx'; there are de, en"):
        read_strings("xx")
    with pytest.raises(UsageError, match=r"absent\.json"):
        read_strings(tmp_path / "absent.json")
    with pytest.raises(DataError, match="not a language tag"):
        check_strings({**read_strings("en"), "lang": 'en" onload="x'}, "x.json")


def test_the_policy_allows_its_own_script_and_style_and_nothing_else():
    page = student_page(make_difficulties())
    # The template writes quotes as entities, which a browser reads as quotes.
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    rules = dict(rule.split(" ", 1) for rule in policy.replace("&#39;", "'").split("; "))
    (css,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (js,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    for text, rule in ((css, "style-src"), (js, "script-src")):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules.pop(rule) == f"'sha256-{digest}'"
    assert rules.pop("default-src") == "'none'"
    assert set(rules) == {"img-src", "connect-src", "form-action", "base-uri"}
    assert set(rules.values()) == {"'none'"}
    assert not re.search(r"\son\w+=|\sstyle=|https?://(?!www\.w3\.org/2000/svg)|url\(|@import", page)


def test_names_that_want_to_be_markup_stay_text():
    made = make_difficulties((-1.0, 1.0), names=[HOSTILE, "plain"], title=HOSTILE)
    page = student_page(made)
    assert page.count("<script") == 2
    assert "<img" not in page
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert json.loads(data)["items"][0]["name"] == HOSTILE


def test_difficulties_without_a_guarantee_need_a_reason():
    made = make_difficulties(guarantee=Guarantee.none("an exact fit"))
    with pytest.raises(RefusedError, match="no formal guarantee: an exact fit") as caught:
        student_page(made)
    assert caught.value.settings == ("accept_risk",)
    page = student_page(made, accept_risk=f"a drill {HOSTILE}")
    assert "a drill &lt;/script&gt;" in page
    assert 'class="about warning"' in page
    assert "a drill" not in student_page(make_difficulties(), accept_risk="a drill")


def test_an_accepted_risk_is_a_caveat_of_what_the_page_states(tmp_path):
    bare = make_difficulties(guarantee=Guarantee.none("an exact fit"))
    made = page_module.page(bare, accept_risk="a drill", out=tmp_path / "page.html")
    assert [caveat.code for caveat in made.difficulties.guarantee.caveats] == ["risk-accepted"]
    assert made.to_json()["guarantee"]["caveats"] == ["risk-accepted"]
    assert "accepted the risk" in made.lines()[1]
    assert not page_module.page(make_difficulties(), accept_risk="a drill").difficulties.guarantee.caveats


def with_provenance(**entries):
    made = make_difficulties()
    return replace(made, provenance={**made.provenance, **entries})


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_band_says_that_there_is_no_guarantee(language):
    strings = read_strings(language)
    bare = make_difficulties(guarantee=Guarantee.none("an exact fit"))
    page = student_page(bare, strings=strings, accept_risk="a drill")
    assert f'<p class="unguarded">{strings["unguarded"]}</p>' in page
    assert page.index('class="unguarded"') < page.index("<main>")
    assert '<p class="unguarded">' not in student_page(make_difficulties(), strings=strings)


@pytest.mark.parametrize("language", ["en", "de"])
def test_blanks_count_as_the_file_says(language):
    strings = read_strings(language)
    wrong = student_page(with_provenance(missing="counted as wrong"), strings=strings)
    assert f'<p id="blanks" class="rule">{strings["blanks_are_wrong"]}</p>' in wrong
    for made in (with_provenance(missing="not asked"), make_difficulties()):
        assert 'id="blanks"' not in student_page(made, strings=strings)


@pytest.mark.parametrize(
    ("written", "share"),
    [(0.6, 0.6), (1, 1.0), (None, None), ("half", None), (True, None), (0, None), (7, None), ("<=x", None)],
)
def test_the_share_of_points_is_told_if_there_is_one(written, share):
    expected = None if share is None else {"share": share}
    assert _right_from(written) == expected


@pytest.mark.parametrize(("written", "told"), [("<=4", {"at_most": 4}), (">=49.5", {"at_least": 49.5})])
def test_the_mark_of_grades_and_points_is_told(written, told):
    assert _right_from(written) == told


def _right_from(written):
    (data,) = re.findall(r'id="data">(.*?)</script>', student_page(with_provenance(pass_share=written)), re.S)
    return json.loads(data)["right_from"]


def test_the_texts_to_translate_are_the_english_ones():
    assert json.loads(english_strings()) == read_strings("en")


def test_the_page_is_for_the_released_items_and_pass_mark():
    made = make_difficulties((None, -1.0, 0.5, 1.0), title="Test one")
    (data,) = re.findall(r'id="data">(.*?)</script>', student_page(made, pass_mark=0.6), re.DOTALL)
    content = json.loads(data)
    assert [item["name"] for item in content["items"]] == ["Task 2", "Task 3", "Task 4"]
    assert content["left_out"] == ["Task 1"]
    assert content["needed"] == 2
    assert "<h1>Test one</h1>" in student_page(made)
    assert "<h1>Another</h1>" in student_page(made, title="Another")
    assert "<h1>Die Aufgaben, eine nach der anderen</h1>" in student_page(
        make_difficulties(), strings=read_strings("de")
    )


@pytest.mark.parametrize("language", ["en", "de"])
def test_an_exam_with_points_speaks_of_points(language):
    strings, made = read_strings(language), with_provenance(missing="counted as wrong")
    points = replace(made, items=tuple(replace(item, credits=(0.0, 0.5, 0.0)) for item in made.items))
    for given, shown, hidden in ((points, "points", "wrong"), (made, "wrong", "points")):
        text = student_page(given, strings=strings)
        assert f">{strings[f'rest_{shown}']}</button>" in text
        assert f">{strings[f'rest_{hidden}']}</button>" not in text
    assert f'class="rule">{strings["blanks_points"]}</p>' in student_page(points, strings=strings)
    assert f'id="all-right">{strings["all_points"]}</button>' in student_page(points, strings=strings)
