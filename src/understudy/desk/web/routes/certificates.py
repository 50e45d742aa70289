"""Certificates, for anybody who has their number: a page to read or print, and the signed JSON."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request, Response

from understudy.desk.domain import certificate
from understudy.desk.domain.results import Results
from understudy.desk.service import views
from understudy.desk.service.desk import Desk
from understudy.desk.web import pages
from understudy.desk.web.guards import TheDesk, somebody
from understudy.desk.web.result_view import shown
from understudy.errors import DataError, UsageError

router = APIRouter(include_in_schema=False)


@router.get("/certificates/{number}.json")
def certificate_file(desk: TheDesk, number: str) -> Response:
    """The certificate as it was signed."""
    content = json.dumps(_found(desk, number), ensure_ascii=False, indent=2)
    headers = {"content-disposition": 'attachment; filename="certificate.json"'}
    return Response(content, media_type="application/json", headers=headers)


@router.get("/certificates/{number}")
def certificate_page(request: Request, desk: TheDesk, number: str) -> Response:
    """The certificate to read, with whether it is as the desk signed it."""
    document = _found(desk, number)
    try:
        certificate.verify(document, certificate.public_key(desk.settings.secret))
        genuine = True
    except DataError:
        genuine = False
    return pages.render(
        request,
        "certificate.html",
        person=somebody(request),
        simulated=bool(document["simulated"]),
        document=document,
        genuine=genuine,
        result=[] if document["result"] is None else shown(Results.from_json(document["result"])),
    )


def _found(desk: Desk, number: str) -> dict[str, Any]:
    document = views.certificate(desk, number)
    if document is None:
        raise UsageError("there is no such certificate.", hint="check the number, letter by letter.")
    return document
