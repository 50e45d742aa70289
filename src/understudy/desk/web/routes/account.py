"""Pages for signing in and out, and of the user's own account."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from xml.etree import ElementTree

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import RedirectResponse

from understudy.desk.domain.people import NotFoundError, Person
from understudy.desk.service import Desk, accounts, tokens
from understudy.desk.service.notices import notices
from understudy.desk.web import pages, sessions
from understudy.desk.web.guards import Id, SignedIn, Text, TheDesk, local_address, user_or_none
from understudy.desk.web.limits import client_address
from understudy.desk.web.problems import headers_of, status_of
from understudy.errors import UnderstudyError, UsageError

router = APIRouter(include_in_schema=False)


@router.get("/health")
def health(desk: TheDesk) -> dict[str, str]:
    """Whether the desk and its database answer."""
    desk.database.ping()
    return {"status": "well"}


@router.get("/sign-in")
def sign_in_page(request: Request, desk: TheDesk, next: Annotated[str, Query()] = "/") -> Response:
    """The sign-in page."""
    if user_or_none(request) is not None:
        return RedirectResponse(local_address(next), status_code=303)
    return _sign_in_page(request, desk, next)


@router.post("/sign-in")
def sign_in(
    request: Request,
    desk: TheDesk,
    email: Text = "",
    password: Text = "",
    next: Text = "/",
) -> Response:
    """Sign in by e-mail address and password."""
    try:
        request.app.state.sign_in_rate.check(client_address(request))
        signed_in = accounts.sign_in(desk, email, password, client_address(request))
    except UnderstudyError as error:
        return _sign_in_page(request, desk, next, email=email, problem=error)
    response = RedirectResponse(local_address(next), status_code=303)
    sessions.begin(request, response, signed_in)
    return response


@router.post("/sign-out")
def sign_out(request: Request, desk: TheDesk, person: SignedIn) -> Response:
    """Sign out."""
    accounts.sign_out(desk, person, request.state.session.id)
    response = RedirectResponse("/sign-in?done=signed-out", status_code=303)
    sessions.end(request, response)
    return response


@router.get("/invitation/{secret}")
def invitation_page(request: Request, desk: TheDesk, secret: str) -> Response:
    """The page on which an invited person sets a password."""
    invited, email = accounts.invited(desk, secret)
    return pages.render(request, "invitation.html", invited=invited, email=email)


@router.post("/invitation/{secret}")
def accept(request: Request, desk: TheDesk, secret: str, password: Text = "", again: Text = "") -> Response:
    """Set the password."""
    invited, email = accounts.invited(desk, secret)
    try:
        if password != again:
            raise UsageError("the two passwords are not the same.", hint="write it twice.")
        accounts.accept(desk, secret, password)
    except UnderstudyError as error:
        return pages.render(
            request, "invitation.html", status=status_of(error), problem=error, invited=invited, email=email
        )
    response = RedirectResponse("/sign-in?done=password", status_code=303)
    sessions.end(request, response)
    return response


@router.get("/account")
def account_page(request: Request, desk: TheDesk, person: SignedIn) -> Response:
    """The user's own account."""
    shown = sessions.shown_once(request, "account")
    response = _account_page(request, desk, person, token=shown.get("token", ""), feed=shown.get("feed", ""))
    if shown:
        sessions.forget_shown(request, response)
    return response


@router.post("/account/password")
def change_password(
    request: Request,
    desk: TheDesk,
    person: SignedIn,
    old: Text = "",
    password: Text = "",
    again: Text = "",
) -> Response:
    """A new password; sessions elsewhere end."""
    try:
        if password != again:
            raise UsageError("the two new passwords are not the same.", hint="write it twice.")
        number = accounts.change_password(desk, person, old, password, client_address(request))
    except UnderstudyError as error:
        return _account_page(request, desk, person, problem=error)
    response = RedirectResponse("/account?done=password", status_code=303)
    sessions.carry_on(request, response, number)
    return response


@router.post("/account/sign-out-everywhere")
def sign_out_everywhere(request: Request, desk: TheDesk, person: SignedIn) -> Response:
    """End all sessions, this one too."""
    accounts.sign_out_everywhere(desk, person)
    response = RedirectResponse("/sign-in?done=signed-out", status_code=303)
    sessions.end(request, response)
    return response


@router.post("/account/tokens")
def make_token(request: Request, desk: TheDesk, person: SignedIn, name: Text = "") -> Response:
    """A new token, shown on the page that follows and never again."""
    try:
        token = tokens.make_token(desk, person, name)
    except UnderstudyError as error:
        return _account_page(request, desk, person, problem=error)
    return _shown_next(request, token=token)


@router.post("/account/tokens/{token_id}/revoke")
def revoke_token(desk: TheDesk, person: SignedIn, token_id: Id) -> Response:
    """Revoke a token."""
    tokens.revoke_token(desk, person, token_id)
    return RedirectResponse("/account?done=revoked", status_code=303)


@router.post("/account/feed")
def make_feed(request: Request, desk: TheDesk, person: SignedIn) -> Response:
    """A new address for the user's feed, shown on the page that follows and never again."""
    secret = tokens.feed_address(desk, person)
    address = f"{desk.settings.address.rstrip('/')}/feed/{secret}.xml"
    return _shown_next(request, feed=address)


@router.get("/feed/{secret}.xml")
def feed(desk: TheDesk, secret: str) -> Response:
    """What waits for a user, for a feed reader."""
    person = tokens.by_feed(desk, secret)
    if person is None:
        raise NotFoundError("there is no such feed.", hint="make a new address on your account's page.")
    return Response(_atom(desk, person), media_type="application/atom+xml")


def _sign_in_page(
    request: Request, desk: Desk, next: str, email: str = "", problem: UnderstudyError | None = None
) -> Response:
    single = desk.settings.single_sign_on
    response = pages.render(
        request,
        "sign_in.html",
        status=200 if problem is None else status_of(problem),
        problem=problem,
        email=email[:254],
        next=local_address(next),
        single_sign_on=single.name if single.issuer else "",
    )
    if problem is not None:
        response.headers.update(headers_of(problem))
    return response


def _shown_next(request: Request, **content: str) -> Response:
    response = RedirectResponse("/account", status_code=303)
    sessions.show_once(request, response, "account", **content)
    return response


def _account_page(
    request: Request,
    desk: Desk,
    person: Person,
    problem: UnderstudyError | None = None,
    token: str = "",
    feed: str = "",
) -> Response:
    return pages.render(
        request,
        "account.html",
        person=person,
        status=200 if problem is None else status_of(problem),
        problem=problem,
        account=accounts.own_account(desk, person),
        tokens=tokens.list_tokens(desk, person),
        token=token,
        feed=feed,
    )


def _atom(desk: Desk, person: Person) -> bytes:
    address = desk.settings.address.rstrip("/")
    root = ElementTree.Element("feed", xmlns="http://www.w3.org/2005/Atom")

    def add(
        parent: ElementTree.Element, name: str, words: str = "", **attributes: str
    ) -> ElementTree.Element:
        element = ElementTree.SubElement(parent, name, attributes)
        element.text = words or None
        return element

    def on_day(at: datetime) -> str:
        # As on the pages: when something ended may depend on how long it ran.
        return f"{at.date().isoformat()}T00:00:00Z"

    found = notices(desk, person)
    newest = found[0].at if found else accounts.own_account(desk, person).made_at
    add(root, "title", desk.settings.title)
    add(root, "id", f"{address}/")
    add(root, "link", href=f"{address}/")
    add(root, "updated", on_day(newest))
    add(add(root, "author"), "name", desk.settings.title)
    for notice in found:
        entry = add(root, "entry")
        link = f"{address}/requests/{notice.request}" if notice.request else f"{address}/"
        add(entry, "title", notice.words)
        add(
            entry,
            "id",
            f"{link}#{desk.settings.keyed('notice', f'{person.id} {notice.at.isoformat()}')[:16]}",
        )
        add(entry, "link", href=link)
        add(entry, "updated", on_day(notice.at))
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written
