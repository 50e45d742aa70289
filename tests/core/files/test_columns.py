"""Which column plays which role: asked, known by name, or an error that names no learner."""

import pytest

from understudy.core.files.columns import ColumnChooser
from understudy.errors import DataError, UsageError

KNOWN = {"learner": ("user", "student"), "time": ("time", "date"), "kind": ("kind",)}


def chooser(names, **asked):
    return ColumnChooser(names, "f.csv", {"learner": None, "time": None, **asked}, KNOWN, {"time": "when"})


def test_a_column_that_was_asked_for_is_nobody_elses():
    found = chooser(["Time", "Date", "User"], time="user", learner="Date")
    assert found.columns == {"learner": "Date", "time": "User"}


def test_names_are_known_whatever_their_case_and_marks():
    found = chooser(["STUDENT", " Ti-me "])
    found.require("learner", "time")
    assert found.positions == {"learner": 0, "time": 1}
    assert found.notes == []


def test_the_preferred_name_is_taken_and_said():
    found = chooser(["date", "student", "time", "user"])
    found.require("learner", "time")
    assert found.columns == {"learner": "user", "time": "time"}
    assert found.notes == [
        "f.csv: 2 columns could be the learner; 'user' was taken.",
        "f.csv: 2 columns could be the time; 'time' was taken.",
    ]


def test_all_that_is_missing_is_said_at_once_and_no_unknown_name():
    with pytest.raises(
        DataError, match="for the learner and the time; found 'kind' and 1 other col"
    ) as caught:
        chooser(["Zebulon", "kind"]).require("learner", "time")
    assert caught.value.settings == ("learner", "when")
    assert "Zebulon" not in str(caught.value)


def test_two_columns_of_one_name_are_an_error_where_the_user_can_choose():
    with pytest.raises(DataError, match="2 columns could be the time") as caught:
        chooser(["user", "time", "TIME"]).require("time")
    assert caught.value.code == "ambiguous-column"
    assert not chooser(["kind", "Kind"]).allow("kind")


def test_a_formats_own_name_takes_the_first_column():
    found = chooser(["KC", "kc"])
    assert found.allow("kind", known=("kc",))
    assert found.positions == {"kind": 0}


@pytest.mark.parametrize(
    ("names", "asked", "message"),
    [
        (["user", "time"], {"learner": "pupil"}, "asked for column 'pupil', which is not there"),
        (["Us-er", "us_er"], {"learner": "user"}, "which 2 columns could be"),
    ],
)
def test_a_name_that_fits_no_column_or_several(names, asked, message):
    with pytest.raises(DataError, match=message):
        chooser(names, **asked)


def test_an_exact_name_comes_before_a_similar_one():
    assert chooser(["USER", "user"], learner="user").positions == {"learner": 1}


def test_one_column_for_two_roles():
    for asked in ({"learner": "time"}, {"learner": "time", "time": "time"}):
        with pytest.raises(UsageError, match="two roles, the learner and the time") as caught:
            chooser(["user", "time"], **asked).require("time")
        assert caught.value.settings == ("learner", "when")
