"""People are taken out of the names of actions by their place, each text by itself."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from understudy.core.events.people_in_text import without_addresses, without_people
from understudy.logs.reading import read_log

PLACES = [
    ("/courses/12/users/{}", "/courses/12/users/(person)"),
    ("/courses/12/users/{}?page=2", "/courses/12/users/(person)?page=2"),
    ("https://a.example/profile/{}/badges", "https://a.example/profile/(person)/badges"),
    ("https://a.example/u/{}", "https://a.example/u/(person)"),
    ("home/~{}/essay", "home/~(person)/essay"),
    ("/courses/1/assignments/2/submissions/{}", "/courses/1/assignments/2/submissions/(person)"),
    (
        "https://m.example/user/view.php?id={}&course=3",
        "https://m.example/user/view.php?id=(person)&course=3",
    ),
    ("/user/profile.php?course=3&id={}", "/user/profile.php?course=3&id=(person)"),
    ("/grade/report/user/index.php?id=4&userid={}", "/grade/report/user/index.php?id=4&userid=(person)"),
    ("/x?user_id={}", "/x?user_id=(person)"),
    ("/x?a=1&as_user_id={}#top", "/x?a=1&as_user_id=(person)#top"),
    ("/x?student_ids[]={}&b=2", "/x?student_ids[]=(person)&b=2"),
    ("/x?email={}", "/x?email=(person)"),
    ("write to mailto:{}", "write to mailto:(person)"),
    ("The user with id '{}' viewed it.", "The user with id '(person)' viewed it."),
    ("The user with id {} viewed it.", "The user with id (person) viewed it."),
    ("Login failed for the username '{}' today.", "Login failed for the username '(person)' today."),
    ("The attempt with id '{}' was graded.", "The attempt with id '(person)' was graded."),
]
THINGS = [
    "/courses/12/assignments/345",
    "/mod/quiz/view.php?id=77",
    "viewed the 'quiz' activity with course module id '9'",
    "the course with id '2'",
    "Task 3/4",
    "users and groups",
    "people/",
    "https://en.example/unit/7",
]


@pytest.mark.parametrize(("text", "without"), PLACES)
def test_whoever_stands_at_a_place_of_people(text, without):
    people = ["7", "0012345"] if "with id {}" in text else ["7", "ada.l", "ada@school.example", "9f3e-77"]
    texts = pl.Series([text.format(person) for person in people])
    assert without_people(texts).unique().to_list() == [without]


@pytest.mark.parametrize("text", THINGS)
def test_things_stay(text):
    assert without_people(pl.Series([text, None])).to_list() == [text, None]


@pytest.mark.oracle
def test_each_text_is_read_by_itself():
    """What becomes of a text does not depend on the others, nor on their order."""
    rng = np.random.default_rng(3)
    texts = [place.format(rng.integers(1, 10**6)) for place, _ in PLACES] + THINGS
    together = without_people(pl.Series(texts)).to_list()
    assert together == [without_people(pl.Series([text])).item() for text in texts]
    order = rng.permutation(len(texts))
    shuffled = without_people(pl.Series(texts).gather(order)).to_list()
    assert shuffled == [together[at] for at in order]


def test_what_was_replaced_is_replaced_again_to_the_same():
    once = without_people(pl.Series([place.format("7") for place, _ in PLACES]))
    assert without_people(once).to_list() == once.to_list()


def test_addresses():
    texts = pl.Series(["to a.b@c.example.", "?q=a%40c.example", "2 @ 3"])
    assert without_addresses(texts).to_list() == ["to (person).", "?q=(person)", "2 @ 3"]


def test_a_log_of_web_addresses(write):
    """One learner's page is another learner's, and a learner's number in it is not compared with anything."""
    rows = ["user,page,correct", *(f"{who},/users/{page}/edit,1" for who in "ab" for page in (31, 32, 33))]
    log = read_log(write("log.csv", "\n".join(rows) + "\n"), action="page")
    assert log.actions == ("/users/(person)/edit",)
    assert log.n_rows == 6
    (note,) = [note for note in log.origin.notes if "(person)" in note]
    assert note.startswith("6 rows of which the action points at a person")
    log.origin.refuse_people("the synthetic data", log.actions)
