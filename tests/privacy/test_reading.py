"""Reading a log is part of the guarantee: how a learner's rows are read does not depend on other learners' rows."""

import polars as pl
import pytest

from tests.privacy.support.attempts import FORMATS, attempts
from tests.privacy.support.neighbours import NUMBERS, check_others, neighbours
from understudy.errors import DataError
from understudy.logs.reading import read_log


@pytest.fixture(autouse=True)
def _without_search_for_people(monkeypatch):
    """A search that only ever refuses takes most of the time of reading a tiny file."""
    monkeypatch.setattr("understudy.core.events.event_table.identifiers_in_actions", lambda *names: [])
    monkeypatch.setattr("understudy.logs.frames.identifiers_in_actions", lambda *names: [])


@pytest.mark.parametrize("set_aside", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_other_learners_are_read_alike(tmp_path, records, name, set_aside):
    write, options = FORMATS[name]

    def read(path):
        log = read_log(path, set_aside=set_aside, single_rows=True, **options)
        return list(map(tuple, records(log)))

    files = neighbours(attempts) if set_aside else neighbours(attempts, NUMBERS, n_files=15)
    check_others(tmp_path / "log", files, write, read)


@pytest.mark.parametrize(
    ("name", "set_aside"),
    [("csv, time asked for", False), ("csv in latin", True), ("tsv", True), ("parquet", False)],
)
def test_other_learners_are_read_alike_in_pieces(tmp_path, records, everything_is_large, name, set_aside):
    everything_is_large(partition_rows=20)
    test_other_learners_are_read_alike(tmp_path, records, name, set_aside)


@pytest.mark.parametrize("mark", [30.0, "<=30"])
def test_other_learners_are_read_alike_by_a_pass_mark(tmp_path, records, mark):
    """Numbers become outcomes by what was declared, and incomplete rows are skipped one by one."""
    options = {"skip_incomplete": True, "set_aside": True, "pass_from": mark}

    def scores(rng, name):
        return [[who, what, str(40 * int(well)), at] for who, what, well, at in attempts(rng, name)]

    def read(path):
        return list(map(tuple, records(read_log(path, single_rows=True, **options))))

    check_others(tmp_path / "log", neighbours(scores, NUMBERS), FORMATS["csv"][0], read)


def test_a_reader_that_breaks_the_rule_is_found(tmp_path, records, monkeypatch):
    """One cell that cannot be read makes this reader forget the times of all learners."""
    settle = "understudy.core.events.event_table.EventTable._settle_time"

    def forget(events, options):
        times = events.frame["time"].cast(pl.Int64, strict=False)
        if times.null_count():
            events.frame = events.frame.drop("time")
            del events.columns["time"]
        else:
            events.frame = events.frame.with_columns(times.cast(pl.Datetime("us")).alias("time"))

    monkeypatch.setattr(settle, forget)
    with pytest.raises(AssertionError):
        test_other_learners_are_read_alike(tmp_path, records, "csv", set_aside=True)


@pytest.mark.parametrize("cell", ["", "not an outcome"])
def test_a_learner_without_a_readable_row_is_still_a_learner(tmp_path, cell):
    """The number of learners is public: it may not depend on whether a learner's rows can be read."""
    path = tmp_path / "log.csv"
    rows = ["u1,a,1", "u1,b,0", "u2,a,0", "u2,b,1", f"u3,a,{cell}"]
    path.write_text("\n".join(["learner,action,outcome", *rows]) + "\n")
    log = read_log(path, set_aside=True)
    assert (log.n_learners, log.n_rows) == (3, 4)
    if not cell:
        log = read_log(path, skip_incomplete=True)
        assert (log.n_learners, log.n_rows) == (3, 4)


def test_a_line_in_another_encoding_concerns_itself_alone(tmp_path):
    path = tmp_path / "log.csv"
    rows = "learner,action,outcome\nu1,é,1\nu1,ü,0\nu2,ü,1\nu2,".encode()
    for last in (b"b", "é".encode(), b"\xe9"):
        path.write_bytes(rows + last + b",0\n")
        log = read_log(path)
        assert [log.actions[code] for code in log.action[:3]] == ["é", "ü", "ü"]


def test_cells_do_not_decide_whether_a_log_has_outcomes(tmp_path):
    """A column that may hold outcomes stops a release, by an error or as a guess, whatever one learner's cell is."""
    path = tmp_path / "log.csv"
    rows = ["u1,a,1", "u1,b,0", "u2,a,0", "u2,b,1"]
    path.write_text("\n".join(["user,task,flag", *rows, "u3,a,1"]) + "\n")
    with pytest.raises(DataError) as caught:
        read_log(path)
    assert "no_outcomes" in caught.value.settings
    path.write_text("\n".join(["user,task,flag", *rows, "u3,a,perhaps"]) + "\n")
    assert [guess.settings for guess in read_log(path).origin.guesses] == [("no_outcomes", "outcome")]
    assert read_log(path, no_outcomes=True).origin.guesses == ()
    path.write_text("\n".join(["user,task", *(row.rsplit(",", 1)[0] for row in rows)]) + "\n")
    assert read_log(path).origin.guesses == ()
