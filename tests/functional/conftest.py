"""The desk's fixtures."""

from desk_fixtures import database_url, filled, postgresql, small

__all__ = ["database_url", "filled", "postgresql", "small"]
