"""Fixtures of the tests that run the whole: the desk's, and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from desk_fixtures import database_url, filled, postgresql, small

__all__ = ["database_url", "filled", "postgresql", "small"]

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real browser, or a skip that says why there is none."""
    if not CHROMIUM.exists():
        pytest.skip(f"no browser at {CHROMIUM}")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        try:
            opened = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        except api.Error as error:
            pytest.skip(f"{CHROMIUM} does not start: {error.message.splitlines()[0]}")
        yield opened
        opened.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say that no page was looked at, where it is easy to miss among the skipped tests."""
    if not CHROMIUM.exists():
        terminalreporter.write_line(
            "No browser here: no page was looked at (.ci/browser installs Debian's chromium as root)."
        )
