"""The built wheel, outside the source tree, with nothing installed that it does not require."""

import json
import os
import random
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.functional, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "tests" / "support" / "bare_environment.py"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The wheel, built from a copy of the source and unpacked."""
    source = tmp_path_factory.mktemp("source")
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--no-build-isolation", "-w", str(out), str(source)], check=True)
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(out / "site")
    _take_compiled_kernels(out / "site")
    return out / "site"


def _take_compiled_kernels(site):
    """What this tree has compiled already serves the same files elsewhere, if they look as old: minutes are saved."""
    for kernel in (ROOT / "src").rglob("*.nb?"):
        folder = site / kernel.parent.parent.relative_to(ROOT / "src")
        if folder.is_dir():
            (folder / "__pycache__").mkdir(exist_ok=True)
            shutil.copy2(kernel, folder / "__pycache__")
    for module in site.rglob("*.py"):
        if (source := ROOT / "src" / module.relative_to(site)).exists():
            shutil.copystat(source, module)


SIMULATE = [
    ("simulate", "log.csv", "--learners", "60", "--actions", "6"),
    ("simulate", "exam.csv", "--shape", "exam", "--learners", "40", "--items", "5"),
    ("simulate", "course.csv", "--shape", "typing", "--learners", "12"),
    ("simulate", "cohort.parquet", "--shape", "cohort", "--learners", "40"),
]


def run(site, folder, commands):
    """Run commands one after the other in one bare process; gives (exit code, errors) of each."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(site)],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr[-600:]
    return json.loads(done.stdout.splitlines()[-1])


def test_reproductions_and_tests_are_not_in_the_wheel(site):
    assert {path.name for path in site.iterdir() if path.is_dir() and "dist-info" not in path.name} == {
        "understudy"
    }
    assert not list(site.rglob("reproductions"))


# What works with the required dependencies, and what says in one sentence which extra it needs.
WORKS = [
    ("inspect", "log.csv"),
    ("inspect", "log.csv", "--html", "page.html"),
    ("synthesize", "log.csv", "-o", "fake.csv", "-m", "markov-dp:epsilon=8", "--public-actions"),
    ("study", "log.csv", "-m", "markov", "--seeds", "1", "--shadows", "8", "-o", "study"),
    ("release", "log.csv", "-o", "bundle", "--public-actions"),
    ("audit", "--members", "members.csv", "--outsiders", "outsiders.csv", "--synthetic", "invented.csv"),
    ("ledger", "log.csv"),
    ("difficulties", "exam.csv", "--epsilon", "1", "-o", "difficulties.json"),
    ("page", "difficulties.json", "-o", "students.html"),
    ("keystrokes", "profile", "course.csv", "-o", "profiles.csv"),
    ("keystrokes", "coarsen", "course.csv", "--bucket", "300", "-o", "coarse.csv"),
    ("cohort", "summarize", "cohort.parquet", "--epsilon", "3", "-o", "summary.json"),
    ("cohort", "prompt", "summary.json"),
]
NEEDS = [
    (
        "keystrokes",
        ("keystrokes", "sweep", "course.csv", "-o", "sweep", "--largest", "300", "--trained-step", "300"),
    ),
    ("keystrokes", ("keystrokes", "scrub", "program.py", "-o", "scrubbed.py")),
    ("sandbox", ("cohort", "synthesize", "summary.json", "-o", "synthetic.parquet")),
    ("sandbox", ("sandbox", "check")),
    ("desk", ("desk", "init", "desk")),
    ("desk", ("desk", "demonstrate", "demo")),
]


def test_every_verb_runs_or_says_which_extra_it_needs(site, tmp_path):
    """One after the other: some need what an earlier one wrote."""
    (tmp_path / "program.py").write_text("name = 'Ada'\n")
    for number, side in enumerate(("members", "outsiders", "invented")):
        rng = random.Random(number)
        rows = [f"{side}-{n},{rng.choice('abc')},{rng.randrange(2)}" for n in range(30) for _ in range(5)]
        (tmp_path / f"{side}.csv").write_text("learner,action,outcome\n" + "\n".join(rows) + "\n")
    expected = [*((0, "", arguments) for arguments in (*SIMULATE, *WORKS))]
    expected += [(5, f"-e '.[{extra}]'", arguments) for extra, arguments in NEEDS]
    found = run(site, tmp_path, [arguments for *_, arguments in expected])
    problems = [
        (arguments, code, errors[-300:])
        for (wanted, sentence, arguments), (code, errors) in zip(expected, found, strict=True)
        if code != wanted or sentence not in errors or "should not happen" in errors
    ]
    assert not problems


def test_every_command_can_be_loaded_without_extras(site, tmp_path):
    code = (
        "import sys; from bare_environment import hide; hide(sys.argv[1])\n"
        "import typer.main\n"
        "from understudy.cli.app import app\n"
        "def walk(group, words):\n"
        "    for name in group.list_commands(None):\n"
        "        command = group.get_command(None, name)\n"
        "        if hasattr(command, 'list_commands'): walk(command, [*words, name])\n"
        "        else: print(*words, name)\n"
        "walk(typer.main.get_group(app), [])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(site)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PROGRAM.parent)},
    )
    assert done.returncode == 0, done.stderr[-600:]
    assert "desk try" in done.stdout
    assert len(done.stdout.splitlines()) > 30
