"""The desk's fixtures."""

from tests.desk.support.fixtures import database_url, filled, postgresql, small

__all__ = ["database_url", "filled", "postgresql", "small"]
