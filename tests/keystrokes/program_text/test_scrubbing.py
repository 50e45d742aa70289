"""Scrubbed programs parse as before, are consistent, and do not say what was planted in them."""

import ast
import io
import itertools
import random
import shutil
import subprocess
import tokenize
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import understudy
from understudy.errors import UsageError
from understudy.keystrokes.program_text import People, Replacements, Wanted, scrub_texts
from understudy.keystrokes.program_text.languages import language_of
from understudy.keystrokes.program_text.people import fold

JAVA = """package fi.campus.week1;

import java.util.ArrayList;
import java.util.Scanner;

/** Prints my name. @author Zanzibar Quux */
public class HelloName<Thing extends Comparable<Thing>> {
    private static int counter = 0; // C:\\Users\\zanzibar
    private final String owner;
    enum Colour { REDDISH, BLUISH }
    record Pair(int left, int right) { }

    public HelloName(String owner) { this.owner = owner; }

    @Override
    public String toString() { return "Owner:\\t" + owner + '\\n' + 'q' + "\\u00fc\\101"; }

    public static void main(String[] args) throws Exception {
        Scanner reader = new Scanner(System.in);
        ArrayList<String> lines = new ArrayList<>();
        outer:
        for (int i = 0; i < 10; i++) {
            for (String line : lines) {
                if (line.isEmpty()) { continue outer; }
                counter += line.length();
            }
        }
        lines.forEach(entry -> System.out.println("Hi " + entry));
        lines.stream().map(String::trim).forEach(System.out::println);
        var text = \"\"\"
            Hello
              Zanzibar "Quux" \\
            \"\"\";
        try { System.out.println(Math.max(counter, 0x1F) + Integer.MAX_VALUE + text); }
        catch (RuntimeException problem) { throw problem; }
        Object thing = Colour.REDDISH;
        if (thing instanceof Colour shade) { System.out.println(shade.name()); }
        System.out.println(new HelloName<Integer>("me") + new Pair(1, 2).toString());
    }
}
"""
PYTHON = '''#!/usr/bin/env python
"""My first program, by Zanzibar Quux."""
from __future__ import annotations
import math as mathematics
from random import randint

total: int = 0


class Greeter(object):
    kind = "greeter"

    def __init__(self, owner="Zanzibar", *rest, **more):
        self.owner = owner
        self.count = len(rest)

    @property
    def message(self):
        return f"Hello {self.owner!r:>{10}} {{braces}} {total + 1:,}" + r"raw\\d" + b"by\\x41te".decode()

    def shout(self, times=2):
        global total
        for index, letter in enumerate(self.message):
            total += index
        return [word.upper() for word in self.message.split() if (size := len(word)) > times]


def main():
    greeter = Greeter(owner="me", loud=True)
    print(greeter.shout(times=3), "text".count("t"), end="\\n", sep='')
    print("\\N{LATIN SMALL LETTER A} \\u00fc \\101 \\\\ long \\
line", mathematics.sqrt(randint(1, 2)))
    match greeter.shout():
        case [first, *others]:
            print(first, others)
        case {"key": value}:
            print(value)
    try:
        with open("C:/Users/zanzibar/file.txt") as handle:
            handle.read()
    except OSError as problem:
        raise ValueError("no") from problem
    return lambda count: count + 1


if __name__ == "__main__":
    main()
'''


def scrub(text, language="python", names=(), replace="names,emails,strings,comments,identifiers", **options):
    chance = options.pop("chance", None) or random.Random(7)
    return scrub_texts(
        [text],
        [language_of(language)],
        Replacements(chance, **options),
        people=People.of(names),
        wanted=Wanted.of(replace),
    )


def shape(text):
    def one(character):
        if character.isalpha():
            return "A" if character.isupper() else "a"
        return "0" if character.isdigit() else character

    return "".join(map(one, text))


def nodes(text, language):
    """Kinds and places of everything that the parser sees; escapes aside, which are letters too."""
    tree = language_of(language).parser.parse(text.encode())
    found, todo = [], [tree.root_node]
    while todo:
        node = todo.pop()
        found.append((node.type, node.start_point, node.end_point))
        todo.extend(node.children)
    return found


class Bare(ast.NodeTransformer):
    """A program's tree without its names and constants."""

    def generic_visit(self, node):
        super().generic_visit(node)
        for field in ("id", "name", "attr", "arg", "asname", "module", "rest"):
            if isinstance(getattr(node, field, None), str):
                setattr(node, field, "x")
        if isinstance(node, ast.Global):
            node.names = ["x"] * len(node.names)
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            node.value = type(node.value)()
        return node


def bare_tree(text):
    return ast.dump(Bare().visit(ast.parse(text)), include_attributes=True)


def python_tokens(text):
    return [
        (token.type, token.start, token.end) for token in tokenize.generate_tokens(io.StringIO(text).readline)
    ]


def test_python_keeps_tokens_tree_and_positions():
    new = scrub(PYTHON).texts[0]
    assert new != PYTHON
    assert python_tokens(new) == python_tokens(PYTHON)
    assert bare_tree(new) == bare_tree(PYTHON)
    assert nodes(new, "python") == nodes(PYTHON, "python")


def test_python_without_shape_keeps_the_tree():
    new = scrub(PYTHON, keep_shape=False).texts[0]
    strip = ast.dump
    assert strip(Bare().visit(ast.parse(new))) == strip(Bare().visit(ast.parse(PYTHON)))


@pytest.mark.parametrize(
    "path", sorted(Path(understudy.__file__).parent.glob("logs/*.py")), ids=lambda p: p.name
)
def test_real_modules_keep_tokens_tree_and_comments_lengths(path):
    text = path.read_text(encoding="utf-8")
    scrubbed = scrub(text)
    new = scrubbed.texts[0]
    assert scrubbed.report.n_broken == 0
    assert python_tokens(new) == python_tokens(text)
    assert bare_tree(new) == bare_tree(text)


def test_java_keeps_node_kinds_and_positions():
    new = scrub(JAVA, "java").texts[0]
    assert nodes(new, "java") == nodes(JAVA, "java")
    # The escapes stand for other letters.
    assert shape(new.replace("\\u00", "")) != new
    assert [len(line) for line in new.split("\n")] == [len(line) for line in JAVA.split("\n")]


@pytest.mark.skipif(shutil.which("javac") is None, reason="no javac here")
@pytest.mark.parametrize("keep_shape", [True, False])
def test_java_still_compiles(tmp_path, keep_shape):
    scrubbed = scrub_texts(
        [JAVA],
        [language_of("java")],
        Replacements(random.Random(3), keep_shape=keep_shape),
        titles=["HelloName"],
    )
    (tmp_path / "HelloName.java").write_text(JAVA)
    file = tmp_path / f"{scrubbed.titles[0]}.java"
    file.write_text(scrubbed.texts[0])
    assert file.name != "HelloName.java"
    for source in (tmp_path / "HelloName.java", file):
        done = subprocess.run(
            ["javac", "-proc:none", "-d", str(tmp_path / "out"), str(source)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr


def test_library_names_stay_and_declared_names_go():
    new = scrub(JAVA, "java").texts[0]
    for kept in (
        "System.out.println",
        "String[] args",
        "public static void main",
        "Math.max",
        "isEmpty",
        "java.util.Scanner",
        "Integer.MAX_VALUE",
        "toString",
    ):
        assert kept in new
    for gone in (
        "HelloName",
        "counter",
        "owner",
        "lines",
        "reader",
        "campus",
        "REDDISH",
        "Zanzibar",
        "entry",
    ):
        assert gone not in new
    new = scrub(PYTHON).texts[0]
    for kept in (
        "self.",
        "print(",
        "enumerate(",
        ".upper()",
        "__init__",
        "randint(1, 2)",
        '"__main__"',
        ".count(",
        "end=",
        "import math as",
        ".sqrt(",
    ):
        assert kept in new
    for gone in ("Greeter", "owner", "greeter", "total", "Zanzibar", "zanzibar", "mathematics", "letter"):
        assert gone not in new


def test_the_shape_of_names_is_kept_letter_for_letter():
    text = "my_Name2 = ÉtaGe\n"
    new = scrub(text).texts[0]
    assert shape(new) == shape(text)


def test_equal_texts_equal_replacements_and_growing_texts_grow():
    snapshots = [f'print("{"Hello Zanz"[:end]}")\n' for end in range(11)]
    new = scrub_texts(snapshots, [language_of("python")] * 11, Replacements(random.Random(1))).texts
    contents = [text[len('print("') : -len('")\n')] for text in new]
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(contents))
    assert contents[-1] != "Hello Zanz"
    half = ["counter = 1\nprint(coun)\n", "counter = 1\nprint(counter)\n"]
    first, second = scrub_texts(half, [language_of("python")] * 2, Replacements(random.Random(1))).texts
    assert second.split("\n")[1].startswith(first.split("\n")[1].removesuffix(")"))
    assert second.split(" ")[0] == second.split("(")[1].removesuffix(")\n")


def test_learners_have_replacements_of_their_own_and_runs_too():
    text = "counter_of_things = 'Hello'\n"
    assert scrub(text, chance=random.SystemRandom()).texts != scrub(text, chance=random.SystemRandom()).texts


@given(
    st.sets(st.from_regex(r"[a-z_][a-z0-9_]{0,2}", fullmatch=True), min_size=1, max_size=60),
    st.integers(0, 9),
)
@settings(max_examples=40, deadline=None)
def test_names_collide_with_nothing(names, seed):
    keywords = language_of("python").keywords
    names = sorted(name for name in names if name not in keywords)
    text = "".join(f"{name} = {at}\n" for at, name in enumerate(names)) + "print(unknown())\n"
    new = scrub(text, chance=random.Random(seed)).texts[0]
    bare_tree(new)
    targets = [node.targets[0].id for node in ast.parse(new).body[:-1]]
    assert len(set(targets)) == len(names)
    assert not set(targets) & (keywords | {"print", "unknown"})


def test_more_names_of_one_letter_than_letters():
    letters = [*"abcdefghijklmnopqrstuvwxyz", "é", "ü", "ß"]
    text = "".join(f"{letter} = 1\n" for letter in letters)
    new = scrub(text).texts[0]
    assert len({line.split(" ")[0] for line in new.splitlines()}) == len(letters)
    ast.parse(new)


CANARY = "Zübeydé Quïxotl"
CANARIES = ("zubeyde", "zuebeyde", "quixotl", "0147258369", "147258369")


def variant(word, how):
    forms = {
        0: word,
        1: word.upper(),
        2: word.lower(),
        3: unicodedata.normalize("NFD", word),
        4: fold(word)[0],
        5: word.replace("ü", "ue"),
        6: word.lower().replace("ü", "\\u00fc"),
    }
    return forms[how]


planted = st.builds(variant, st.sampled_from([*CANARY.split(), CANARY, "0147258369"]), st.integers(0, 6))
identifier = st.builds(
    lambda word, how: "my_" + fold(variant(word, how))[0],
    st.sampled_from(CANARY.split()),
    st.sampled_from([0, 1, 2, 4, 5]),
)
SLOTS = {
    "python": [
        "print('Hello {}')",
        'x = f"I am {} {{x}} and {}"',
        "# by {}",
        '"""Doc\n  {}\n"""',
        "y = 'it\\'s {}' 'and {}'",
    ],
    "java": [
        'class A {{ void f() {{ System.out.println("Hello {}"); }} }}',
        "// by {}",
        "/* a\n * {}\n */",
        'class B {{ String t = """\n  {}"""; }}',
    ],
}


def says_canary(text):
    folded = fold(text)[0]
    return any(canary in folded for canary in CANARIES)


@given(
    st.data(),
    st.sampled_from(["python", "java"]),
    st.booleans(),
    st.sampled_from(
        ["names,emails,strings,comments,identifiers", "names", "names,comments", "names,identifiers"]
    ),
)
@settings(max_examples=150, deadline=None)
def test_canaries_never_come_out(data, language, keep_shape, replace):
    lines = []
    for slot in data.draw(st.lists(st.sampled_from(SLOTS[language]), min_size=1, max_size=4)):
        lines.append(slot.format(*[data.draw(planted) for _ in range(slot.count("{}"))]))
    name = data.draw(identifier)
    lines.append(f"{name} = 147258369" if language == "python" else f"class {name} {{ int a = 147258369; }}")
    text = "\n".join(lines) + "\n"
    new = scrub(text, language, [CANARY, "0147258369"], replace, keep_shape=keep_shape).texts[0]
    assert says_canary(text)
    assert not says_canary(new)


@given(st.data(), st.sampled_from(["python", "java"]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_half_typed_code_never_says_the_canary_even_without_a_list(data, language, keep_shape):
    """Cut anywhere, with marks taken out or put in: no list, so the kinds alone must do."""
    whole = (PYTHON if language == "python" else JAVA).replace("Zanzibar", "Quixotl")
    whole = whole.replace("zanzibar", "quixotl")
    text = whole[: data.draw(st.integers(0, len(whole)))]
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(text)))
        if data.draw(st.booleans()):
            text = (
                text[:at]
                + data.draw(st.sampled_from(["'", '"', '"""', "/*", "*/", "#", "(", "\\", "\0"]))
                + text[at:]
            )
        else:
            text = text[:at] + text[at + 1 :]
    scrubbed = scrub(text, language, keep_shape=keep_shape)
    if not keep_shape:
        return
    new = scrubbed.texts[0]
    assert len(new) == len(text)
    assert "quixotl" not in fold(new)[0]


@given(st.text(max_size=200), st.sampled_from(["python", "java"]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_any_text_at_all(text, language, keep_shape):
    new = scrub(text + "Quixotl", language, ["Quixotl"], keep_shape=keep_shape).texts[0]
    assert "quixotl" not in fold(new)[0]
    if keep_shape:
        assert len(new) == len(text + "Quixotl")


@pytest.mark.parametrize(
    "text",
    [
        'System.out.println("Quixotl);\nSystem.out.println("Quixotl");\n',
        'String a = "it\nString b = "Quixotl";\n',
        "System.out.println(Hello Quixotl);\n",
        "class A { /* Quixotl\n Quixotl\n",
        " * Quixotl */ class A { }",
        'class A { String s = "x +\n" + Quixotl + "\n"; }',
    ],
)
def test_broken_java_is_read_with_suspicion(text):
    scrubbed = scrub(text, "java")
    assert "Quixotl" not in scrubbed.texts[0]
    assert "Quixotl" not in scrub(text, "java", keep_shape=False).texts[0]
    assert scrubbed.report.n_broken == 1
    assert scrubbed.report.replaced["uncertain"] > 0


@pytest.mark.parametrize(
    "text",
    [
        "print('it's Quixotl')\n",
        "print(Hello Quixotl)\n",
        "print('Quixotl\nx = 1\n",
        'x = """a\n"""b Quixotl"""\n',
        "print(Quixotl)\n",
        "print(”Hello Quixotl”)\n",
        "print(f'{x:Quixotl %d}')\n",
    ],
)
def test_broken_python_is_read_with_suspicion(text):
    assert "Quixotl" not in scrub(text).texts[0]


def test_addresses_go_and_the_rest_of_a_comment_stays():
    text = "# see https://github.com/zan/x, zan.q@uni.fi, C:\\Users\\zanq\\a, /home/zanq/b, ~zanq/c\nx = a @ b.cd\n"
    scrubbed = scrub(text, replace="emails")
    new = scrubbed.texts[0]
    assert "zan" not in new
    assert new.startswith("# see https://")
    assert new.endswith("/c\nx = a @ b.cd\n")
    assert "/home/" in new
    counts = scrubbed.report.replaced
    assert (counts["emails"], counts["urls"], counts["paths"]) == (1, 1, 3)


def test_short_names_are_words_only():
    new = scrub("# Max, maximum, theMax, MAX_2\nx = max(1, 2)\n", names=["Max Li"], replace="names").texts[0]
    assert "maximum" in new
    assert "Max" not in new
    assert "MAX" not in new
    assert "max(1, 2)" in new


def test_numbers_of_students_go_from_number_literals():
    new = scrub("n = 14_567_890\nm = 145678\n", names=["014567890"], replace="names").texts[0]
    assert "14_567_890" not in new
    assert "m = 145678\n" in new
    assert isinstance(ast.parse(new).body[0].value.value, int)


def test_the_report_holds_totals_only():
    report = scrub(PYTHON, names=["Zanzibar Quux"]).report
    assert report.replaced["names"] >= 4
    assert "anzibar" not in repr(report)
    assert "anzibar" not in str(report.to_json())


def test_unknown_kinds_are_refused():
    with pytest.raises(UsageError, match="not known"):
        Wanted.of("names,nonsense")


def test_formats_stay_and_numbers_in_odd_quotes_go():
    assert ":>10.2f}" in scrub("print(f'{x:>10.2f}')\n").texts[0]
    assert "0401234567" not in scrub("print(”0401234567”)\n").texts[0]


def test_a_backslash_keeps_its_length_everywhere():
    text = 'class A { String s = "\\10'
    assert len(scrub(text, "java").texts[0]) == len(text)
    comment = "/* \\101 \\u00e4 \\new \\Ulf */ class A { }"
    new = scrub(comment, "java").texts[0]
    assert len(new) == len(comment)
    assert new.count("\\u00") == 1
