"""The documentation is true: its commands run, its pages are what the code renders."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.functional

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("build", ROOT / "docs" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fenced(path, language):
    return re.findall(
        rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def sandbox_works():
    from understudy.errors import MissingError
    from understudy.sandbox import require_sandbox

    try:
        require_sandbox()
    except MissingError:
        return False
    return True


def run_in_order(page, folder):
    """Run every command of a page's fenced blocks in a folder; those that need the sandbox where there is one."""
    commands = [line for block in fenced(page, "bash") for line in block.splitlines() if line.strip()]
    works = sandbox_works()
    for line in commands:
        if line.startswith("printf "):
            # A small file that the next command reads.
            subprocess.run(["sh", "-c", line], cwd=folder, check=True)
            continue
        words = re.findall(r'"[^"]*"|\S+', line)
        assert words[0] == "understudy"
        if words[1:3] in (["cohort", "synthesize"], ["desk", "try"]) and not works:
            continue
        arguments = [word.strip('"') for word in words[1:]]
        done = subprocess.run(
            [sys.executable, "-c", "from understudy.cli import main; main()", *arguments],
            capture_output=True,
            text=True,
            cwd=folder,
        )
        assert done.returncode == 0, f"{line}\n{done.stderr}"
    return commands


def test_every_command_of_the_readme_runs_in_order(tmp_path):
    assert len(run_in_order(ROOT / "README.md", tmp_path)) >= 6
    assert (tmp_path / "bundle/share/card.html").exists()


@pytest.mark.sandbox
def test_every_command_of_the_desk_tutorial_runs_in_order(tmp_path):
    if not sandbox_works():
        pytest.skip("no sandbox on this machine, and so no synthetic cohort to register")
    assert len(run_in_order(ROOT / "docs/tutorials/validation-desk.md", tmp_path)) >= 10
    assert (tmp_path / "restored/desk.toml").exists()


def test_the_readme_begins_with_the_two_commands_and_shows_a_picture():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first = fenced(ROOT / "README.md", "text")[0]
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["make demo", "make test"]
    (picture,) = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert (ROOT / picture).stat().st_size > 10_000


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs").rglob("*.md")) + sorted(ROOT.glob("*.md")), ids=lambda p: p.name
)
def test_links_lead_somewhere(page):
    if page.name.endswith(".template.md"):
        return
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_built_pages_are_what_the_code_renders(build):
    for path, text in build.render().items():
        assert path.read_text(encoding="utf-8") == text, f"run: make docs ({path.name} is out of date)"


def test_every_command_is_in_the_reference(build):
    text = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    found = build.helps()
    assert len(found) >= 40
    for words in found:
        assert f"## {words}\n" in text


def test_every_change_of_a_request_is_on_the_desks_page():
    from understudy.desk.domain.states import CHANGES

    text = (ROOT / "docs/explanation/desk.md").read_text(encoding="utf-8")
    for change in CHANGES:
        assert f"{change.action} ({change.actor.value}): {change.end.value}" in text


def test_every_attack_is_explained():
    from understudy.logs.audit import MEMBERSHIP_ATTACKS

    text = (ROOT / "docs/explanation/attacks.md").read_text(encoding="utf-8")
    for name in (*MEMBERSHIP_ATTACKS, "attribute"):
        assert f"`{name}`" in text


def test_the_guarantee_page_states_the_budget_that_is_spent():
    from understudy.logs.generators.budget import SHARES

    text = (ROOT / "docs/explanation/guarantee.md").read_text(encoding="utf-8")
    stated = {
        "length moments": "2 %", "lengths": "3, 3, 2 %", "starts": "3, 3, 2 %", "norms": "3, 3, 2 %",
        "totals": "5 %", "rows": "18 %", "runs": "6 %", "jumps": "20 %",
        "first slopes": "11 and 30 %", "second slopes": "11 and 30 %",
        "first curvature": "1 % each", "second curvature": "1 % each", "abilities": "1 %",
    }  # fmt: skip
    assert set(stated) == set(SHARES)
    for name, share in SHARES.items():
        assert f"{100 * share:.0f}" in stated[name]
        assert f"| {stated[name]} |" in text
    assert f"{sum(SHARES.values()):.2f}" in text


def test_the_changelog_has_a_privacy_heading():
    assert "### Privacy" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
