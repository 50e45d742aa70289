"""What was measured of the validation desk, read from its table."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from reproductions.pages import rows_of, tables_of
from reproductions.validation_desk.study import ROUNDS, Drivers, Studied, drivers, from_rows
from understudy.desk.service.views import PricedRequest

TABLES = tables_of("validation_desk")
FIRST, MENDED = ROUNDS


@lru_cache
def _rows() -> tuple[dict[str, str], ...]:
    return tuple(rows_of(TABLES / "requests.csv"))


@lru_cache
def measured(name: str = MENDED) -> dict[int, list[PricedRequest]]:
    """The requests of a round with their prices, by year."""
    years = from_rows(_rows())[name]
    return {year: [one.request for one in requests] for year, requests in years.items()}


@lru_cache
def found_drivers(name: str) -> Drivers:
    """What drives the price of a request."""
    influences = [one.influence for one in studied(name)]
    return drivers(every(name), influences, np.random.default_rng(0))


def every(name: str = MENDED) -> list[PricedRequest]:
    """The requests of a round."""
    return [one for requests in measured(name).values() for one in requests]


def studied(name: str = MENDED) -> list[Studied]:
    """The requests of a round with the checks that they fail."""
    return [one for requests in from_rows(_rows())[name].values() for one in requests]


def stage_one_mu() -> float:
    """What the published summary of stage one costs, as mu."""
    return float(_rows()[0]["stage_one_mu"])
