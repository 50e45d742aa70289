"""Groups of commands that are imported when they are used, so that help answers at once."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, ClassVar

import typer
import typer.core
import typer.main

# By section: each command's module and its sentence in the list.
Commands = Mapping[str, Mapping[str, tuple[str, str]]]

# Help is as wide as the terminal, up to this.
WIDEST = 1000


class StoppedError(Exception):
    """A person pressed Ctrl-C; the interruption itself is its cause. Typer would turn it into a bare number."""


class LazyGroup(typer.core.TyperGroup):
    """Commands by name; the module of a command is imported when the command is used."""

    sections: ClassVar[Commands] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands in the order of their sections."""
        return [name for commands in self.sections.values() for name in commands]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, with its module."""
        found = next(
            (commands[cmd_name] for commands in self.sections.values() if cmd_name in commands), None
        )
        if found is None:
            return None
        group = typer.main.get_group(import_module(found[0]).app)
        return group.commands.get(cmd_name, group)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that was typed; for one that is not there, the one that was probably meant is suggested.

        A name may have two words: `difficulties combine` is a verb of its own next to `difficulties FILE`.
        """
        names = self.list_commands(ctx)
        if (words := " ".join(args[:2])) in names and len(args) > 1:
            return words, self.get_command(ctx, words), args[2:]
        if args and args[0] not in names and not ctx.resilient_parsing:
            near = get_close_matches(args[0], names, 1)
            if near:
                ctx.fail(f"No such command '{args[0]}'. Did you mean '{near[0]}'?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise StoppedError from stop

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of commands, without importing one."""
        for section, commands in self.sections.items():
            with formatter.section(section):
                formatter.write_dl([(name, sentence) for name, (_, sentence) in commands.items()])


def lazy_group(name: str, text: str, sections: Commands, epilog: str = "") -> typer.Typer:
    """A group of lazily imported commands, with the conventions of all others."""
    return typer.Typer(
        name=name,
        cls=type("Group", (LazyGroup,), {"sections": sections}),
        help=text,
        epilog=epilog,
        no_args_is_help=True,
        # A traceback with local variables would print learners' rows.
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
        rich_markup_mode=None,
    )


def command_group(name: str | None = None, text: str | None = None) -> typer.Typer:
    """Where the commands of a module are registered; with a name they are a group of their own."""
    return typer.Typer(
        name=name,
        help=text,
        no_args_is_help=name is not None,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
