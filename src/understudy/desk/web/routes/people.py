"""People of the desk, for its custodians: inviting, roles, closing accounts, new links."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from understudy.desk.domain.people import Person, Role
from understudy.desk.service import Desk, accounts
from understudy.desk.web import pages, sessions
from understudy.desk.web.guards import Custodian, Id, Text, TheDesk
from understudy.desk.web.problems import status_of
from understudy.errors import UnderstudyError, UsageError

router = APIRouter(include_in_schema=False)

_CHANGED = "/people?done=changed"


@router.get("/people")
def people_page(request: Request, desk: TheDesk, person: Custodian) -> Response:
    """All accounts."""
    shown = sessions.shown_once(request, "people")
    response = _page(request, desk, person, link=shown.get("link", ""), whose=shown.get("whose", ""))
    if shown:
        sessions.forget_shown(request, response)
    return response


@router.post("/people/invite")
def invite(
    request: Request,
    desk: TheDesk,
    person: Custodian,
    email: Text = "",
    name: Text = "",
    role: Text = "",
) -> Response:
    """A new account; the link is shown on the page that follows and never again."""
    try:
        secret = accounts.invite(desk, person, email, name, _role(role))
    except UnderstudyError as error:
        return _page(request, desk, person, problem=error, email=email, name=name)
    return _shown_next(request, desk, secret, name)


@router.post("/people/{person_id}/link")
def reset(request: Request, desk: TheDesk, person: Custodian, person_id: Id) -> Response:
    """A new link with which a user sets a password."""
    secret = accounts.reset(desk, person, person_id)
    whose = next(one.name for one in accounts.people(desk, person) if one.id == person_id)
    return _shown_next(request, desk, secret, whose)


@router.post("/people/{person_id}/role")
def set_role(desk: TheDesk, person: Custodian, person_id: Id, role: Text = "") -> Response:
    """The role of a user."""
    accounts.set_role(desk, person, person_id, _role(role))
    return RedirectResponse(_CHANGED, status_code=303)


@router.post("/people/{person_id}/close")
def close(desk: TheDesk, person: Custodian, person_id: Id) -> Response:
    """Close an account."""
    accounts.deactivate(desk, person, person_id)
    return RedirectResponse(f"/people?closed={person_id}", status_code=303)


@router.post("/people/{person_id}/open")
def open_again(desk: TheDesk, person: Custodian, person_id: Id) -> Response:
    """Open a closed account again."""
    accounts.reactivate(desk, person, person_id)
    return RedirectResponse(_CHANGED, status_code=303)


def _role(text: str) -> Role:
    try:
        return Role(text)
    except ValueError:
        raise UsageError(
            "no role was chosen.", hint=f"choose one of: {', '.join(role.value for role in Role)}."
        ) from None


def _link(desk: Desk, secret: str) -> str:
    return f"{desk.settings.address.rstrip('/')}/invitation/{secret}"


def _shown_next(request: Request, desk: Desk, secret: str, whose: str) -> Response:
    response = RedirectResponse("/people", status_code=303)
    sessions.show_once(request, response, "people", link=_link(desk, secret), whose=" ".join(whose.split()))
    return response


def _page(
    request: Request,
    desk: Desk,
    person: Person,
    problem: UnderstudyError | None = None,
    link: str = "",
    whose: str = "",
    email: str = "",
    name: str = "",
) -> Response:
    people = accounts.people(desk, person)
    closed = request.query_params.get("closed", "")
    said = [
        f"{one.name}'s account is closed. “Open again” lets them in again."
        for one in people
        if str(one.id) == closed and not one.active
    ]
    return pages.render(
        request,
        "people.html",
        person=person,
        done=said[0] if said else "",
        status=200 if problem is None else status_of(problem),
        problem=problem,
        people=people,
        roles=[role.value for role in Role],
        link=link,
        whose=whose,
        email=email[:254],
        name=name[:100],
    )
