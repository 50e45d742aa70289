"""results.csv: what was not measured is empty, and numbers come back."""

import math

from understudy.core.files.writing import read_results, results_csv


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
