"""inspect(): a first look at a log, and how few points single a learner out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from understudy.core.files.origin import DECLARED, Origin
from understudy.core.files.times import counts_from_a_start
from understudy.core.pages.charts import Look, Point, curves
from understudy.core.pages.figures import ACCENT, INK, MUTED, WARNING, Figure
from understudy.core.pages.notebook import notebook_table
from understudy.core.pages.render import render
from understudy.core.pages.week_map import week_map
from understudy.logs.attacks.uniqueness import Uniqueness, uniqueness
from understudy.logs.description import Description, describe
from understudy.logs.interactions import Interactions, as_log
from understudy.logs.schedule import Schedule

# The share of the largest figure that counts as nearly as many.
NEARLY = 0.95


@dataclass(frozen=True)
class TimesFound:
    """What the times of a log say; `hours` are shares of rows by hour of the week, None where there are no dates."""

    session_minutes: float
    n_sessions: int
    sessions_median: float
    sessions_max: int
    session_rows_mean: float
    hours: list[float] | None

    def facts(self) -> list[tuple[str, str]]:
        """The same as pairs for people."""
        return [
            (
                "sessions",
                f"{self.n_sessions:,}, each ended by a pause of more than {self.session_minutes:g} minutes",
            ),
            ("sessions of a learner", f"median {self.sessions_median:g}, maximum {self.sessions_max:,}"),
            ("rows of a session", f"mean {self.session_rows_mean:.1f}"),
        ]


@dataclass(frozen=True)
class Declaration:
    """Whether something about a log is public: what it is, its state, and what to do where it is not declared."""

    what: str
    state: str
    missing: str = ""


@dataclass(frozen=True)
class Inspection:
    """What was found in a log: internal, since it is computed from real learners."""

    description: Description
    uniqueness: list[Uniqueness]
    origin: Origin
    simulated: bool
    times: TimesFound | None = None
    declarations: tuple[Declaration, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The inspection for machines."""
        return {
            "file": self.origin.name or None,
            "format": self.origin.format,
            "columns": dict(self.origin.columns),
            "notes": list(self.origin.notes),
            "simulated": self.simulated,
            "identifiers": [vars(identifier) for identifier in self.origin.identifiers],
            **asdict(self.description),
            "times": None if self.times is None else asdict(self.times),
            "declarations": [asdict(declaration) for declaration in self.declarations],
            "uniqueness": [share.to_json() for share in self.uniqueness],
        }

    def to_frame(self) -> pl.DataFrame:
        """Share of learners singled out, a row per number and kind of points."""
        return pl.DataFrame([share.to_json() for share in self.uniqueness])

    def plot(self) -> Any:
        """Learners singled out by the number of points known, as an altair chart."""
        return uniqueness_figure(self.uniqueness).chart

    def page(self) -> str:
        """The inspection as a page."""
        return render(
            "logs/inspection.html",
            content=self.to_json(),
            lines=self.facts(),
            figure=uniqueness_figure(self.uniqueness),
            worst=self.worst,
            identifying=self.identifying,
            week=None if self.times is None else week_figure(self.times),
        )

    @property
    def worst(self) -> Uniqueness | None:
        """The fewest points that single out nearly as many learners as any number of points does."""
        most = max((share.share for share in self.uniqueness), default=0.0)
        telling = [share for share in self.uniqueness if share.share >= NEARLY * most]
        return min(telling, key=lambda share: (share.k, -share.share)) if telling else None

    def _repr_html_(self) -> str:
        facts = pl.DataFrame(self.facts(), schema=["what", "value"], orient="row")
        return notebook_table("Internal: computed from real learners.", facts)

    @property
    def identifying(self) -> str:
        """What becomes of columns that identify people."""
        if any(found.role.startswith(DECLARED) for found in self.origin.identifiers):
            return "a column that is declared and identifies people is refused when synthetic data is written"
        return "none of these reaches a synthetic file"

    def facts(self) -> list[tuple[str, str]]:
        """The description as pairs for people."""
        d = self.description
        lines = [
            ("rows", f"{d.n_rows:,}"),
            ("learners", f"{d.n_learners:,}"),
            ("actions", f"{d.n_actions:,}"),
            ("success rate", "no outcomes" if d.success_rate is None else f"{100 * d.success_rate:.1f} %"),
            ("attempts of a learner at an action", f"median {d.repeats_median:g}, maximum {d.repeats_max:,}"),
            (
                "rows of a learner",
                f"minimum {d.length_min:,}, median {d.length_median:g}, maximum {d.length_max:,}",
            ),
        ]
        if d.success_rate is not None:
            lines.append(
                (
                    "actions without a finite difficulty (set aside in studies)",
                    f"{d.n_always_right} always right, {d.n_always_wrong} always wrong",
                )
            )
        lines.append(("actions that only one learner attempted", f"{d.n_by_one_learner:,}"))
        if d.first_time is not None and d.last_time is not None:
            days, note = (d.first_time, d.last_time), ""
            if self.origin.yearless:
                days, note = (d.first_time[5:], d.last_time[5:]), " (month and day; no year is known)"
            lines.append(("from", f"{days[0]} to {days[1]}{note}"))
        if d.seconds_since_start is not None:
            lines.append(("times count from a start, up to", f"{d.seconds_since_start:,.0f} s"))
        return lines if self.times is None else [*lines, *self.times.facts()]


def inspect(log: Interactions, *, rng: np.random.Generator | None = None) -> Inspection:
    """Describe a log and measure how few points single a learner out."""
    log = as_log(log)
    found, description = uniqueness(log, rng or np.random.default_rng(0)), describe(log)
    times = _times(log, dated=description.seconds_since_start is None) if log.time is not None else None
    return Inspection(description, found, log.origin, log.simulated, times, _declarations(log))


def _times(log: Interactions, *, dated: bool) -> TimesFound:
    schedule = Schedule(log)
    n_sessions = int(schedule.begins.sum())
    return TimesFound(
        session_minutes=schedule.pause_seconds / 60.0,
        n_sessions=n_sessions,
        sessions_median=float(np.median(schedule.n_sessions)) if log.n_learners else 0.0,
        sessions_max=int(schedule.n_sessions.max(initial=0)),
        session_rows_mean=log.n_rows / max(n_sessions, 1),
        hours=schedule.hour_shares.tolist() if dated and log.n_rows else None,
    )


def _declarations(log: Interactions) -> tuple[Declaration, ...]:
    """What is declared about a log, and what is missing for all of it to be synthesized under a guarantee."""
    names = (
        Declaration("names of actions", "public")
        if log.declared
        else Declaration(
            "names of actions",
            "not declared",
            "declare that they are public or list them; otherwise they are found privately, for a part of the budget",
        )
    )
    columns = [
        Declaration(
            f"column {column.declared.name}",
            f"{column.declared.kind}, of each {column.declared.of}",
            "its values or bounds are found privately, for a part of the budget"
            if column.declared.found
            else "",
        )
        for column in log.columns
    ]
    return (names, *_declared_times(log), *columns)


def _declared_times(log: Interactions) -> list[Declaration]:
    if log.time is None:
        return []
    if log.term is None:
        return [
            Declaration("times", "for the order of rows only", "name the column of times to include them")
        ]
    if counts_from_a_start(pl.Series(log.time)):
        return [Declaration("times", "included; they count from a start and have no dates")]
    if not log.term.declared:
        return [
            Declaration(
                "times",
                "included, days not declared",
                "declare the first and the last day; otherwise they are found privately, for a part of the budget",
            )
        ]
    return [Declaration("times", f"included, from {log.term.first} to {log.term.last}")]


_LOOKS = (
    Look(ACCENT),
    Look(WARNING, "diamond"),
    Look(MUTED, "square"),
    Look(INK, "triangle-up"),
    Look("#7a4fa3", "cross"),
)


def week_figure(times: TimesFound) -> Figure | None:
    """When learners work, by hour of the week; None where times have no dates."""
    return None if times.hours is None else week_map(times.hours).figure("Share of rows by hour of the week")


def uniqueness_figure(shares: list[Uniqueness]) -> Figure:
    """Share of learners singled out by the number of points known."""
    looks = dict(zip(dict.fromkeys(share.points for share in shares), _LOOKS, strict=False))
    # The whole scale up to 100 % would flatten a log in which few are singled out.
    most = max((share.high for share in shares), default=1.0)
    drawing = curves(
        [Point(share.k, share.share, share.low, share.high, share.points) for share in shares],
        "things known about a learner",
        "learners singled out",
        looks=looks,
        domain=[0.0, 1.0 if most > 0.5 else max(0.1, 1.2 * most)],
        axis=".0%",
        number=".0%",
        height=280,
    )
    return drawing.figure("Learners singled out, by how many things are known")
