"""Pages of data sets, figures of what requests cost, and certificates of what was released."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import FileResponse

from understudy.core.pages.figures import Figure
from understudy.desk.domain import certificate
from understudy.desk.domain.certificate import MEANING_OF_PRICE
from understudy.desk.domain.people import NotFoundError
from understudy.desk.domain.results import Results
from understudy.desk.service import data_sets, private_answers, views
from understudy.desk.service.views import Priced, PricedRequest
from understudy.desk.web import pages, price_figures, wording
from understudy.desk.web.guards import Reviewing, SignedIn, TheDesk, user_or_none
from understudy.desk.web.result_view import result_groups
from understudy.errors import DataError

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Kind:
    """One of the figures: its title, what a reader should know, and how it is drawn."""

    title: str
    caption: str
    draw: Callable[[str, tuple[PricedRequest, ...], float | None], Figure]


FIGURES = {
    "5": Kind(
        "mu by request",
        "mu of everything released so far, at each request, with its 95 % interval. The published formula stands "
        "beside it and is no bound.",
        lambda title, priced, stage_one: price_figures.mu_by_request({title: priced}, stage_one),
    ),
    "6": Kind(
        "Advantage by request",
        "How much better than by chance an attacker guesses whether the worst-placed learner is in the data.",
        lambda title, priced, stage_one: price_figures.advantage_by_request({title: priced}),
    ),
    "7": Kind(
        "Advantage by kind of analysis",
        "Each request alone. Methods that react to single learners cost more.",
        lambda title, priced, stage_one: price_figures.advantage_by("kind", priced),
    ),
    "7-researchers": Kind(
        "Advantage by researcher",
        "The same requests by who asked.",
        lambda title, priced, stage_one: price_figures.advantage_by("researcher", priced),
    ),
    "8": Kind(
        "Size, precision and price",
        "Whether long answers cost more, and whether what costs more was worth it. Epistemic precision: how much of "
        "what the synthetic data showed was so on the real data (0 none, 0.5 some, 1 most), as researchers reported.",
        lambda title, priced, stage_one: price_figures.pairs(priced),
    ),
}


@router.get("/data")
def data_list(request: Request, desk: TheDesk, person: SignedIn) -> Response:
    """All data sets."""
    return pages.render(request, "data_list.html", person=person, sets=data_sets.listed(desk, person))


@router.get("/data/{name}")
def data_page(request: Request, desk: TheDesk, person: SignedIn, name: str) -> Response:
    """One data set, its policy in plain words."""
    data = data_sets.view(desk, person, name)
    return pages.render(
        request,
        "data.html",
        person=person,
        simulated=data.simulated,
        address=desk.settings.address.rstrip("/"),
        data=data,
        policy=wording.policy_lines(data.policy, private_answers.spent(desk, name)),
        meaning=MEANING_OF_PRICE,
        n_released=views.n_released_numbers(desk, person, name) if person.reviews else 0,
    )


@router.get("/data/{name}/synthetic")
def synthetic(desk: TheDesk, person: SignedIn, name: str) -> Response:
    """The synthetic table: the only file of a data set that is served."""
    path = data_sets.synthetic_file(desk, person, name)
    # Its name on this machine stays private.
    return FileResponse(path, filename=f"synthetic-{name}{path.suffix.lower()}")


@router.get("/data/{name}/schema.json")
def schema(desk: TheDesk, person: SignedIn, name: str) -> Response:
    """The public schema, for private questions at home."""
    data = data_sets.view(desk, person, name)
    if data.schema is None:
        raise NotFoundError("this data set has no public schema.", hint="ask its custodian to declare one.")
    headers = {"content-disposition": f'attachment; filename="schema-{name}.json"'}
    content = json.dumps(data.schema.to_json(), ensure_ascii=False, indent=2)
    return Response(content, media_type="application/json", headers=headers)


@router.get("/figures/{name}")
def figures_page(request: Request, desk: TheDesk, person: Reviewing, name: str) -> Response:
    """Figures 5 to 8 of Ito et al. (2026) for one data set."""
    data = data_sets.view(desk, person, name)
    priced = views.priced(desk, person, name)
    drawn = []
    if priced.requests:
        for key, kind in FIGURES.items():
            figure = _drawn(key, data.title, priced)
            drawn.append(
                {
                    "key": key,
                    "title": kind.title,
                    "caption": kind.caption,
                    "description": figure.description,
                }
            )
    return pages.render(
        request,
        "figures.html",
        person=person,
        simulated=data.simulated,
        data=data,
        drawn=drawn,
        n_requests=len(priced.requests),
        own=priced.n_own,
        n_releasing=priced.n_releasing,
        meaning=MEANING_OF_PRICE,
    )


@router.get("/figures/{name}/{key}.svg")
def figure(
    desk: TheDesk, person: Reviewing, name: str, key: str, narrow: Annotated[bool, Query()] = False
) -> Response:
    """One figure, also as narrow as a telephone."""
    if key not in FIGURES:
        raise NotFoundError("there is no such figure.", hint=f"known are: {', '.join(FIGURES)}.")
    data = data_sets.view(desk, person, name)
    priced = views.priced(desk, person, name)
    return Response(_svg(key, data.title, priced, narrow), media_type="image/svg+xml")


# Drawing takes a second, and prices change only with a release.
@lru_cache(maxsize=32)
def _drawn(key: str, title: str, priced: Priced) -> Figure:
    return FIGURES[key].draw(title, priced.requests, priced.stage_one_mu)


@lru_cache(maxsize=64)
def _svg(key: str, title: str, priced: Priced, narrow: bool) -> str:
    figure = _drawn(key, title, priced)
    return figure.narrow_svg() if narrow else figure.svg()


@router.get("/certificates/{number}.json")
def certificate_file(desk: TheDesk, number: str) -> Response:
    """The certificate as it was signed."""
    content = json.dumps(views.certificate(desk, number), ensure_ascii=False, indent=2)
    headers = {"content-disposition": 'attachment; filename="certificate.json"'}
    return Response(content, media_type="application/json", headers=headers)


@router.get("/certificates/{number}")
def certificate_page(request: Request, desk: TheDesk, number: str) -> Response:
    """The certificate to read, with whether it is as the desk signed it."""
    document = views.certificate(desk, number)
    try:
        certificate.verify(document, certificate.public_key(desk.settings.secret))
        genuine = True
    except DataError:
        genuine = False
    return pages.render(
        request,
        "certificate.html",
        person=user_or_none(request),
        simulated=bool(document["simulated"]),
        document=document,
        genuine=genuine,
        private="guarantee" in document,
        result=[] if document["result"] is None else result_groups(Results.from_json(document["result"])),
    )
