"""Guards of routes: every route asks one of them for a person, or is in the list of public routes."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Form, Path, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from understudy.desk.domain.people import NotAllowedError, Person, Role, require_role
from understudy.desk.service import Desk, accounts, tokens
from understudy.desk.web import sessions
from understudy.errors import UnderstudyError

API = "/api/"
_READING = ("GET", "HEAD", "OPTIONS")
_bearer = HTTPBearer(
    auto_error=False, description="A token from your account's page. It can do what a researcher can."
)


class NotSignedInError(UnderstudyError):
    """The caller is not signed in; pages send to the sign-in page, the API answers 401."""

    code = "not-signed-in"


def the_desk(request: Request) -> Desk:
    """The desk that this server serves."""
    desk: Desk = request.app.state.desk
    return desk


def user_or_none(request: Request) -> Person | None:
    """The user who is signed in, if there is one: for public pages that greet them."""
    session = request.state.session
    if session is None:
        return None
    person = accounts.current(the_desk(request), session.person, session.number, session.id)
    if person is not None:
        request.state.renew = session
        request.state.person = person
    return person


def signed_in(request: Request) -> Person:
    """The user who is signed in; others are refused."""
    person = user_or_none(request)
    if person is None:
        raise NotSignedInError("this is for people with an account.", hint="sign in.")
    return person


def reviewing(person: Annotated[Person, Depends(signed_in)]) -> Person:
    """A reviewer or custodian."""
    require_role(person, Role.REVIEWER, Role.CUSTODIAN)
    return person


def custodian(person: Annotated[Person, Depends(signed_in)]) -> Person:
    """A custodian."""
    require_role(person, Role.CUSTODIAN)
    return person


def by_token(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> Person:
    """The owner of the token that a program sends. Cookies are ignored, so no other page can use a session."""
    if credentials is not None:
        person = tokens.by_token(the_desk(request), credentials.credentials)
        if person is not None:
            return person
    raise NotSignedInError(
        "this needs a token that works.",
        hint="make one on your account's page, and send it as a bearer token.",
    )


# Any of these in a route's dependencies makes it guarded.
GUARDS = (signed_in, reviewing, custodian, by_token)

Text = Annotated[str, Form()]
Id = Annotated[int, Path(ge=1, lt=2**31)]
TheDesk = Annotated[Desk, Depends(the_desk)]
SignedIn = Annotated[Person, Depends(signed_in)]
Reviewing = Annotated[Person, Depends(reviewing)]
Custodian = Annotated[Person, Depends(custodian)]
ByToken = Annotated[Person, Depends(by_token)]


def local_address(address: str) -> str:
    """Where to go next, if it is on this desk; otherwise the start page."""
    plain = address.startswith("/") and not address.startswith("//") and "\\" not in address
    return address if plain and address.isprintable() and not address.startswith("/sign-") else "/"


async def from_our_own_page(request: Request) -> None:
    """Whether what changes something comes from a form of this desk, made for this session.

    For the whole app. The API is left out: it takes no cookies, so another page has nothing to borrow.
    """
    if request.method in _READING or request.url.path.startswith(API):
        return
    form = await request.form()
    if not _same_place(request) or not sessions.token_is_right(request, form.get("csrf")):
        raise NotAllowedError(
            "this form is not from this session: it may have been open for too long.",
            hint="go back, load the page again, and send it once more. Nothing was changed.",
        )


def _same_place(request: Request) -> bool:
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    # `null` is what browsers send under a strict referrer policy: the token decides alone.
    if origin is None or origin == "null":
        return True
    ours = urlsplit(the_desk(request).settings.address)
    theirs = urlsplit(origin)
    return theirs.netloc == request.headers.get("host") or (theirs.scheme, theirs.netloc) == (
        ours.scheme,
        ours.netloc,
    )
