"""`understudy keystrokes scrub` as a person runs it: files, folders and tables, and nothing that leaks."""

import ast
import csv
import json

import pytest

from tests.support import command

pytestmark = pytest.mark.functional

CANARY = "quixotl"


def run(*arguments, cwd):
    done = command.run("keystrokes", "scrub", *arguments, cwd=cwd)
    assert CANARY not in (done.stdout + done.stderr).lower()
    return done


@pytest.fixture
def snapshots(tmp_path):
    """Two learners type the course's first exercise; the table holds more than anyone asks for."""
    whole = 'public class Hello {\n  public static void main(String[] args) {\n    System.out.println("Anna Quixotl");'
    rows = [
        {"user": user, "email": f"{user}@quixotl.fi", "order": at, "Code": whole[:end]}
        for user in ("anna.quixotl", "bert.zanz")
        for at, end in enumerate(range(60, len(whole) + 1, 5))
    ]
    with (tmp_path / "snapshots.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "snapshots.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "class.txt").write_text("name;number\nAnna Quixotl;014725836\nBert Zanz;014725837\n")
    return rows


def rows_of(path):
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_table_of_snapshots(tmp_path, snapshots, suffix):
    out = f"out.{suffix}"
    done = run(
        *(f"snapshots.{suffix}", "-o", out, "--language", "java", "--names", "class.txt"),
        *("--keep", "order", "--json"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["n_learners"] == 2
    assert report["n_texts"] == len(snapshots)
    assert report["replaced"]["names"] > 0
    assert not report["seeded"]
    rows = rows_of(tmp_path / out)
    assert set(rows[0]) == {"learner", "order", "Code"}
    assert {row["learner"] for row in rows} == {"learner-1", "learner-2"}
    content = (tmp_path / out).read_text().lower()
    for gone in (CANARY, "anna", "zanz", "bert", "@"):
        assert gone not in content
    lengths = sorted(len(row["Code"]) for row in snapshots)
    assert sorted(len(row["Code"]) for row in rows) == lengths
    first, second = ([row["Code"] for row in rows if row["learner"] == f"learner-{n}"] for n in (1, 2))
    assert first[-1] != second[-1]
    # The class has one replacement in all snapshots of a learner.
    assert len({text.split(" ")[2] for text in first}) == 1


def test_across_learners_only_when_asked(tmp_path, snapshots):
    done = run(
        "snapshots.csv",
        "-o",
        "out.csv",
        "--language",
        "java",
        "--across",
        "--names",
        "class.txt",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "no guarantee" in done.stdout.lower()
    rows = rows_of(tmp_path / "out.csv")
    assert len({row["Code"] for row in rows}) == len(rows) / 2


def test_a_folder_of_learners(tmp_path):
    for learner in ("anna.quixotl", "bert"):
        folder = tmp_path / "course" / learner / "src"
        folder.mkdir(parents=True)
        (folder / "QuixotlHello.java").write_text("public class QuixotlHello { } // Anna Quixotl\r\n")
        (folder / "helper.py").write_text("def quixotl():\n    return 'Anna'\n")
        (folder / "use.py").write_text("import helper\nprint(helper.quixotl())\n")
        (folder / "notes.md").write_text("Anna Quixotl")
    done = run("course", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    files = sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert len(files) == 6
    assert {path.relative_to(tmp_path / "out").parts[:2] for path in files} == {
        ("learner-1", "src"),
        ("learner-2", "src"),
    }
    for path in files:
        text = path.read_bytes().decode()
        assert CANARY not in (str(path.relative_to(tmp_path)) + text).lower()
        if path.suffix == ".java":
            assert text.startswith(f"public class {path.stem} {{ }} // ")
            assert text.endswith("\r\n")
        else:
            ast.parse(text)
        if text.startswith("import "):
            imported = text.split()[1]
            assert (path.parent / f"{imported}.py").is_file()


def test_one_program_and_a_seed(tmp_path):
    (tmp_path / "hello.py").write_text("my_quixotl = 'x'\nprint('Anna Quixotl', my_quixotl)\n")
    for out in ("a.py", "b.py"):
        done = run("hello.py", "-o", out, "--seed", 3, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "For tests only" in done.stdout
        assert "class list" in done.stdout
    assert (tmp_path / "a.py").read_text() == (tmp_path / "b.py").read_text()
    assert CANARY not in (tmp_path / "a.py").read_text().lower()
    done = run("hello.py", "-o", "c.py", "--no-keep-shape", cwd=tmp_path)
    assert "class list" not in done.stdout
    assert (tmp_path / "c.py").read_text() != (tmp_path / "a.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nowhere.py", "-o", "x.py"], 2, "no such file"),
        (["snapshots.csv", "-o", "x.csv"], 2, "--language"),
        (["snapshots.csv", "-o", "snapshots.csv", "--language", "java"], 2, "the data itself"),
        (["snapshots.csv", "-o", "x.csv", "--language", "java", "--keep", "email"], 3, "point at people"),
        (["snapshots.csv", "-o", "x.csv", "--language", "java", "--keep", "user"], 2, "column"),
        (
            ["snapshots.csv", "-o", "x.csv", "--language", "java", "--column", "nothing"],
            3,
            "which is not there",
        ),
        (["snapshots.csv", "-o", "x.csv", "--language", "java", "--replace", "all"], 2, "names,emails"),
        (["class.txt", "-o", "x.csv", "--language", "java"], 3, "--column"),
        (["broken.jsonl", "-o", "x.jsonl", "--language", "java"], 3, "line 2"),
        (["empty", "-o", "x"], 3, "no java or python program"),
        (["class.txt", "-o", "x.csv", "--language", "java", "--names", "nobody.txt"], 3, "names nobody"),
    ],
)
def test_wrong_use_is_said_without_values(tmp_path, snapshots, arguments, code, says):
    (tmp_path / "broken.jsonl").write_text('{"user": "quixotl", "code": "x"}\nquixotl\n')
    (tmp_path / "nobody.txt").write_text("-\n")
    (tmp_path / "empty").mkdir()
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert not (tmp_path / arguments[2]).exists() or arguments[0] == arguments[2]


def test_the_help_says_what_remains(tmp_path):
    done = run("--help", cwd=tmp_path)
    for word in ("structure", "style", "rhythm", "Not a guarantee"):
        assert word in done.stdout
