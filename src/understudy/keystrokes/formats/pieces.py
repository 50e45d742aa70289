"""The key presses of a large table of events, some learners at a time.

Rows are partitioned by learner into temporary files. All of them are looked at to find out how times and keys are
written; then those of each partition are read like a file of their own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from understudy.core.engine.engine import ThisMachine
from understudy.core.engine.progress import each
from understudy.core.events.partitions import partition
from understudy.core.files.notes import add_up
from understudy.core.files.storage.scratch import Scratch
from understudy.core.files.streams import Stream
from understudy.keystrokes.formats.clock import Zones
from understudy.keystrokes.formats.events import choose_columns, read_events
from understudy.keystrokes.formats.presses import FileFacts, Named, Notation, Settled, settle
from understudy.keystrokes.formats.record import Piece
from understudy.keystrokes.formats.rows import KeystrokeColumns, Rows
from understudy.keystrokes.formats.times import TimeColumn


def settle_in_pieces(
    stream: Stream, columns: KeystrokeColumns, scratch: Scratch
) -> tuple[Rows, list[Piece], tuple[Zones, Zones]]:
    """What is known about the rows of a file, its presses in pieces, and the time zones that it states."""
    head = stream.head()
    chosen = choose_columns(head, columns).positions
    types = [chosen["type"]] if "type" in chosen else []
    partitions = partition(
        stream,
        head.sample(),
        sorted(set(chosen.values())),
        {"learner": chosen["learner"]},
        scratch.folder(),
        everyone=False,
        distinct=types,
    )
    # On this machine whatever the engine is: the rows are in files here.
    machine, numbers = ThisMachine(), range(len(partitions))

    def read(number: int) -> Named:
        of_type = partitions.distinct[types[0]] if types else None
        return Named.of(read_events(partitions.table(number), columns, of_type))

    def look(number: int) -> FileFacts:
        return FileFacts.of(read(number), columns.unit)

    facts = reduce(FileFacts.__add__, each(machine.each(look, numbers), "Looking at times", len(numbers)))
    column = TimeColumn(stream.file, stream.place, stream.names[chosen["time"]])
    notation = Notation.of(facts, column, columns.unit, partial=True)

    def read_piece(number: int) -> tuple[Rows, Settled]:
        named = read(number)
        settled = settle(named, notation)
        named.rows.frame = named.rows.frame.clear()
        if settled.piece is not None:
            settled = replace(settled, piece=settled.piece.in_files(scratch.folder()))
        return named.rows, settled

    whole: Rows | None = None
    pieces: list[Piece] = []
    zones = Zones(), Zones()
    for rows, settled in each(machine.each(read_piece, numbers), "Sorting by learner", len(numbers)):
        zones = zones[0] + settled.zones[0], zones[1] + settled.zones[1]
        if settled.piece is not None:
            pieces.append(settled.piece)
        if whole is None:
            whole = rows
        else:
            whole.add_piece(rows)
    assert whole is not None
    whole.notes = add_up([*stream.notes, *whole.notes])
    return whole, pieces, zones
