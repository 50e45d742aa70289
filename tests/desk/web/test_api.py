"""The API as a researcher's program uses it, and that its description says what it does."""

import json
import re

import pytest
from fastapi.testclient import TestClient

from tests.desk.support.client import ADDRESS
from tests.desk.support.fixtures import MEAN, OTHER, POLICY, PRIVATE, REASON, fill
from understudy.desk.domain.certificate import verify
from understudy.desk.service import data_sets, private_answers, releases, requests, tokens
from understudy.desk.web.app import make_app

pytestmark = pytest.mark.functional

BROKEN = """
def analyze(data):
    return data["no such column"].mean()
"""


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    made = fill(tmp_path_factory.mktemp("api"), schema=True)
    yield made
    made.desk.close()


@pytest.fixture(scope="module")
def app(filled):
    return make_app(filled.desk)


def program_of(filled, app, person):
    token = tokens.make_token(filled.desk, person, "script")
    return TestClient(app, base_url=f"{ADDRESS}/api/v1", headers={"authorization": f"Bearer {token}"})


@pytest.fixture
def program(filled, app):
    for one in tokens.list_tokens(filled.desk, filled.researcher):
        tokens.revoke_token(filled.desk, filled.researcher, one.id)
    return program_of(filled, app, filled.researcher)


def _asked(filled, **more):
    return {
        "data_set": filled.data_set,
        "question": "How many minutes in the evening?",
        "code": MEAN,
        **more,
    }


def test_from_the_question_to_the_certificate(filled, program):
    (data,) = program.get("/data-sets").json()
    assert data == program.get(f"/data-sets/{filled.data_set}").json()
    assert data["n_learners"] == 36
    assert data["minimum_learners"] == POLICY.minimum_learners
    synthetic = program.get(f"/data-sets/{data['name']}/synthetic")
    path = data_sets.synthetic_file(filled.desk, filled.researcher, data["name"])
    assert synthetic.content == path.read_bytes()
    assert synthetic.headers["content-disposition"] == f'attachment; filename="{data["name"]}.csv"'

    made = program.post("/requests", json=_asked(filled, shown="about an hour", kind="mean"))
    assert made.status_code == 201
    draft = made.json()
    assert (draft["state"], draft["actions"]) == ("draft", ["edit", "submit", "withdraw"])
    name = draft["name"]
    assert program.get(f"/requests/{name}/result").status_code == 409
    assert program.post(f"/requests/{name}/submit").json()["state"] == "submitted"
    assert program.post(f"/requests/{name}/submit").status_code == 409
    filled.work()
    shown = program.get(f"/requests/{name}").json()
    assert shown["state"] == "in review"
    assert list(shown["trial"]["values"]) == ["mean minutes"]

    requests.approve(filled.desk, filled.reviewer, name)
    answered = program.get(f"/requests/{name}").json()
    assert (answered["state"], answered["actions"]) == ("being answered", [])
    filled.work()
    # Held: nothing about it is different from here.
    assert program.get(f"/requests/{name}").json() == answered
    assert program.get(f"/requests/{name}/result").status_code == 409
    assert program.post(f"/requests/{name}/feedback", json={"precision": 1}).status_code == 409

    releases.decide(filled.desk, filled.reviewer, name, REASON)
    filled.work()
    result = program.get(f"/requests/{name}/result").json()
    assert result["result"]["values"].keys() == shown["trial"]["values"].keys()
    certificate = program.get(f"/certificates/{result['certificate']}").json()
    verify(certificate)
    assert certificate["result"] == result["result"]
    assert program.post(f"/requests/{name}/feedback", json={"precision": 0.7}).status_code == 400
    told = program.post(f"/requests/{name}/feedback", json={"precision": 0.5, "words": "a little less"})
    assert told.json()["state"] == "feedback given"
    assert [one["name"] for one in program.get("/requests").json()] == [name]


def test_an_error_in_the_trial_comes_back(filled, program):
    name = program.post("/requests", json=_asked(filled, code=BROKEN, submit=True)).json()["name"]
    filled.work()
    shown = program.get(f"/requests/{name}").json()
    assert shown["state"] == "returned"
    assert shown["trial"] is None
    assert "KeyError" in shown["trial_failure"]
    assert "line 3" in shown["trial_failure"]
    assert program.post(f"/requests/{name}/withdraw").json()["state"] == "withdrawn"


def test_a_token_never_sees_what_reviewers_see(filled, app, program):
    name = filled.held(OTHER)
    shown = program.get(f"/requests/{name}").json()
    assert set(shown) == {
        *("name", "data_set", "question", "kind", "state", "day", "code", "shown", "note"),
        *("trial", "trial_failure", "private", "certificate", "actions"),
    }
    assert shown["state"] == "being answered"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", shown["day"])
    # A reviewer's token knows a reviewer's own requests alone.
    reviewing = program_of(filled, app, filled.reviewer)
    assert reviewing.get(f"/requests/{name}").status_code == 404
    assert reviewing.get("/requests").json() == []


def test_private_questions_from_the_schema_to_the_answers(filled, program):
    data = program.get(f"/data-sets/{filled.data_set}").json()
    assert data["public_schema"]["columns"][-1]["values"] == ["low", "average", "high"]
    assert (data["private_epsilon"], data["private_without_review"]) == (1.0, False)
    made = program.post("/requests", json=_asked(filled, code=PRIVATE, submit=True)).json()
    assert made["private"] == {
        "questions": [],
        "guarantee": None,
        "expected": 0.0,
        "tried": [],
        "answers": [],
    }
    filled.work()
    shown = program.get(f"/requests/{made['name']}").json()
    assert shown["state"] == "in review"
    assert shown["private"]["guarantee"]["epsilon"] == 0.5
    assert len(shown["private"]["tried"][0]["estimates"]) == 3
    private_answers.approve(filled.desk, filled.reviewer, made["name"])
    filled.work()
    shown = program.get(f"/requests/{made['name']}").json()
    (answer,) = shown["private"]["answers"]
    result = program.get(f"/requests/{made['name']}/result").json()
    (table,) = result["result"]["tables"].values()
    assert table["columns"] == ["of", "value", "low", "high"]
    assert [row[1] for row in table["rows"]] == [one["value"] for one in answer["estimates"]]
    signed = program.get(f"/certificates/{shown['certificate']}").json()
    assert signed["answers"] == shown["private"]["answers"]


def test_limits_are_told_as_limits(filled, program, monkeypatch):
    monkeypatch.setattr(requests, "MOST_WAITING", 0)
    refused = program.post("/requests", json=_asked(filled, submit=True))
    assert refused.status_code == 409
    assert refused.json()["hint"] == "your draft is kept; submit later."
    newest = program.get("/requests").json()[0]
    assert newest["state"] == "draft"
    monkeypatch.setattr(requests, "MOST_OPEN", 1)
    assert "the most" in program.post("/requests", json=_asked(filled)).json()["error"]


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"data_set": "none"}, 404),
        ({"question": "why"}, 400),
        ({"code": ""}, 400),
        ({"code": 5}, 422),
        ({"code": "x\x00"}, 400),
        ({"kind": "x" * 61}, 422),
        ({"question": "w " * 8000}, 422),
        ({"price": 1}, 422),
        ({"code": "\ud800"}, 400),
    ],
)
def test_what_is_not_a_request_is_refused_without_repeating_it(filled, program, changed, status):
    sent = json.dumps(_asked(filled, **changed))
    answer = program.post("/requests", content=sent, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert set(answer.json()) == {"error", "hint", "code"}
    assert len(answer.text) < 400


def test_the_description_says_what_the_api_does(app, program):
    description = program.get(f"{ADDRESS}/api/openapi.json").json()
    paths = description["paths"]
    served = {(method.lower(), path) for method, path in app.state.routes if path.startswith("/api/v1/")}
    assert {(method, path) for path, methods in paths.items() for method in methods} == served
    for methods in paths.values():
        for one in methods.values():
            assert one["summary"]
            assert one["description"]
            assert one["security"] == [{"HTTPBearer": []}]
            assert {"401", "404"} <= set(one["responses"])
            assert one["responses"]["401"]["content"]["application/json"]["schema"]["$ref"].endswith(
                "/Problem"
            )
    schemas = description["components"]["schemas"]
    assert {"NewRequest", "RequestDetail", "Result", "DataSet", "Problem"} <= set(schemas)
    assert all("description" in one for one in schemas["NewRequest"]["properties"].values())
    # No other way to read about it, with scripts from elsewhere.
    for address in ("/docs", "/redoc", "/openapi.json"):
        assert program.get(f"{ADDRESS}{address}").status_code == 404
