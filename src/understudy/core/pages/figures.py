"""Figures: one specification, shown as SVG in pages and saved as SVG and PNG, offline."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from understudy.core.files.writing import write_bytes, write_text

INK = "#1d2733"
ACCENT = "#0b6e8a"
WARNING = "#b4451f"
MUTED = "#6b7a8a"

# The words of the mark on pages.
STAYS_INSIDE = "stays inside"

# Total widths in pixels: a column of text, and a telephone.
WIDE = 680
NARROW = 340

_THEME = {
    "config": {
        "background": "white",
        "font": "Helvetica Neue, Helvetica, Arial, sans-serif",
        "view": {"stroke": None},
        "axis": {
            "labelColor": INK,
            "titleColor": INK,
            "titleFontWeight": "normal",
            "labelFontSize": 13,
            "titleFontSize": 13,
            "titlePadding": 10,
            "labelLimit": 220,
            "gridColor": "#e6eaee",
            "domainColor": MUTED,
            "tickColor": MUTED,
        },
        "title": {"color": INK, "fontSize": 15, "anchor": "start", "subtitleColor": "#4a5a6a"},
        "legend": {
            "symbolOpacity": 1,
            "labelFontSize": 13,
            "titleFontSize": 13,
            "labelColor": INK,
            "titleColor": INK,
        },
    }
}


@dataclass(frozen=True)
class Figure:
    """A Vega-Lite specification with words for those who cannot see it."""

    specification: dict[str, Any]
    description: str

    @classmethod
    def of(cls, chart: Any, description: str) -> Figure:
        """From an altair chart."""
        # Altair has checked each part already; the whole again would take as long as drawing it.
        return cls({**chart.to_dict(validate=False), **_THEME}, description)

    @property
    def chart(self) -> Any:
        """The figure as an altair chart, which a notebook shows."""
        import altair as alt

        return alt.Chart.from_dict(self.specification)

    def svg(self, width: int = WIDE) -> str:
        """The figure as SVG text, `width` pixels wide with its axes."""
        return self._wide if width == WIDE else self._drawn(width)

    @cached_property
    def _wide(self) -> str:
        """Shown on a page and saved beside it, drawn once."""
        return self._drawn(WIDE)

    def _drawn(self, width: int) -> str:
        import vl_convert

        text: str = vl_convert.vegalite_to_svg(self._at(width))
        return text

    def narrow_svg(self) -> str:
        """The figure for a telephone: drawn again, so that its letters keep their size."""
        return self.svg(NARROW)

    def png(self) -> bytes:
        """The figure as PNG, twice the nominal size."""
        import vl_convert

        image: bytes = vl_convert.vegalite_to_png(self._at(WIDE), scale=2)
        return image

    def _at(self, width: int) -> dict[str, Any]:
        return {
            **self.specification,
            "width": width,
            "autosize": {"type": "fit-x", "contains": "padding"},
        }

    def inside(self) -> Figure:
        """The figure with the mark of what stays inside, for a file that may be passed on without its page."""
        title = self.specification.get("title")
        marked: dict[str, Any] = {"text": STAYS_INSIDE, "color": WARNING, "fontSize": 13, "anchor": "end"}
        if title is not None:
            words = title if isinstance(title, dict) else {"text": title}
            marked = {**words, "subtitle": STAYS_INSIDE, "subtitleColor": WARNING}
        return Figure({**self.specification, "title": marked}, self.description)

    def save(self, folder: Path, name: str) -> None:
        """Write `name.svg` and `name.png`."""
        write_text(folder / f"{name}.svg", self.svg())
        write_bytes(folder / f"{name}.png", self.png())


def data(values: list[dict[str, Any]]) -> Any:
    """Values for an altair chart."""
    import altair as alt

    return alt.Data(values=values)  # type: ignore[no-untyped-call]
