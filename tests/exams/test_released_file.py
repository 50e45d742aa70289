"""The file of released difficulties: what was written is read again, and nothing else is."""

import copy
import json
import math
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.exams.support.made_difficulties import PROVED, make_difficulties, write_difficulties
from understudy.core.privacy.guarantee import Guarantee
from understudy.errors import DataError, UnderstudyError, UsageError
from understudy.exams.posterior import abilities
from understudy.exams.released_file import Difficulties
from understudy.exams.responses import Responses


@pytest.mark.parametrize(
    "guarantee",
    [
        PROVED,
        Guarantee(0.5, mu=0.3, slack=0.01),
        Guarantee.none("test: the noise was seeded (again)"),
        Guarantee.none(""),
    ],
)
def test_a_file_comes_back_as_it_was_written(tmp_path, guarantee):
    made = make_difficulties(
        (None, -1.0, 2.5), (None, 0.2, None), guarantee=guarantee, title="Übung </script>"
    )
    path = write_difficulties(tmp_path / "d.json", made)
    read = Difficulties.read(path)
    assert read == made
    assert str(read.guarantee) == str(guarantee)
    assert read.to_json() == made.to_json()


def test_a_file_of_before_has_its_reason_in_the_statement_only():
    content = make_difficulties(guarantee=Guarantee.none("the noise was seeded (again)")).to_json()
    assert content["guarantee"].pop("reason") == "the noise was seeded (again)"
    assert Difficulties.from_json(content).guarantee == Guarantee.none("the noise was seeded (again)")


def test_the_line_of_what_is_wrong_is_named(tmp_path):
    content = make_difficulties().to_json()
    content["items"][1]["chance"] = 2
    path = tmp_path / "d.json"
    path.write_text(json.dumps(content, indent=1))
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if '"chance": 2' in text)
    with pytest.raises(DataError) as caught:
        Difficulties.read(path)
    assert caught.value.message == f"d.json, line {line}: `chance` is not a number from 0 to 1."
    assert (caught.value.code, caught.value.fields["line"]) == ("damaged-file", line)


def test_a_missing_file_is_wrong_use(tmp_path):
    with pytest.raises(UsageError, match=r"no file .*absent\.json"):
        Difficulties.read(tmp_path / "absent.json")
    with pytest.raises(UsageError):
        Difficulties.read(tmp_path)


@pytest.mark.parametrize("text", [b"", b"learner,item\n", b"\xff\xfe", b"[" * 100_000, b'{"a": 1'])
def test_what_is_no_json_is_told_with_its_file(tmp_path, text):
    path = tmp_path / "d.json"
    path.write_bytes(text)
    with pytest.raises(DataError, match=r"d\.json.* not (JSON|text)") as caught:
        Difficulties.read(path)
    assert caught.value.hint


def test_another_format_and_another_version_are_refused():
    content = make_difficulties().to_json()
    for foreign in ([], None, 3, {}, {"format": "other"}):
        with pytest.raises(DataError, match="is not a file of difficulties"):
            Difficulties.from_json(foreign)
    for version in (2, "1", True, None):
        with pytest.raises(DataError, match="another version"):
            Difficulties.from_json({**content, "version": version})


# Each changes a good file in one place; the error says what is wrong there.
DAMAGES = {
    "`items` is not a list of one or more tables": lambda c: c.update(items=[]),
    "`items` is not a list of one or more": lambda c: c.update(items={}),
    "two items have the same name": lambda c: c["items"].append(copy.deepcopy(c["items"][0])),
    "`item` is missing": lambda c: c["items"][1].pop("item"),
    "an item has no name": lambda c: c["items"][0].update(item=" "),
    "`difficulty` is not a number": lambda c: c["items"][0].update(difficulty="hard"),
    "`difficulty` is not a number from -100 to 100": lambda c: c["items"][0].update(difficulty=10**400),
    "`standard_error` is not a number": lambda c: c["items"][0].update(standard_error=-0.1),
    "`chance` is not a number from 0 to 1": lambda c: c["items"][0].update(chance=True),
    "`unbounded` is not 'easy' or 'hard'": lambda c: c["items"][0].update(unbounded="odd"),
    "`rank_from` is not a whole number": lambda c: c["items"][0].update(rank_from=1.0),
    "the places of an item are not between 1 and 4": lambda c: c["items"][0].update(rank_to=5),
    "a number or a text that no such file holds": lambda c: c["provenance"].update(n=math.inf),
    "a number or a text": lambda c: c.update(title="\ud800"),
    "`sd` is not a number": lambda c: c["ability"].update(sd=0),
    "`mean` is missing": lambda c: c["ability"].pop("mean"),
    "`ability` is not a table of keys": lambda c: c.update(ability=[]),
    "`steps` is not a list": lambda c: c["steps"].append([]),
    "names something that is none of the items": lambda c: c["steps"].append(["absent"]),
    "`steps` is not a list of": lambda c: c["steps"].append([[]]),
    "an item stands on two steps": lambda c: c["steps"].append(["Task 1"]),
    "an item with a difficulty stands on no step": lambda c: c["steps"].pop(),
    "`formal` does not agree with `epsilon`": lambda c: c["guarantee"].update(epsilon=None),
    "epsilon is above 0": lambda c: c["guarantee"].update(epsilon=0.0),
    "delta in [0, 1)": lambda c: c["guarantee"].update(delta=1),
    "`mechanisms` is not a list of texts": lambda c: c["guarantee"].update(mechanisms=[1]),
    "`statement` does not agree": lambda c: c["guarantee"].update(formal=False, epsilon=None),
    "`title` is not a text": lambda c: c.update(title=None),
}


@pytest.mark.parametrize("found", DAMAGES)
def test_damage_is_named(found):
    content = make_difficulties().to_json()
    DAMAGES[found](content)
    with pytest.raises(DataError) as caught:
        Difficulties.from_json(content, source="d.json")
    assert "d.json" in caught.value.message
    assert found in caught.value.message
    assert "again" in caught.value.hint


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("Task 1"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield from places(below, (*path, key))


PLACES = sorted(places(make_difficulties().to_json()), key=str)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), JSON, st.booleans()), min_size=1, max_size=3))
def test_a_mangled_file_gives_difficulties_or_an_error_for_people(changes):
    content = make_difficulties().to_json()
    for path, value, remove in changes:
        inside = content
        try:
            for key in path[:-1]:
                inside = inside[key]
            if not path:
                content = value
            elif remove:
                del inside[path[-1]]
            else:
                inside[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue
    try:
        read = Difficulties.from_json(content)
        # Whatever is accepted can be used: nothing further in trips over it.
        read.to_json()
        abilities(read, Responses.from_matrix([[1]], [read.items[0].name]))
    except UnderstudyError:
        return


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, 2000), put=st.binary(max_size=4), drop=st.integers(0, 8))
def test_a_mangled_text_gives_difficulties_or_an_error_for_people(tmp_path, cut, put, drop):
    text = json.dumps(make_difficulties().to_json()).encode()
    path = tmp_path / "d.json"
    path.write_bytes(text[:cut] + put + text[cut + drop :])
    try:
        assert isinstance(Difficulties.read(path), Difficulties)
    except UnderstudyError:
        return


def test_lines_say_what_is_not_stated_and_what_was_found():
    bare = make_difficulties(standard_error=None)
    assert bare.lines()[0].startswith("No standard errors are stated")
    found = replace(
        bare,
        provenance={
            "penalty": {"value": 0.1, "source": "chosen on public responses"},
            "reused_items": {"count": 3, "same": 0.97},
        },
    ).lines()
    assert "Penalty: 0.1, chosen on public responses." in found
    assert any("earlier exam too: 3." in line and "97%" in line for line in found)
    assert make_difficulties((0.0, 3.0), 0.1, step=1).lines()[0] == "No two neighbours are ties."


def test_a_table_in_place_of_the_file_is_told_from_a_damaged_one(tmp_path):
    for name, hint in (
        ("big.csv", "that `understudy difficulties` wrote"),
        ("d.json", "quotes and brackets"),
    ):
        (tmp_path / name).write_text("learner,Q1\na,1\n")
        with pytest.raises(DataError) as caught:
            Difficulties.read(tmp_path / name)
        assert hint in caught.value.hint
