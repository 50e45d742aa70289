"""Scripts out of chats, their names, and the folder they are kept in."""

import json

import pytest

from tests.cohorts.support.chat_server import GOOD_SCRIPT, fenced
from understudy.cohorts.panel.brief import Brief
from understudy.cohorts.panel.report import PanelistReport, PanelReport, save_panel, total_cost
from understudy.cohorts.panel.scripts import (
    Script,
    Tokens,
    check_names,
    extract_code,
    read_script,
)
from understudy.errors import DataError, UsageError


def test_the_script_is_found_in_an_answer():
    assert extract_code(fenced(GOOD_SCRIPT)) == GOOD_SCRIPT
    assert extract_code(GOOD_SCRIPT) == GOOD_SCRIPT
    assert extract_code(fenced(GOOD_SCRIPT).replace("\n", "\r\n")) == GOOD_SCRIPT
    assert (
        extract_code(f"First:\n```\npip install x\n```\n{fenced(GOOD_SCRIPT)}\n```bash\nrun\n```\n")
        == GOOD_SCRIPT
    )
    example = "```python\ntable = generate(3, 'low', summary, rng)\n```\n"
    assert extract_code(fenced(GOOD_SCRIPT) + example) == GOOD_SCRIPT


@pytest.mark.parametrize(
    "answer", ["", "I cannot help with that.", "```json\n{}\n```", "```python\ndef generate(", "``` ```"]
)
def test_an_answer_without_a_script_gives_none(answer):
    assert extract_code(answer) is None


def test_a_file_from_a_chat_is_code_or_the_whole_answer(tmp_path):
    path = tmp_path / "chat.py"
    for text in (GOOD_SCRIPT, fenced(GOOD_SCRIPT), "\ufeff" + GOOD_SCRIPT):
        path.write_text(text, encoding="utf-8")
        assert read_script(path) == GOOD_SCRIPT
    for wrong in (b"hello", b"\xff\xfe\x00", b"x" * 500_000):
        path.write_bytes(wrong)
        with pytest.raises(UsageError):
            read_script(path)
    with pytest.raises(UsageError, match="no file"):
        read_script(tmp_path / "absent.py")


@pytest.mark.parametrize(
    ("text", "line", "line_of_chat"),
    [
        (GOOD_SCRIPT.replace("def generate(n", "deff generate(n"), 6, 6),
        (GOOD_SCRIPT.replace("< 0.6", "< 0.6)"), 8, 8),
        ("\n\n" + GOOD_SCRIPT.replace("< 0.6", "< 0.6)"), 10, 8),
        (fenced(GOOD_SCRIPT.replace("< 0.6", "< 0.6)")), 11, 8),
    ],
)
def test_a_syntax_error_is_said_with_its_line(tmp_path, text, line, line_of_chat):
    path = tmp_path / "chat.py"
    path.write_text(text)
    with pytest.raises(DataError, match=f"chat.py: syntax error, line {line}\\.") as raised:
        read_script(path)
    assert f"SyntaxError in line {line_of_chat}." in raised.value.hint


@pytest.mark.parametrize(
    "names", [["../x"], ["a b"], [""], ["a", "A"], ["report"], [".hidden"], ["x" * 65], ["a\n"]]
)
def test_names_are_plain_and_different(names):
    with pytest.raises(UsageError):
        check_names(names)


def test_the_folder_has_prompt_scripts_provenance_and_report(tmp_path):
    script = Script(
        GOOD_SCRIPT, "first", "model-1", "ab" * 32, "2026-11-16T00:00:00+00:00", Tokens(10, 5), 0.25
    )
    one = PanelistReport(
        "first", "openai", "model-1", "repaired", 2, ("KeyError in line 3",), Tokens(10, 5), 0.25, 1.5, 30
    )
    silent = PanelistReport(
        "second", "google", "model-2", "dropped", 1, ("HTTP 500",), Tokens(), None, 1.0, 0
    )
    report = PanelReport("ab" * 32, (one, silent), 10, {"low": 3})
    save_panel(tmp_path / "panel", Brief("prompt é\n"), [script], report, {"seed": 7})
    folder = tmp_path / "panel"
    assert sorted(path.name for path in folder.iterdir()) == [
        "first.json",
        "first.py",
        "prompt.txt",
        "report.json",
    ]
    assert (folder / "prompt.txt").read_bytes() == "prompt é\n".encode()
    assert (folder / "first.py").read_text() == GOOD_SCRIPT
    assert json.loads((folder / "first.json").read_text()) == {
        "author": "first",
        "model": "model-1",
        "prompt_sha256": "ab" * 32,
        "written_at": "2026-11-16T00:00:00+00:00",
        "tokens_read": 10,
        "tokens_written": 5,
        "cost_usd": 0.25,
        "status": "repaired",
        "failures": ["KeyError in line 3"],
    }
    content = json.loads((folder / "report.json").read_text())
    assert content["cost_usd"] is None
    assert content["seed"] == 7
    assert [entry["status"] for entry in content["panelists"]] == ["repaired", "dropped"]
    assert "10 tokens read, 5 written, about 0.2500 US dollars by list prices" in str(one)
    assert "tokens not reported by the server" in str(silent)
    assert "failed by KeyError in line 3" in str(one)


def test_a_cost_that_is_not_known_makes_the_sum_unknown():
    assert total_cost([0.1, 0.2]) == pytest.approx(0.3)
    assert total_cost([0.1, None]) is None
    assert total_cost([]) == 0.0
