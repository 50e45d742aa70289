"""coarsen(): key presses with coarse times under new names, and their card. There is no formal guarantee."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl

import understudy
from understudy.core.files.writing import (
    check_not_input,
    check_parent,
    check_suffix,
    write_json,
    write_table,
    write_text,
)
from understudy.core.options import settled
from understudy.core.pages.notebook import notebook_table
from understudy.core.privacy.spending import Account, Charge, Spending
from understudy.errors import UsageError
from understudy.keystrokes.card import card_content, card_page, guarantee_of, read_attacks
from understudy.keystrokes.coarsening import (
    LONGEST_PAUSE,
    MIN_LEARNERS_PER_KEY,
    Bucketing,
    Coarsening,
    Rounding,
    parse_coarsening,
)
from understudy.keystrokes.formats.reading import KeystrokeSource
from understudy.keystrokes.released_events import Keys, ReleasedColumns, coarsen_events, released_table

TEXT_CAN_BE_READ = (
    "The text that was typed can be read in it, and names in it too. Classes of keys keep neither."
)


@dataclass(frozen=True)
class CoarsenOptions(Spending):
    """How coarse the times become, and what else of the events is released."""

    bucket: Annotated[float | None, "Put latencies into buckets of so many milliseconds."] = None
    round: Annotated[float | None, "Round latencies to so many milliseconds."] = None
    method: Annotated[
        str | None, "Another coarsening: shift:300, delay:25-500 or classes:3 (bucket, round too)."
    ] = None
    keep: Annotated[
        str, "Columns to keep beside keys and times: week, session, hold; several with commas."
    ] = ""
    keys: Annotated[
        str,
        "classes: only whether a letter, digit, space, symbol, backspace or other; or all: what was typed "
        "can be read then, and names in it too.",
    ] = "classes"
    rare_keys: Annotated[
        int, "Keys of fewer learners than this are given by their class, classes of fewer as other."
    ] = MIN_LEARNERS_PER_KEY
    longest_pause: Annotated[
        float, "Longer pauses count as this many milliseconds: their lengths match other logs."
    ] = LONGEST_PAUSE
    attacks: Annotated[
        Path | None, "results.csv of a sweep of this data: publishes on the card what its attacks found."
    ] = None
    force: Annotated[bool, "Write over files that are there."] = False

    def __post_init__(self) -> None:
        """Find wrong settings before a large file is read."""
        if self._chosen():
            self.coarsening()
        self.columns()

    def _chosen(self) -> list[Coarsening]:
        sizes = ((Bucketing, self.bucket), (Rounding, self.round))
        chosen: list[Coarsening] = [kind(size) for kind, size in sizes if size is not None]
        return chosen + ([] if self.method is None else [parse_coarsening(self.method)])

    def coarsening(self) -> Coarsening:
        """The one coarsening that was chosen."""
        chosen = self._chosen()
        if len(chosen) != 1:
            raise UsageError(
                "no coarsening was chosen." if not chosen else f"{len(chosen)} coarsenings were chosen.",
                hint="choose one: a size in ms of buckets or of rounding, or a method such as shift:300; a sweep "
                "helps to choose",
                code="no-coarsening" if not chosen else "several-coarsenings",
                settings=("bucket", "round", "method"),
            )
        if getattr(chosen[0], "size", 1) == 0:
            raise UsageError(f"{chosen[0]} leaves latencies as they are.", hint="give a size above 0 ms.")
        return chosen[0]

    def columns(self) -> ReleasedColumns:
        """What of the events is released."""
        if self.keys not in set(Keys):
            raise UsageError(
                f"asked for the keys '{self.keys}'.", hint="give classes or all.", settings=("keys",)
            )
        return ReleasedColumns.parse(
            self.keep, keys=Keys(self.keys), fewest=self.rare_keys, longest_pause=self.longest_pause
        )


@dataclass(frozen=True, eq=False, repr=False)
class CoarseEvents:
    """Coarse events that were noted in the ledger: `table` may be given away, with the words on its card."""

    table: pl.DataFrame
    card: dict[str, Any]
    charge: Charge
    left_out: dict[str, int]
    out: Path | None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the custodian should think about before giving it away."""
        return (TEXT_CAN_BE_READ,) if self.card["keys"] == Keys.all else ()

    def to_json(self) -> dict[str, Any]:
        """The result for machines."""
        out, page, machine = (None, None, None) if self.out is None else map(str, _paths(self.out))
        return {
            "out": out,
            "card_page": page,
            "card_json": machine,
            **self.charge.to_json(),
            "coarsening": self.card["coarsening"],
            "keys": self.card["keys"],
            "typing_range_ms": self.card["typing_range_ms"],
            "rows": self.table.height,
            "learners": self.card["n_learners"],
            "columns": self.table.columns,
            "left_out": self.left_out,
            "guarantee": self.charge.guarantee.to_json(),
        }

    def lines(self) -> list[str]:
        """The result for people."""
        where = "" if self.out is None else f"{self.out}: "
        lines = [
            f"{where}{self.table.height:,} keys of {self.card['n_learners']} learners under new names, "
            f"{self.card['coarsening']}.",
            f"Guarantee: {self.charge.guarantee}.",
        ]
        if not self.card["attacks"]:
            lines.append("No attack was run on it: a sweep measures who can still be identified.")
        if self.out is not None:
            _, page, machine = _paths(self.out)
            lines.append(f"Card: {page} and {machine}.")
        return [*lines, self.charge.sentence()]

    def to_frame(self) -> pl.DataFrame:
        """The events."""
        return self.table

    def page(self) -> str:
        """The card as a page."""
        return card_page(self.card)

    def _repr_html_(self) -> str:
        return notebook_table(" ".join((*self.lines(), *self.warnings)), self.table)


def coarsen(
    source: KeystrokeSource,
    options: CoarsenOptions = CoarsenOptions(),  # noqa: B008 (frozen)
    *,
    out: Path | str | None = None,
    **settings: Any,
) -> CoarseEvents:
    """Note the release in the ledger, make the events coarse, and write them with their card if `out` is given.

    The settings of `CoarsenOptions` may be given as keywords. Real dates, names, and every column that is not
    asked for are dropped.
    """
    options = settled(options, settings)
    coarsening, columns = options.coarsening(), options.columns()
    out = None if out is None else Path(out)
    if out is not None:
        _check_output(out, source.path, options)
    real = source.keystrokes
    columns.check_hold(real)
    account = Account.open(options, source.origin, simulated=real.simulated)
    found = (
        [] if options.attacks is None else read_attacks(Path(options.attacks), coarsening, real.n_learners)
    )
    guarantee = guarantee_of(found)
    account.check(guarantee)
    risk = {"attacks": found} if found else None
    written = None if out is None else _paths(out)
    with account.charge("keystrokes coarsen", str(coarsening), guarantee, out=written, risk=risk) as charge:
        # A stream for random places and delays alone: order and names come from the operating system.
        coarse = coarsen_events(real, coarsening, columns, np.random.default_rng(secrets.randbits(128)))
        table = released_table(coarse, columns)
        provenance = {
            "card": charge.card,
            "made": datetime.now(UTC).date().isoformat(),
            "simulated": bool(account.simulated),
            "version": understudy.__version__,
        }
        content = card_content(table, coarsening, columns, provenance, found)
        if out is not None:
            _, page, machine = _paths(out)
            write_text(page, card_page(content))
            write_json(machine, content)
            write_table(table, out, kind=f"keystrokes under new names, coarse times ({coarsening})")
    return CoarseEvents(table, content, charge, source.left_out, out)


def _paths(out: Path) -> tuple[Path, Path, Path]:
    """The events, and their card as a page and for machines."""
    return out, out.with_suffix(".card.html"), out.with_suffix(".card.json")


def _check_output(out: Path, data: Path, options: CoarsenOptions) -> None:
    check_suffix(out)
    check_parent(out)
    for path in _paths(out):
        check_not_input(path, data, *([] if options.attacks is None else [Path(options.attacks)]))
        if path.exists() and not options.force:
            raise UsageError(
                f"asked to write {path}, which is there already.",
                hint="choose another name, or allow it to be written over.",
                code="already-exists",
                settings=("out", "force"),
            )
