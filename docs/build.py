"""Renders the pages of the documentation that are made from the code; a test compares them with what is written.

`make docs` runs this after `python -m reproductions render`, which makes the pages of reproductions.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent


def render() -> dict[Path, str]:
    """Every page by its path."""
    return {
        DOCS / "reference" / "commands.md": commands_page(),
        DOCS / "reference" / "desk.md": desk_reference(),
        DOCS / "explanation" / "desk.md": desk_page(),
    }


def desk_page() -> str:
    """The validation desk, with the table of states as a picture."""
    from understudy.desk.domain.states import diagram

    template = (DOCS / "explanation" / "desk.template.md").read_text(encoding="utf-8")
    return template.replace("```mermaid\n```", f"```mermaid\n{diagram()}\n```")


def desk_reference() -> str:
    """The desk's settings and policy, the latter with the words of the file that `desk init` writes."""
    from understudy.desk.domain.policy import WORDS, Policy

    lines = ["| line | default | says |", "|---|---|---|"]
    for name, value in vars(Policy()).items():
        shown = ", ".join(value) or "none" if isinstance(value, tuple) else f"{value:g}"
        lines.append(f"| `{name}` | {shown} | {WORDS[name]} |")
    template = (DOCS / "reference" / "desk.template.md").read_text(encoding="utf-8")
    return template.replace("{{policy}}", "\n".join(lines))


def commands_page() -> str:
    """The help of every command."""
    parts = ["# Commands\n\nGenerated from the commands' own help by `make docs`.\n"]
    environment = {**os.environ, "COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1"}
    for verb in verbs():
        arguments = ["understudy", *verb.split(), "--help"]
        code = f"import sys; sys.argv = {arguments!r}; from understudy.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
        )
        text = "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())
        parts.append(f"## understudy {verb}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def verbs() -> list[str]:
    """Every command, those of a group after its name, in the order of the help."""
    from understudy.cli.app import app

    def named(within: object, before: str = "") -> list[str]:
        # typer writes a hyphen for an underscore.
        found = [
            before + (command.name or command.callback.__name__.replace("_", "-"))
            for command in within.registered_commands  # type: ignore[attr-defined]
        ]
        for group in within.registered_groups:  # type: ignore[attr-defined]
            assert group.typer_instance is not None
            name = group.name or group.typer_instance.info.name
            found += named(group.typer_instance, f"{before}{name} ")
        return found

    return named(app)


def main() -> None:
    """Write every page."""
    for path, text in render().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(DOCS.parent))


if __name__ == "__main__":
    main()
