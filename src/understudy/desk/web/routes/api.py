"""The API for programs of researchers: what they can do on the pages, with a token instead of a session.

Models name what they take from the views: what is not named here is never sent.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field
from starlette.responses import FileResponse, JSONResponse

from understudy.desk.domain.people import Person
from understudy.desk.service import Desk, data_sets, feedback, requests, views
from understudy.desk.web.guards import ByToken, TheDesk
from understudy.errors import RefusedError


class Problem(BaseModel):
    """What went wrong, and what to do."""

    error: str = Field(description="What was asked, and what was found.")
    hint: str = Field(description="What to do next.")
    code: str = Field(description="A word for programs, such as not-found or out-of-date.")


class _FromView(BaseModel):
    """Made from what a person may see: the fields that are named, and no others."""

    model_config = ConfigDict(from_attributes=True)


def _of_policy(name: str, description: str = "") -> Any:
    return Field(validation_alias=AliasPath("policy", name), description=description or None)


class DataSet(_FromView):
    """A data set that questions can be about."""

    name: str = Field(description="Its random name, as on certificates.")
    title: str
    description: str
    columns: list[str] = Field(description="What `analyze` finds, the learners' column first.")
    n_learners: int = Field(description="How many learners the real data is about.")
    simulated: bool = Field(description="Whether these learners were made up.")
    closed: bool = Field(description="Whether it takes no more requests.")
    minimum_learners: int = _of_policy("minimum_learners", "So many learners have to be behind every number.")
    most_numbers: int = _of_policy("most_numbers", "In one answer.")
    most_code_bytes: int = _of_policy("most_code_bytes")
    run_seconds: float = _of_policy("run_seconds", "How long one run may take.")
    libraries: list[str] = _of_policy("libraries", "What code may import.")
    public_schema: Annotated[
        dict[str, Any] | None, BeforeValidator(lambda schema: None if schema is None else schema.to_json())
    ] = Field(
        validation_alias="schema",
        description="Bounds and categories that private questions are about; null if none are declared.",
    )
    private_epsilon: float = _of_policy(
        "private_epsilon", "Most epsilon of one request with private questions."
    )
    private_epsilon_total: float = _of_policy("private_epsilon_total", "Of all of them together.")
    private_without_review: bool = _of_policy(
        "private_without_review", "Whether they are answered without a person."
    )


class NewRequest(BaseModel):
    """A question with its code."""

    model_config = ConfigDict(extra="forbid")

    data_set: str = Field(description="Name of the data set.", max_length=16)
    question: str = Field(description="What you want to know, in a sentence.", max_length=requests.MOST_WORDS)
    code: str = Field(
        description="Python with one entry: `analyze(data) -> results`, or `analyze(ask)` and `EPSILON` for private "
        "questions."
    )
    shown: str = Field("", description="What the synthetic data showed.", max_length=requests.MOST_WORDS)
    kind: str = Field("", description="Of analysis, in one or two words.", max_length=60)
    submit: bool = Field(False, description="Hand it in at once, rather than keep it as a draft.")


class NewFeedback(BaseModel):
    """How the result compares with what the synthetic data showed."""

    model_config = ConfigDict(extra="forbid")

    precision: float = Field(description="0: none of the findings held, 0.5: some, 1: most.")
    words: str = Field("", description="How the results differ.", max_length=feedback.MOST_WORDS)


class Table(_FromView):
    """A frame that the code returned."""

    columns: list[str]
    rows: list[list[Any]] = Field(description="Numbers, texts or null.")


class Answer(_FromView):
    """What `analyze` returned, as it was released."""

    values: Any = Field(description="Numbers, texts, and lists and dicts of them.")
    tables: dict[str, Table]


class RequestLine(_FromView):
    """A request in a list."""

    name: str
    data_set: str
    question: str
    kind: str
    state: str = Field(description="Such as draft, in review, being answered, released.")
    day: date = Field(description="When it last moved; no finer, since run times depend on the data.")


class Private(_FromView):
    """Private questions in place of an analysis."""

    questions: list[str] = Field(description="What is asked for, in words; empty before the trial.")
    guarantee: dict[str, Any] | None = Field(description="What will be proved about the answers.")
    expected: float = Field(description="Widest interval to be expected, as a share of what is possible.")
    tried: list[dict[str, Any]] = Field(description="Answers from the synthetic data, with as much noise.")
    answers: list[dict[str, Any]] = Field(description="As they were released, with their intervals.")


class RequestDetail(RequestLine):
    """One of your requests."""

    code: str
    shown: str
    note: str = Field(description="The reviewer's last words to you.")
    trial: Answer | None = Field(
        None,
        validation_alias=AliasPath("trial", "results"),
        description="What the code gave on the synthetic data.",
    )
    trial_failure: Annotated[str, BeforeValidator(lambda failure: str(failure or ""))] = Field(
        "", validation_alias=AliasPath("trial", "failure"), description="Why it gave nothing there, if so."
    )
    private: Private | None = Field(description="For `analyze(ask)`; null for `analyze(data)`.")
    certificate: str | None = Field(description="Number of the certificate, once the result is released.")
    actions: Annotated[list[str], BeforeValidator(sorted)] = Field(description="What you can do now.")


class Result(_FromView):
    """A released result."""

    certificate: str
    result: Answer = Field(validation_alias="released")


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
    return [DataSet.model_validate(view) for view in data_sets.listed(desk, person)]


@router.get("/v1/data-sets/{name}", summary="One data set")
def show_data_set(desk: TheDesk, person: ByToken, name: str) -> DataSet:
    """What can be asked about a data set, and the limits of an answer."""
    return DataSet.model_validate(data_sets.view(desk, person, name))


@router.get(
    "/v1/data-sets/{name}/synthetic",
    summary="The synthetic stand-in",
    response_class=FileResponse,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The table."}},
)
def download_synthetic(desk: TheDesk, person: ByToken, name: str) -> Response:
    """The synthetic table, to develop code on. The real one is served by no address."""
    path = data_sets.synthetic_file(desk, person, name)
    return FileResponse(path, media_type="application/octet-stream", filename=f"{name}{path.suffix}")


@router.post("/v1/requests", status_code=201, summary="Ask")
def create_request(desk: TheDesk, person: ByToken, asked: NewRequest) -> RequestDetail:
    """Make a draft, and submit it if `submit` is true. If that is refused, the draft is kept."""
    name = requests.create(desk, person, **asked.model_dump(exclude={"submit"}))
    if asked.submit:
        requests.submit(desk, person, name)
    return _detail(desk, person, name)


@router.get("/v1/requests", summary="Your requests")
def list_requests(desk: TheDesk, person: ByToken) -> list[RequestLine]:
    """Your own requests, newest first."""
    return [RequestLine.model_validate(line) for line in views.requests(desk, person)]


@router.get("/v1/requests/{name}", summary="One request")
def show_request(desk: TheDesk, person: ByToken, name: str) -> RequestDetail:
    """One of your requests, and what its code gave on the synthetic data."""
    return _detail(desk, person, name)


@router.post("/v1/requests/{name}/submit", summary="Hand in a draft")
def submit_request(desk: TheDesk, person: ByToken, name: str) -> RequestDetail:
    """Submit a draft. It is tried on the synthetic data first."""
    requests.submit(desk, person, name)
    return _detail(desk, person, name)


@router.post("/v1/requests/{name}/withdraw", summary="Take a request back")
def withdraw_request(desk: TheDesk, person: ByToken, name: str) -> RequestDetail:
    """Withdraw a request, until it is decided."""
    requests.withdraw(desk, person, name)
    return _detail(desk, person, name)


@router.post("/v1/requests/{name}/feedback", summary="Say how the result compares")
def report_request(desk: TheDesk, person: ByToken, name: str, reported: NewFeedback) -> RequestDetail:
    """Report once, after the release, how the result compares."""
    feedback.report(desk, person, name, reported.precision, reported.words)
    return _detail(desk, person, name)


@router.get("/v1/requests/{name}/result", summary="The released result")
def show_result(desk: TheDesk, person: ByToken, name: str) -> Result:
    """The released result; 409 while there is none."""
    view = views.request(desk, person, name)
    if view.released is None:
        raise RefusedError("nothing was released for this request.", hint="look at its state, or wait.")
    return Result.model_validate(view)


@router.get("/v1/certificates/{number}", summary="A certificate")
def show_certificate(desk: TheDesk, person: ByToken, number: str) -> dict[str, Any]:
    """The signed certificate of a released result, as on its page."""
    return views.certificate(desk, number)


def _detail(desk: Desk, person: Person, name: str) -> RequestDetail:
    return RequestDetail.model_validate(views.request(desk, person, name))
