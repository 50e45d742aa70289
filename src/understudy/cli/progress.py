"""A progress bar for work that takes more than a moment."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress_bar(words: str) -> Iterator[Callable[[int], Callable[[], None]]]:
    """Gives a function that is told the number of steps and returns what to call after each.

    Shown on the terminal's error stream, so that output can be piped; silent elsewhere.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:

        def begin(n_steps: int) -> Callable[[], None]:
            task = bar.add_task(words, total=n_steps)
            return lambda: bar.advance(task)

        yield begin
