"""The documentation is true: its commands run, its pages are what the code renders, its site is built offline."""

import contextlib
import importlib.util
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tests.support.command import run
from understudy.errors import MissingError
from understudy.logs.utility import METRICS
from understudy.sandbox import require_sandbox

pytestmark = pytest.mark.functional

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
SOURCES = [*sorted(ROOT.glob("*.md")), *(path for path in PAGES)]
COHORT, DESK = DOCS / "tutorials/cohort.md", DOCS / "tutorials/validation-desk.md"
WALKED = sorted({*(DOCS / "tutorials").glob("*.md"), *(DOCS / "how-to").glob("*.md")} - {COHORT, DESK})
# What a machine without the sandbox leaves out.
SANDBOXED = (["cohort", "synthesize"], ["desk", "try"])


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("build", DOCS / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blocks(path):
    """The fenced blocks of a page: language and text."""
    found = re.findall(r"^```(\w*)\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [(language, text) for language, text in found]


def commands(path):
    """The lines of a page that a reader types."""
    return [
        line
        for language, text in blocks(path)
        if language == "bash"
        for line in text.splitlines()
        if line.strip()
    ]


def sandbox_works():
    try:
        require_sandbox()
    except MissingError:
        return False
    return True


def walk(page, folder):
    """Do what a page says in a folder: its commands and its Python, in order."""
    works, names = sandbox_works(), {}
    for language, text in blocks(page):
        if language == "python":
            run_python(text, names, folder, page)
        if named := re.match(r"# (\S+\.toml)\n", text):
            (folder / named[1]).write_text(text, encoding="utf-8")
        for line in text.splitlines() if language == "bash" else []:
            words = shlex.split(line)
            if not words:
                continue
            if words[0] == "printf":
                # A small file that the next command reads.
                subprocess.run(["sh", "-c", line], cwd=folder, check=True)
                continue
            assert words[0] == "understudy", line
            if words[1:3] in SANDBOXED and not works:
                continue
            done = run(*words[1:], cwd=folder)
            assert done.returncode == 0, f"{page.name}: {line}\n{done.stderr}"


def run_python(text, names, folder, page):
    before = os.getcwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, str(page), "exec"), names)  # noqa: S102 (our own pages)
    finally:
        os.chdir(before)


@pytest.mark.parametrize("page", WALKED, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_a_page_does_what_it_says(page, tmp_path):
    walk(page, tmp_path)


def test_the_tutorials_on_cohorts_and_on_the_desk_do_what_they_say(tmp_path):
    """One walk: the desk answers questions about the files that the tutorial on cohorts made."""
    walk(COHORT, tmp_path)
    assert (tmp_path / "summary.json").exists()
    assert (tmp_path / "comparison/report.html").exists()
    if not sandbox_works():
        pytest.skip("no sandbox on this machine, and so no synthetic cohort to register at a desk")
    walk(DESK, tmp_path)
    assert (tmp_path / "restored/desk.toml").exists()


def test_the_python_of_the_readme_and_the_references_runs(tmp_path):
    assert run("simulate", "log.csv", "--learners", "60", cwd=tmp_path).returncode == 0
    for page in (ROOT / "README.md", *sorted((DOCS / "reference").glob("*.md"))):
        names = {}
        for language, text in blocks(page):
            if language == "python":
                run_python(text, names, tmp_path, page)


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_an_example_runs(example, tmp_path):
    """Notebooks kept as scripts: cells of text and code."""
    text = example.read_text(encoding="utf-8")
    assert text.startswith("# %% [markdown]\n")
    assert text.count("\n# %%\n") >= 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_python(text, {"__name__": "__main__"}, tmp_path, example)


def test_the_readme_is_one_screen_whose_commands_are_those_of_the_tutorials():
    """Every command of the README is one of a tutorial, where it is run, in the same order."""
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 90
    first = next(block for language, block in blocks(readme) if language == "text")
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["make demo", "make test"]
    (picture,) = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert (ROOT / picture).stat().st_size > 10_000
    for tutorial, section in re.findall(
        r"\*\*\[.*?\]\((docs/tutorials/.*?)\)\*\*.*?```bash\n(.*?)```", text, re.DOTALL
    ):
        wanted, remaining = section.splitlines(), iter(commands(ROOT / tutorial))
        assert all(line in remaining for line in wanted), f"{tutorial} has not the README's commands"
    assert len(re.findall(r"docs/tutorials/", text)) == 5


@pytest.mark.parametrize("page", SOURCES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_source_has_links_that_lead_somewhere_and_a_sentence_per_line(page):
    text = page.read_text(encoding="utf-8")
    if not page.name.endswith(".template.md"):
        for target in re.findall(r"\]\(([^)#\s]+)[^)\s]*\)", text):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
    made = "generated by `make docs`" in text  # values that are filled in may hold several sentences
    prose = re.sub(r"^ *(```|:::).*?^ *\1", "", text, flags=re.DOTALL | re.MULTILINE)
    for line in prose.splitlines() if not made and page.name != "references.md" else []:
        if line.lstrip().startswith(("|", "#")):
            continue
        # Without the mark of a list and a bold head.
        sentence = re.sub(r"^\s*(?:[-*] |\d+\. )?(?:\*\*[^*]+\*\* *)?", "", line)
        assert not re.search(r"[a-z)`][.!?] [A-Z`][a-z]+ [a-z]", sentence), f"{page.name}: {line}"


def test_files_that_the_documentation_names_are_there():
    package = ROOT / "src/understudy"
    for page in (page for page in SOURCES if page.name != "CHANGELOG.md"):
        for name in re.findall(r"`((?:\w+/)+[\w-]+\.(?:py|toml|md|html))`", page.read_text(encoding="utf-8")):
            homes = (ROOT, package, page.parent)
            written = name.startswith(("share/", "keep/", "desk/", "bundle/", "study/", "sweep/"))
            assert written or any((home / name).exists() for home in homes), f"{page.name} names {name}"


def test_pages_that_are_generated_say_so_and_are_what_the_code_renders(build):
    for path, text in build.render().items():
        assert "generated by `make docs` from" in text
        assert path.read_text(encoding="utf-8") == text, f"run: make docs ({path.name} is out of date)"
    for template in DOCS.rglob("*.template.md"):
        page = template.with_name(template.name.replace(".template", ""))
        assert re.search(r"generated by `make (docs|bench)` from", page.read_text(encoding="utf-8"))


def test_every_command_is_in_the_reference(build):
    text = (DOCS / "reference/commands.md").read_text(encoding="utf-8")
    found = build.helps()
    assert len(found) >= 40
    for words in found:
        assert f"## {words}\n" in text


def test_commands_and_options_that_the_documentation_names_exist():
    reference = (DOCS / "reference/commands.md").read_text(encoding="utf-8")
    option = r"(?<![\w-])--[a-z][a-z-]+"
    options = set(re.findall(option, reference))
    commands = set(re.findall(r"^## understudy (.*)$", reference, re.MULTILINE))
    for page in (page for page in SOURCES if page.name != "CHANGELOG.md"):
        text = page.read_text(encoding="utf-8")
        assert not set(re.findall(option, text)) - options, page.name
        for named in re.findall(r"`understudy ((?:[a-z][a-z-]* ?)+)", text):
            words = f"{named.strip()} "
            assert any(
                words.startswith(f"{known} ") or f"{known} ".startswith(words) for known in commands
            ), f"{page.name}: {named}"


def test_every_public_name_is_in_the_reference():
    import understudy

    text = (DOCS / "reference/python.md").read_text(encoding="utf-8")
    for name in set(understudy.__all__) - {"__version__"}:
        assert re.search(rf"^\.\. auto\w+:: understudy\.{name}$", text, re.MULTILINE), name


def test_every_change_of_a_request_is_on_the_desks_page():
    from understudy.desk.domain.states import CHANGES

    text = (DOCS / "explanation/desk.md").read_text(encoding="utf-8")
    for change in CHANGES:
        assert f"{change.action} ({change.actor.value}): {change.end.value}" in text


def test_every_attack_is_explained():
    from understudy.logs.audit import MEMBERSHIP_ATTACKS

    text = (DOCS / "explanation/attacks.md").read_text(encoding="utf-8")
    for name in (*MEMBERSHIP_ATTACKS, "attribute"):
        assert f"`{name}`" in text


def test_the_guarantee_page_states_the_budget_that_is_spent():
    from understudy.logs.generators.budget import SHARES

    text = (DOCS / "explanation/guarantee.md").read_text(encoding="utf-8")
    stated = {
        "length moments": "2 %", "lengths": "3 % each", "starts": "3 % each", "norms": "2 %",
        "totals": "5 %", "rows": "18 %", "runs": "6 %", "jumps": "20 %",
        "first slopes": "11 and 30 %", "second slopes": "11 and 30 %",
        "first curvature": "1 % each", "second curvature": "1 % each", "abilities": "1 %",
    }  # fmt: skip
    assert set(stated) == set(SHARES)
    for name, share in SHARES.items():
        assert f"{100 * share:.0f}" in stated[name]
        assert f"| {stated[name]} |" in text
    assert f"{sum(SHARES.values()):.2f}" in text


def test_the_guarantee_page_states_the_budget_of_runs():
    from understudy.logs.generators.runs_dp import FEW_ROUNDS, MANY_ROUNDS, ORDER_SHARE, SHARES

    text = (DOCS / "explanation/guarantee.md").read_text(encoding="utf-8")
    stated = {
        "rows": "rows 40", "jumps": "jumps 14", "runs": "runs 3", "lengths": "lengths 3", "totals": "totals 3",
        "starts": "starts 1", "staying": "staying 2", "first stays": "stays 1 and 1", "second stays": "stays 1 and 1",
        "first successes": "successes 1.5 and 2", "second successes": "successes 1.5 and 2",
        "length moments": "length moments, norms and practice 1.5", "norms": "length moments, norms and practice 1.5",
        "practice": "length moments, norms and practice 1.5", "curvature": "curvature 1 and 1",
        "last curvature": "curvature 1 and 1", "abilities": "abilities 1", "first new jumps": "new jumps 0.5 and 0.5",
        "second new jumps": "new jumps 0.5 and 0.5",
    }  # fmt: skip
    assert set(stated) == set(SHARES)
    for name, share in SHARES.items():
        assert f"{100 * share:g}" in stated[name].split()
        assert stated[name] in text
    for shares in (FEW_ROUNDS, MANY_ROUNDS):
        assert f"({', '.join(f'{100 * share:g}' for share in shares.values())})" in text
        assert f"slopes {100 * sum(shares.values()):.0f} in" in text
    assert f"an order {100 * ORDER_SHARE['order']:g}" in text


def test_the_map_has_every_folder():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `([a-z_/]+)` \|", text, re.MULTILINE)) - {
        "src/understudy/",
        "tests/",
        "reproductions/",
    }
    package = ROOT / "src/understudy"
    there = {
        str(path.parent.relative_to(package))
        for path in package.rglob("*.py")
        if path.name != "__init__.py" and path.parent != package
    }
    parts = ("desk/store/migrations", "desk/researcher/analyses", "desk/web/", "cli/")
    wanted = {name for name in there if not name.startswith(parts)} - {"core", "desk"}
    assert named & wanted == wanted, f"the map lacks {sorted(wanted - named)}"
    assert all((package / name).is_dir() for name in named if "/" in name or name in there)


def test_the_changelog_has_a_privacy_heading():
    assert "### Privacy" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def cited(text):
    """Works cited by author and year: first surname and year."""
    plain = re.sub(r"\n\s*(?:#|//)?\s*", " ", text)
    for names, year in re.findall(
        r"\b([A-Z][\w-]+(?:, [A-Z][\w-]+)*(?: and [A-Z][\w-]+| et al\.)),? \(?((?:19|20)\d\d)\b(?![-:/\d])",
        plain,
    ):
        yield re.split(r",| ", names)[0], year


def test_every_work_that_is_cited_is_in_the_references():
    entries = (DOCS / "references.md").read_text(encoding="utf-8").splitlines()
    places = [*(ROOT / "src").rglob("*.py"), *(ROOT / "reproductions").rglob("*.py"), *PAGES]
    missing = {
        f"{first} {year} ({path.relative_to(ROOT)})"
        for path in places
        for first, year in cited(path.read_text(encoding="utf-8"))
        if not any(first in entry and year in entry for entry in entries)
    }
    assert not missing


def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path):
    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-n", "-W", "--keep-going", "-b", "html", DOCS, site],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    shutil.rmtree(site / ".doctrees", ignore_errors=True)
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(
            r"<(?:script|img|iframe|source|link)\b[^>]*?(?:src|href)=\"(https?:[^\"]*)\"", text
        )
        assert not loaded, f"{path.name} loads {loaded[0]}"
    for path in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?https?:|@import", path.read_text(encoding="utf-8")), path.name
    index = (site / "index.html").read_text(encoding="utf-8")
    assert "What do you want to share?" in index


def test_every_utility_metric_is_on_the_page_of_files():
    rows = re.findall(
        r"^\| `(\w+)` \| (.*) \| (\d) \|$", (DOCS / "reference/files.md").read_text(), re.MULTILINE
    )
    assert rows == [(metric.name, metric.meaning, f"{metric.best:g}") for metric in METRICS]
