"""Fixtures of the tests that run the whole: the desk's, and a browser."""

from desk_fixtures import database_url, filled, postgresql, small
from real_browser import browser

__all__ = ["browser", "database_url", "filled", "postgresql", "small"]
