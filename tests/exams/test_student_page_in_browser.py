"""The student's page in a real browser: its numbers, its silence, and whether everybody can use it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.exams.support.made_difficulties import make_difficulties
from tests.support.browser import FAINT_WORDS
from understudy.core.privacy.guarantee import Guarantee
from understudy.exams.posterior import abilities
from understudy.exams.released_file import Difficulties
from understudy.exams.responses import Responses
from understudy.exams.student_page import read_strings, student_page

pytestmark = [pytest.mark.functional, pytest.mark.browser]

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
LONG = "Donaudampfschifffahrtsgesellschaftskapitaensmuetzenabzeichenverordnungsgesetz"

MIXED = make_difficulties((-2.0, -0.5, 0.4, 2.2, 3.5), (0.2, None, 0.9, 0.1, 2.0), mean=0.2, sd=1.4)
ONE = make_difficulties((0.7,), 0.3)
SIXTY = make_difficulties(np.linspace(-3, 3, 60).tolist(), 0.35, step=7)
EXTREME = make_difficulties([9.0] * 12, 0.5, sd=0.5)
GUESSED = make_difficulties((-2.0, -0.5, 0.4, 2.2, 3.5), 0.4, sd=1.7, guess=0.25)

DISCRIMINATING = replace(
    MIXED,
    items=tuple(replace(item, discrimination=0.4 + 0.5 * k) for k, item in enumerate(MIXED.items)),
)
POINTS = replace(
    GUESSED,
    items=tuple(
        replace(
            item, credits=tuple(0.3 * j * (most - j) for j in range(most + 1)), unit=0.5 if most > 1 else 1.0
        )
        if most > 1
        else item
        for item, most in zip(DISCRIMINATING.items, (1, 2, 4, 1, 8), strict=True)
    ),
)


class Opened:
    """A page with everything that it said and asked for."""

    def __init__(self, browser: Any, folder: Path, text: str, **options: Any) -> None:
        self.path = folder / "page.html"
        self.path.write_text(text, encoding="utf-8")
        self.said: list[str] = []
        self.asked: list[str] = []
        viewport = {"width": options.pop("width", 1280), "height": 844}
        self.page = browser.new_page(viewport=viewport, **options)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(self.path.as_uri())

    def numbers(self) -> dict[str, Any]:
        found: dict[str, Any] = self.page.evaluate("document.getElementById('spoken').figures")
        return found

    def answer(self, item: int, value: int) -> None:
        if self.page.locator(f"select[name=task-{item}]").count():
            self.page.select_option(f"select[name=task-{item}]", str(value))
        else:
            self.page.check(f"input[name=task-{item}][value='{value}']", force=True)

    def answer_all(self, values: list[int]) -> None:
        """The same for every task at once: a script clicks, as each call of the browser takes its time."""
        click = """(values) => values.forEach((value, item) => {
          const list = document.querySelector(`select[name=task-${item}]`);
          if (!list) return document.querySelector(`input[name=task-${item}][value='${value}']`).click();
          list.value = String(value);
          list.dispatchEvent(new Event("change", { bubbles: true }));
        })"""
        self.page.evaluate(click, values)


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Any]:
    opened: list[Opened] = []

    def open_one(text: str, **options: Any) -> Opened:
        opened.append(Opened(browser, tmp_path, text, **options))
        return opened[-1]

    yield open_one
    for one in opened:
        one.page.close()


@pytest.mark.parametrize(
    ("difficulties", "pass_mark", "patterns"),
    [
        (MIXED, 0.5, [[-1] * 5, [1] * 5, [0] * 5, [1, 0, -1, 1, 0], [0, 0, 0, 0, 1]]),
        (ONE, 1.0, [[-1], [1], [0]]),
        (SIXTY, 0.6, [[-1] * 60, [1] * 60, ([1, 1, 0, -1, 1] * 12)]),
        (EXTREME, 0.5, [[1] * 12, [1] + [0] * 11]),
        (GUESSED, 0.5, [[-1] * 5, [1] * 5, [0] * 5, [1, 0, -1, 1, 0], [0, 0, 0, 0, 1]]),
        (POINTS, 0.5, [[-1] * 5, [1, 2, 4, 1, 8], [0] * 5, [1, 0, -1, 1, 5], [0, 2, 3, 1, 0]]),
        (DISCRIMINATING, 0.5, [[1] * 5, [1, 0, -1, 1, 0]]),
    ],
)
def test_the_page_computes_what_python_computes(
    open_page: Any, difficulties: Difficulties, pass_mark: float, patterns: list[list[int]]
) -> None:
    opened = open_page(student_page(difficulties, pass_mark=pass_mark))
    names = [item.name for item in difficulties.items]
    for pattern in patterns:
        opened.answer_all(pattern)
        there = opened.numbers()
        points = tuple(item.points for item in difficulties.items) if difficulties.has_points else None
        rows = Responses(np.array([pattern], dtype=np.int8), tuple(names), points=points)
        here = abilities(difficulties, rows, pass_mark)
        assert there["answers"] == pattern
        for name in ("ability", "sd", "low", "high", "passing"):
            assert there[name] == pytest.approx(getattr(here, name)[0], abs=1e-9), name
        for name in ("chances", "by_others"):
            np.testing.assert_allclose(there[name], getattr(here, name)[0], atol=1e-9, err_msg=name)
        for name in ("should_have", "surprising"):
            assert there[name] == getattr(here, name)[0].tolist(), name
    assert opened.said == []


def test_nothing_leaves_and_nothing_is_kept(open_page: Any) -> None:
    opened = open_page(student_page(MIXED))
    opened.page.click("#all-right")
    opened.answer(2, 0)
    opened.page.wait_for_timeout(800)
    assert opened.asked == [opened.path.as_uri()]
    assert opened.said == []
    kept = "[localStorage.length, sessionStorage.length, document.cookie]"
    assert opened.page.evaluate(kept) == [0, 0, ""]
    blocked = opened.page.evaluate("fetch('https://example.org/').then(() => 'sent', () => 'blocked')")
    assert blocked == "blocked"
    assert opened.asked == [opened.path.as_uri()]
    # The browser announces a picture before the policy forbids it, so the policy's own word counts.
    forbidden = """new Promise((done) => {
      document.addEventListener('securitypolicyviolation', (event) => done(event.effectiveDirective));
      document.body.appendChild(new Image()).src = 'https://example.org/x.png';
    })"""
    assert opened.page.evaluate(forbidden) == "img-src"
    opened.page.reload()
    assert opened.numbers()["answers"] == [-1] * 5


def test_the_keyboard_is_enough(open_page: Any) -> None:
    opened = open_page(student_page(MIXED))
    focused = "document.activeElement.id || document.activeElement.name"
    keys = opened.page.keyboard
    seen = []
    for _ in range(4):
        keys.press("Tab")
        seen.append(opened.page.evaluate(focused))
    assert seen == ["all-right", "", "clear", "task-0"]
    keys.press("ArrowRight")
    assert opened.numbers()["answers"] == [0, -1, -1, -1, -1]
    keys.press("ArrowLeft")
    keys.press("Tab")
    keys.press("Space")
    assert opened.numbers()["answers"] == [1, 1, -1, -1, -1]
    keys.press("Enter")
    assert opened.numbers()["answers"] == [1, 1, -1, -1, -1]
    opened.page.focus("#clear")
    keys.press("Space")
    assert opened.numbers()["answers"] == [-1] * 5
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert opened.page.evaluate(outline) == "solid"
    assert opened.said == []


BASICS = """() => {
  const inputs = [...document.querySelectorAll('input')];
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
  return {
    unlabelled: inputs.filter((i) => !i.labels.length || !i.labels[0].textContent.trim()).length,
    unnamed: [...document.querySelectorAll('legend')].filter((l) => !l.textContent.trim()).length,
    nameless: [...document.querySelectorAll('button, a')].filter((b) => !b.textContent.trim()).length,
    doubled: ids.length - new Set(ids).size,
    dangling: ['aria-labelledby', 'aria-describedby']
      .flatMap((name) => [...document.querySelectorAll(`[${name}]`)].map((e) => e.getAttribute(name)))
      .flatMap((value) => value.split(' '))
      .filter((id) => !document.getElementById(id)).length,
    pictures: [...document.querySelectorAll('svg')]
      .filter((s) => !s.closest('[aria-hidden=true]') && !s.getAttribute('aria-label')).length,
    small: [...document.querySelectorAll('.face, button')]
      .filter((e) => e.getClientRects().length && e.getBoundingClientRect().height < 44).length,
    headings: document.querySelectorAll('h1').length,
  };
}"""


def test_basics_for_assistive_technology(open_page: Any) -> None:
    opened = open_page(student_page(MIXED))
    basics = opened.page.evaluate(BASICS)
    assert basics.pop("headings") == 1
    assert set(basics.values()) == {0}, basics
    assert opened.page.get_attribute("html", "lang") == "en"
    assert opened.page.get_attribute("#spoken", "aria-live") == "polite"
    opened.answer(0, 1)
    opened.page.wait_for_timeout(900)
    assert opened.page.text_content("#spoken") == "Entered: 1 of 5"
    opened.page.click("#all-right")
    opened.page.wait_for_timeout(900)
    assert "Chance of passing" in opened.page.text_content("#spoken")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_in_both_schemes(open_page: Any, scheme: str) -> None:
    bare = make_difficulties((-3.0, -2.5, 2.5, 3.0, 0.0), 0.1, guarantee=Guarantee.none("test"))
    opened = open_page(
        student_page(bare, accept_risk="a drill"), color_scheme=scheme, reduced_motion="reduce"
    )
    for item, value in enumerate((0, 1, 1, 1, -1)):
        opened.answer(item, value)
    assert opened.page.is_visible(".flag.should_have")
    assert opened.page.evaluate(FAINT_WORDS) == []
    dark = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (dark == "rgb(13, 18, 24)") == (scheme == "dark")


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_the_page_fits_the_screen(open_page: Any, width: int) -> None:
    names = [LONG, f"{LONG} {LONG}", HOSTILE, *(f"Task {k}" for k in range(4, 61))]
    made = make_difficulties(np.linspace(-3, 3, 60).tolist(), 4.0, names=names, title=LONG, step=7)
    opened = open_page(student_page(made, strings=read_strings("de")), width=width)
    fits = "document.documentElement.scrollWidth <= window.innerWidth"
    assert opened.page.evaluate(fits)
    opened.page.click("#all-right")
    opened.answer(5, 0)
    assert opened.page.evaluate(fits)
    assert opened.said == []


def test_the_german_page_is_german(open_page: Any) -> None:
    opened = open_page(student_page(MIXED, strings=read_strings("de")))
    opened.answer(0, 1)
    missing = opened.page.inner_text("#summary")
    assert "Noch einzutragen: 4 von 5." in missing
    opened.page.click("#missing .rest-wrong")
    words = opened.page.inner_text("body")
    assert opened.page.get_attribute("html", "lang") == "de"
    for text in ("Wo du stehst", "Eingetragen: 5 von 5", "Alles löschen", "7,4-mal", "1 zu 1.000.000"):
        assert text in words
    assert not [word for word in (" the ", "Right", "undefined", "{", "NaN") if word in words]
    assert "," in opened.page.text_content("#ability")


def test_names_and_titles_are_shown_as_text(open_page: Any) -> None:
    made = make_difficulties((-1.0, 1.0, None), names=[HOSTILE, "b", f"c {HOSTILE}"], title=HOSTILE)
    opened = open_page(student_page(made))
    opened.answer(0, 0)
    assert opened.page.evaluate("window.hacked") is None
    assert opened.page.text_content("h1") == HOSTILE
    assert opened.page.title() == HOSTILE
    assert opened.page.text_content("legend") == HOSTILE
    assert opened.page.evaluate("document.images.length") == 0
    assert HOSTILE in opened.page.text_content("#left-out")
    assert opened.said == []


def test_it_says_in_words_what_it_found(open_page: Any) -> None:
    made = make_difficulties((-3.0, -2.5, 2.5, 3.0, 0.0), 0.1, step=2)
    opened = open_page(student_page(made))
    assert opened.page.is_visible("#empty")
    assert not opened.page.is_visible("#outstanding")
    # Whose chance it is would not be clear before anything is entered.
    assert opened.page.text_content("#next-0") == ""
    assert not opened.page.is_visible("#next-0")
    for item, value in enumerate((0, 1, 1, 1, -1)):
        assert not opened.page.is_visible("#figures")
        opened.answer(item, value)
    words = opened.page.inner_text("body")
    assert not opened.page.is_visible("#empty")
    assert re.fullmatch(r"Next time \d+%", opened.page.text_content("#next-0"))
    assert "neighbouring boxes may overlap too" in words
    assert "Entered: 5 of 5" in words
    assert "You could have had this" in opened.page.inner_text("#stand-out")
    assert "Task 1" in opened.page.inner_text("#stand-out")
    assert "at least 3 of 5 right" in words
    assert "Nothing is sent anywhere and nothing is stored" in words
    assert "blurred on purpose" in words
    assert "at most 7.4 times as likely" in words
    assert opened.page.locator(".step").count() == 2
    assert opened.page.locator("#ladder .mark-right").count() == 3
    assert opened.page.locator("#ladder .mark-wrong").count() == 1
    for word in ("anonymous", "safe", "undefined", "NaN"):
        assert word not in words
    opened.page.click("#clear")
    assert opened.page.is_visible("#empty")
    assert not opened.page.is_visible("#next-0")


def test_ordinary_answers_are_called_so(open_page: Any) -> None:
    opened = open_page(student_page(MIXED))
    for item, value in enumerate((-1, -1, 1, -1, -1)):
        opened.answer(item, value)
    assert "about what your other answers suggest" in opened.page.inner_text("#stand-out")


def test_there_is_no_verdict_while_entries_are_missing(open_page: Any) -> None:
    """Ten tasks ticked and ten untouched are not a chance of passing above 99 %."""
    made = replace(
        make_difficulties(np.linspace(-2, 2, 20).tolist(), 0.3), provenance={"missing": "counted as wrong"}
    )
    opened = open_page(student_page(made))
    # Every task was asked of everybody: there are two choices.
    assert opened.page.locator("input[name=task-0]").count() == 2
    for item in range(10):
        opened.answer(item, 1)
    words = opened.page.inner_text("body")
    assert "Still to be entered: 10 of 20." in opened.page.inner_text("#summary")
    assert not opened.numbers()["complete"]
    for hidden in ("#figures", "#outstanding", "#ladder-summary", "#next-0", ".you"):
        assert not opened.page.is_visible(hidden), hidden
    assert "99%" not in words
    assert "Entered: 10 of 20" in opened.page.text_content("#bar-text")
    opened.page.click("#missing .rest-wrong")
    assert opened.numbers()["answers"] == [1] * 10 + [0] * 10
    assert opened.page.is_visible("#figures")
    assert not opened.page.is_visible("#missing")
    expected = abilities(
        made, Responses.from_matrix([[1] * 10 + [0] * 10], [i.name for i in made.items]), 0.5
    )
    assert opened.numbers()["passing"] == pytest.approx(expected.passing[0], abs=1e-9)
    assert opened.numbers()["passing"] < 0.9
    opened.page.click("#clear")
    assert opened.page.is_visible("#empty")
    assert not opened.page.is_visible("#missing")


@pytest.mark.parametrize(
    ("language", "blank", "right"),
    [
        ("en", "counts as wrong here: choose Wrong.", "Right means at least 62.5% of the points."),
        ("de", "zählt hier als falsch", "mindestens 62,5\u00a0% der Punkte."),
    ],
)
def test_what_counts_as_right_stands_by_the_tasks(
    open_page: Any, language: str, blank: str, right: str
) -> None:
    made = replace(MIXED, provenance={"missing": "counted as wrong", "pass_share": 0.625})
    words = open_page(student_page(made, strings=read_strings(language))).page.inner_text(".form-head")
    assert blank in words
    assert right in words
    plain = open_page(student_page(MIXED, strings=read_strings(language)))
    assert blank not in plain.page.inner_text("body")
    assert not plain.page.is_visible("#right-means")


def test_what_counts_as_right_may_be_a_grade(open_page: Any) -> None:
    made = replace(MIXED, provenance={"pass_share": "<=4.5"})
    words = open_page(student_page(made, strings=read_strings("de"))).page.inner_text(".form-head")
    assert "Richtig heißt: 4,5 oder weniger." in words


def test_the_exact_statement_is_there_for_those_who_want_it(open_page: Any) -> None:
    opened = open_page(student_page(MIXED))
    assert "in the words of the file" not in opened.page.inner_text(".about")
    opened.page.click("summary")
    assert "in the words of the file: epsilon 2" in opened.page.inner_text(".about")


@pytest.mark.parametrize(
    ("guarantee", "words"),
    [
        (Guarantee(0.1), "at most 1.2 times as likely"),
        (Guarantee(8.0), "a weak promise"),
        (Guarantee(20.0), "promises next to nothing"),
        (Guarantee.none("an exact fit"), "Why: an exact fit."),
    ],
)
def test_the_guarantee_is_explained(open_page: Any, guarantee: Guarantee, words: str) -> None:
    made = make_difficulties(guarantee=guarantee)
    opened = open_page(student_page(made, accept_risk="a drill"))
    shown = opened.page.inner_text(".about")
    assert words in shown
    assert ("blurred" in shown) == guarantee.formal
    assert ("a drill" in shown) == (not guarantee.formal)
    # A guarantee for something else than a student is given in its own words only.
    other = make_difficulties(guarantee=Guarantee(1.0, unit="a single answer"))
    again = open_page(student_page(other)).page.inner_text(".about")
    assert "for a single answer" in again
    assert "times as likely" not in again


def test_the_bar_is_there_while_the_result_is_out_of_sight(open_page: Any) -> None:
    opened = open_page(student_page(SIXTY), width=390, reduced_motion="reduce")
    opened.page.click("#all-right")
    assert opened.page.is_visible("#bar")
    # Nothing lies over it, wherever the page is scrolled to.
    over = "scrollTo(0, 900), document.elementFromPoint(60, innerHeight - 20).closest('#bar') !== null"
    assert opened.page.evaluate(over)
    opened.page.click("#bar")
    opened.page.wait_for_selector("#bar", state="hidden")
    assert opened.page.locator("#passing").is_visible()


def test_bars_on_the_ladder_are_whole_or_marked_as_cut(open_page: Any) -> None:
    def drawn(difficulties: Difficulties) -> tuple[list[float], int]:
        page = open_page(student_page(difficulties)).page
        lengths = page.evaluate(
            "[...document.querySelectorAll('#ladder .error')].map((bar) => bar.x2.baseVal.value - bar.x1.baseVal.value)"
        )
        return lengths, page.locator("#ladder .cut").count()

    whole, cuts = drawn(make_difficulties((-1.0, 0.0, 1.0), (0.2, 0.4, 0.8)))
    assert cuts == 0
    assert whole == pytest.approx([whole[0], 2 * whole[0], 4 * whole[0]])
    _, cuts = drawn(make_difficulties((-1.0, 0.0, 1.0), (0.2, 0.4, 3.0)))
    assert cuts == 2


def test_it_prints(open_page: Any) -> None:
    opened = open_page(student_page(SIXTY))
    opened.page.emulate_media(media="print", color_scheme="dark")
    assert not opened.page.is_visible("#clear")
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert len(opened.page.pdf()) > 10_000
