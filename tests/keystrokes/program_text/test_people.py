"""A name in a sound program goes unless it is known, whoever wrote it and however it is spelt."""

import ast
import random
import re

import pytest

from understudy.keystrokes.program_text import People, Replacements, Wanted, scrub_texts
from understudy.keystrokes.program_text.languages import language_of

ALL = "names,emails,strings,comments,identifiers"


def scrub(text, language="python", people=None, replace=ALL, seed=5):
    return scrub_texts(
        [text],
        [language_of(language)],
        Replacements(random.Random(seed)),
        people=people,
        wanted=Wanted.of(replace),
    )


def nodes(text, language):
    todo, found = [language_of(language).parser.parse(text.encode()).root_node], []
    assert not todo[0].has_error
    while todo:
        node = todo.pop()
        found.append((node.type, node.start_point, node.end_point))
        todo.extend(node.children)
    return found


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "print(matti.meikalainen@helsinki.fi)\n"),
        ("python", "__matti_meikalainen__ = 1\n"),
        ("python", "from meikalainen_utils import x\n"),
        ("python", "import os.meikalainen\nfrom math import meikalainen\n"),
        ("python", "from .meik import matti as m\n"),
        ("python", "f(meikal=3)\n"),
        ("python", "x: Meikalinen = 1\n"),
        ("python", "match y:\n    case Matti.Meik:\n        pass\n    case Meik(matti=1):\n        pass\n"),
        ("python", "@matti.meik\ndef f() -> Meik[Matti]:\n    foo.Matt1().meik_\n"),
        ("java", "@MattiMeikalainen class A { }"),
        ("java", "class MattiMeikalainen { Object f() { return new MatiMeikalainen(); } }"),
        ("java", "class A { void f() { System.out.println(Matti.Meikalainen); } }"),
        ("java", "import fi.helsinki.meikalainen.Util; class A { }"),
        ("java", "package fi.meikalainen; class A extends Meik<Matti> implements a.Matti { }"),
        ("java", "class A { void f() throws Meik { x.matti(); Matti::meik; this.matt = 1; } }"),
    ],
)
@pytest.mark.parametrize("people", [None, People.of(["Matti Meikalainen"])], ids=["no list", "list"])
def test_an_unknown_word_goes_and_the_program_parses_alike(language, text, people):
    if "::" in text:
        text = text.replace("Matti::meik;", "Runnable r = Matti::meik;")
    scrubbed = scrub(text, language, people)
    new = scrubbed.texts[0]
    assert not re.search("(?i)mat+[i1]|meik|helsinki", new)
    assert nodes(new, language) == nodes(text, language)
    counts = scrubbed.report.to_json()["replaced"]
    assert counts["identifiers"] + counts["emails"] > 0


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (
            "python",
            "import numpy\nfrom pandas import DataFrame\nfrom math import sqrt\nprint(sqrt(2), end='')\n",
        ),
        ("python", "import xml.etree.ElementTree\nfrom sklearn.linear_model import Ridge\nRidge()\n"),
        ("python", "from __future__ import annotations\nimport os.path\nos.path.join('', '').upper()\n"),
        ("java", "import java.util.concurrent.Phaser; import static java.lang.Math.fma;"),
        ("java", "import org.junit.jupiter.api.Nested; import javax.swing.*;"),
    ],
)
def test_words_of_known_libraries_stay(language, text):
    assert scrub(text, language).texts[0] == text


def test_known_dunders_stay():
    text = "class {}:\n    __slots__ = ()\n    def __post_init__(self):\n        self.__class__.__name__\n"
    new = scrub(text.format("Aa")).texts[0]
    assert new == text.format(new[6:8])


def test_unknown_words_are_replaced_alike_and_never_by_a_word_in_use():
    text = "a.bc(de=1)\nb.bc(de=2)\nc: bc\n"
    for seed in range(30):
        new = scrub(text, seed=seed).texts[0]
        one, two, three = ast.parse(new).body
        assert one.value.func.attr == two.value.func.attr == three.annotation.id
        assert one.value.keywords[0].arg == two.value.keywords[0].arg != three.annotation.id
        words = {one.value.func.value.id, two.value.func.value.id, three.target.id}
        assert len(words) == 3


def test_addresses_in_sound_code():
    scrubbed = scrub("print(max.power@helsinki.fi)\nprint(max(1, 2))\n", replace="emails")
    new = scrubbed.texts[0]
    assert scrubbed.report.replaced["emails"] == 1
    assert not re.search("max\\.|power|helsinki|fi\\)", new)
    assert new.endswith("print(max(1, 2))\n")
    ast.parse(new)
    product = "class A:\n    def f(self, x):\n        return self.W@self.x.shape\n"
    new = scrub(product).texts[0]
    assert "return self." in new
    assert re.search(r"@self\.\w\.shape", new)
    label = "class A { void f() { https://matti.fi\n return; } }"
    assert "matti" not in scrub(label, "java", replace="emails").texts[0]


@pytest.mark.parametrize(
    "written", ["matti.meikalainen", "matti_meikalainen", "MattiMeikalainen", "Matti Meikalainen"]
)
@pytest.mark.parametrize("where", ["# by {}\n", "x = 'I am {}!'\n"])
def test_ids_are_found_whatever_stands_between_their_parts(written, where):
    new = scrub(where.format(written), people=People.of_ids(["matti.meikalainen"]), replace="names").texts[0]
    assert not re.search("(?i)matti|meikalainen", new)


@pytest.mark.parametrize("one", ["student-1234", "student1234"])
@pytest.mark.parametrize("written", ["student-1234", "student1234", "student_1234", "Student 1234"])
def test_ids_of_letters_and_digits(one, written):
    people = People.of_ids([one])
    assert people.mentions(f"by {written}.") == [(3, 3 + len(written))]
    assert not people.is_named("student 123")
    code = f"print({written})\n" if " " not in written else "print(1)\n"
    assert "1234" not in scrub(code, people=people, replace="names").texts[0]


def test_an_address_as_id_is_found_by_its_first_part():
    assert People.of_ids(["matti.meik@uni.fi"]).is_named("hello matti_meik")


def test_parts_of_an_id_in_code_go_together():
    new = scrub("matti = 1\nmatti.meik()\n", people=People.of_ids(["matti.meik"]), replace="names").texts[0]
    assert "matti" not in new
    assert "meik" not in new
    assert new.split(" ")[0] == new.split("\n")[1].split(".")[0]


@pytest.mark.parametrize("replace", [ALL, "names"])
@pytest.mark.parametrize(
    "text", ['x = "Anna-Liisa O\'Brien"\n', "x = 1  # Anna-Liisa O'Brien\n", "x = 'Anna-Liisa O\\'Brien'\n"]
)
def test_a_name_in_a_text_has_no_shape(text, replace):
    """Neither capitals nor the lengths of words; only the length of all."""
    people, start = People.of(["Anna-Liisa O'Brien"]), text.index("Anna")
    end = text.index("Brien") + len("Brien")
    breaks = set()
    for seed in range(20):
        new = scrub(text, people=people, replace=replace, seed=seed).texts[0]
        assert len(new) == len(text)
        piece = new[start:end]
        assert piece == piece.lower()
        assert "-" not in piece
        assert "'" not in piece
        breaks.add(tuple(at for at, letter in enumerate(piece) if letter == " "))
        assert ast.dump(ast.parse(new).body[0].targets[0])
    assert len(breaks) > 10


def test_lines_and_indentation_of_a_text_stay():
    text = 'def f():\n    """Some Words.\n\n      More: 12\n    """\n'
    new = scrub(text).texts[0]
    lines = [(len(line), len(line) - len(line.lstrip())) for line in new.split("\n")]
    assert lines == [(len(line), len(line) - len(line.lstrip())) for line in text.split("\n")]
