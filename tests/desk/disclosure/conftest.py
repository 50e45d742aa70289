"""Checks as they are: these tests are about them."""

import pytest


@pytest.fixture(autouse=True)
def rough_prices():
    """Nothing is made rough here."""
