"""A guarantee says what is proved, in words and for machines, and a seeded one says nothing."""

import json

from understudy.core.privacy.guarantee import Guarantee


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
