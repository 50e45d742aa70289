"""Data sets that are folders: OULAD, EdNet and Eedi, made by us in their shape; and how a folder is charged."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given

from tests.support.fuzz import CANARY, Reader, edited, few_edits, pieces, quick
from understudy.core.privacy.ledger import ledger_path
from understudy.errors import DataError, RefusedError, UnderstudyError, UsageError
from understudy.exams.formats.reading import read_responses
from understudy.logs.interactions import Interactions
from understudy.logs.reading import read_log
from understudy.logs.synthesize import synthesize

OULAD = {
    "studentVle.csv": "code_module,code_presentation,id_student,id_site,date,sum_click\n"
    "AAA,2014B,7001,501,3,2\nAAA,2013J,7001,502,-10,4\nAAA,2013J,7001,501,0,1\n"
    "AAA,2013J,7002,501,5,1\nAAA,2013J,7002,502,4,3\n",
    "vle.csv": "id_site,code_module,code_presentation,activity_type,week_from,week_to\n"
    "501,AAA,2013J,forumng,,\n502,AAA,2013J,oucontent,1,2\n",
    "studentInfo.csv": "code_module,code_presentation,id_student,gender,final_result\nAAA,2013J,7001,F,Pass\n",
    "courses.csv": "code_module,code_presentation,module_presentation_length\nAAA,2013J,268\n",
}
EDNET = {
    "KT1/u17.csv": "timestamp,solving_id,question_id,user_answer,elapsed_time\n"
    "1565096190868,1,q2,b,38000\n1565096151269,1,q1,c,24000\n",
    "KT1/u230.csv": "timestamp,solving_id,question_id,user_answer,elapsed_time\n"
    "1565096190868,1,q1,d,38000\n1565096191868,2,q3,a,38000\n",
    "contents/questions.csv": "question_id,bundle_id,explanation_id,correct_answer,part,tags,deployed_at\n"
    "q1,b1,e1,d,1,1;2,0\nq2,b2,e2,b,1,3,0\nq3,b3,e3,a,1,-1,0\n",
}
# What learners do with questions, bundles, explanations and lectures; KT4 has one column more.
EDNET_ACTIONS = {
    "KT3/u17.csv": "timestamp,action_type,item_id,source,user_answer,platform\n"
    "1565096151269,enter,b1,sprint,,mobile\n1565096161269,respond,q1,sprint,c,mobile\n"
    "1565096171269,submit,b1,sprint,,mobile\n1565096181269,enter,e1,sprint,,mobile\n",
    "KT3/u230.csv": "timestamp,action_type,item_id,source,user_answer,platform\n"
    "1565096190868,enter,l540,archive,,web\n1565096191868,respond,q2,sprint,b,web\n",
    "contents/questions.csv": EDNET["contents/questions.csv"],
}
EEDI = {
    "train_data/train_task_3_4.csv": "QuestionId,UserId,AnswerId,IsCorrect,CorrectAnswer,AnswerValue\n"
    "11,4001,900,1,2,2\n12,4001,901,0,3,1\n11,4002,902,0,2,1\n",
    "metadata/answer_metadata_task_3_4.csv": "AnswerId,DateAnswered,Confidence,GroupId,QuizId,SchemeOfWorkId\n"
    "900.0,2020-01-24 10:00:00.000,,1,1,\n901,2020-01-23 10:00:00.000,75,1,1,\n902,2020-01-22 09:00:00.000,,1,1,\n",
    "metadata/question_metadata_task_3_4.csv": 'QuestionId,SubjectId\n11,"[3, 32, 71]"\n12,"[3, 49]"\n',
    "metadata/subject_metadata.csv": "SubjectId,Name,ParentId,Level\n3,Maths,,0\n71,Fractions,32,2\n",
}


def folder(path: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        place = path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_oulad(tmp_path, records):
    log = read_log(folder(tmp_path / "oulad", OULAD))
    assert (log.origin.format, log.origin.path) == ("oulad", tmp_path / "oulad")
    assert log.origin.guesses == ()
    # A student's courses are one learner's, the earlier one first.
    assert records(log) == [
        [
            ("oucontent", "502", "2013-09-21T00:00:00"),
            ("forumng", "501", "2013-10-01T00:00:00"),
            ("forumng", "501", "2014-02-04T00:00:00"),
        ],
        [("oucontent", "502", "2013-10-05T00:00:00"), ("forumng", "501", "2013-10-06T00:00:00")],
    ]
    assert log.origin.columns["learner"] == "id_student"
    sites = read_log(tmp_path / "oulad", action="id_site")
    assert sites.actions == ("501", "502")


def test_ednet(tmp_path, records):
    log = read_log(folder(tmp_path / "ednet", EDNET))
    assert log.origin.format == "ednet"
    assert records(log) == [
        [("1+2", 0, "q1", "2019-08-06T12:55:51"), ("3", 1, "q2", "2019-08-06T12:56:30")],
        [("1+2", 1, "q1", "2019-08-06T12:56:30")],
    ]
    assert "1 rows of questions without a tag were dropped." in log.origin.notes
    kept = read_log(tmp_path / "ednet", keep_skills=True)
    assert sorted(row[0] for row in records(kept)[0]) == ["1", "2", "3"]
    alone = read_log(tmp_path / "ednet" / "KT1")
    assert (alone.outcome, alone.actions) == (None, ("q1", "q2", "q3"))
    by_question = read_responses(tmp_path / "ednet", items=["1+2", "3"])
    assert by_question.n_learners == 2


def test_what_learners_of_ednet_do(tmp_path, records):
    path = folder(tmp_path / "ednet", EDNET_ACTIONS)
    answers = read_log(path, single_rows=True)
    assert records(answers) == [
        [("1+2", 0, "q1", "2019-08-06T12:56:01")],
        [("3", 1, "q2", "2019-08-06T12:56:31")],
    ]
    assert "With `no_outcomes` or `empty_outcomes` all events are read." in answers.origin.notes
    everything = read_log(path, empty_outcomes=True)
    assert everything.outcome is None
    assert everything.to_polars()["outcome"].to_list() == [None, "no", None, None, None, "yes"]
    assert everything.actions == (
        "1+2",
        "3",
        "enter bundle",
        "enter explanation",
        "enter lecture",
        "submit bundle",
    )
    without = read_log(path / "KT3")
    assert (without.outcome, without.n_rows) == (None, 6)
    assert "q1" in without.actions
    header, *rows = EDNET_ACTIONS["KT3/u17.csv"].splitlines()
    longer = [
        header.replace("source", "cursor_time,source"),
        *(row.replace(",sprint", ",,sprint") for row in rows),
    ]
    last = folder(tmp_path / "last", {"KT4/u17.csv": "\n".join(longer)})
    assert read_log(last).n_rows == 4
    folder(tmp_path / "last", {"KT4/u230.csv": EDNET_ACTIONS["KT3/u230.csv"]})
    with pytest.raises(DataError, match="of the part that the first file is of"):
        read_log(last)


def test_what_students_of_oulad_handed_in(tmp_path):
    assessed = {
        **OULAD,
        "assessments.csv": "code_module,code_presentation,id_assessment,assessment_type,date,weight\n"
        "AAA,2013J,900,TMA,19,10\nAAA,2013J,901,Exam,,100\n",
        "studentAssessment.csv": "id_assessment,id_student,date_submitted,is_banked,score\n"
        "900,7001,2,0,78\n901,7001,9,0,\n900,7002,5,0,30\n",
    }
    path = folder(tmp_path / "oulad", assessed)
    clicks = read_log(path)
    assert clicks.n_rows == 5
    assert any(note.startswith("Left out: what students handed in") for note in clicks.origin.notes)
    with pytest.raises(DataError) as refused:
        read_log(path, empty_outcomes=True)
    assert "pass_from" in refused.value.settings
    log = read_log(path, empty_outcomes=True, pass_from=40)
    rows = log.to_polars().with_columns(day=log.time.astype("datetime64[D]"))
    rows = rows.filter(rows["action"].is_in(["TMA", "Exam"]))
    assert rows.select("learner", "action", "outcome").rows() == [
        ("learner-1", "TMA", "yes"),
        ("learner-1", "Exam", None),
        ("learner-2", "TMA", "no"),
    ]
    assert list(map(str, rows["day"])) == ["2013-10-03", "2013-10-10", "2013-10-06"]


def test_eedi(tmp_path, records, write):
    log = read_log(folder(tmp_path / "eedi", EEDI))
    assert log.origin.format == "eedi"
    assert records(log) == [
        [("49", 0, "12", "2020-01-23T10:00:00"), ("Fractions", 1, "11", "2020-01-24T10:00:00")],
        [("Fractions", 0, "11", "2020-01-22T09:00:00")],
    ]
    single = read_log(write("answers.csv", EEDI["train_data/train_task_3_4.csv"]))
    assert single.origin.format == "eedi"
    assert records(single) == [[("11", 1), ("12", 0)], [("11", 0)]]
    folder(tmp_path / "eedi", {"train_data/train_task_1_2.csv": EEDI["train_data/train_task_3_4.csv"]})
    with pytest.raises(DataError, match="2 files with answers, where one is needed"):
        read_log(tmp_path / "eedi")


def test_files_may_be_compressed(tmp_path):
    packed = {f"{name}.gz": gzip.compress(content.encode()) for name, content in OULAD.items()}
    assert read_log(folder(tmp_path / "packed", packed)).n_learners == 2


@pytest.mark.parametrize(
    ("files", "settings", "message"),
    [
        ({"notes.txt": "x"}, {}, "no data set that the reader knows"),
        ({}, {}, "no data set that the reader knows"),
        (OULAD, {"format": "csv"}, "the format csv is one of single files"),
        (OULAD, {"verbs": True}, "has no verbs"),
        (OULAD, {"sheet": "1"}, "a sheet was named"),
        (EDNET, {"format": "oulad"}, "no files with students' clicks"),
        (OULAD, {"format": "ednet"}, "no file of the folder is a learner's by its name"),
        ({**OULAD, "vle.csv": "id_site,x\n1,2\n"}, {}, "no column for the activity_type"),
        ({**OULAD, "studentVle.csv": "a,b\n1,2\n"}, {}, "found no column for the id_student and the id_site"),
        ({**EDNET, "KT1/u17.csv": "a,b\n1,2\n"}, {}, "file 1 of 2, by their names, does not begin with"),
        (
            {**EDNET, "KT1/u230.csv": EDNET["KT1/u230.csv"] + "1565096191868,2\n"},
            {},
            "file 2 of 2, by their names, has 2 fields on line 4",
        ),
        ({**EDNET, "KT1/u230.csv": b"\xff\x00"}, {}, "file 2 of 2, by their names, does not begin"),
        (
            {**OULAD, "studentVle.csv": OULAD["studentVle.csv"].replace(",-10,", ",soon,")},
            {},
            "column 'day' orders the rows, .* on line 3",
        ),
    ],
)
def test_folders_that_cannot_be_read(tmp_path, files, settings, message):
    (tmp_path / "data").mkdir()
    with pytest.raises(UnderstudyError, match=message) as caught:
        read_log(folder(tmp_path / "data", files), **settings)
    assert caught.value.hint
    assert not any(name in str(caught.value) for name in ("u17", "u230", "7001"))


def test_a_file_is_not_a_folder(write):
    with pytest.raises(UsageError, match="is a folder of files"):
        read_log(write("studentVle.csv", OULAD["studentVle.csv"]), format="oulad")


def test_a_folder_is_charged_like_a_file(tmp_path):
    """Its ledger is inside, so that its files have the same one; learners are known again, whatever they are called."""
    path = folder(tmp_path / "oulad", OULAD)
    settings = {"public_actions": True, "no_outcomes": True, "in_order": True}
    log = read_log(path, **settings)
    assert ledger_path(path) == path / "understudy.ledger" == ledger_path(path / "studentVle.csv")
    synthesize(log, "runs-dp:epsilon=8", out=tmp_path / "first.csv", population="class a", anyway=True)
    with pytest.raises(RefusedError) as caught:
        synthesize(log, "runs-dp:epsilon=8", out=tmp_path / "second.csv", population="class a", anyway=True)
    assert caught.value.code == "budget"
    # The same folder for other learners, a copy of it, and a file of it.
    copy = folder(tmp_path / "copy", OULAD)
    clicks = path / "studentVle.csv"
    single = read_log(clicks, learner="id_student", action="id_site", **settings)
    for other in (log, read_log(copy, **settings), single):
        with pytest.raises(RefusedError) as caught:
            synthesize(
                other,
                "runs-dp:epsilon=8",
                out=tmp_path / "other.csv",
                population="class b",
                anyway=True,
                ledger=path / "understudy.ledger",
            )
        assert caught.value.code in ("budget", "known-learners", "same-learners"), caught.value.code


def test_learners_who_are_only_numbered_are_known_by_the_folder(tmp_path):
    numbered = {**OULAD, "studentVle.csv": OULAD["studentVle.csv"].replace("700", "")}
    path = folder(tmp_path / "oulad", numbered)
    log = read_log(path, public_actions=True, no_outcomes=True, in_order=True)
    synthesize(log, "runs-dp:epsilon=8", out=tmp_path / "first.csv", population="class a", anyway=True)
    copy = read_log(folder(tmp_path / "copy", numbered), public_actions=True, no_outcomes=True, in_order=True)
    ledger = path / "understudy.ledger"
    with pytest.raises(RefusedError):
        synthesize(
            copy,
            "runs-dp:epsilon=8",
            out=tmp_path / "b.csv",
            population="class b",
            ledger=ledger,
            anyway=True,
        )


READER = Reader(
    lambda path, **options: read_log(
        path.parents[1] if path.parent.name in ("KT1", "KT3", "train_data", "metadata") else path.parent,
        **options,
    ),
    lambda log: [*log.origin.notes, repr(log.origin.identifiers), repr(log.origin.columns)],
)
PIECES = pieces(b"id_student id_site date activity_type QuestionId UserId timestamp u7 2013J [3,4] -10")


@pytest.mark.parametrize(
    ("files", "name"),
    [
        (OULAD, "studentVle.csv"),
        (OULAD, "vle.csv"),
        (EDNET, "KT1/u17.csv"),
        (EDNET_ACTIONS, "KT3/u17.csv"),
        (EEDI, "train_data/train_task_3_4.csv"),
        (EEDI, "metadata/answer_metadata_task_3_4.csv"),
        (EEDI, "metadata/question_metadata_task_3_4.csv"),
    ],
)
@quick(30)
@given(edits=few_edits(PIECES))
def test_folders_with_a_few_wrong_bytes(tmp_path, files, name, edits):
    named = {
        key: text.replace("7001", f"{CANARY}1").replace("q1,", f"{CANARY},").replace("4001", f"{CANARY}2")
        for key, text in files.items()
    }
    folder(tmp_path, named)
    result = READER.outcome(tmp_path / name, edited(named[name].encode(), edits))
    assert isinstance(result, Interactions | UnderstudyError)
    if name != "vle.csv":
        assert not READER.tells_canary(result)
