"""Pages of requests: what waits, the list, the form, a request for its owner and its reviewers, every decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from importlib import resources
from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, Query, Request, Response, UploadFile
from starlette.responses import HTMLResponse, RedirectResponse

from understudy.desk.domain.certificate import MEANING_OF_PRICE
from understudy.desk.domain.people import NotAllowedError, Person
from understudy.desk.domain.results import Results
from understudy.desk.domain.states import ENDED, State, life_order, step_of
from understudy.desk.service import Desk, data_sets, feedback, private_answers, releases, requests, views
from understudy.desk.service.notices import notices
from understudy.desk.service.views import RequestView
from understudy.desk.web import pages, wording
from understudy.desk.web.advice import advise, bars
from understudy.desk.web.guards import SignedIn, Text, TheDesk
from understudy.desk.web.problems import status_of
from understudy.desk.web.result_view import Group, result_groups
from understudy.errors import UnderstudyError, UsageError

router = APIRouter(include_in_schema=False)

Verb = Callable[[Desk, Person, str], None]
VerbWithText = Callable[[Desk, Person, str, str], None]

# Requests under what waits, and notices, on the first page.
_OTHERS = 12
_NOTICES = 8


@dataclass(frozen=True)
class RequestPage:
    """A user at the page of a request."""

    request: Request
    desk: Desk
    person: Person
    name: str

    def perform(self, verb: Verb, code: str) -> Response:
        """Do it and go back to the page; or show the page with what went wrong."""
        return self._perform(lambda: verb(self.desk, self.person, self.name), code)

    def perform_with_text(self, verb: VerbWithText, code: str, typed: str, opened: str = "") -> Response:
        """The same with a text that the user typed: if it goes wrong, the text is still there."""
        return self._perform(lambda: verb(self.desk, self.person, self.name, typed), code, typed, opened)

    def _perform(self, act: Callable[[], None], code: str, typed: str = "", opened: str = "") -> Response:
        try:
            act()
        except NotAllowedError:
            raise
        except UnderstudyError as problem:
            return self.page(problem=problem, status=status_of(problem), typed=typed, opened=opened)
        return back_to(self.name, code)

    def page(
        self,
        *,
        problem: UnderstudyError | None = None,
        status: int = 200,
        typed: str = "",
        opened: str = "",
    ) -> HTMLResponse:
        """The page; `opened` is the form that `typed` belongs to."""
        view = views.request(self.desk, self.person, self.name)
        return pages.render(
            self.request,
            "request_review.html" if view.reviewing else "request_owner.html",
            person=self.person,
            status=status,
            problem=problem,
            simulated=view.simulated,
            view=view,
            typed=typed,
            opened=opened,
            released=None if view.released is None else result_groups(view.released, trial=_tried(view)),
            trial=_trial(view),
            reading=wording.reading(None if view.trial is None else view.trial.reading),
            **(_for_reviewer(view) if view.reviewing else {"at_step": step_of(view.state)}),
        )


def _here(request: Request, desk: TheDesk, person: SignedIn, name: str) -> RequestPage:
    return RequestPage(request, desk, person, name)


AtRequest = Annotated[RequestPage, Depends(_here)]


def back_to(name: str, code: str) -> Response:
    """To the page, which says what was done by a code of `wording.CONFIRMATIONS`."""
    return RedirectResponse(f"/requests/{name}?done={code}", status_code=303)


@dataclass(frozen=True)
class _FilledForm:
    """The form of a request as the user sent it."""

    typed: dict[str, str]
    then: str
    """Whether to keep it as a draft or to submit it."""
    file: UploadFile | None


def _filled(
    question: Text = "",
    kind: Text = "",
    shown: Text = "",
    code: Text = "",
    then: Text = "keep",
    file: Annotated[UploadFile | None, File()] = None,
) -> _FilledForm:
    return _FilledForm({"question": question, "kind": kind, "shown": shown, "code": code}, then, file)


Filled = Annotated[_FilledForm, Depends(_filled)]


@router.get("/")
def dashboard(request: Request, desk: TheDesk, person: SignedIn) -> Response:
    """What waits for the user, then what else is open."""
    lines = views.requests(desk, person)
    waiting = [line for line in reversed(lines) if line.waits_for_me]
    rest = [line for line in lines if not line.waits_for_me]
    others = [line for line in rest if line.state not in ENDED] if person.reviews else rest
    sets = data_sets.listed(desk, person)
    return pages.render(
        request,
        "dashboard.html",
        person=person,
        simulated=bool(sets) and all(one.simulated for one in sets),
        waiting=waiting,
        others=others[:_OTHERS],
        n_more=max(0, len(others) - _OTHERS),
        notices=notices(desk, person, _NOTICES),
        questions={line.name: line.question for line in lines},
        titles={one.name: one.title for one in sets},
    )


@router.get("/requests")
def request_list(
    request: Request, desk: TheDesk, person: SignedIn, state: Annotated[str, Query()] = ""
) -> Response:
    """All requests that the user may see, by state."""
    lines = views.requests(desk, person)
    counts = Counter(line.state for line in lines)
    return pages.render(
        request,
        "requests.html",
        person=person,
        lines=[line for line in lines if not state or line.state == state],
        chosen=state if state in counts else "",
        n_all=len(lines),
        states=[(found, counts[found]) for found in sorted(counts, key=life_order)],
        titles=_titles(desk, person),
    )


@router.get("/requests/new")
def new_page(
    request: Request,
    desk: TheDesk,
    person: SignedIn,
    data: Annotated[str, Query()],
    private: Annotated[bool, Query()] = False,
) -> Response:
    """An empty form with code to start from: an analysis, or private questions."""
    start = "private.py.txt" if private else "analysis.py.txt"
    template = resources.files("understudy.desk.researcher").joinpath(start)
    typed = {"question": "", "kind": "", "shown": "", "code": template.read_text(encoding="utf-8")}
    return _form(request, desk, person, data, typed)


@router.post("/requests/new")
def create(
    request: Request,
    desk: TheDesk,
    person: SignedIn,
    data: Text,
    form: Filled,
) -> Response:
    """Make a draft, and submit it if the user wishes."""
    typed = form.typed
    try:
        typed["code"] = _uploaded(desk, person, data, form.file) or typed["code"]
        name = requests.create(desk, person, data, **typed)
    except NotAllowedError:
        raise
    except UnderstudyError as problem:
        return _form(request, desk, person, data, typed, problem=problem)
    if form.then == "submit":
        return RequestPage(request, desk, person, name).perform(requests.submit, "submitted")
    return back_to(name, "drafted")


@router.get("/requests/{name}")
def request_page(here: AtRequest) -> Response:
    """One request, for its owner or for a reviewer."""
    return here.page()


@router.get("/requests/{name}/progress")
def progress(request: Request, desk: TheDesk, person: SignedIn, name: str) -> Response:
    """How far the work is: a fragment for reviewers; empty when there is no work."""
    view = views.request(desk, person, name)
    return pages.render(
        request, "progress.html", person=person, progress=view.progress, simulated=view.simulated
    )


@router.get("/requests/{name}/edit")
def edit_page(request: Request, desk: TheDesk, person: SignedIn, name: str) -> Response:
    """The form of a draft or of a returned request."""
    view = views.request(desk, person, name)
    if "edit" not in view.actions:
        problem = UsageError(
            "this request cannot be changed now.", hint="its page says what can be done with it."
        )
        return RequestPage(request, desk, person, name).page(problem=problem, status=409)
    typed = {
        "question": view.question,
        "kind": view.kind,
        "shown": view.shown,
        "code": view.code,
    }
    return _form(request, desk, person, view.data_set, typed, name=name)


@router.post("/requests/{name}/edit")
def edit(
    request: Request,
    desk: TheDesk,
    person: SignedIn,
    name: str,
    form: Filled,
) -> Response:
    """Save changes, and submit if the user wishes."""
    typed = form.typed
    data = views.request(desk, person, name).data_set
    try:
        typed["code"] = _uploaded(desk, person, data, form.file) or typed["code"]
        requests.edit(desk, person, name, **typed)
    except NotAllowedError:
        raise
    except UnderstudyError as problem:
        return _form(request, desk, person, data, typed, name=name, problem=problem)
    if form.then == "submit":
        return RequestPage(request, desk, person, name).perform(requests.submit, "submitted")
    return back_to(name, "edited")


def _plain(verb: Verb, code: str) -> Callable[..., Response]:
    def route(here: AtRequest) -> Response:
        return here.perform(verb, code)

    return route


def _noted(verb: VerbWithText, code: str, field: str, action: str) -> Callable[..., Response]:
    def route(here: AtRequest, typed: str = Form("", alias=field)) -> Response:
        return here.perform_with_text(verb, code, typed, action)

    return route


# Every decision about a request: a form of its page, one verb of the service, and what the page says afterwards.
for _action, _verb, _code in (
    ("submit", requests.submit, "submitted"),
    ("withdraw", requests.withdraw, "withdrawn"),
    ("approve", requests.approve, "approved"),
    ("answer", private_answers.approve, "answered"),
    ("cancel", requests.cancel, "cancelled"),
    ("run-again", releases.run_again, "again"),
):
    router.post(f"/requests/{{name}}/{_action}")(_plain(_verb, _code))
for _action, _with_text, _code, _field in (
    ("return", requests.send_back, "returned", "note"),
    ("refuse", requests.refuse, "refused", "note"),
    ("release", releases.decide, "release", "reason"),
    ("withhold", releases.withhold, "withheld", "note"),
):
    router.post(f"/requests/{{name}}/{_action}")(_noted(_with_text, _code, _field, _action))


@router.post("/requests/{name}/report")
def report(here: AtRequest, precision: Annotated[float, Form()], words: Text = "") -> Response:
    """The owner compares the result with the synthetic data."""
    return here.perform_with_text(
        lambda desk, who, name, typed: feedback.report(desk, who, name, precision, typed), "reported", words
    )


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
    asked = data_sets.view(desk, person, data)
    return pages.render(
        request,
        "request_form.html",
        person=person,
        simulated=asked.simulated,
        status=200 if problem is None else status_of(problem),
        problem=problem,
        data=asked,
        typed=typed,
        name=name,
    )


def _uploaded(desk: Desk, person: Person, data: str, file: UploadFile | None) -> str:
    """The text of an uploaded file; nothing if none was chosen."""
    if file is None or not file.filename:
        return ""
    most = data_sets.view(desk, person, data).policy.most_code_bytes
    if file.size is not None and file.size > most:
        has, takes = wording.bytes_of(file.size), wording.bytes_of(most)
        raise UsageError(
            f"this file has more than the {takes} that this desk takes."
            if has == takes
            else f"this file has {has}; this desk takes {takes}.",
            hint="leave out what is not needed.",
        )
    # A byte more than allowed is enough for the check of the size to refuse it.
    content = file.file.read(most + 1)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(
            "this is not a Python file.", hint="choose the .py file with your analysis."
        ) from None


def _titles(desk: Desk, person: Person) -> dict[str, str]:
    return {one.name: one.title for one in data_sets.listed(desk, person)}


def _for_reviewer(view: RequestView) -> dict[str, Any]:
    held = view.held
    if held is None:
        nothing = ("advice", "bars", "checks", "held", "deleted_on", "held_size", "held_tables")
        return {**dict.fromkeys(nothing), "meaning": MEANING_OF_PRICE}
    waits = view.state == State.HELD
    return {
        "meaning": MEANING_OF_PRICE,
        "advice": advise(held),
        "bars": None if held.prices is None else bars(held.prices, view.policy),
        "checks": sorted(held.checks, key=lambda check: wording.severity(check.verdict)),
        "held": None
        if held.results is None
        else result_groups(
            held.results,
            trial=_tried(view),
            support=held.support,
            minimum=view.policy.minimum_learners,
        ),
        "held_size": None if held.results is None else len(held.results.numbers),
        "held_tables": 0 if held.results is None else len(held.results.tables),
        "deleted_on": held.at + timedelta(days=view.policy.retention_days) if waits else None,
    }


def _trial(view: RequestView) -> list[Group] | None:
    tried = _tried(view)
    return None if tried is None else result_groups(tried.changed(_to_look_at))


def _to_look_at(_: str, value: float) -> float:
    """Five digits are enough of what synthetic data gave; counts stay as they are."""
    return value if value.is_integer() else float(f"{value:.5g}")


def _tried(view: RequestView) -> Results | None:
    return None if view.trial is None else view.trial.results
