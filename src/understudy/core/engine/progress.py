"""Progress of long steps: library code names a task and advances it; whoever started it decides what is shown.

The reporter is a context variable, so that no function takes a progress parameter. A task object may be
advanced from any thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sized
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")


class Task(Protocol):
    """A step under way."""

    def advance(self, n: int = 1) -> None:
        """So many more parts of the step are done."""

    def note(self, text: str) -> None:
        """A short remark beside the step, such as the current loss."""


class Reporter(Protocol):
    """Shows tasks to the user."""

    def task(self, name: str, total: int | None) -> contextlib.AbstractContextManager[Task]:
        """Show a task until its block ends."""


class _Silent:
    def advance(self, n: int = 1) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    @contextlib.contextmanager
    def task(self, name: str, total: int | None) -> Iterator[Task]:
        yield self


_reporter: ContextVar[Reporter] = ContextVar("reporter", default=_Silent())  # noqa: B039 (stateless)


@contextlib.contextmanager
def task(name: str, total: int | None = None) -> Iterator[Task]:
    """A named step of so many parts, or of an unknown number; a step within another one is not shown."""
    with contextlib.ExitStack() as stack:
        step = stack.enter_context(_reporter.get().task(name, total))
        stack.enter_context(reported_by(_Silent()))
        yield step


def each(items: Iterable[T], name: str, total: int | None = None) -> Iterator[T]:
    """The items one by one, as a task of its own; `total` is their number where they do not know it."""
    with task(name, len(items) if isinstance(items, Sized) else total) as step:
        for item in items:
            yield item
            step.advance()


@contextlib.contextmanager
def reported_by(reporter: Reporter) -> Iterator[None]:
    """Let this reporter show every task of the block."""
    token = _reporter.set(reporter)
    try:
        yield
    finally:
        _reporter.reset(token)
