"""The API for programs of researchers: what they can do on the pages, with a token instead of a session.

Models are written out rather than taken from the views: what is not named here never leaves by this way.
"""

from __future__ import annotations

from datetime import date
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import FileResponse, JSONResponse

from understudy.desk.domain.results import Results
from understudy.desk.service import data_sets, feedback, requests, views
from understudy.desk.service.data_sets import DataSetView
from understudy.desk.service.views import RequestView
from understudy.desk.web.guards import ByToken, TheDesk
from understudy.errors import RefusedError, UsageError


class Problem(BaseModel):
    """What went wrong, and what to do."""

    error: str = Field(description="What was asked, and what was found.")
    hint: str = Field(description="What to do next.")


class DataSet(BaseModel):
    """A data set that questions can be about."""

    name: str = Field(description="Its random name, as on certificates.")
    title: str
    description: str
    columns: list[str] = Field(description="What `analyze` finds, the learners' column first.")
    n_learners: int = Field(description="How many learners the real data is about.")
    simulated: bool = Field(description="Whether these learners were made up.")
    closed: bool = Field(description="Whether it takes no more requests.")
    minimum_learners: int = Field(description="So many learners have to be behind every number.")
    most_numbers: int = Field(description="In one answer.")
    most_code_bytes: int
    run_seconds: float = Field(description="How long one run may take.")
    libraries: list[str] = Field(description="What code may import.")


class NewRequest(BaseModel):
    """A question with its code."""

    model_config = ConfigDict(extra="forbid")

    data_set: str = Field(description="Name of the data set.", max_length=16)
    question: str = Field(description="What you want to know, in a sentence.", max_length=requests.MOST_WORDS)
    code: str = Field(description="Python with one entry: `analyze(data) -> results`.")
    shown: str = Field("", description="What the synthetic data showed.", max_length=requests.MOST_WORDS)
    kind: str = Field("", description="Of analysis, in one or two words.", max_length=60)
    submit: bool = Field(False, description="Hand it in at once, rather than keep it as a draft.")


class NewFeedback(BaseModel):
    """How the result compares with what the synthetic data showed."""

    model_config = ConfigDict(extra="forbid")

    precision: float = Field(description="0: none of the findings held, 0.5: some, 1: most.")
    words: str = Field("", description="How the results differ.", max_length=feedback.MOST_WORDS)


class Table(BaseModel):
    """A frame that the code returned."""

    columns: list[str]
    rows: list[list[Any]] = Field(description="Numbers, texts or null.")


class Answer(BaseModel):
    """What `analyze` returned, as it was released."""

    values: Any = Field(description="Numbers, texts, and lists and dicts of them.")
    tables: dict[str, Table]


class RequestLine(BaseModel):
    """A request in a list."""

    name: str
    data_set: str
    question: str
    kind: str
    state: str = Field(description="Such as draft, in review, being answered, released.")
    day: date = Field(description="When it last moved; no finer, since run times depend on the data.")


class RequestDetail(RequestLine):
    """One of your requests."""

    code: str
    shown: str
    note: str = Field(description="The reviewer's last words to you.")
    trial: Answer | None = Field(description="What the code gave on the synthetic data.")
    trial_failure: str = Field(description="Why it gave nothing there, if so.")
    certificate: str | None = Field(description="Number of the certificate, once the result is released.")
    actions: list[str] = Field(description="What you can do now.")


class Result(BaseModel):
    """A released result."""

    certificate: str
    result: Answer


_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": words}
    for status, words in (
        (400, "Not as it has to be."),
        (401, "No token, or one that does not work."),
        (404, "There is no such thing, or it is not yours."),
        (409, "Not in this state, or a limit is reached: wait."),
        (413, "Too large."),
        (422, "Something is missing."),
        (503, "Not available now: try again."),
    )
}
router = APIRouter(prefix="/api", responses=_PROBLEMS)


@router.get("/openapi.json", include_in_schema=False)
def openapi(request: Request) -> Response:
    """This API in OpenAPI's language."""
    return JSONResponse(request.app.openapi())


@router.get("/v1/data-sets", summary="Data sets")
def list_data_sets(desk: TheDesk, person: ByToken) -> list[DataSet]:
    """All data sets that take requests."""
    return [_data_set(one) for one in data_sets.listed(desk, person)]


@router.get("/v1/data-sets/{name}", summary="One data set")
def show_data_set(desk: TheDesk, person: ByToken, name: str) -> DataSet:
    """What can be asked about a data set, and the limits of an answer."""
    return _data_set(data_sets.view(desk, person, name))


@router.get(
    "/v1/data-sets/{name}/synthetic",
    summary="The synthetic stand-in",
    response_class=FileResponse,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The table."}},
)
def download_synthetic(desk: TheDesk, person: ByToken, name: str) -> Response:
    """The synthetic table, to develop code on. The real one is served by no address."""
    path = data_sets.synthetic_file(desk, person, name)
    if not path.is_file():
        raise UsageError("there is no such file any more.", hint="tell the custodian of this desk.")
    return FileResponse(path, media_type="application/octet-stream", filename=f"{name}{path.suffix}")


@router.post("/v1/requests", status_code=201, summary="Ask")
def create_request(desk: TheDesk, person: ByToken, asked: NewRequest) -> RequestDetail:
    """Make a draft, and hand it in if `submit` is true. If handing in is refused, the draft is kept."""
    name = requests.create(
        desk,
        person,
        asked.data_set,
        question=asked.question,
        code=asked.code,
        shown=asked.shown,
        kind=asked.kind,
    )
    if asked.submit:
        requests.submit(desk, person, name)
    return _detail(views.request(desk, person, name))


@router.get("/v1/requests", summary="Your requests")
def list_requests(desk: TheDesk, person: ByToken) -> list[RequestLine]:
    """Your own requests, newest first."""
    return [RequestLine(**_line(one)) for one in views.requests(desk, person)]


@router.get("/v1/requests/{name}", summary="One request")
def show_request(desk: TheDesk, person: ByToken, name: str) -> RequestDetail:
    """One of your requests, and what its code gave on the synthetic data."""
    return _detail(views.request(desk, person, name))


@router.post("/v1/requests/{name}/submit", summary="Hand in a draft")
def submit_request(desk: TheDesk, person: ByToken, name: str) -> RequestDetail:
    """Its trial on the synthetic data is the first thing that happens."""
    requests.submit(desk, person, name)
    return _detail(views.request(desk, person, name))


@router.post("/v1/requests/{name}/withdraw", summary="Take a request back")
def withdraw_request(desk: TheDesk, person: ByToken, name: str) -> RequestDetail:
    """While nobody has decided."""
    requests.withdraw(desk, person, name)
    return _detail(views.request(desk, person, name))


@router.post("/v1/requests/{name}/feedback", summary="Say how the result compares")
def report_request(desk: TheDesk, person: ByToken, name: str, told: NewFeedback) -> RequestDetail:
    """Once, after the release."""
    feedback.report(desk, person, name, told.precision, told.words)
    return _detail(views.request(desk, person, name))


@router.get("/v1/requests/{name}/result", summary="The released result")
def show_result(desk: TheDesk, person: ByToken, name: str) -> Result:
    """409 while there is none."""
    view = views.request(desk, person, name)
    answer = _answer(view.released)
    if answer is None or view.certificate is None:
        raise RefusedError("nothing was released for this request.", hint="look at its state, or wait.")
    return Result(certificate=view.certificate, result=answer)


@router.get("/v1/certificates/{number}", summary="A certificate")
def show_certificate(desk: TheDesk, person: ByToken, number: str) -> dict[str, Any]:
    """The signed certificate of a released result, as on its page."""
    document = views.certificate(desk, number)
    if document is None:
        raise UsageError("there is no such certificate.", hint="check the number.")
    return document


def _data_set(view: DataSetView) -> DataSet:
    return DataSet(
        name=view.name,
        title=view.title,
        description=view.description,
        columns=list(view.columns),
        n_learners=view.n_learners,
        simulated=view.simulated,
        closed=view.closed,
        minimum_learners=view.policy.minimum_learners,
        most_numbers=view.policy.most_numbers,
        most_code_bytes=view.policy.most_code_bytes,
        run_seconds=view.policy.run_seconds,
        libraries=list(view.policy.libraries),
    )


def _line(line: views.Line) -> dict[str, Any]:
    return {
        "name": line.name,
        "data_set": line.data_set,
        "question": line.question,
        "kind": line.kind,
        "state": line.state,
        "day": line.day,
    }


def _detail(view: RequestView) -> RequestDetail:
    return RequestDetail(
        **_line(view.line),
        code=view.code,
        shown=view.shown,
        note=view.note,
        trial=None if view.trial is None else _answer(view.trial.results),
        trial_failure="" if view.trial is None else view.trial.failure,
        certificate=view.certificate,
        actions=sorted(view.actions),
    )


def _answer(results: Results | None) -> Answer | None:
    return None if results is None else Answer.model_validate(results.to_json())
