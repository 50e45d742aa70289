"""What a file has to show before it is taken for a private summary.

A file can hold any numbers, so that noise was drawn is the file's claim and stays one. What can be checked is:
the statistics are those that the mechanism measures, of the shape that the schema gives them; every number states
its noise; and the stated noise is enough for the stated guarantee, (sensitivity / noise)^2 / 2 summed over the
statistics being at most the rho of what is left of it without the price of privately estimated cuts, which are in the
file too. Words (meanings, names along the axes, the guarantee's sentences) are written anew from the schema: none of
the file's own get any further, but for the schema, which the custodian declares.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.schema import DROPPED, UNSCORED, Schema
from understudy.cohorts.summary import caveats
from understudy.cohorts.summary.budget import (
    ANALYSES,
    LEAST_SIGMA,
    MECHANISM,
    MOST_CELLS,
    rho_of,
    with_cuts,
)
from understudy.cohorts.summary.previous_year import least_noise, own_noise
from understudy.cohorts.summary.statistics import MEASURES, Measure, habits_around
from understudy.cohorts.summary.summary_file import Statistic, StatisticForm
from understudy.core.privacy.composition import from_gaussians
from understudy.core.privacy.guarantee import ADJACENCY, SEEDED, UNIT, Caveat, Guarantee
from understudy.errors import DataError, UsageError

Floats = NDArray[np.float64]

# A file holds six digits of a number.
_ROUNDING = 1e-4
_MOST_YEARS = 100
_HINT = "give the file as `understudy cohort summarize` wrote it; a new summary would be charged again."
# What post-processing adds to a context, beside the number of learners.
_COMBINED = frozenset({"measured_sd", "years", "validated_cells"})


def verified_statistics(
    content: Mapping[str, StatisticForm], schema: Schema, n_learners: int, source: str
) -> dict[str, Statistic]:
    """The statistics of a file in the order in which they are measured."""
    if not content:
        raise DataError(f"{source} holds no statistics.", hint=_HINT)
    if set(content) - set(MEASURES):
        raise DataError(
            f"{source} holds a statistic that no mechanism here measures.",
            hint="known: " + ", ".join(MEASURES) + ".",
        )
    found: dict[str, Statistic] = {}
    for name in MEASURES:
        if name in content:
            try:
                found[name] = _verified(name, content[name], schema, n_learners, found)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
                raise DataError(f"{source}: the statistic '{name}' has the wrong form.", hint=_HINT) from None
            except DataError as error:
                raise DataError(
                    f"{source}: the statistic '{name}' {error.message}", hint=error.hint
                ) from None
    return found


def verified_guarantee(
    content: Mapping[str, Any],
    schema: Schema,
    statistics: Mapping[str, Statistic],
    simulated: bool,
    source: str,
) -> Guarantee:
    """The guarantee that a file claims, if the noise that it states is enough for it."""
    if schema.cuts_source == "data":
        raise DataError(
            f"{source} has cuts between the labels that come from the data, so no guarantee holds for it.",
            hint="no private summary has such cuts: declare them, or have them estimated privately.",
        )
    stated = Guarantee.from_json(content, source, caveats=caveats.KNOWN)
    if not stated.formal:
        if not simulated:
            raise DataError(
                f"{source} claims no guarantee, so it is not a private summary of real learners.", hint=_HINT
            )
        # Seeded noise is the one way to a summary without a guarantee; no other reason gets any further.
        return Guarantee.none(SEEDED if stated.reason == SEEDED else "the file claims none")
    epsilon, delta = stated.epsilon, stated.delta
    if stated.unit != UNIT or stated.adjacency != ADJACENCY or not 0 < delta < 1:
        raise DataError(f"{source} claims a guarantee of another kind.", hint=_HINT)
    if schema.cuts_source == "private" and schema.cuts_epsilon is None:
        raise DataError(
            f"{source} has privately estimated cuts between the labels, and does not state what they cost.",
            hint=_HINT,
        )
    # Of the sum only twelve digits are sure.
    measured = float(f"{epsilon - (schema.cuts_epsilon or 0.0):.12g}")
    if not measured > 0:
        raise DataError(
            f"{source} claims epsilon {epsilon:g}, no more than its cuts between the labels cost alone.",
            hint=_HINT,
        )
    try:
        rho = rho_of(measured, delta)
    except (OverflowError, ValueError, UsageError):
        raise DataError(f"{source} claims a guarantee that no noise gives.", hint=_HINT) from None
    measures = [MEASURES[name](schema, {}) for name in statistics]
    spent = 0.0
    for measure in measures:
        sigma = own_noise(statistics[measure.name])
        spent += (measure.sensitivity / sigma) ** 2 / 2.0
        if sigma / measure.step < LEAST_SIGMA * (1 - _ROUNDING):
            raise DataError(_too_little(source, epsilon, delta, measure.name), hint=_HINT)
    if spent > rho * (1 + _ROUNDING):
        raise DataError(_too_little(source, epsilon, delta), hint=_HINT)
    if sum(measure.n_cells for measure in measures) > MOST_CELLS:
        raise DataError(f"{source} holds more numbers than the accounting covers.", hint=_HINT)
    proved = from_gaussians(rho, measured, delta, (MECHANISM,), n_cells=MOST_CELLS, sigma=LEAST_SIGMA)
    return with_cuts(proved, schema).with_caveats(
        *_caveats(schema, statistics, stated.caveats), caveats.FROM_FILE
    )


def verified_provenance(content: Any, source: str) -> dict[str, Any]:
    """The origin that a file states: only what this program writes, in the form that it writes."""
    stated = content if isinstance(content, dict) else {}
    kept: dict[str, Any] = {"source": "file", "file": source, "simulated": stated.get("simulated") is True}
    for name in ("epsilon", "delta"):
        if isinstance(stated.get(name), int | float):
            kept[name] = _number(stated[name])
    if isinstance(stated.get("analyses"), list):
        kept["analyses"] = [name for name in stated["analyses"] if name in ANALYSES]
    if isinstance(stated.get("shares"), dict):
        kept["shares"] = {
            name: _number(stated["shares"][name]) for name in MEASURES if name in stated["shares"]
        }
    if _is_card(stated.get("card")):
        kept["card"] = stated["card"]
    if isinstance(stated.get("previous"), list):
        kept["previous"] = [card for card in stated["previous"] if _is_card(card)][:_MOST_YEARS]
    if isinstance(stated.get("feedback"), str):
        kept["feedback"] = "rules" if stated["feedback"] == "rules" else "a language model"
    return kept


def _verified(
    name: str, form: StatisticForm, schema: Schema, n_learners: int, earlier: Mapping[str, Statistic]
) -> Statistic:
    stated = form.context
    measure = MEASURES[name](schema, earlier)
    if name == "habits":
        measure = _around_its_centres(measure, stated, schema, earlier)
    values, sd = (np.array(numbers, dtype=np.float64) for numbers in (form.values, form.noise_sd))
    if values.shape != measure.shape or sd.shape not in ((), values.shape):
        raise DataError("does not have the shape that the schema gives it.", hint=_HINT)
    if not (np.isfinite(values).all() and np.isfinite(sd).all() and (sd > 0).all()):
        raise DataError("holds a number without noise, or none at all.", hint=_HINT)
    if form.axes != measure.axes or form.names != measure.names:
        raise DataError("has other axes than the schema gives it.", hint=_HINT)
    context = {**measure.context, "n_learners": n_learners}
    if {key: value for key, value in stated.items() if key not in _COMBINED} != context:
        raise DataError("was measured in a way that is not known here.", hint=_HINT)
    added = _combined(stated, measure)
    statistic = Statistic(
        values,
        sd if sd.ndim else float(sd),
        measure.axes,
        measure.meaning,
        measure.names,
        {**context, **added},
    )
    sigma = own_noise(statistic)
    most = np.full(values.shape, sigma)
    if measure.kind == "products":
        most = np.where(np.eye(len(values), dtype=bool), sigma, sigma / math.sqrt(2.0))
    if not (added or np.allclose(sd, most, rtol=_ROUNDING)) or (sd > most * (1 + _ROUNDING)).any():
        raise DataError("states noise that no mechanism gives.", hint=_HINT)
    least = _least(statistic, most, n_learners)
    if (sd < least * (1 - _ROUNDING)).any():
        raise DataError("states less noise than its number of years can have left.", hint=_HINT)
    return statistic


def _least(statistic: Statistic, measured: Floats, n_learners: int) -> Floats:
    """The least noise of each value after an earlier year and validated effects were weighed in.

    An effect is known to no more than the chance of this year's learners, 1 / sqrt(n) in a correlation,
    times the least spreads of habit (0.3 in variance) and label (0.1) that `suggestions` assumes.
    """
    least = least_noise(measured, int(statistic.context.get("years", 1)))
    known = statistic.context.get("validated_cells", ())
    if known:
        validated_sd = float(statistic.context["label_factor"]) * math.sqrt(0.3 * 0.1 * n_learners)
        for cell in known:
            row = statistic.names[-1].index(cell)
            for place in ((row, -1), (-1, row)):
                least[place] = 1.0 / math.sqrt(1.0 / least[place] ** 2 + 1.0 / validated_sd**2)
    return least


def _around_its_centres(
    measure: Measure, stated: Mapping[str, Any], schema: Schema, earlier: Mapping[str, Statistic]
) -> Measure:
    """Centres come from the noisy levels; of levels that were combined later, only their range is known."""
    active, size = (np.array(stated[key], dtype=np.float64) for key in ("centre_active", "centre_l"))
    if active.shape != (schema.n_features,) or size.shape != (schema.n_features,):
        raise ValueError
    if not (((active >= 0.05) & (active <= 0.95)).all() and ((size >= 0.15) & (size <= 0.85)).all()):
        raise ValueError
    if "levels" in earlier and "measured_sd" not in earlier["levels"].context:
        expected = (measure.context["centre_active"], measure.context["centre_l"])
        if not all(np.allclose(a, b, atol=_ROUNDING) for a, b in zip((active, size), expected, strict=True)):
            raise DataError("is not centred by the levels beside it.", hint=_HINT)
    return habits_around(schema, active, size)


def _combined(stated: Mapping[str, Any], measure: Measure) -> dict[str, Any]:
    """What a context states of an earlier year, or of validated effects; empty if it was only measured."""
    found: dict[str, Any] = {}
    years = stated.get("years", 1)
    if isinstance(years, bool) or not isinstance(years, int) or not 1 <= years <= _MOST_YEARS:
        raise ValueError
    if years > 1:
        found["years"] = years
    cells = stated.get("validated_cells", [])
    if not isinstance(cells, list) or not set(map(str, cells)) <= set(measure.names[-1]):
        raise ValueError
    if cells:
        found["validated_cells"] = [str(cell) for cell in cells]
    if bool(found) != ("measured_sd" in stated):
        raise DataError("does not state the noise of its own measurement.", hint=_HINT)
    if found:
        found["measured_sd"] = _number(stated["measured_sd"])
        if not found["measured_sd"] > 0:
            raise DataError("holds a number without noise.", hint=_HINT)
    return found


def _caveats(schema: Schema, statistics: Mapping[str, Statistic], stated: tuple[Caveat, ...]) -> list[Caveat]:
    """The caveats that the file states, and those that its numbers show."""
    seen = [
        # That an earlier summary was charged is the file's claim, unless a ledger knew it.
        (
            caveats.PREVIOUS_CLAIMED,
            caveats.PREVIOUS not in stated
            and any("years" in statistic.context for statistic in statistics.values()),
        ),
        (caveats.PREVIOUS, False),
        (caveats.EARLIER_FROM_FILE, False),
        (caveats.FEEDBACK, any("validated_cells" in statistic.context for statistic in statistics.values())),
        *((caveat, caveat in schema.caveats) for caveat in (DROPPED, UNSCORED)),
    ]
    return [caveat for caveat, is_seen in seen if is_seen or caveat in stated]


def _too_little(source: str, epsilon: float, delta: float, statistic: str = "") -> str:
    which = f" of '{statistic}'" if statistic else ""
    return (
        f"{source} claims epsilon {epsilon:g} and delta {delta:.2e}, and the noise{which} that it states is too little "
        "for that."
    )


def _is_card(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{16}", value) is not None


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError
    return float(value)
