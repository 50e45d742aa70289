"""Pages and figures for people: one look, self-contained, offline."""

from understudy.pages.figures import Figure
from understudy.pages.page import render

__all__ = ["Figure", "render"]
