"""Debian's browser for tests that look at pages, or a skip that says why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")

# The words of a page, pictures aside, whose contrast with their ground is below 4.5.
FAINT_WORDS = """() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const colour = rgb(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || e.closest('svg, script, noscript') || !e.getClientRects().length) continue;
    const [a, b] = [luminance(rgb(getComputedStyle(e).color)), luminance(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faint.push(`${e.className || e.id || e.tagName} ${ratio.toFixed(2)}`);
  }
  return faint;
}"""


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
