"""ProgSnap2 main tables: edits as texts, states of the code in a column or in a table of their own."""

from __future__ import annotations

import pytest

from tests.keystrokes.support.files import START, csv, presses
from understudy.errors import DataError, UsageError
from understudy.keystrokes.formats.reading import read_keystrokes

SEVERAL = "several characters at once (paste, completion or replacement)"
NOT_TYPED = "not typed (pasted, formatted, undone or loaded)"
HEADER = "EventID,SubjectID,ServerTimestamp,ClientTimestamp,EventType,EditType,InsertText,DeleteText,Grade"


def edits(*rows: tuple[object, ...]) -> str:
    lines = [
        f"{n},Zq7,2024-05-31T10:00:09,{START + time},{event},{edit},{inserted},{deleted},9"
        for n, (time, event, edit, inserted, deleted) in enumerate(rows)
    ]
    return csv(HEADER, *lines)


def test_inserted_and_deleted_texts(write):
    table = edits(
        (0, "Session.Start", "", "", ""),
        (10, "File.Edit", "Insert", "i", ""),
        (110, "File.Edit", "Insert", "f", ""),
        (200, "File.Edit", "Delete", "", "f"),
        (300, "File.Edit", "Insert", "System.out", ""),
        (400, "File.Edit", "Insert", '"\n"', ""),
        (500, "File.Edit", "Paste", "x", ""),
        (600, "File.Edit", "Replace", "y", "x"),
        (700, "File.Edit", "Insert", '","', ""),
        (800, "Run.Program", "", "", ""),
        (900, "File.Edit", "Insert", ";", ""),
        (950, "File.Edit", "Insert", " ", ""),
    )
    source = read_keystrokes(write("MainTable.csv", table))
    assert presses(source) == [
        [
            *(("i", 0, False), ("f", 100, True), ("Backspace", 190, True), ("Enter", 390, False)),
            *((",", 690, False), (";", 890, False), (" ", 940, True)),
        ]
    ]
    assert source.left_out == {SEVERAL: 2, NOT_TYPED: 1, "another kind of event": 2}
    assert source.format == "progsnap2"


def test_the_learners_clock_before_the_servers(write):
    table = edits((0, "File.Edit", "Insert", "i", ""), (110, "File.Edit", "Insert", "f", ""))
    empty = table.replace(str(START), "").replace(str(START + 110), "")
    assert read_keystrokes(write("MainTable.csv", table)).keystrokes.latencies.tolist() == [0, 110_000_000]
    assert read_keystrokes(write("MainTable.csv", empty)).resolution_ms == 1000


def test_a_folder_with_code_states(write, tmp_path):
    folder = tmp_path / "set"
    (folder / "CodeStates").mkdir(parents=True)
    rows = [f"{n},S1,A1,{START + 100 * n},File.Edit,{state}" for n, state in enumerate((0, 1, 2, 2, 3))]
    header = "EventID,SubjectID,AssignmentID,ClientTimestamp,EventType,CodeStateID"
    (folder / "MainTable.csv").write_text(csv(header, *rows))
    with pytest.raises(DataError, match="neither inserted text nor the code"):
        read_keystrokes(folder)
    (folder / "CodeStates" / "CodeStates.csv").write_text('CodeStateID,Code\n0,a\n1,ab\n2,"ab,"\n3,"ab"\n')
    source = read_keystrokes(folder)
    assert presses(source) == [[("b", 0, False), (",", 100, True), ("Backspace", 300, True)]]
    assert source.left_out == {"first text of a document": 1, "text unchanged": 1}


def test_states_in_a_column_and_seconds_since_the_task_began(write):
    header = "EventID,AssignmentID,SubjectID,EventType,EditType,X-CodeState,X-ElapsedTime"
    rows = []
    for task in ("A1", "A2"):
        texts = ("", "m", "ma", "mai", "main", "main()", "main() ", "main() {")
        kinds = ("init", "insert", "insert", "edit", "insert", "paste", "format", "insert")
        rows += [
            f"{n},{task},S1,File.Edit,{kind},{text},{2 * n}"
            for n, (kind, text) in enumerate(zip(kinds, texts, strict=True))
        ]
    source = read_keystrokes(write("MainTable.csv", csv(header, *rows)))
    assert [row[0] for row in presses(source)[0]] == list("main{") * 2
    assert source.keystrokes.session.tolist() == [0] * 5 + [1] * 5
    assert source.keystrokes.follows.tolist() == [False, True, True, True, False] * 2
    assert (source.keystrokes.week == -1).all()
    assert source.left_out == {"first text of a document": 2, NOT_TYPED: 4}
    assert source.resolution_ms == 1000
    assert any("latencies of typing cannot be taken" in note for note in source.notes)


def test_main_tables_that_cannot_be_read(write, tmp_path):
    with pytest.raises(DataError, match=r"no event is a File.Edit \(EventType column\)"):
        read_keystrokes(write("MainTable.csv", edits((0, "Run.Program", "", "", ""))))
    with pytest.raises(DataError, match="found no column EventType"):
        read_keystrokes(write("t.csv", "learner,time,key\na,1,b\n"), format="progsnap2")
    with pytest.raises(UsageError, match="is a folder, not a file"):
        read_keystrokes(tmp_path, format="events")
