"""Files are written whole or not at all; results.csv: what was not measured is empty, and numbers come back."""

import math
import os

from understudy.core.files.writing import read_results, results_csv, write_text


def test_rows_are_read_as_they_were_written():
    rows = [{"method": "markov", "auc": 0.123456789, "n": 7}, {"method": "x, y", "epsilon": math.inf}]
    text = results_csv(rows)
    assert text.splitlines()[:2] == ["method,auc,n,epsilon", "markov,0.123457,7,"]
    again = read_results(text, ("method",))
    assert [row["method"] for row in again] == ["markov", "x, y"]
    assert again[0]["auc"] == 0.123457
    assert again[1]["epsilon"] == math.inf
    assert math.isnan(again[1]["auc"])


def test_columns_in_an_order_of_their_own():
    text = results_csv([{"b": float("nan"), "a": 1, "c": "left out"}], ("a", "b"))
    assert text == "a,b\n1,\n"


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    out = tmp_path / "log[1].csv"
    left = tmp_path / ".log[1].csv-unfinished-99999999-abc.csv"
    other = tmp_path / f".log[1].csv-unfinished-{os.getpid()}-abc.csv"
    for file in (left, other):
        file.write_text("half")
    write_text(out, "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([other.name, out.name])


def test_a_name_as_long_as_names_may_be(tmp_path):
    out = tmp_path / ("x" * 240 + ".csv")
    write_text(out, "whole")
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
