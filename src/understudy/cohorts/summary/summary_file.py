"""PrivateSummary: the noisy sums about a cohort that may leave, each with the noise it carries.

This is the type that reaches a prompt or a panelist's script. It has no public constructor: one is
made by `summarize` from the output of a mechanism, or read from a file that was verified as far as a
file can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.schema import KINDS, SUMMARY_FORMAT, Schema, kind_of_file
from understudy.core.files.documents import ContractError, checked, contract, parse_json
from understudy.core.privacy.guarantee import Guarantee
from understudy.errors import DataError

Floats = NDArray[np.float64]

VERSION = 1
# Never "make it again": that would cost a second time.
_AS_WRITTEN = (
    "a private summary is the json file that `understudy cohort summarize` wrote; look for it first, since a new one "
    "is charged again."
)

# Only code that has noisy numbers may hold it: `summarize` takes it by `_mechanism_token`.
_TOKEN: Final = object()


@dataclass(frozen=True, eq=False)
class Statistic:
    """One noisy statistic: sums over learners of what `meaning` describes.

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
        if not (np.isfinite(values).all() and np.isfinite(sd).all() and (sd > 0).all()):
            raise DataError("the values of a statistic are finite, and the scale of its noise is above 0.")
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


@dataclass(frozen=True)
class StatisticForm:
    """A statistic in a file."""

    __pydantic_config__: ClassVar = contract()

    values: tuple[Any, ...]
    noise_sd: float | tuple[Any, ...]
    axes: tuple[str, ...]
    names: tuple[tuple[str, ...], ...] = ()
    meaning: str = ""
    context: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _SummaryForm:
    """A summary in a file."""

    __pydantic_config__: ClassVar = contract()

    format: str
    version: int
    schema: Schema
    n_learners: int
    guarantee: dict[str, Any]
    statistics: dict[str, StatisticForm]
    derived: Any = None
    provenance: Any = None

    def __post_init__(self) -> None:
        if self.n_learners < 1:
            raise ContractError("n_learners is a number of at least 1.", key="n_learners")


def _without_columns(content: Any) -> Any:
    """Columns follow from the schema: they are written for readers only."""
    schema = content.get("schema")
    if not isinstance(schema, dict):
        return content
    return {**content, "schema": {key: value for key, value in schema.items() if key != "columns"}}


@dataclass(frozen=True, eq=False, init=False)
class PrivateSummary:
    """What a mechanism released about a cohort; see `summarize`.

    `n_learners` is public. `provenance` records how it was made: `source` is "mechanism" or "file".
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

        return {
            "format": SUMMARY_FORMAT,
            "version": VERSION,
            "schema": {**self.schema.to_dict(), "columns": self.schema.columns()},
            "n_learners": self.n_learners,
            "guarantee": self.guarantee.to_json(),
            "statistics": {name: statistic.to_json() for name, statistic in self.statistics.items()},
            "derived": derived(self),
            "provenance": dict(self.provenance),
        }

    @classmethod
    def from_json(cls, content: Any, source: str = "the summary") -> PrivateSummary:
        """A summary from a parsed file, as far as it can be verified; the rest is what the file claims.

        Its guarantee and `provenance` state that it comes from a file: see `verification`.
        """
        from understudy.cohorts.summary.verification import (
            verified_guarantee,
            verified_provenance,
            verified_statistics,
        )

        if not isinstance(content, dict) or content.get("format") != SUMMARY_FORMAT:
            raise DataError(f"{source} is not a private summary of a cohort.", hint=_AS_WRITTEN)
        if content.get("version") != VERSION:
            raise DataError(f"{source} has a version that is not known.", hint=_AS_WRITTEN)
        try:
            form = checked(_without_columns(content), _SummaryForm, source)
            statistics = verified_statistics(form.statistics, form.schema, form.n_learners, source)
            provenance = verified_provenance(form.provenance, source)
            guarantee = verified_guarantee(
                form.guarantee, form.schema, statistics, provenance["simulated"], source
            )
        except ContractError as error:
            raise DataError(error.message, hint=_AS_WRITTEN) from None
        except (ValueError, OverflowError):
            raise DataError(f"{source} holds a number that no summary holds.", hint=_AS_WRITTEN) from None
        return cls._made(_TOKEN, form.schema, guarantee, form.n_learners, statistics, provenance)

    @classmethod
    def read(cls, path: Path) -> PrivateSummary:
        """The summary in a file."""
        kind = kind_of_file(path)
        if kind not in (None, "summary", "json"):
            raise DataError(f"{path.name} is {KINDS[kind]}, not a private summary.", hint=_AS_WRITTEN)
        _, content = parse_json(
            path,
            hint="a private summary is the json file that `understudy cohort summarize` writes; it can explain "
            "beforehand what that costs.",
        )
        return cls.from_json(content, path.name)


def _mechanism_token() -> object:
    """For `summarize`, which has noisy numbers."""
    return _TOKEN


def _rounded(values: Floats) -> Any:
    """Six significant digits: far finer than the noise, and a file that people can read."""
    flat = [float(f"{value:.6g}") for value in values.ravel()]
    return np.array(flat).reshape(values.shape).tolist()


def zero_shares(summary: PrivateSummary) -> tuple[Floats, Floats] | None:
    """Share of weeks without activity, labels by features, and its standard deviation; None if not measured.

    A straight line through the labels: 1 - (mean + slope (code - mean code)), from `levels`, `labels` and
    `habits`. Values are not cut to [0, 1] and not shrunk: the noise is what it is.
    """
    if not {"levels", "labels", "habits"} <= set(summary.statistics):
        return None
    n, n_features = float(summary.n_learners), summary.schema.n_features
    counts = np.maximum(summary.statistics["labels"].values, 1.0)
    shares = counts / counts.sum()
    habits, levels = summary.statistics["habits"], summary.statistics["levels"]
    context = habits.context
    codes = np.array(context["label_codes"])
    scale, centre = np.array(context["scale_active"]), np.array(context["centre_active"])
    mean_code = float(shares @ codes)
    variance = max(float(shares @ codes**2) - mean_code**2, 0.05)
    sd = np.asarray(habits.noise_sd)
    rows = slice(1, n_features + 1)
    by_products = centre + scale * habits.values[0, rows] / (n * float(context["constant"]))
    by_products_sd = scale * sd[0, rows] / (n * float(context["constant"]))
    by_levels = float(levels.context["middle"][0]) + levels.values[:, 0] / n
    by_levels_sd = np.broadcast_to(levels.noise_sd, levels.values.shape)[:, 0] / n
    weight = by_levels_sd**2 / (by_levels_sd**2 + by_products_sd**2)
    mean = weight * by_products + (1.0 - weight) * by_levels
    mean_sd = by_levels_sd * by_products_sd / np.sqrt(by_levels_sd**2 + by_products_sd**2)
    factor = n * float(context["label_factor"])
    slope = (habits.values[rows, -1] / factor - (mean - centre) / scale * mean_code) * scale / variance
    slope_sd = sd[rows, -1] / factor * scale / variance
    off = (codes - mean_code)[:, None]
    return 1.0 - (mean + slope * off), np.sqrt(mean_sd**2 + (slope_sd * off) ** 2)


def derived(summary: PrivateSummary) -> dict[str, Any]:
    """For a prompt or a page: the readable numbers, with their uncertainty beside them."""
    found = zero_shares(summary)
    if found is None:
        return {}
    values, sd = found
    return {
        "zero_shares": {
            "meaning": "share of weeks with the value 0, estimated from levels, labels and habits",
            "axes": [summary.schema.label, "feature"],
            "names": [list(summary.schema.labels), [feature.name for feature in summary.schema.features]],
            "values": np.round(values, 4).tolist(),
            "sd": np.round(sd, 4).tolist(),
        }
    }
