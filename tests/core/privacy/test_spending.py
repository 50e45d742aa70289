"""Spending: what is charged, and what stays charged when a release fails."""

import numpy as np
import pytest

from understudy.core.files.origin import Origin
from understudy.core.files.writing import new_folder
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import WatchedNoise, seeded_noise
from understudy.core.privacy.spending import Account, Spending, SpentError
from understudy.errors import DataError, RefusedError
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


FORMAL = Guarantee(2.0)
DRAWS = {
    "discrete_gaussian": (np.zeros(2, dtype=np.int64), 3.0),
    "discrete_laplace": (np.zeros(2, dtype=np.int64), 3.0),
    "cube": (np.zeros(2, dtype=np.int64), 1.0),
    "hexagon": (np.zeros((2, 2), dtype=np.int64), 1.0),
    "gumbel_argmax": (np.zeros(2), 1.0),
}


def failing(tmp_path, error, *, draw, noise=None, guarantee=FORMAL):
    """What stays charged when a release fails with this error, after this draw of noise."""
    data = tmp_path / "exam.csv"
    data.write_text("learner,item,correct\n")
    account = Account.open(Spending(), Origin(data), simulated=False)

    def release():
        with account.charge("test", "test", guarantee, out=tmp_path / "out.json", noise=noise) as charge:
            getattr(charge.noise, draw)(*DRAWS[draw])
            raise error("boom")

    with pytest.raises(error) as caught:
        release()
    return account.balance(), caught.value.__notes__


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("error", [DataError, ValueError, ZeroDivisionError, MemoryError])
def test_an_error_after_noise_was_drawn_stays_charged(tmp_path, draw, error):
    """A bound that is found, and refused by what it is, would be asked about again and again for nothing."""
    balance, (note,) = failing(tmp_path, error, draw=draw)
    assert balance.epsilon == 2.0
    assert "stays in the ledger" in note
    assert note.endswith("nothing was written: noise was drawn by then.")


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, SystemExit])
def test_a_fault_of_the_machine_and_an_interrupt_say_nothing_about_noise(tmp_path, error):
    balance, (note,) = failing(tmp_path, error, draw="cube")
    assert balance.epsilon == 0.0
    assert note == "Nothing was written, and the charge was taken back."


def test_noise_without_a_guarantee_keeps_no_charge(tmp_path):
    noise = seeded_noise(np.random.default_rng(0))
    assert failing(tmp_path, ValueError, draw="cube", noise=noise)[0].n_without_guarantee == 0
    none = Guarantee.none("a test")
    assert failing(tmp_path, ValueError, draw="cube", guarantee=none)[0].n_without_guarantee == 0


def test_a_draw_that_fails_counts_as_drawn(tmp_path):
    class Breaking:
        secret = True

        def discrete_gaussian(self, values, sigma):
            raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        (watched := WatchedNoise(Breaking())).discrete_gaussian(np.zeros(1, dtype=np.int64), 1.0)
    assert watched.drawn


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


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("drawn", [True, False])
def test_once_writing_began_users_may_have_looked_and_disks_are_filled_by_what_is_noisy(
    tmp_path, error, drawn
):
    data = tmp_path / "log.csv"
    data.write_text("learner,action,outcome\n")
    account = Account.open(Spending(), Origin(data), simulated=False)

    def write(charge):
        with new_folder(tmp_path / "bundle"):
            if drawn:
                charge.noise.cube(np.zeros(1, dtype=np.int64), 1.0)
            raise error

    with (
        pytest.raises(error),
        account.charge("release", "test", Guarantee(1.0), out=tmp_path / "bundle") as charge,
    ):
        write(charge)
    assert account.balance().epsilon == (1.0 if drawn or error is KeyboardInterrupt else 0.0)


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
