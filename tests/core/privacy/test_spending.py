"""Spending: what is charged, and what stays charged when a release fails."""

import numpy as np
import pytest

from understudy.core.files.origin import Origin
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import seeded_noise
from understudy.core.privacy.spending import Account, Spending, SpentError


@pytest.mark.parametrize(("error", "spent"), [(SpentError, 2.0), (ValueError, 0.0)])
def test_a_noisy_result_that_cannot_be_used_stays_charged(tmp_path, error, spent):
    """That it cannot be used says something about the learners; other faults before anything is written do not."""
    data = tmp_path / "exam.csv"
    data.write_text("learner,item,correct\n")
    account = Account.open(Spending(), Origin(data), simulated=False)
    with (
        pytest.raises(error),
        account.charge("test", "test", Guarantee(2.0), out=tmp_path / "out.json"),
    ):
        raise error("nothing can be made of this noise")
    assert account.balance().epsilon == spent


def test_a_charge_with_noise_from_a_seed_has_no_guarantee(tmp_path):
    data = tmp_path / "exam.csv"
    data.write_text("learner,item,correct\n")
    account = Account.open(Spending(), Origin(data), simulated=False)
    with account.charge(
        "test", "test", Guarantee(2.0), noise=seeded_noise(np.random.default_rng(0))
    ) as charge:
        assert not charge.guarantee.formal
    (entry,) = account.entries()
    assert entry.epsilon is None
