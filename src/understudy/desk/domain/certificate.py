"""The certificate of a released result: what was asked, what came out, what was checked, and what it cost.

The desk signs it, so that a reader of a paper can verify it later, with the desk's key or on its page.
"""

from __future__ import annotations

import hmac
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

import understudy
from understudy.errors import DataError

FORMAT = "understudy certificate"
VERSION = 1
# Of a certificate with a guarantee in place of checks and measured prices.
PRIVATE_VERSION = 2
# For pages and certificates, wherever a price is shown.
MEANING_OF_PRICE = (
    "a measured lower bound against an attacker who does not know the other learners; not a guarantee, and it does "
    "not cover reconstruction of properties of the data set"
)
NOT_COVERED = (
    "The price does not cover reconstruction of properties of the data set, and nothing here is a guarantee of "
    "differential privacy."
)
OTHERS = (
    "There are other releases about these learners that the price does not cover, such as synthetic data: what all "
    "tell together was not measured."
)
NO_OTHERS = "The desk's ledger knows no other release about these learners that the price does not cover."
WHAT_IS_PUBLIC = (
    "Public, and covered by no guarantee: how many learners there are, the names, bounds and categories of the "
    "columns, and the questions."
)
ONE_OF_MANY = (
    "The guarantee is of these answers alone. What is released about the same learners adds up, and the desk's ledger "
    "keeps the sum."
)


@dataclass(frozen=True, repr=False)
class ReleaseFacts:
    """What a certificate states about a release."""

    certificate: str
    """Its number."""
    desk: str
    """Title of the desk."""
    question: str
    kind: str
    code: str
    code_hash: str
    environment: Mapping[str, str]
    data_set: str
    data_set_title: str
    simulated: bool
    result: Mapping[str, Any] | None
    """As it left: `Results.to_json`."""
    checks: Sequence[Mapping[str, Any]]
    """`Check.to_json` of each."""
    prices: Mapping[str, Any] | None
    """`Prices.to_json`."""
    other_releases: bool
    """Whether there are releases about these learners that the price does not cover."""
    released_on: date | None
    private: Mapping[str, Any] | None = None
    """Of answers to private questions: the questions, the guarantee and how many learners there are."""


def document(facts: ReleaseFacts, secret: str) -> dict[str, Any]:
    """The certificate of a release, signed with a key that is derived from the desk's secret.

    It leaves the institution: it gives the verdicts of the checks without their reasons, which depend on the data, and
    prices rounded up to one digit, since they depend on the data as well. Answers to private questions have neither:
    what is proved about them is stated in their place.
    """
    content = {
        "format": FORMAT,
        "version": VERSION if facts.private is None else PRIVATE_VERSION,
        "certificate": facts.certificate,
        "desk": facts.desk,
        "question": facts.question,
        "kind": facts.kind,
        "code_hash": facts.code_hash,
        "code": facts.code,
        "environment": facts.environment,
        "data_set": facts.data_set,
        "data_set_title": facts.data_set_title,
        "simulated": facts.simulated,
        "result": facts.result,
        **(_measured(facts) if facts.private is None else _proved(facts.private)),
        "released_on": None if facts.released_on is None else facts.released_on.isoformat(),
        "made_with": f"Understudy {understudy.__version__}",
    }
    key = _key(secret)
    return {
        **content,
        "key": key.public_key().public_bytes_raw().hex(),
        "signature": key.sign(_bytes(content)).hex(),
    }


def _measured(facts: ReleaseFacts) -> dict[str, Any]:
    """How an answer of a researcher's code was checked, and what it was measured to cost."""
    prices = facts.prices or {}
    return {
        "n_learners": prices["own"]["n_learners"] if prices else None,
        "checks": [{"name": check["name"], "verdict": check["verdict"]} for check in facts.checks],
        "released_against_a_check": any(check["verdict"] == "fail" for check in facts.checks),
        "price": _price(prices),
        "other_releases": {
            "exist": facts.other_releases,
            "meaning": OTHERS if facts.other_releases else NO_OTHERS,
        },
        "not_covered": NOT_COVERED,
    }


def _proved(private: Mapping[str, Any]) -> dict[str, Any]:
    """What is proved about the answers to private questions."""
    return {
        "n_learners": private["n_learners"],
        "questions": private["sentences"],
        "answers": private["answers"],
        "guarantee": private["guarantee"],
        "public": WHAT_IS_PUBLIC,
        "together": ONE_OF_MANY,
    }


def verify(content: dict[str, Any], key: str | None = None) -> None:
    """Raise unless the certificate is as the desk with this key signed it (its own key, if none is given).

    Its own key shows only that it was not changed by accident: anyone can sign with a key of their own.
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


def agrees(content: Mapping[str, Any], facts: ReleaseFacts) -> bool:
    """Whether a certificate has the number, the result and the code that its release has."""
    names = ("certificate", "result", "code_hash", "code")
    return _bytes({name: content.get(name) for name in names}) == _bytes(
        {name: getattr(facts, name) for name in names}
    )


def public_key(secret: str) -> str:
    """The key with which anyone can verify the desk's certificates."""
    return _key(secret).public_key().public_bytes_raw().hex()


def _key(secret: str) -> Ed25519PrivateKey:
    seed = hmac.digest(bytes.fromhex(secret), b"certificates", "sha256")
    return Ed25519PrivateKey.from_private_bytes(seed)


def _bytes(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def _price(prices: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "meaning": MEANING_OF_PRICE,
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
