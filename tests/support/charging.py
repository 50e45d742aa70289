"""Every verb that releases, by command and by Python, for the tests that all of them have to pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Verb:
    """A verb that releases: how its data is made, and how it is called with a price.

    `command` gives the arguments of the command, `python` calls the library; both write to `out`.
    `epsilon` is the price in the ledger; None for a release without a guarantee, which is noted and has no price.
    """

    name: str
    make: Callable[[Path], Path]
    command: Callable[[Path, Path], list[str]]
    python: Callable[..., Any]
    out: str
    epsilon: float | None
    patch: str
    """Something that it needs once it has charged: made to fail, it is a fit that fails."""
    drawn: bool = False
    """Whether noise was drawn by then: the charge stays, since the failure may depend on it."""
    charged: Callable[[Path, Path], Path] = lambda data, out: data
    """The file whose learners are charged: the data, unless what is written is the data from then on."""


def _log(folder: Path) -> Path:
    from understudy.logs.simulated.classroom import Classroom

    log = Classroom(n_learners=40, n_actions=5).simulate(np.random.default_rng(3))
    log.to_polars("pupil-").write_csv(folder / "log.csv")
    return folder / "log.csv"


def _release(path: Path, out: Path, **spending: Any) -> Any:
    import understudy as us

    return us.release(us.read_log(path, public_actions=True), out, "markov-dp:epsilon=4", **spending)


def _synthesize(path: Path, out: Path, **spending: Any) -> Any:
    import understudy as us

    return us.synthesize(us.read_log(path, public_actions=True), epsilon=4, out=out, **spending)


def _events(folder: Path) -> Path:
    """A log of events, and beside it scores and a declaration without cuts; the scores are marked as simulated."""
    import polars as pl

    from understudy.cohorts.schema import Schema
    from understudy.core.files.simulated import mark_simulated

    rng = np.random.default_rng(2)
    minutes = np.sort(rng.integers(0, 21 * 24 * 60, 600))
    times = (np.datetime64("2024-09-02T00:00") + minutes.astype("timedelta64[m]")).astype("datetime64[us]")
    names = [f"pupil {number}" for number in range(40)]
    pl.DataFrame({"user": rng.choice(names, 600), "time": times}).write_csv(
        folder / "events.csv", datetime_format="%Y-%m-%d %H:%M:%S"
    )
    scores = np.clip(rng.normal(55, 15, 40), 0, 100).round(1)
    pl.DataFrame({"user": names, "score": scores}).write_csv(folder / "scores.csv")
    mark_simulated(folder / "scores.csv")
    (folder / "declared.toml").write_text(Schema(n_weeks=3).to_toml())
    return folder / "events.csv"


def _build(path: Path, out: Path, **spending: Any) -> Any:
    import understudy as us

    return us.cohort.build(
        path,
        path.with_name("scores.csv"),
        path.with_name("declared.toml"),
        out,
        term_start="2024-09-02",
        cuts="private",
        epsilon=4,
        **spending,
    )


def _cohort(folder: Path) -> Path:
    from dataclasses import replace

    from understudy.cohorts.cohort import write_cohort
    from understudy.cohorts.simulate import School

    cohort = School(n_learners=60).simulate(0, np.random.default_rng(1))
    write_cohort(replace(cohort, simulated=False), folder / "cohort.csv")
    return folder / "cohort.csv"


def _summarize(path: Path, out: Path, **spending: Any) -> Any:
    import understudy as us

    return us.cohort.summarize(us.cohort.read(path), out=out, epsilon=4, **spending)


def _exam(folder: Path) -> Path:
    import polars as pl

    from understudy.exams.simulate import Exam

    responses = Exam(n_learners=40, n_items=5).simulate(np.random.default_rng(3)).responses
    sheet = pl.DataFrame(responses.correct, schema=list(responses.items))
    names = pl.Series("student", [f"pupil-{n}" for n in range(40)])
    sheet.insert_column(0, names).write_csv(folder / "exam.csv")
    return folder / "exam.csv"


def _difficulties(path: Path, out: Path, **spending: Any) -> Any:
    import understudy as us

    return us.difficulties(us.read_responses(path), epsilon=4, out=out, **spending)


def _exam_of_groups(folder: Path) -> Path:
    import polars as pl

    path = _exam(folder)
    tracks = pl.Series("track", ["north", "south"] * 20)
    pl.read_csv(path).insert_column(1, tracks).write_csv(path)
    return path


def _compare(path: Path, out: Path, **spending: Any) -> Any:
    import understudy as us

    responses = us.read_responses(path, group="track", groups="north,south")
    return us.compare_groups(responses, epsilon=4, out=out, **spending)


def _typing(folder: Path) -> Path:
    """Keystrokes of a small course."""
    import polars as pl

    from understudy.keystrokes.formats.events import event_table
    from understudy.keystrokes.simulate import TypingCourse

    course = TypingCourse(n_learners=12, n_weeks=1, characters_per_week=200)
    keystrokes, _ = course.simulate(np.random.default_rng(4))
    names = pl.Series([f"pupil {number}" for number in keystrokes.learner])
    event_table(keystrokes).with_columns(learner=names).write_csv(folder / "typing.csv")
    (folder / "digraphs.txt").write_text("i n\nn t\n", encoding="utf-8")
    return folder / "typing.csv"


def _statistics(path: Path, out: Path, **spending: Any) -> Any:
    import understudy as us

    return us.keystrokes.statistics(
        us.keystrokes.read(path), path.with_name("digraphs.txt"), epsilon=4, out=out, **spending
    )


def _coarsen(path: Path, out: Path, **spending: Any) -> Any:
    import understudy as us

    return us.keystrokes.coarsen(us.keystrokes.read(path), bucket=300, out=out, **spending)


VERBS = [
    Verb(
        "synthesize",
        _log,
        lambda path, out: [
            *("synthesize", str(path), "-o", str(out), "-m", "markov-dp:epsilon=4", "--public-actions")
        ],
        _synthesize,
        "out.csv",
        4.0,
        "understudy.logs.generators.markov_dp.MarkovDP._fit",
    ),
    Verb(
        "release",
        _log,
        lambda path, out: [
            *("release", str(path), "-o", str(out), "-m", "markov-dp:epsilon=4", "--public-actions")
        ],
        _release,
        "bundle",
        4.0,
        "understudy.logs.release.bundle.card_content",
        drawn=True,
    ),
    Verb(
        "cohort build",
        _events,
        lambda path, out: [
            *("cohort", "build", str(path), "--scores", str(path.with_name("scores.csv")), "-o", str(out)),
            *("--schema", str(path.with_name("declared.toml")), "--term-start", "2024-09-02"),
            *("--cuts", "private", "--epsilon", "4"),
        ],
        _build,
        "cohort.parquet",
        4.0,
        "understudy.cohorts.building.build.private_cuts",
        charged=lambda data, out: out,
    ),
    Verb(
        "cohort summarize",
        _cohort,
        lambda path, out: ["cohort", "summarize", str(path), "-o", str(out), "--epsilon", "4"],
        _summarize,
        "summary.json",
        4.0,
        "understudy.cohorts.summary.summarize.noisy_summary",
    ),
    Verb(
        "difficulties",
        _exam,
        lambda path, out: ["difficulties", str(path), "-o", str(out), "--epsilon", "4"],
        _difficulties,
        "difficulties.json",
        4.0,
        "understudy.exams.difficulties.rank_items",
        drawn=True,
    ),
    Verb(
        "difficulties compare",
        _exam_of_groups,
        lambda path, out: [
            *("difficulties", "compare", str(path), "--group", "track", "--groups", "north,south"),
            *("-o", str(out), "--epsilon", "4"),
        ],
        _compare,
        "compared.json",
        4.0,
        "understudy.exams.compare.group_differences",
        drawn=True,
    ),
    Verb(
        "keystrokes statistics",
        _typing,
        lambda path, out: [
            *("keystrokes", "statistics", str(path), "--digraphs", str(path.with_name("digraphs.txt"))),
            *("--epsilon", "4", "-o", str(out)),
        ],
        _statistics,
        "statistics.json",
        4.0,
        "understudy.keystrokes.group_statistics.release_statistics",
    ),
    Verb(
        "keystrokes coarsen",
        _typing,
        lambda path, out: ["keystrokes", "coarsen", str(path), "--bucket", "300", "-o", str(out)],
        _coarsen,
        "coarse.csv",
        None,
        "understudy.keystrokes.release.coarsen_events",
    ),
]
