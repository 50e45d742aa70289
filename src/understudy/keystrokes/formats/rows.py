"""Rows of a keystroke file on their way to a record: columns by role, and why a row is left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from understudy.core.files.columns import KNOWN_NAMES, ColumnChooser, plain
from understudy.core.files.notes import add_up
from understudy.core.files.source import Guess
from understudy.core.files.tables import Table


class Reason(StrEnum):
    """Why a row is not a key press of the record. A row's `reason` is its position here."""

    none = ""
    no_key = "no key"
    several = "several characters at once (paste, completion or replacement)"
    not_typed = "not typed (pasted, formatted, undone or loaded)"
    other_event = "another kind of event"
    no_time = "no time"


REASONS = tuple(Reason)
# These are counted beside the reasons; the last one leaves a latency out, not a key.
NO_LEARNER = "no learner"
REPEATED = "exact repeat"
HELD = "repeated by the keyboard while held down"
NEVER_PRESSED = "released without having been pressed"
BACKWARDS = "clock ran backwards (the key is kept, its latency is not)"
UNCHANGED = "text unchanged"
FIRST_TEXT = "first text of a document"
ELSEWHERE = "learner not in the other course"

# As `plain` writes them, in order of preference.
NAMES: dict[str, tuple[str, ...]] = {
    "learner": (*KNOWN_NAMES["learner"], "subject"),
    "time": (
        *("time", "timens", "timeus", "timems", "timestamp", "clienttimestamp", "servertimestamp"),
        *("timestampns", "timestampus", "timestampms", "presstime", "keydowntime", "downtime", "pressedat"),
        *("times", "timesec", "timeseconds", "ts", "xelapsedtime", "elapsedtime", "elapsed", "epoch"),
        *KNOWN_NAMES["time"],
    ),
    "key": (
        *("key", "keyname", "keychar", "keyvalue", "character", "char", "letter", "inserttext"),
        *("insertedtext", "inserted", "taste", "touche", "tecla", "keycode"),
    ),
    "session": ("session", "sessionid", "sitting", "testsectionid", "sitzung"),
    "week": ("week", "weekno", "weeknumber", "courseweek", "woche", "semaine", "semana"),
    "type": ("type", "eventtype", "keyevent", "event", "eventname", "direction", "action", "state"),
    "code": ("code", "keycode", "scancode", "physicalkey"),
    "hold": (
        *("hold", "holdns", "holdus", "holdms", "holdtime", "holdtimems", "dwell", "dwellms", "dwelltime"),
        *("keyhold", "holdduration", "pressduration"),
    ),
    "release": ("releasetime", "keyuptime", "uptime", "releasedat"),
    "follows": ("follows",),
    "document": (
        *("document", "documentid", "file", "filename", "path", "codestatesection", "exercise", "exerciseid"),
        *("assignment", "assignmentid", "problemid", "task", "taskid"),
    ),
    "text": (
        *("snapshot", "snapshottext", "sourcecode", "codestate", "xcodestate", "source", "content"),
        *("fulltext", "program", "code", "text"),
    ),
}


@dataclass(frozen=True)
class KeystrokeColumns:
    """Columns and the unit of times as the user named them; None: found by name, or from the content."""

    learner: Annotated[str | None, "Column that names the learner."] = None
    time: Annotated[str | None, "Column with the time of the key press."] = None
    key: Annotated[str | None, "Column with the key or the inserted text."] = None
    session: Annotated[str | None, "Column with the session; otherwise 30 idle minutes end one."] = None
    week: Annotated[str | None, "Column with the week; otherwise 7 days each from the first key."] = None
    unit: Annotated[
        str | None,
        "Unit of the times (ns, us, ms, s), if the column's name does not state it; a guarantee needs one of the two.",
    ] = None

    def chooser(self, table: Table, key_role: str = "key", **own: str | None) -> ColumnChooser:
        """Chooses a table's columns; `key` names the column of `key_role`, `own` are the format's own names."""
        asked = {
            "learner": self.learner,
            "time": self.time,
            key_role: self.key,
            "session": self.session,
            "week": self.week,
        }
        asked |= {role: name for role, name in own.items() if asked[role] is None}
        return ColumnChooser(table.names, table.file, asked, NAMES, {key_role: "key"})


@dataclass(repr=False)
class Rows:
    """What a format's reader hands over, in the order of the file.

    `frame` has `learner`, `time`, `key` and `line`; where the file has them also `reason` (a position
    in `REASONS`), `up` (a release, not a press), `code` (the key's place on the keyboard), `hold`,
    `release`, `session`, `week`, and `broken` (the row does not follow the one before). `guesses` is what was
    decided by looking at learners' rows.
    """

    file: str
    place: str
    frame: pl.DataFrame
    columns: dict[str, str]
    notes: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    guesses: list[Guess] = field(default_factory=list)
    n_learners: int = 0

    @classmethod
    def of(cls, table: Table, chooser: ColumnChooser) -> Rows:
        """The rows of a table, with the columns that were chosen."""
        frame = table.read(chooser.positions)
        # Of the learner column, whatever is left out later: this number is public.
        n_learners = (
            frame["learner"].cast(pl.String).str.strip_chars().replace("", None).drop_nulls().n_unique()
        )
        notes = [*table.notes, *chooser.notes]
        guesses = list(table.guesses)
        return cls(
            table.file, table.place, frame, chooser.columns, notes, guesses=guesses, n_learners=n_learners
        )

    def add_piece(self, other: Rows) -> None:
        """Take in what is known about other learners of the same file, but for their rows."""
        self.notes = add_up([*self.notes, *other.notes])
        self.left_out.update(other.left_out)
        self.guesses += [guess for guess in other.guesses if guess not in self.guesses]
        self.n_learners += other.n_learners

    def mark(self, where: pl.Expr, reason: Reason) -> None:
        """Give the reason to rows that have none yet."""
        known = pl.col("reason") if "reason" in self.frame.columns else pl.lit(0, pl.UInt8)
        code = pl.lit(REASONS.index(reason), pl.UInt8)
        self.frame = self.frame.with_columns(
            pl.when((known == 0) & where.fill_null(False)).then(code).otherwise(known).alias("reason")
        )


def coded(values: pl.Series) -> tuple[NDArray[np.int32], pl.Series]:
    """Texts as codes in the order of their first appearance (missing: -1), and the texts."""
    known = values.drop_nulls().unique(maintain_order=True)
    if not len(known):
        return np.full(len(values), -1, dtype=np.int32), known
    codes = values.cast(pl.Enum(known)).to_physical().cast(pl.Int32).fill_null(-1)
    return codes.to_numpy(), known


def regrouped(codes: NDArray[np.int32], groups: Sequence[Any]) -> tuple[NDArray[np.int32], list[Any]]:
    """Codes of what the texts stand for: equal entries of `groups` become one, None becomes -1."""
    place: dict[Any, int] = {}
    to = [-1 if one is None else place.setdefault(one, len(place)) for one in groups]
    return np.array([*to, -1], dtype=np.int32)[codes], list(place)


# What keyboards, browsers and loggers call keys that make no character (UI Events, section 3).
_NAMED = re.compile(
    r"(?:arrow)?(?:left|right|up|down)|page(?:up|down)|home|end|f\d{1,2}|shift|control|ctrl|alt|altgr|altgraph|meta"
    r"|option|command|cmd|super|hyper|win|windows|os|fn|fnlock|menu|contextmenu|apps|capslock|numlock|scrolllock"
    r"|(?:shift|control|ctrl|alt|meta|cmd|super|os|win)(?:left|right|l|r)|(?:left|right)(?:shift|control|ctrl|alt|meta)"
    r"|tab|escape|esc|backspace|delete|del|insert|ins|clear|pause|break|print|printscreen|prtsc|snapshot|help|dead"
    r"|compose|multikey|kanamode|kanjimode|hangulmode|hanjamode|junjamode|eisu|hankaku|zenkaku|zenkakuhankaku"
    r"|hiragana|katakana|hiraganakatakana|romaji|convert|nonconvert|modechange|accept|cancel|undo|redo|cut|copy"
    r"|paste|find|again|props|select|execute|attn|crsel|exsel|eraseeof|play|zoomin|zoomout|power|wakeup|standby"
    r"|audio\w{2,16}|media\w{2,16}|launch\w{2,16}|browser\w{2,16}|brightness(?:up|down)|eject|lang[1-5]"
    r"|letter|digit|symbol|other"  # classes that a release of coarse events has
    r"|key[a-z]|digit\d|numpad\w{1,10}|soft[1-4]|enter|return|space"
)
_SAME = {
    **{"\n": "Enter", "\r": "Enter", "\r\n": "Enter", "return": "Enter", "enter": "Enter"},
    **{"\t": "Tab", "tab": "Tab", "space": " ", "spacebar": " ", "\u00a0": " "},
    **{"\b": "Backspace", "backspace": "Backspace", "delete": "Delete", "del": "Delete", "\x7f": "Delete"},
    "shift": "Shift",
}
_CODE = re.compile(r"[0-9]{1,5}")
# What a browser sends where it does not know the key.
_UNTOLD = ("", "unidentified", "process", "undefined", "null", "none", "nan")


def names_codes(column: str) -> bool:
    """Whether a column of this name holds numbers of keys, which serve as their names."""
    return plain(column) in ("keycode", "scancode")


def name_keys(values: pl.Series, *, codes: bool) -> tuple[list[str | None], list[int]]:
    """What each text of a key column is called here, and the position of the reason against it.

    Several characters that are not a key's name are a completion, and so are numbers unless they are `codes`.
    """
    names: list[str | None] = []
    reasons: list[int] = []
    for value in values:
        name = value if codes and _CODE.fullmatch(value) else _key_name(value)
        names.append(name or None)
        reasons.append(REASONS.index(_against(name)))
    return names, reasons


def _against(name: str | None) -> Reason:
    if name is None:
        return Reason.several
    return Reason.none if name else Reason.no_key


def _key_name(value: str) -> str | None:
    """The key's name; empty where there is none, None for text of several characters."""
    if len(value) == 1 and value not in _SAME:
        return value
    if len(value) == 3 and value[0] == value[2] == "'":  # as pynput writes characters
        return value[1]
    bare = value.removeprefix("Key.")
    small = bare.strip().casefold().replace("_", "").replace(" ", "") if bare.strip() else bare
    if bare in _SAME or small in _SAME:
        return _SAME.get(bare) or _SAME[small]
    if small in _UNTOLD:
        return ""
    return bare.strip() if _NAMED.fullmatch(small) else None
