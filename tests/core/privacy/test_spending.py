"""Spending: what is charged, and what stays charged when a release fails."""

import numpy as np
import pytest

from understudy.core.files.origin import Origin
from understudy.core.files.writing import new_folder
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import seeded_noise
from understudy.core.privacy.spending import Account, Spending, SpentError
from understudy.errors import RefusedError
from understudy.logs.reading import read_log


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


@pytest.mark.parametrize(("error", "spent"), [(KeyboardInterrupt, 1.0), (OSError, 0.0)])
def test_who_interrupts_once_writing_began_may_have_looked(tmp_path, error, spent):
    data = tmp_path / "log.csv"
    data.write_text("learner,action,outcome\n")
    account = Account.open(Spending(), Origin(data), simulated=False)
    with (
        pytest.raises(error),
        account.charge("release", "test", Guarantee(1.0), out=tmp_path / "bundle"),
        new_folder(tmp_path / "bundle"),
    ):
        raise error
    assert account.balance().epsilon == spent


def test_what_the_ledger_learns_after_the_question_was_not_agreed_to(tmp_path):
    """Two copies of one log: the first was declared to be of other learners before the second was charged."""
    ids = "".join(f"{learner},a,1\n{learner},b,0\n" for learner in range(40))
    accounts = []
    for name in ("one", "two"):
        data = tmp_path / f"{name}.csv"
        data.write_text(f"learner,action,outcome\n{ids}")
        spending = Spending(
            population=name, other_learners=name == "one", reason="" if name == "two" else "x"
        )
        accounts.append(Account.open(spending, read_log(data).origin, simulated=False))
    agreed = accounts[0].agree(Guarantee(8.0))
    with accounts[1].charge("release", "test", Guarantee(8.0)):
        pass
    with pytest.raises(RefusedError) as refused, agreed.charge("release", "test", Guarantee(8.0)):
        pass
    assert refused.value.code == "known-learners"
