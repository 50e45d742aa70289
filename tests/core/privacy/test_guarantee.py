"""A guarantee says what is proved, in words and for machines, and a seeded one says nothing."""

import json

import pytest

from understudy.core.privacy.guarantee import SEEDED, Caveat, Guarantee
from understudy.errors import DataError


def test_a_guarantee_for_machines_has_rho():
    value = Guarantee(8.0, 1e-6, rho=1.05, mechanisms=("discrete Gaussian",)).to_json()
    assert (value["rho"], value["mu"], value["epsilon"], value["delta"]) == (1.05, None, 8.0, 1e-6)
    assert Guarantee.none("why").to_json()["rho"] is None
    json.dumps(value)


def test_rho_changes_no_word_of_the_statement():
    assert str(Guarantee(8.0, 1e-6, rho=1.05)) == str(Guarantee(8.0, 1e-6))


def test_seeded_noise_leaves_nothing_of_a_claim():
    left = Guarantee.seeded(Guarantee(8.0, 1e-6, rho=1.05, mu=1.0))
    assert not left.formal
    assert (left.rho, left.mu) == (None, None)
    assert str(left) == "no formal guarantee (test: the noise was seeded)"


def test_a_claim_of_nothing_keeps_its_reason():
    assert Guarantee.seeded(Guarantee.none("why")) == Guarantee.none("why")


LEFT_OUT = Caveat("left-out", "some learners were left out before")


@pytest.mark.parametrize(
    "guarantee",
    [
        Guarantee(1.0),
        Guarantee(2.5, 1e-6, mu=0.5, mechanisms=("Laplace",), rho=0.1, slack=0.01),
        Guarantee(1.0, 1e-6).with_caveats(LEFT_OUT, LEFT_OUT),
        Guarantee.none("not private"),
        Guarantee.none(""),
        Guarantee.seeded(Guarantee(1.0)),
    ],
)
def test_there_and_back(guarantee):
    content = json.loads(json.dumps(guarantee.to_json(), allow_nan=False))
    assert Guarantee.from_json(content, caveats=[LEFT_OUT]) == guarantee
    assert content["statement"] == str(guarantee)


def test_caveats_are_codes_in_the_file_and_sentences_in_the_statement():
    content = Guarantee(1.0).with_caveats(LEFT_OUT).to_json()
    assert content["caveats"] == ["left-out"]
    assert content["statement"].endswith("; some learners were left out before")
    # Before there were codes the file had the sentences.
    content["caveats"] = [LEFT_OUT.sentence]
    assert Guarantee.from_json(content, caveats=[LEFT_OUT]).caveats == (LEFT_OUT,)
    with pytest.raises(DataError, match="not known here"):
        Guarantee.from_json(content)


def test_a_file_of_before_has_the_reason_in_its_statement_only():
    content = Guarantee.seeded(Guarantee(1.0)).to_json()
    assert content.pop("reason") == SEEDED
    assert Guarantee.from_json(content).reason == SEEDED


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("formal", False),
        ("epsilon", None),
        ("epsilon", 0),
        ("epsilon", "1"),
        ("delta", 1),
        ("mu", "x"),
        ("more", 1),
    ],
)
def test_what_cannot_be_is_refused(key, value):
    with pytest.raises(DataError) as caught:
        Guarantee.from_json({**Guarantee(1.0, 1e-6).to_json(), key: value}, "a.json")
    assert "a.json" in caught.value.message
