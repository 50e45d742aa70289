"""The ladder: every item once, in order, without overlap; no student in it."""

import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest

import understudy as us
from tests.exams.support.made_difficulties import make_difficulties
from understudy.core.privacy.guarantee import Guarantee
from understudy.errors import DataError, UsageError
from understudy.exams.ladder import ladder, ladder_svg

SVG = "{http://www.w3.org/2000/svg}"


def rows(svg):
    """Per item: its whole name, the height of its row, and the places of bar and dot."""
    found = []
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        dot, bar = group.find(f"{SVG}circle"), group.find(f"{SVG}line")
        name = group.find(f"{SVG}title").text.partition(":")[0]
        ends = None if bar is None else (float(bar.get("x1")), float(bar.get("x2")))
        found.append((name, float(dot.get("cy")), float(dot.get("cx")), ends))
    return found


def test_items_stand_in_order_with_their_intervals():
    made = make_difficulties((0.3, -1.5, 1.2, -0.4), (0.2, 0.3, 3.0, None))
    found = rows(ladder_svg(made))
    assert [name for name, *_ in found] == ["Task 2", "Task 4", "Task 1", "Task 3"]
    places = [x for _, _, x, _ in found]
    assert places == sorted(places)
    assert found[1][3] is None
    for _, _, x, ends in (row for row in found if row[3]):
        assert 128 <= ends[0] <= x <= ends[1] <= 388


def test_two_hundred_items_do_not_overlap_and_long_names_are_cut():
    names = [f"A very long name of question {i}" for i in range(200)]
    found = rows(ladder_svg(make_difficulties([i / 50 - 2 for i in range(200)], names=names)))
    heights = [y for _, y, _, _ in found]
    assert [name for name, *_ in found] == names
    assert min(b - a for a, b in pairwise(heights)) >= 14
    svg = ladder_svg(make_difficulties(names=names[:4]))
    assert max(len(text) for text in re.findall(r'<text x="6" y="[\d.]+">([^<]*)<', svg)) <= 24


def test_names_are_text_and_the_picture_has_words_for_those_who_do_not_see_it():
    svg = ladder_svg(make_difficulties(names=["<b>a</b>", "b & c", "d", "e"], title="<Spring>"))
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text == "<Spring>"
    assert "no student is drawn" in root.find(f"{SVG}desc").text
    assert "prefers-color-scheme:dark" in svg


def places_of_ticks(svg):
    return {
        int(n): float(x) for x, n in re.findall(r'x="([\d.]+)" y="[\d.]+" text-anchor="middle">(\d)<', svg)
    }


@pytest.mark.parametrize("guess", [0.0, 0.25])
def test_ticks_are_where_so_many_of_ten_stand_further_right(guess):
    """Whatever guessing adds: half of the students are beyond the mean, one of ten 1.28 standard deviations above."""
    svg = ladder_svg(make_difficulties((0.7, 0.7 + 1.4 * 1.2816), mean=0.7, sd=1.4, guess=guess, step=1))
    dots = [x for _, _, x, _ in rows(svg)]
    ticks = places_of_ticks(svg)
    assert [ticks[5], ticks[1]] == pytest.approx(dots, abs=0.5)
    assert "solved by so many" not in svg
    assert ("guesses" in svg) == (guess > 0)


def test_bars_are_whole_or_marked_as_cut():
    whole = ladder_svg(make_difficulties((-5.4, 0.0, 1.0), (0.51, 0.3, 0.3)))
    _, _, x, ends = rows(whole)[0]
    assert x - ends[0] == pytest.approx(ends[1] - x, abs=0.2)
    assert 'class="cut"' not in whole
    assert "An arrow" not in whole
    cut = ladder_svg(make_difficulties((-5.4, 0.0, 1.0), (0.51, 9.0, 0.3)))
    assert cut.count('class="cut"') == 2
    assert "An arrow marks a bar that goes on beyond the frame." in cut


def test_without_errors_no_bar_is_promised():
    svg = ladder_svg(make_difficulties(standard_error=None))
    assert "no standard errors are stated" in svg
    assert "95 %" not in svg


def test_what_is_not_private_says_so_and_nothing_is_refused_to_the_teacher():
    assert "keep this picture inside" in ladder_svg(make_difficulties(guarantee=Guarantee.none("a test")))
    assert "keep this picture inside" not in ladder_svg(make_difficulties())


def test_items_without_a_difficulty_are_counted_and_none_at_all_is_an_error():
    assert "1 item without a difficulty" in ladder_svg(make_difficulties((None, 0.0, 1.0)))
    with pytest.raises(DataError) as caught:
        ladder(make_difficulties((None, None)))
    assert caught.value.code == "nothing-to-draw"


def test_files_are_pictures_or_pages(tmp_path):
    made = make_difficulties(title="Spring")
    found = us.ladder(made, out=tmp_path / "l.svg")
    ElementTree.parse(tmp_path / "l.svg")
    page = us.ladder(made, out=tmp_path / "l.html")
    text = (tmp_path / "l.html").read_text(encoding="utf-8")
    assert text == page.html
    assert "default-src 'none'" in text
    assert "<script" not in text
    assert found.to_json()["items"] == 4
    with pytest.raises(UsageError):
        us.ladder(made, out=tmp_path / "l.pdf")
