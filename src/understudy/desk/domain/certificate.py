"""The certificate of a released result: what was asked, what came out, what was checked, and what it cost.

It is signed by the desk, so that a reader of a paper can verify it later, with the desk's key or on its page.
"""

from __future__ import annotations

import hmac
import json
import math
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

import understudy
from understudy.desk.risk.game import MEANING
from understudy.desk.store.settings import Settings
from understudy.desk.store.tables import ReleaseRow, RequestRow
from understudy.errors import DataError

FORMAT = "understudy certificate"
VERSION = 1
NOT_COVERED = (
    "The price does not cover reconstruction of properties of the data set, and nothing here is a guarantee of "
    "differential privacy."
)


OTHERS = (
    "There are other releases about these learners that the price does not cover, such as synthetic data: what all "
    "tell together was not measured."
)
NO_OTHERS = "The desk's ledger knows no other release about these learners that the price does not cover."


def document(settings: Settings, row: RequestRow, release: ReleaseRow, *, others: bool) -> dict[str, Any]:
    """The certificate of a release, signed. `others`: whether there are releases that its price does not cover.

    It leaves the house: of the checks it gives the verdicts without their reasons, which depend on the data, and
    prices rounded up to one digit, since they depend on the data as well.
    """
    run = release.run
    prices = run.prices or {}
    content = {
        "format": FORMAT,
        "version": VERSION,
        "certificate": release.certificate,
        "desk": settings.title,
        "question": row.question,
        "kind": row.kind,
        "code_hash": run.code_hash,
        "code": row.code,
        "environment": run.environment,
        "data_set": row.data_set.name,
        "data_set_title": row.data_set.title,
        "simulated": row.data_set.simulated,
        "n_learners": prices["own"]["n_learners"] if prices else None,
        "result": run.results,
        "checks": [{"name": check["name"], "verdict": check["verdict"]} for check in run.checks],
        "released_against_a_check": any(check["verdict"] == "fail" for check in run.checks),
        "price": _price(prices),
        "other_releases": {"exist": others, "meaning": OTHERS if others else NO_OTHERS},
        "not_covered": NOT_COVERED,
        "released_on": None if release.released_at is None else release.released_at.date().isoformat(),
        "made_with": f"Understudy {understudy.__version__}",
    }
    key = _key(settings)
    return {
        **content,
        "key": key.public_key().public_bytes_raw().hex(),
        "signature": key.sign(_bytes(content)).hex(),
    }


def verify(content: dict[str, Any], key: str | None = None) -> None:
    """Raise unless the certificate is as the desk with this key signed it (its own key, if none is given).

    With its own key, only that nobody changed it by accident is shown: anybody can sign with a key of their own.
    """
    try:
        if content["format"] != FORMAT:
            raise KeyError
        stated = str(content["key"])
        signature = bytes.fromhex(content["signature"])
        signed = {name: value for name, value in content.items() if name not in ("key", "signature")}
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key or stated)).verify(signature, _bytes(signed))
    except (KeyError, ValueError, TypeError, AttributeError):
        raise DataError(
            "this is not a certificate of a desk.", hint="give the json file of a released result."
        ) from None
    except InvalidSignature:
        raise DataError(
            "the certificate was changed after it was signed, or another desk signed it.",
            hint="ask the desk for it: its page shows the certificate by its number.",
        ) from None


def same_as_stored(content: dict[str, Any], release: ReleaseRow) -> bool:
    """Whether a certificate says what the store says about its release."""
    stored = {
        "certificate": release.certificate,
        "result": release.run.results,
        "code_hash": release.run.code_hash,
        "code": release.request.code,
    }
    return _bytes({name: content.get(name) for name in stored}) == _bytes(stored)


def public_key(settings: Settings) -> str:
    """By which anybody can verify the desk's certificates."""
    return _key(settings).public_key().public_bytes_raw().hex()


def _key(settings: Settings) -> Ed25519PrivateKey:
    seed = hmac.digest(bytes.fromhex(settings.secret), b"certificates", "sha256")
    return Ed25519PrivateKey.from_private_bytes(seed)


def _bytes(content: dict[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def _price(prices: dict[str, Any]) -> dict[str, Any]:
    return {
        "meaning": MEANING,
        "rounded": "up to one digit",
        # The private summary that the synthetic data was made from.
        "includes_stage_one": bool(prices) and prices["published"]["stage_one_mu"] is not None,
        **{
            # Not "at most": a stronger attacker than those who were tried may do better.
            name: {
                "mu_measured_up_to": _up(prices[part]["mu"]["high"]),
                "advantage_measured_up_to": _up(prices[part]["advantage"]["high"]),
            }
            for name, part in (("this_answer", "own"), ("everything_released", "together"))
            if part in prices
        },
    }


def _up(value: float) -> float:
    return math.ceil(round(value, 9) * 10) / 10
