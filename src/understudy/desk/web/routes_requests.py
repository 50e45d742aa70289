"""Pages of requests: what waits, the list, the form, one request, and every decision about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from importlib import resources
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Query, Request, Response, UploadFile
from starlette.responses import HTMLResponse, RedirectResponse

from understudy.desk.people import Person
from understudy.desk.permissions import NotAllowedError
from understudy.desk.results import Results
from understudy.desk.risk.game import MEANING
from understudy.desk.service import data_sets, feedback, releases, requests, views
from understudy.desk.service.desk import Desk
from understudy.desk.service.views import Line, RequestView
from understudy.desk.states import State
from understudy.desk.web import pages, words
from understudy.desk.web.advice import advise, bars
from understudy.desk.web.guards import SignedIn, TheDesk
from understudy.desk.web.problems import status_of
from understudy.desk.web.showing import Group, shown
from understudy.errors import UnderstudyError, UsageError

router = APIRouter(include_in_schema=False)

Text = Annotated[str, Form()]
# Requests under what waits, and notices, on the first page.
_OTHERS = 12
_NOTICES = 8
_ENDED = {
    State.RELEASED.value,
    State.FEEDBACK.value,
    State.REFUSED.value,
    State.WITHHELD.value,
    State.WITHDRAWN.value,
}


@router.get("/")
def dashboard(request: Request, desk: TheDesk, person: SignedIn) -> Response:
    """What waits for somebody, then what else is open."""
    lines = views.requests(desk, person)
    waiting = [line for line in reversed(lines) if line.waits_for_me]
    rest = [line for line in lines if not line.waits_for_me]
    others = [line for line in rest if line.state not in _ENDED] if person.reviews else rest
    return pages.render(
        request,
        "dashboard.html",
        person=person,
        waiting=waiting,
        others=others[:_OTHERS],
        n_more=max(0, len(others) - _OTHERS),
        notices=views.notices(desk, person, _NOTICES),
        questions={line.name: line.question for line in lines},
        titles=_titles(desk, person),
    )


@router.get("/requests")
def request_list(
    request: Request, desk: TheDesk, person: SignedIn, state: Annotated[str, Query()] = ""
) -> Response:
    """All requests that somebody may see, by state."""
    lines = views.requests(desk, person)
    counts = Counter(line.state for line in lines)
    return pages.render(
        request,
        "requests.html",
        person=person,
        lines=[line for line in lines if not state or line.state == state],
        chosen=state if state in counts else "",
        n_all=len(lines),
        states=[(found, counts[found]) for found in sorted(counts, key=words.life_order)],
        titles=_titles(desk, person),
    )


@router.get("/requests/new")
def new_page(request: Request, desk: TheDesk, person: SignedIn, data: Annotated[str, Query()]) -> Response:
    """An empty form with code to start from."""
    template = resources.files("understudy.desk").joinpath("templates/analysis.py.txt")
    typed = {"question": "", "kind": "", "shown": "", "code": template.read_text(encoding="utf-8")}
    return _form(request, desk, person, data, typed)


@router.post("/requests/new")
def create(
    request: Request,
    desk: TheDesk,
    person: SignedIn,
    data: Text,
    question: Text = "",
    kind: Text = "",
    shown: Text = "",
    code: Text = "",
    then: Text = "keep",
    file: Annotated[UploadFile | None, File()] = None,
) -> Response:
    """A draft, handed in at once if wished."""
    typed = {"question": question, "kind": kind, "shown": shown, "code": code}
    try:
        typed["code"] = _uploaded(desk, person, data, file) or code
        name = requests.create(desk, person, data, **typed)
    except NotAllowedError:
        raise
    except UnderstudyError as problem:
        return _form(request, desk, person, data, typed, problem=problem)
    if then == "submit":
        return _acted(request, desk, person, name, lambda: requests.submit(desk, person, name), "submitted")
    return _done(name, "drafted")


@router.get("/requests/{name}")
def request_page(request: Request, desk: TheDesk, person: SignedIn, name: str) -> Response:
    """One request, for its owner or for who reviews it."""
    return _page(request, desk, person, name)


@router.get("/requests/{name}/progress")
def progress(request: Request, desk: TheDesk, person: SignedIn, name: str) -> Response:
    """How far the work is: a fragment for reviewers; empty when there is no work."""
    view = views.request(desk, person, name)
    return pages.render(request, "progress.html", person=person, progress=view.progress)


@router.get("/requests/{name}/edit")
def edit_page(request: Request, desk: TheDesk, person: SignedIn, name: str) -> Response:
    """The form of a draft or of a returned request."""
    view = views.request(desk, person, name)
    if "edit" not in view.actions:
        problem = UsageError(
            "this request cannot be changed now.", hint="its page says what can be done with it."
        )
        return _page(request, desk, person, name, problem=problem, status=409)
    typed = {
        "question": view.line.question,
        "kind": view.line.kind,
        "shown": view.shown,
        "code": view.code,
    }
    return _form(request, desk, person, view.line.data_set, typed, name=name)


@router.post("/requests/{name}/edit")
def edit(
    request: Request,
    desk: TheDesk,
    person: SignedIn,
    name: str,
    question: Text = "",
    kind: Text = "",
    shown: Text = "",
    code: Text = "",
    then: Text = "keep",
    file: Annotated[UploadFile | None, File()] = None,
) -> Response:
    """Keep changes, and hand in if wished."""
    typed = {"question": question, "kind": kind, "shown": shown, "code": code}
    data = views.request(desk, person, name).line.data_set
    try:
        typed["code"] = _uploaded(desk, person, data, file) or code
        requests.edit(desk, person, name, **typed)
    except NotAllowedError:
        raise
    except UnderstudyError as problem:
        return _form(request, desk, person, data, typed, name=name, problem=problem)
    if then == "submit":
        return _acted(request, desk, person, name, lambda: requests.submit(desk, person, name), "submitted")
    return _done(name, "edited")


@router.post("/requests/{name}/submit")
def submit(request: Request, desk: TheDesk, person: SignedIn, name: str) -> Response:
    """Hand a draft in."""
    return _acted(request, desk, person, name, lambda: requests.submit(desk, person, name), "submitted")


@router.post("/requests/{name}/withdraw")
def withdraw(request: Request, desk: TheDesk, person: SignedIn, name: str) -> Response:
    """Take a request back."""
    return _acted(request, desk, person, name, lambda: requests.withdraw(desk, person, name), "withdrawn")


@router.post("/requests/{name}/approve")
def approve(request: Request, desk: TheDesk, person: SignedIn, name: str) -> Response:
    """Let the code run on the real data."""
    return _acted(request, desk, person, name, lambda: requests.approve(desk, person, name), "approved")


@router.post("/requests/{name}/return")
def send_back(request: Request, desk: TheDesk, person: SignedIn, name: str, note: Text = "") -> Response:
    """Return a request with a note."""
    return _acted(
        request,
        desk,
        person,
        name,
        lambda: requests.send_back(desk, person, name, note),
        "returned",
        note,
        "return",
    )


@router.post("/requests/{name}/refuse")
def refuse(request: Request, desk: TheDesk, person: SignedIn, name: str, note: Text = "") -> Response:
    """Refuse a request with a note."""
    return _acted(
        request,
        desk,
        person,
        name,
        lambda: requests.refuse(desk, person, name, note),
        "refused",
        note,
        "refuse",
    )


@router.post("/requests/{name}/cancel")
def cancel(request: Request, desk: TheDesk, person: SignedIn, name: str) -> Response:
    """Stop a run."""
    return _acted(request, desk, person, name, lambda: requests.cancel(desk, person, name), "cancelled")


@router.post("/requests/{name}/release")
def release(request: Request, desk: TheDesk, person: SignedIn, name: str, reason: Text = "") -> Response:
    """Decide that a held output leaves."""
    return _acted(
        request,
        desk,
        person,
        name,
        lambda: releases.decide(desk, person, name, reason),
        "release",
        reason,
        "release",
    )


@router.post("/requests/{name}/withhold")
def withhold(request: Request, desk: TheDesk, person: SignedIn, name: str, note: Text = "") -> Response:
    """Close a request without a result."""
    return _acted(
        request,
        desk,
        person,
        name,
        lambda: releases.withhold(desk, person, name, note),
        "withheld",
        note,
        "withhold",
    )


@router.post("/requests/{name}/run-again")
def run_again(request: Request, desk: TheDesk, person: SignedIn, name: str) -> Response:
    """Run and price the same code anew."""
    return _acted(request, desk, person, name, lambda: releases.run_again(desk, person, name), "again")


@router.post("/requests/{name}/report")
def report(
    request: Request,
    desk: TheDesk,
    person: SignedIn,
    name: str,
    precision: Annotated[float, Form()],
    words: Text = "",
) -> Response:
    """The owner compares the result with the synthetic data."""
    return _acted(
        request,
        desk,
        person,
        name,
        lambda: feedback.report(desk, person, name, precision, words),
        "reported",
        words,
    )


def _done(name: str, code: str) -> Response:
    return RedirectResponse(f"/requests/{name}?done={code}", status_code=303)


def _acted(
    request: Request,
    desk: Desk,
    person: Person,
    name: str,
    act: Callable[[], None],
    code: str,
    typed: str = "",
    opened: str = "",
) -> Response:
    """Do it and go back to the page; or show the page with what went wrong, and what was typed."""
    try:
        act()
    except NotAllowedError:
        raise
    except UnderstudyError as problem:
        return _page(
            request,
            desk,
            person,
            name,
            problem=problem,
            status=status_of(problem),
            typed=typed,
            opened=opened,
        )
    return _done(name, code)


def _form(
    request: Request,
    desk: Desk,
    person: Person,
    data: str,
    typed: dict[str, str],
    *,
    name: str = "",
    problem: UnderstudyError | None = None,
) -> HTMLResponse:
    return pages.render(
        request,
        "request_form.html",
        person=person,
        status=200 if problem is None else status_of(problem),
        problem=problem,
        data=data_sets.view(desk, person, data),
        typed=typed,
        name=name,
    )


def _uploaded(desk: Desk, person: Person, data: str, file: UploadFile | None) -> str:
    """The text of an uploaded file; nothing if none was chosen."""
    if file is None or not file.filename:
        return ""
    # A byte more than allowed is enough for the check of the size to refuse it.
    content = file.file.read(data_sets.view(desk, person, data).policy.most_code_bytes + 1)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(
            "the uploaded file is not text in UTF-8, or is too large.", hint="upload a .py file."
        ) from None


def _titles(desk: Desk, person: Person) -> dict[str, str]:
    return {one.name: one.title for one in data_sets.listed(desk, person)}


def _page(
    request: Request,
    desk: Desk,
    person: Person,
    name: str,
    *,
    problem: UnderstudyError | None = None,
    status: int = 200,
    typed: str = "",
    opened: str = "",
) -> HTMLResponse:
    view = views.request(desk, person, name)
    owner = view.line.mine or not person.reviews
    return pages.render(
        request,
        "request_owner.html" if owner else "request_review.html",
        person=person,
        status=status,
        problem=problem,
        view=view,
        typed=typed,
        opened=opened,
        released=None if view.released is None else shown(view.released, trial=_tried(view)),
        trial=_trial(view),
        reading=words.reading(None if view.trial is None else view.trial.reading),
        **(_of_owner(view.line) if owner else _of_reviewer(view)),
    )


def _of_owner(line: Line) -> dict[str, Any]:
    return {"at_step": words.step(line.state)}


def _of_reviewer(view: RequestView) -> dict[str, Any]:
    held = view.held
    if held is None:
        nothing = ("advice", "bars", "checks", "held", "deleted_on", "held_size")
        return {**dict.fromkeys(nothing), "meaning": MEANING}
    waits = view.line.state == State.HELD
    return {
        "meaning": MEANING,
        "advice": advise(held, view.policy),
        "bars": None if held.prices is None else bars(held.prices, view.policy),
        "checks": sorted(held.checks, key=lambda check: words.in_order(check.verdict)),
        "held": None
        if held.results is None
        else shown(
            held.results,
            trial=_tried(view),
            support=held.support,
            minimum=view.policy.minimum_learners,
        ),
        "held_size": None if held.results is None else len(held.results.numbers),
        "deleted_on": held.at + timedelta(days=view.policy.retention_days) if waits else None,
    }


def _trial(view: RequestView) -> list[Group] | None:
    tried = _tried(view)
    return None if tried is None else shown(tried)


def _tried(view: RequestView) -> Results | None:
    return None if view.trial is None else view.trial.results
