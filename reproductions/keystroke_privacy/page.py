"""The page of the keystroke thesis (Leinonen 2016): its results beside ours."""

from __future__ import annotations

from functools import lru_cache

from reproductions.keystroke_privacy.knowledge import BY_DIGRAPHS, BY_WEEKS
from reproductions.keystroke_privacy.measure import K, rows_of_sweep
from reproductions.pages import fill, markdown_table, rows_of, tables_of
from understudy.keystrokes.sweeps.results import (
    AVERAGES,
    EVENTS,
    IDENTIFICATION,
    INFERENCE,
    PUBLISHED,
    STRONGEST,
    Advice,
    Row,
    advise,
    describe_dip,
    select,
)

TABLES = tables_of("keystroke_privacy")
SIZES = (0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0)

# The thesis's Tables 2 and 3 (percent, courses of 2014 and 2015) and 4 (Bayes net, random forest).
IDENTIFIED = {
    "round": ((98.0, 81.7, 6.5, 72.5, 77.1, 6.5, 6.5), (97.8, 81.3, 56.8, 67.6, 67.6, 7.2, 7.2)),
    "bucket": ((98.0, 26.1, 12.4, 6.5, 6.5, 6.5, 6.5), (97.8, 31.7, 15.8, 7.2, 7.2, 7.2, 7.2)),
}
INFERRED = {
    "round": ((75.4, 73.9, 73.9, 73.9, 68.3, 73.9, 70.4), (73.9, 75.4, 72.4, 70.9, 73.4, 73.9, 71.4)),
    "bucket": ((75.4, 73.4, 71.4, 70.4, 61.3, 64.3, 58.8), (73.9, 73.4, 75.4, 71.4, 69.8, 67.3, 60.3)),
}


rows = lru_cache(rows_of_sweep)


def page() -> str:
    """The page from its template."""
    simulated, typing = rows("simulated"), rows("typing")
    seconds = {row["data"]: float(row["seconds"]) for row in rows_of(TABLES / "seconds.csv")}
    values = {
        "n": str(simulated[0].n_learners),
        "chance": _percent(K / simulated[0].n_learners),
        "minutes": f"{seconds['simulated'] / 60:.0f}",
        "rounding": _identified("round"),
        "buckets": _identified("bucket"),
        "rounding_inferred": _inferred("round"),
        "buckets_inferred": _inferred("bucket"),
        "majority": _percent(_inference("random-forest, selected inside", "bucket", 0.0).baseline),
        "bucket_300_events": _with(_attack(STRONGEST, EVENTS, "bucket", 300.0)),
        "bucket_300_published_events": _with(_attack(PUBLISHED, EVENTS, "bucket", 300.0)),
        "bucket_300_averages": _with(_attack(STRONGEST, AVERAGES, "bucket", 300.0)),
        "round_500_events": _with(_attack(STRONGEST, EVENTS, "round", 500.0)),
        "round_500_averages": _with(_attack(STRONGEST, AVERAGES, "round", 500.0)),
        "round_500_published": _with(_attack(PUBLISHED, AVERAGES, "round", 500.0)),
        "dip": describe_dip(simulated, AVERAGES, "round", K) or "No dip was seen.",
        "advice": _advice("simulated"),
        "digraphs": _knowledge(BY_DIGRAPHS),
        "weeks": _knowledge(BY_WEEKS),
        "forest_300": _with(_inference("random-forest, selected inside", "bucket", 300.0)),
        "forest_all_300": _with(_inference("random-forest", "bucket", 300.0)),
        "forest_500": _with(_inference("random-forest, selected inside", "round", 500.0)),
        "forest_all_500": _with(_inference("random-forest", "round", 500.0)),
        "outside": _outside(),
        "merged": _merged(),
        "typing_n": str(typing[0].n_learners),
        "typing_chance": _percent(K / typing[0].n_learners),
        "typing": _typing(),
        "typing_advice": _advice("typing"),
        "typing_inferred": _typing_inferred(),
    }
    return fill("keystroke_privacy", values)


def _attack(name: str, level: str, way: str, size: float, data: str = "simulated") -> Row:
    (row,) = select(rows(data), measure=IDENTIFICATION, name=name, level=level, way=way, size=size, k=K)
    return row


def _inference(name: str, way: str, size: float, level: str = AVERAGES, data: str = "simulated") -> Row:
    (row,) = select(rows(data), measure=INFERENCE, name=name, level=level, way=way, size=size)
    return row


def _identified(way: str) -> str:
    header = ["size", "thesis 2014", "thesis 2015", "published attack, averages", "strongest, averages"]
    header += ["published attack, events", "strongest, events"]
    lines = []
    for place, size in enumerate(SIZES):
        cells = [
            _with(_attack(name, level, way, size))
            for level in (AVERAGES, EVENTS)
            for name in (PUBLISHED, STRONGEST)
        ]
        thesis = [f"{course[place]:.1f} %" for course in IDENTIFIED[way]]
        lines.append([_size(size), *thesis, *cells])
    return markdown_table(header, lines)


def _inferred(way: str) -> str:
    header = ["size", "thesis: Bayes net", "thesis: forest", "naive Bayes", "forest", "forest, all digraphs"]
    header += ["forest, selected outside", "forest on events, all digraphs"]
    lines = []
    for place, size in enumerate(SIZES):
        thesis = [f"{one[place]:.1f} %" for one in INFERRED[way]]
        names = (
            "naive-bayes, selected inside",
            "random-forest, selected inside",
            "random-forest",
            "random-forest, selected outside",
        )
        ours = [_with(_inference(name, way, size)) for name in names]
        events = _with(_inference("random-forest", way, size, EVENTS))
        lines.append([_size(size), *thesis, *ours, events])
    return markdown_table(header, lines)


def _outside() -> str:
    """By how much selecting features outside the folds flatters, on average over the sizes."""
    gaps = [
        _inference("random-forest, selected outside", way, size).value
        - _inference("random-forest, selected inside", way, size).value
        for way in ("bucket", "round")
        for size in SIZES
    ]
    return f"{100 * sum(gaps) / len(gaps):.0f} points"


def _merged() -> str:
    """What the equations give where the thesis's tables contradict them: bucket 200 beside rounding 400."""
    pair = [_attack(PUBLISHED, AVERAGES, way, size) for way, size in (("bucket", 200.0), ("round", 400.0))]
    return f"{_with(pair[0])} and {_with(pair[1])}"


def _advice(data: str) -> str:
    found: list[Advice] = [
        advise(rows(data), level, way, K) for level in (EVENTS, AVERAGES) for way in ("bucket", "round")
    ]
    return markdown_table(
        ["what is made coarse", "way", "smallest size", "why"],
        [
            [one.level, one.way, "none" if one.size is None else f"{one.size:g} ms", one.because]
            for one in found
        ],
    )


def _knowledge(measure: str) -> str:
    mine = select(rows("simulated"), measure=measure, name=PUBLISHED)
    sizes = sorted({row.size for row in mine})
    lines = [
        [f"{size:g}", *(_with(row) for row in sorted((r for r in mine if r.size == size), key=lambda r: r.k))]
        for size in sizes
    ]
    head = "digraphs" if measure == BY_DIGRAPHS else "weeks"
    return markdown_table([head, *(f"k = {k}" for k in sorted({row.k for row in mine}))], lines)


def _typing() -> str:
    lines = [
        [
            _size(size),
            way,
            *(
                _with(_attack(name, level, way, size, "typing"))
                for level in (AVERAGES, EVENTS)
                for name in (PUBLISHED, STRONGEST)
            ),
        ]
        for way in ("bucket", "round")
        for size in (0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0)
    ]
    header = ["size", "way", "published attack, averages", "strongest, averages"]
    return markdown_table([*header, "published attack, events", "strongest, events"], lines)


def _typing_inferred() -> str:
    names = (
        "naive-bayes, selected inside",
        "random-forest, selected inside",
        "random-forest",
        "random-forest, selected outside",
    )
    lines = [
        [_size(size), *(_with(_inference(name, "bucket", size, EVENTS, "typing")) for name in names)]
        for size in (0.0, 300.0, 600.0)
    ]
    majority = _inference("random-forest, selected inside", "bucket", 0.0, EVENTS, "typing").baseline
    header = ["buckets, events", "naive Bayes", "forest", "forest, all digraphs", "forest, selected outside"]
    return markdown_table(header, lines) + f"\n\nThe majority is {_percent(majority)}."


def _size(size: float) -> str:
    return "as typed" if size == 0 else f"{size:g} ms"


def _with(row: Row) -> str:
    return f"{100 * row.value:.1f} % ({100 * row.low:.0f} to {100 * row.high:.0f})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
