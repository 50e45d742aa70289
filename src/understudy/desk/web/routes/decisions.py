"""Every decision about a request: a form of its page, one verb of the service, and back to the page."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Response

from understudy.desk.service import feedback, releases, requests
from understudy.desk.web.routes.request_page import AtRequest

router = APIRouter(prefix="/requests/{name}", include_in_schema=False)

Text = Annotated[str, Form()]


@router.post("/submit")
def submit(here: AtRequest) -> Response:
    """Hand a draft in."""
    return here.after(requests.submit, "submitted")


@router.post("/withdraw")
def withdraw(here: AtRequest) -> Response:
    """Take a request back."""
    return here.after(requests.withdraw, "withdrawn")


@router.post("/approve")
def approve(here: AtRequest) -> Response:
    """Let the code run on the real data."""
    return here.after(requests.approve, "approved")


@router.post("/return")
def send_back(here: AtRequest, note: Text = "") -> Response:
    """Return a request with a note."""
    return here.after_words(requests.send_back, "returned", note, "return")


@router.post("/refuse")
def refuse(here: AtRequest, note: Text = "") -> Response:
    """Refuse a request with a note."""
    return here.after_words(requests.refuse, "refused", note, "refuse")


@router.post("/cancel")
def cancel(here: AtRequest) -> Response:
    """Stop a run."""
    return here.after(requests.cancel, "cancelled")


@router.post("/release")
def release(here: AtRequest, reason: Text = "") -> Response:
    """Decide that a held output leaves."""
    return here.after_words(releases.decide, "release", reason, "release")


@router.post("/withhold")
def withhold(here: AtRequest, note: Text = "") -> Response:
    """Close a request without a result."""
    return here.after_words(releases.withhold, "withheld", note, "withhold")


@router.post("/run-again")
def run_again(here: AtRequest) -> Response:
    """Run and price the same code anew."""
    return here.after(releases.run_again, "again")


@router.post("/report")
def report(here: AtRequest, precision: Annotated[float, Form()], words: Text = "") -> Response:
    """The owner compares the result with the synthetic data."""
    return here.after_words(
        lambda desk, who, name, typed: feedback.report(desk, who, name, precision, typed), "reported", words
    )
