"""PrivateSummary: the noisy sums about a cohort that may leave, each with the noise it carries.

This is the type that reaches a prompt or a panelist's script. It has no public constructor: one is
made by `measuring.summarize`, from what a mechanism gave, or read from a file that says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from understudy.errors import DataError, UsageError
from understudy.privacy.guarantee import Guarantee
from understudy.records.cohort import Schema

Floats = NDArray[np.float64]

FORMAT = "understudy cohort summary"
VERSION = 1

# Whoever holds it has noisy numbers in hand: `measuring` takes it by `_mechanism_token`, nobody else.
_TOKEN: Final = object()

_LARGEST_CELLS = 1_000_000


@dataclass(frozen=True, eq=False)
class Statistic:
    """One noisy statistic: sums over learners of what `meaning` says.

    `noise_sd` is the standard deviation of the noise of each value (a number, or one for each).
    `axes` name the dimensions of `values` and `names` the places along them. `context` holds the
    public numbers that were used (bounds, bin edges, centres from statistics released before).
    """

    values: Floats
    noise_sd: float | Floats
    axes: tuple[str, ...]
    meaning: str
    names: tuple[tuple[str, ...], ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        values = np.array(self.values, dtype=np.float64)
        sd = np.array(self.noise_sd, dtype=np.float64)
        if values.ndim != len(self.axes) or sd.shape not in ((), values.shape):
            raise DataError("a statistic has one axis for each dimension and a noise scale for each value.")
        if self.names and tuple(len(names) for names in self.names) != values.shape:
            raise DataError("the names along the axes of a statistic do not fit its values.")
        if not (np.isfinite(values).all() and np.isfinite(sd).all() and (sd >= 0).all()):
            raise DataError("the values of a statistic are finite, and the scale of its noise is at least 0.")
        values.setflags(write=False)
        object.__setattr__(self, "values", values)
        if sd.ndim:
            sd.setflags(write=False)
        object.__setattr__(self, "noise_sd", sd if sd.ndim else float(sd))
        object.__setattr__(self, "context", MappingProxyType(dict(self.context)))

    def to_json(self) -> dict[str, Any]:
        """The statistic for a file: values, and beside them the scale of their noise."""
        sd = self.noise_sd
        return {
            "meaning": self.meaning,
            "axes": list(self.axes),
            "names": [list(names) for names in self.names],
            "values": _rounded(self.values),
            "noise_sd": _rounded(np.asarray(sd)) if isinstance(sd, np.ndarray) else float(f"{sd:.6g}"),
            "context": dict(self.context),
        }

    @classmethod
    def from_json(cls, content: Any) -> Statistic:
        """The statistic in a file."""
        try:
            values = np.array(content["values"], dtype=np.float64)
            sd = np.array(content["noise_sd"], dtype=np.float64)
            axes = tuple(str(axis) for axis in content["axes"])
            names = tuple(tuple(str(name) for name in along) for along in content.get("names", []))
            context = dict(content.get("context", {}))
            meaning = str(content["meaning"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise DataError(
                "a statistic of the summary has the wrong form.", hint="make the summary again."
            ) from None
        if values.size > _LARGEST_CELLS:
            raise DataError(f"a statistic of {values.size:,} values is none of a cohort.")
        return cls(values, sd if sd.ndim else float(sd), axes, meaning, names, context)


@dataclass(frozen=True, eq=False, init=False)
class PrivateSummary:
    """What a mechanism released about a cohort; see `measuring.summarize`.

    `n_learners` is public. `provenance` says how it came about: `source` is "mechanism" or "file".
    """

    schema: Schema
    guarantee: Guarantee
    n_learners: int
    statistics: Mapping[str, Statistic]
    provenance: Mapping[str, Any]

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError("a private summary is made by `summarize`, or read with `from_json`")

    @classmethod
    def _made(
        cls,
        token: object,
        schema: Schema,
        guarantee: Guarantee,
        n_learners: int,
        statistics: Mapping[str, Statistic],
        provenance: Mapping[str, Any],
    ) -> PrivateSummary:
        if token is not _TOKEN:
            raise TypeError("a private summary is made by a mechanism")
        made = cls.__new__(cls)
        for name, value in (
            ("schema", schema),
            ("guarantee", guarantee),
            ("n_learners", int(n_learners)),
            ("statistics", MappingProxyType(dict(statistics))),
            ("provenance", MappingProxyType(dict(provenance))),
        ):
            object.__setattr__(made, name, value)
        return made

    def __repr__(self) -> str:
        return f"<PrivateSummary: {', '.join(self.statistics)}; {self.guarantee}>"

    def to_json(self) -> dict[str, Any]:
        """The content of the file, and what `generate` gets as `summary`.

        `derived` is for readers: it is computed from the statistics, and `from_json` leaves it aside.
        """
        from understudy.synthesis.cohorts.derived import derived

        return {
            "format": FORMAT,
            "version": VERSION,
            "schema": {**self.schema.to_dict(), "columns": self.schema.columns()},
            "n_learners": self.n_learners,
            "guarantee": self.guarantee.to_json(),
            "statistics": {name: one.to_json() for name, one in self.statistics.items()},
            "derived": derived(self),
            "provenance": dict(self.provenance),
        }

    @classmethod
    def from_json(cls, content: Any, source: str = "the summary") -> PrivateSummary:
        """A summary from a parsed file. Its guarantee is what the file claims; `provenance` says so."""
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise DataError(
                f"{source} is not a private summary of a cohort.",
                hint="`understudy cohort summarize` makes one.",
            )
        if content.get("version") != VERSION:
            raise DataError(f"{source} has a version that is not known.", hint="make the summary again.")
        try:
            declared = {key: value for key, value in content["schema"].items() if key != "columns"}
            n_learners = content["n_learners"]
            statistics = content["statistics"].items()
            provenance = dict(content.get("provenance", {}))
            guarantee = _guarantee(content["guarantee"])
        except (KeyError, TypeError, ValueError, AttributeError, UsageError):
            raise DataError(f"{source}: something is missing.", hint="make the summary again.") from None
        if isinstance(n_learners, bool) or not isinstance(n_learners, int) or n_learners < 1:
            raise DataError(
                f"{source}: n_learners is a number of at least 1.", hint="make the summary again."
            )
        return cls._made(
            _TOKEN,
            Schema.from_dict(declared, source),
            guarantee,
            n_learners,
            {str(name): Statistic.from_json(one) for name, one in statistics},
            {**provenance, "source": "file", "file": source},
        )

    @classmethod
    def read(cls, path: Path) -> PrivateSummary:
        """The summary in a file."""
        if not path.is_file():
            raise UsageError(f"there is no file {path}.", hint="`understudy cohort summarize` makes one.")
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError):
            raise DataError(f"{path.name} is not JSON.", hint="make the summary again.") from None
        return cls.from_json(content, path.name)


def _mechanism_token() -> object:
    """For `measuring`, which holds noisy numbers."""
    return _TOKEN


def _guarantee(content: Mapping[str, Any]) -> Guarantee:
    if not content["formal"]:
        statement = str(content.get("statement", ""))
        return Guarantee.none(statement.partition("(")[2].removesuffix(")"))
    return Guarantee(
        _number(content["epsilon"]),
        _number(content["delta"]),
        mu=None if content.get("mu") is None else _number(content["mu"]),
        rho=None if content.get("rho") is None else _number(content["rho"]),
        slack=None if content.get("slack") is None else _number(content["slack"]),
        mechanisms=tuple(str(name) for name in content.get("mechanisms", ())),
        unit=str(content["unit"]),
        adjacency=str(content["adjacency"]),
    )


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError
    return float(value)


def _rounded(values: Floats) -> Any:
    """Six significant digits: far finer than the noise, and a file that people can read."""
    flat = [float(f"{value:.6g}") for value in values.ravel()]
    return np.array(flat).reshape(values.shape).tolist()
