"""Debian's browser for tests that look at pages, or a skip that says why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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
