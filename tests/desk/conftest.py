"""The desk's fixtures."""

from tests.desk.support.fixtures import database_url, filled, postgresql, private, rough_prices, small
from tests.support.warm_sandbox import warm_sandboxes

__all__ = ["database_url", "filled", "postgresql", "private", "rough_prices", "small", "warm_sandboxes"]
