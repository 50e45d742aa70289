"""What one learner's rows hold changes nothing that is read of others, in files of platforms."""

import json

import pytest

from understudy.errors import DataError, UsageError
from understudy.logs.declared.columns import Declared, Kind
from understudy.logs.reading import read_log
from understudy.logs.where import Where

VOIDED = "http://adlnet.gov/expapi/verbs/voided"


def edx(rows, path):
    """A tracking log of (name, number, block)."""
    path.write_text(
        "".join(
            json.dumps(
                {
                    "username": name,
                    "event_type": "play_video",
                    "time": f"2024-05-31T14:00:{second:02}Z",
                    "event": {"id": block},
                    "context": {"user_id": number},
                }
            )
            + "\n"
            for second, (name, number, block) in enumerate(rows)
        )
    )
    return path


def test_a_name_with_two_numbers_is_refused(tmp_path):
    own = [("ann", 1, "v1"), ("ann", None, "v2"), ("bob", 2, "v1"), ("bob", 2, "v2")]
    log = read_log(edx([*own, ("zed", 9, "v1")], tmp_path / "a.log"), format="edx", no_outcomes=True)
    assert sorted(log.lengths) == [1, 2, 2]
    with pytest.raises(DataError, match="several numbers") as error:
        read_log(edx([*own, ("ann", 9, "v1")], tmp_path / "b.log"), format="edx", no_outcomes=True)
    assert "ann" not in str(error.value)


def statement(number, actor, verb="http://adlnet.gov/expapi/verbs/experienced", target=None):
    thing = target or {"id": f"http://example.org/activity/{number % 2}"}
    return {
        "id": f"00000000-0000-0000-0000-{number:012}",
        "actor": {"mbox": f"mailto:{actor}@example.org"},
        "verb": {"id": verb},
        "object": thing,
        "timestamp": f"2024-05-31T14:00:{number:02}Z",
    }


def test_who_took_everything_back_is_still_a_learner(tmp_path):
    rows = [statement(n, actor) for n, actor in enumerate("aabbc")]
    named = {"objectType": "StatementRef", "id": rows[4]["id"]}
    rows.append(statement(5, "c", VOIDED, named))
    (tmp_path / "s.json").write_text("\n".join(map(json.dumps, rows)))
    log = read_log(tmp_path / "s.json", format="xapi", no_outcomes=True)
    assert sorted(log.lengths) == [0, 2, 2]


def test_no_learner_takes_back_the_statement_of_another(tmp_path):
    """Replacing one learner, who voids, changes no other learner's rows; unless only the platform can void."""
    rows = [statement(n, actor) for n, actor in enumerate("aabbc")]
    named = {"objectType": "StatementRef", "id": rows[2]["id"]}
    lengths = {}
    for voids in (False, True):
        own = [statement(5, "c", VOIDED, named)] if voids else []
        (tmp_path / "s.json").write_text("\n".join(map(json.dumps, [*rows, *own])))
        log = read_log(tmp_path / "s.json", format="xapi", no_outcomes=True)
        lengths[voids] = sorted(log.lengths)
    assert lengths[False] == lengths[True] == [1, 2, 2]
    log = read_log(tmp_path / "s.json", format="xapi", no_outcomes=True, platform_voids=True)
    assert sorted(log.lengths) == [1, 1, 2]


def test_records_of_moodle_have_the_same_fields(tmp_path):
    row = {"Time": "31 May 2024, 14:05", "User full name": "A", "Event context": "Quiz: 1", "Event name": "x"}
    rows = [row, {name: cell for name, cell in row.items() if name != "Time"}]
    (tmp_path / "m.json").write_text(json.dumps([rows]))
    with pytest.raises(DataError, match="another form than the first one"):
        read_log(tmp_path / "m.json", format="moodle")


def test_an_empty_file_is_a_learner(tmp_path):
    header = "timestamp,solving_id,question_id,user_answer,elapsed_time\n"
    for name in ("u1", "u2"):
        (tmp_path / f"{name}.csv").write_text(header + "1717156805000,1,q1,a,5\n1717156806000,2,q2,b,5\n")
    (tmp_path / "u3.csv").write_text(header)
    log = read_log(tmp_path, format="ednet", no_outcomes=True)
    assert sorted(log.lengths) == [0, 2, 2]


def test_the_learner_column_cannot_be_told(tmp_path):
    (tmp_path / "log.csv").write_text("student,action\n" + "s1,a\ns1,b\ns2,a\ns2,b\n")
    (tmp_path / "understudy.toml").write_text(
        '[log]\nno_outcomes = true\n[[log.columns]]\nname = "student"\nof = "learner"\nkind = "category"\n'
        'values = ["s1", "s2"]\n'
    )
    with pytest.raises(DataError, match="names the learner is declared"):
        read_log(tmp_path / "log.csv", plan=tmp_path / "understudy.toml")


@pytest.mark.parametrize("text", ["age>=80", "age>70", "age=80", "age<10"])
def test_bounds_are_checked_before_anything_is_charged(text):
    age = Declared("age", Kind.number, "learner", low=10.0, high=70.0)
    with pytest.raises(UsageError, match="between 10 and 70"):
        Where.parse(text).check([age], None)
    Where.parse("age>=70").check([age], None)
