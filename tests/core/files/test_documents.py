"""Contracts of files: what is wrong is named by file, line and key, and no value is shown."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pytest

from understudy.core.files.documents import ContractError, checked, contract, line_of, read_json, read_toml
from understudy.errors import DataError, UsageError

CANARY = "Zq7canary"


@dataclass(frozen=True)
class Window:
    __pydantic_config__: ClassVar = contract()

    name: str
    high: float
    hours: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.high <= 0:
            raise ContractError("a bound is above 0.", hint="give `high`.", key="high")


@dataclass(frozen=True)
class Term:
    __pydantic_config__: ClassVar = contract(n_weeks="weeks", windows="window")

    n_weeks: int
    windows: tuple[Window, ...] = ()
    kind: Literal["long", "short"] = "long"


RIGHT = """\
weeks = 3

[[window]]
name = "day"
high = 10

[[window]]
name = "night"
high = 2.5
hours = [0, 5]
"""


def test_a_file_is_read_as_its_contract_says(tmp_path):
    (tmp_path / "a.toml").write_text(RIGHT)
    wanted = Term(3, (Window("day", 10.0), Window("night", 2.5, (0, 5))))
    assert read_toml(tmp_path / "a.toml", Term) == wanted
    (tmp_path / "a.json").write_text(json.dumps({"weeks": 3, "window": [{"name": "day", "high": 1}]}))
    assert read_json(tmp_path / "a.json", Term) == Term(3, (Window("day", 1.0),))


@pytest.mark.parametrize(
    ("old", "new", "said", "line", "key"),
    [
        ("weeks = 3", 'weeks = "Zq7canary"', "`weeks` is not a whole number", 1, "weeks"),
        ("weeks = 3", "weeks = true", "`weeks` is not a whole number", 1, "weeks"),
        ("weeks = 3", "weeks = 2.5", "`weeks` is not a whole number", 1, "weeks"),
        ("weeks = 3", "weks = 3", "unknown key 'weks'", 1, "weks"),
        ("weeks = 3", "", "`weeks` is missing", None, "weeks"),
        ("weeks = 3", 'weeks = 3\nkind = "Zq7canary"', "`kind` is not 'long' or 'short'", 2, "kind"),
        ("high = 2.5", "high = -77.25", "a bound is above 0", 9, "high"),
        ("high = 2.5", 'high = "Zq7canary"', "`high` is not a number", 9, "high"),
        ("high = 2.5", "high = nan", "`high` is not a number", 9, "high"),
        ("high = 2.5", "", "`high` is missing", 7, "high"),
        ("high = 2.5", "high = 2.5\nlow = 1", "unknown key 'low'", 10, "low"),
        ("hours = [0, 5]", "hours = [0]", "`hours` is not a list of two whole numbers", 10, "hours"),
        ("hours = [0, 5]", 'hours = "Zq7canary"', "`hours` is not a list of two whole numbers", 10, "hours"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_what_is_wrong_is_named_by_line_and_key_and_never_by_value(
    tmp_path, old, new, said, line, key, as_json
):
    text = RIGHT.replace(old, new)
    path = tmp_path / ("a.json" if as_json else "a.toml")
    if as_json:
        import tomllib

        path.write_text(json.dumps(tomllib.loads(text), indent=1))
        read: Any = read_json
    else:
        path.write_text(text)
        read = read_toml
    with pytest.raises(DataError) as caught:
        read(path, Term)
    assert said in caught.value.message
    assert caught.value.code == "contract"
    assert caught.value.fields["key"] == key
    if as_json and line is not None:
        found = path.read_text().splitlines()[caught.value.fields["line"] - 1]
        assert key in found or "{" in found
    elif not as_json:
        assert caught.value.fields["line"] == line
    for hidden in (CANARY, "77.25"):
        assert hidden not in str(caught.value)


def test_unknown_keys_are_answered_with_the_known_ones(tmp_path):
    with pytest.raises(DataError) as caught:
        checked({"weeks": 3, "window": [{"name": "x", "high": 1, "low": 0}]}, Term, "a.toml")
    assert caught.value.hint == "the keys are name, high, hours."
    assert caught.value.message == "a.toml: unknown key 'low'."


def test_files_that_cannot_be_parsed(tmp_path):
    with pytest.raises(UsageError) as missing:
        read_toml(tmp_path / "none.toml", Term, hint="write one.")
    assert (missing.value.code, missing.value.hint) == ("no-such-file", "write one.")
    path = tmp_path / "a"
    path.write_bytes(b"weeks = \xff")
    with pytest.raises(DataError, match="not text in UTF-8"):
        read_toml(path, Term)
    path.write_text(f"weeks = = {CANARY}")
    with pytest.raises(DataError, match="line 1, column 9, in `weeks`, is not TOML") as caught:
        read_toml(path, Term)
    assert CANARY not in str(caught.value)
    path.write_text(f"{CANARY} = = 1")
    with pytest.raises(DataError, match="line 1") as caught:
        read_toml(path, Term)
    assert CANARY not in str(caught.value)
    path.write_text(f'{{"weeks":\n {CANARY}}}')
    with pytest.raises(DataError, match="line 2, column 2: not JSON") as caught:
        read_json(path, Term)
    assert CANARY not in str(caught.value)
    path.write_text("[1]")
    with pytest.raises(DataError, match="is not a table of keys"):
        read_json(path, Term)


def test_a_long_text_holds_no_keys():
    text = 'title = """\nweeks = 1\n[[window]]\n"""\nweeks = 2\n[policy.limits]\nmost = 3\n'
    assert line_of(text, ("weeks",)) == 5
    assert line_of(text, ("policy", "limits", "most")) == 7
    assert line_of(text, ("window", 0)) is None


def test_places_in_json():
    text = json.dumps({"a": [1, {"b": [2, 3], "c": {"d": 'x", "e": 1'}}], "e": 4}, indent=1)
    lines = text.splitlines()
    for where, found in [
        (("a",), '"a"'),
        (("a", 1, "b"), '"b"'),
        (("a", 1, "c", "d"), '"d"'),
        (("e",), '"e": 4'),
    ]:
        assert found in lines[line_of(text, where) - 1]
