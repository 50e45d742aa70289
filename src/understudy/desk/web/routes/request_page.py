"""The page of one request, for its owner or for who reviews it, and the way back to it after something was done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Concatenate, ParamSpec

from fastapi import Depends, Request, Response
from starlette.responses import HTMLResponse, RedirectResponse

from understudy.desk.domain.certificate import MEANING_OF_PRICE
from understudy.desk.domain.people import NotAllowedError, Person
from understudy.desk.domain.results import Results
from understudy.desk.domain.states import State
from understudy.desk.service import views
from understudy.desk.service.desk import Desk
from understudy.desk.service.views import Line, RequestView
from understudy.desk.web import pages, wording
from understudy.desk.web.advice import advise, bars
from understudy.desk.web.guards import SignedIn, TheDesk
from understudy.desk.web.problems import status_of
from understudy.desk.web.result_view import Group, shown
from understudy.errors import UnderstudyError

Given = ParamSpec("Given")
Verb = Callable[Concatenate[Desk, Person, str, Given], None]


@dataclass(frozen=True)
class Here:
    """Somebody at the page of a request."""

    request: Request
    desk: Desk
    person: Person
    name: str

    def after(self, verb: Verb[[]], code: str) -> Response:
        """Do it and go back to the page; or show the page with what went wrong."""
        return self._after(lambda: verb(self.desk, self.person, self.name), code)

    def after_words(self, verb: Verb[[str]], code: str, typed: str, opened: str = "") -> Response:
        """The same with words that somebody typed: if it goes wrong, they are still there."""
        return self._after(lambda: verb(self.desk, self.person, self.name, typed), code, typed, opened)

    def _after(self, act: Callable[[], None], code: str, typed: str = "", opened: str = "") -> Response:
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
        owner = view.line.mine or not self.person.reviews
        return pages.render(
            self.request,
            "request_owner.html" if owner else "request_review.html",
            person=self.person,
            status=status,
            problem=problem,
            simulated=view.simulated,
            view=view,
            typed=typed,
            opened=opened,
            released=None if view.released is None else shown(view.released, trial=_tried(view)),
            trial=_trial(view),
            reading=wording.reading(None if view.trial is None else view.trial.reading),
            **(_of_owner(view.line) if owner else _of_reviewer(view)),
        )


def _here(request: Request, desk: TheDesk, person: SignedIn, name: str) -> Here:
    return Here(request, desk, person, name)


AtRequest = Annotated[Here, Depends(_here)]


def back_to(name: str, code: str) -> Response:
    """To the page, which says what was done by a code of `wording.DONE`."""
    return RedirectResponse(f"/requests/{name}?done={code}", status_code=303)


def _of_owner(line: Line) -> dict[str, Any]:
    return {"at_step": wording.step(line.state)}


def _of_reviewer(view: RequestView) -> dict[str, Any]:
    held = view.held
    if held is None:
        nothing = ("advice", "bars", "checks", "held", "deleted_on", "held_size", "held_tables")
        return {**dict.fromkeys(nothing), "meaning": MEANING_OF_PRICE}
    waits = view.line.state == State.HELD
    return {
        "meaning": MEANING_OF_PRICE,
        "advice": advise(held),
        "bars": None if held.prices is None else bars(held.prices, view.policy),
        "checks": sorted(held.checks, key=lambda check: wording.in_order(check.verdict)),
        "held": None
        if held.results is None
        else shown(
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
    return None if tried is None else shown(tried.changed(_to_look_at))


def _to_look_at(_: str, value: float) -> float:
    """Five digits are enough of what synthetic data gave; counts stay as they are."""
    return value if value.is_integer() else float(f"{value:.5g}")


def _tried(view: RequestView) -> Results | None:
    return None if view.trial is None else view.trial.results
