"""synthesize(): what it refuses before anything is charged, and what its result says about itself."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import understudy as us
from tests.support.command import run
from understudy.core.privacy.ledger import Ledger
from understudy.core.privacy.risk import power
from understudy.errors import DataError, RefusedError, UsageError
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.interactions import Interactions
from understudy.logs.release.bundle import release
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.synthesize import synthesize


@pytest.fixture
def log():
    """Learners who are not declared to be simulated."""
    made = Classroom(n_learners=40, n_actions=5).simulate(np.random.default_rng(0))
    return Interactions(made.action, made.outcome, made.offsets, made.actions)


@pytest.fixture
def account(tmp_path):
    return {"population": "a class", "ledger": tmp_path / "ledger"}


@pytest.mark.parametrize(
    ("setting", "value"),
    [("n_learners", 0), ("n_learners", -1), ("n_learners", 2.5), ("n_learners", True), ("seed", -1)],
)
def test_a_wrong_size_is_refused_before_anything_is_charged(log, account, tmp_path, setting, value):
    for verb in (
        lambda **settings: synthesize(log, "markov", **settings),
        lambda **settings: release(log, tmp_path / "b", "markov", **settings),
    ):
        with pytest.raises(UsageError, match="a whole number of at least") as caught:
            verb(**account, **{setting: value})
        assert caught.value.settings == (setting,)
    assert not account["ledger"].exists()


@pytest.mark.parametrize("n_learners", ["0", "-1"])
@pytest.mark.parametrize("verb", ["synthesize", "release"])
def test_the_commands_refuse_a_wrong_size(log, tmp_path, verb, n_learners):
    log.to_polars().write_csv(tmp_path / "log.csv")
    out = "s.csv" if verb == "synthesize" else "bundle"
    asked = (verb, "log.csv", "-o", out, "-m", "markov", "--n-learners", n_learners)
    refused = run(*asked, cwd=tmp_path)
    assert refused.returncode == 2
    assert "--n-learners" in refused.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.csv"]


def test_as_many_learners_as_numpy_counts(log, account):
    assert synthesize(log, "markov", n_learners=np.int64(3), **account).log.n_learners == 3


def test_an_earlier_file_is_not_written_over_and_nothing_is_charged_again(log, account, tmp_path):
    synthesize(log, "markov", out=tmp_path / "s.csv", **account)
    before = (tmp_path / "s.csv").read_bytes()
    with pytest.raises(UsageError, match="is there already") as refusal:
        synthesize(log, "markov", out=tmp_path / "s.csv", **account)
    assert (refusal.value.code, refusal.value.settings) == ("already-exists", ("out",))
    assert (tmp_path / "s.csv").read_bytes() == before
    assert len(Ledger(account["ledger"]).entries()) == 1


def test_a_result_is_one_line_about_itself(log, account):
    made = synthesize(log, "markov", **account)
    assert repr(made) == f"<Synthesis: {' '.join(made.lines())}>"
    assert len(repr(made)) < 400


VERBS_ON_LOGS = {
    "inspect": us.inspect,
    "study": lambda given: us.study(given, ["markov"]),
    "audit": lambda given: us.audit(given, given, given),
    "synthesize": lambda given: us.synthesize(given, "markov"),
    "release": lambda given: us.release(given, "bundle"),
    "fit": lambda given: us.Markov().fit(given),
    "read_log": us.read_log,
}


@pytest.mark.parametrize("frame", [pl.DataFrame, "pandas"], ids=["polars", "pandas"])
@pytest.mark.parametrize("verb", VERBS_ON_LOGS)
def test_a_frame_in_place_of_a_log_is_refused_with_the_way_to_make_one(verb, frame):
    columns = {"learner": ["a", "a"], "action": ["x", "y"], "outcome": [0, 1]}
    given = pytest.importorskip("pandas").DataFrame(columns) if frame == "pandas" else frame(columns)
    with pytest.raises(UsageError, match="DataFrame is no") as refusal:
        VERBS_ON_LOGS[verb](given)
    assert "Interactions.from_frame" in refusal.value.hint


@pytest.mark.parametrize("simulated", [True, False])
def test_the_ledger_has_a_limit_for_real_learners_only(log, tmp_path, simulated):
    log.to_polars().write_csv(tmp_path / "log.csv")
    asked = ("synthesize", "log.csv", "-o", "s.csv", "-m", "markov", *(["--simulated"] if simulated else []))
    assert run(*asked, cwd=tmp_path).returncode == 0
    shown = json.loads(run("ledger", "log.csv", "--json", cwd=tmp_path).stdout)
    limits = [shown[name] for name in ("limit", "remaining", "delta_limit")]
    assert limits == ([None] * 3 if simulated else [10.0, 10.0, 1e-4])


def test_a_charged_log_names_its_card(log, account):
    made = synthesize(log, "markov", **account)
    assert made.log.card == made.charge.card
    assert "not charged" not in repr(made.log)
    assert made.charge.card in repr(made.log)
    assert Ledger(account["ledger"]).has_cards([made.log.card])


@pytest.mark.parametrize(
    ("settings", "helps"),
    [({"epsilon": 50}, "epsilon"), ({"generator": MarkovDP(50.0)}, "method")],
)
def test_a_refusal_for_the_budget_names_the_setting_that_helps(log, account, tmp_path, settings, helps):
    for verb in (synthesize, lambda log, **given: release(log, tmp_path / "b", **given)):
        with pytest.raises(RefusedError) as caught:
            verb(log, **settings, **account)
        assert caught.value.code == "budget"
        assert caught.value.settings == (helps, "population", "other_learners", "reason")


@pytest.mark.parametrize("risk", ["50 in 100", "auc 0.9"])
def test_a_refusal_after_a_risk_offers_a_risk_that_fits(log, account, risk):
    log = log.declare()
    synthesize(log, epsilon=8, **account)
    with pytest.raises(RefusedError) as caught:
        synthesize(log, risk=risk, **account)
    assert (caught.value.code, caught.value.settings[0]) == ("budget", "risk")
    offered = caught.value.fields["risk"]
    assert f"state the risk '{offered}'" in caught.value.hint
    assert synthesize(log, risk=offered, **account).charge.balance.counted <= 10


ADDRESS = "ana.kestrel@school.example"


def named(log):
    return Interactions(log.action, log.outcome, log.offsets, (ADDRESS, *log.actions[1:]))


def recoded(log):
    return replace(log, actions=(ADDRESS, *log.actions[1:]))


def sequences(log):
    return Interactions.from_sequences([[0, 1]] * 20, actions=[ADDRESS, "b"])


@pytest.mark.parametrize("made", [named, recoded, sequences])
def test_people_in_the_names_of_arrays_are_refused(log, account, tmp_path, made):
    for verb in (synthesize, lambda log, **settings: release(log, tmp_path / "b", **settings)):
        with pytest.raises(DataError, match=r"points at people: e-mail address \(1 of") as caught:
            verb(made(log), **account)
        assert caught.value.code == "names-of-people"
        assert ADDRESS not in str(caught.value)
    assert not account["ledger"].exists()


@pytest.mark.parametrize("given", [None, "markov-dp", "markov-dp:longest=200"])
def test_a_stated_risk_decides_the_epsilon_that_is_charged(log, account, given):
    made = synthesize(log.declare(), given, risk="5 in 100", **account)
    assert power(made.guarantee, 0.01) <= 0.05
    assert 3 < made.guarantee.epsilon < 3.3
    assert made.generator.longest == (200 if given and "longest" in given else MarkovDP().longest)
    assert Ledger(account["ledger"]).balance("a class").epsilon == made.guarantee.epsilon


@pytest.mark.parametrize(
    ("given", "settings", "code"),
    [
        ("markov-dp:epsilon=8", {}, "two-epsilons"),
        ("markov-dp:8", {}, "two-epsilons"),
        (MarkovDP(epsilon=8), {}, "two-epsilons"),
        (None, {"epsilon": 8.0}, "two-epsilons"),
        ("markov", {}, "no-guarantee"),
    ],
)
def test_a_risk_beside_an_epsilon_or_without_noise_is_refused(log, account, given, settings, code):
    """Also where the epsilon is the usual one: a risk could allow a larger one than was asked for."""
    with pytest.raises(UsageError) as refusal:
        synthesize(log.declare(), given, risk="50 in 100", **settings, **account)
    assert refusal.value.code == code
    assert not account["ledger"].exists()
