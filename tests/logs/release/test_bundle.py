"""The bundle: what is in it, what is not, and when it is refused."""

import csv
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from understudy.core.attacks.estimate import RiskEstimate
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.ledger import Ledger
from understudy.errors import RefusedError, UsageError
from understudy.logs.generators.baselines import Drop, Markov
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.registry import chosen_generator
from understudy.logs.interactions import Interactions
from understudy.logs.release import bundle as bundle_module
from understudy.logs.release.assessment import assess
from understudy.logs.release.bundle import ReleaseOptions, refuse_risk, release
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.synthesize import synthesize
from understudy.logs.trial import attacker_knowledge

ACCEPTED = ReleaseOptions(accept_risk="a test needs it")


@pytest.fixture(scope="module")
def log():
    return Classroom(n_learners=120, n_actions=15).simulate(np.random.default_rng(5))


@pytest.fixture(scope="module")
def bundle(log, tmp_path_factory):
    folder = tmp_path_factory.mktemp("release") / "bundle"
    return release(log, folder, "markov", ACCEPTED, ledger=folder.with_name("l"))


def test_the_bundle_has_what_may_leave_and_what_stays(bundle):
    names = sorted(
        str(path.relative_to(bundle.folder)) for path in bundle.folder.rglob("*") if path.is_file()
    )
    assert names == [
        "keep/report.html",
        "keep/report.json",
        "share/CITATION.cff",
        "share/card.html",
        "share/card.json",
        "share/codebook.csv",
        "share/synthetic.csv",
        "share/synthetic.parquet",
    ]


def test_the_data_is_marked_and_the_same_in_both_formats(bundle, log):
    from_csv = pl.read_csv(bundle.folder / "share/synthetic.csv")
    from_parquet = pl.read_parquet(bundle.folder / "share/synthetic.parquet")
    assert from_csv.equals(from_parquet.cast({"outcome": pl.Int64}))
    assert from_csv["learner"].str.starts_with("synthetic-").all()
    assert "synthetic" in pl.read_parquet_metadata(bundle.folder / "share/synthetic.parquet")["understudy"]
    assert from_csv["learner"].n_unique() == log.n_learners
    assert set(from_csv["action"]) <= set(log.actions)


def test_the_codebook_describes_every_column(bundle):
    with open(bundle.folder / "share/codebook.csv", newline="") as file:
        described = [row["column"] for row in csv.DictReader(file)]
    assert described == pl.read_csv(bundle.folder / "share/synthetic.csv").columns


def test_what_is_shared_holds_nothing_measured_and_no_seed(bundle):
    report = json.loads((bundle.folder / "keep/report.json").read_text())
    shared = "".join(p.read_text() for p in (bundle.folder / "share").iterdir() if p.suffix != ".parquet")
    measured = report["measured"]
    for value in [
        measured["auc_worst"],
        *measured["utility"].values(),
        *(a["auc"] for a in measured["attacks"]),
    ]:
        if value not in (0.0, 1.0, 0.5):
            assert f"{value:.6f}" not in shared
    assert str(report["seed"]) not in shared
    assert json.loads((bundle.folder / "share/card.json").read_text())["measured"] is None


def test_the_accepted_risk_is_printed_on_the_card(bundle):
    assert "a test needs it" in (bundle.folder / "share/card.html").read_text()
    assert json.loads((bundle.folder / "share/card.json").read_text())["accepted_risk"] == "a test needs it"


def test_the_release_is_listed_in_the_ledger_with_its_risk(bundle):
    (entry,) = bundle.charge.account.ledger.entries()
    assert entry.card == bundle.charge.card
    assert entry.epsilon is None
    assert entry.risk["auc_worst"] == pytest.approx(bundle.assessment.worst.auc)


@pytest.mark.usefixtures("quick_releases")
def test_published_figures_are_rounded_and_say_that_nothing_covers_them(log, tmp_path):
    made = release(log, tmp_path / "b", "markov", accept_risk="test", publish_figures=True)
    assert "accepted the risk" in str(made.charge.guarantee)
    assert "published with it" in str(made.charge.guarantee)
    assert [caveat.code for caveat in made.guarantee.caveats] == ["risk-accepted", "figures-published"]
    card = json.loads((tmp_path / "b/share/card.json").read_text())
    assert card["measured"]["statement"].endswith("no guarantee covers them.")
    assert card["measured"]["auc"] == round(card["measured"]["auc"], 2)


@pytest.mark.usefixtures("quick_releases")
def test_order_and_names_do_not_depend_on_the_input(log, tmp_path):
    """The same seed gives the same file whatever the order of learners: counts are what is fitted."""
    turned = log.select(np.arange(log.n_learners)[::-1])
    files = []
    for name, version in (("a", log), ("b", turned)):
        release(version, tmp_path / name, "markov", accept_risk="test", seed=7)
        files.append(pl.read_csv(tmp_path / name / "share/synthetic.csv").select("learner", "action"))
    assert files[0].equals(files[1])


@pytest.mark.usefixtures("quick_releases")
def test_the_seed_is_drawn_afresh(log, tmp_path):
    seeds = set()
    for name in "ab":
        release(log, tmp_path / name, "markov", ACCEPTED)
        seeds.add(json.loads((tmp_path / name / "keep/report.json").read_text())["seed"])
    assert len(seeds) == 2


def real(log):
    """The same log, not simulated."""
    return replace(log, simulated=False)


def test_a_risky_generator_is_refused_before_anything_is_released(log, tmp_path):
    ledger = Ledger(tmp_path / "l")
    account = {"population": "a class", "ledger": ledger.path}
    with pytest.raises(RefusedError, match="no formal guarantee") as refusal:
        release(real(log), tmp_path / "bundle", "markov", **account)
    assert refusal.value.code == "risk"
    assert "accept_risk" in refusal.value.settings
    assert [path.name for path in tmp_path.iterdir()] == ["l"]
    (entry,) = ledger.entries()
    assert entry.kind == "refused"
    assert ledger.balance("a class").n_entries == 0


def test_real_rows_are_refused_before_anything_is_computed(log, tmp_path, monkeypatch):
    monkeypatch.setattr(bundle_module, "assess", lambda *a, **k: pytest.fail("computed"))
    with pytest.raises(RefusedError, match="real rows"):
        release(log, tmp_path / "bundle", "drop:0")


def judged(auc, n=200, found=0.01, luck=0.04):
    """An assessment in which the strongest attack has this AUC, judged on n learners a side.

    Another one finds this share of the members at 1 % false alarms, where luck finds up to `luck`.
    """
    estimate = RiskEstimate("counts", auc, auc - 0.05, auc + 0.05, 0.01, n, n)
    most_found = RiskEstimate("rare", 0.5, 0.45, 0.55, found, n, n)
    chance = SimpleNamespace(found_high=luck)
    return SimpleNamespace(
        worst=estimate, most_found=most_found, low=auc - 0.06, high=auc + 0.06, chance=chance
    )


NONE = Guarantee.none("a test")


@pytest.mark.parametrize(
    ("assessment", "earlier", "why"),
    [
        (judged(0.56), 0, "can be distinguished from others"),
        (judged(0.52, found=0.06), 0, "'rare' finds 6 of 100 at 1 % false alarms, and the limit is 5"),
        (judged(0.50, n=40), 0, "too few to show anything"),
        (judged(0.50), 1, "risks add up"),
    ],
)
def test_a_release_without_guarantee_needs_a_shown_small_risk(assessment, earlier, why):
    with pytest.raises(RefusedError, match=why):
        refuse_risk(assessment, NONE, Markov(), ReleaseOptions(), earlier)
    refuse_risk(assessment, NONE, Markov(), ReleaseOptions(accept_risk="yes"), earlier)
    refuse_risk(assessment, Guarantee(1.0), Markov(), ReleaseOptions(), earlier)


def test_a_shown_small_risk_is_let_pass():
    refuse_risk(judged(0.52), NONE, Markov(), ReleaseOptions())
    # What luck finds on so few learners is no reason.
    refuse_risk(judged(0.52, found=0.06, luck=0.07), NONE, Markov(), ReleaseOptions())


@pytest.mark.parametrize(
    ("n_actions", "declared", "given", "epsilon"),
    [
        (20, True, None, 8.0),
        (21, True, None, 4.0),
        (21, True, "markov-dp", 4.0),
        (21, True, "markov-dp:longest=50", 4.0),
        (21, True, "markov-dp:epsilon=8", 8.0),
        # Names that were not declared are not public, and neither is their number.
        (21, False, None, 8.0),
    ],
)
def test_the_usual_epsilon_follows_from_public_numbers(n_actions, declared, given, epsilon):
    names = [str(code) for code in range(n_actions)]
    log = Interactions.from_sequences([[0, 1]] * 20, actions=names)
    log = log.declare() if declared else log
    assert chosen_generator(given, None, "", log).epsilon == epsilon


def test_a_verbatim_copy_of_a_tiny_log_is_refused(tmp_path):
    tiny = Classroom(n_learners=10, n_actions=6, shortest=8).simulate(np.random.default_rng(0))
    with pytest.raises(RefusedError, match="real rows"):
        release(tiny, tmp_path / "b", "drop:0")
    with pytest.raises(RefusedError, match=r"can be distinguished|too few"):
        release(tiny, tmp_path / "b", "markov")


def personal_log(n_learners=120):
    """Everybody drills the same, and each learner has a task of their own that always succeeds."""
    rng = np.random.default_rng(6)
    sequences, outcomes = [], []
    for i in range(n_learners):
        drills = rng.integers(0, 2, 12)
        sequences.append([*drills[:6], 2 + i, 2 + i, *drills[6:]])
        outcomes.append([*rng.integers(0, 2, 6), 1, 1, *rng.integers(0, 2, 6)])
    return Interactions.from_sequences(
        sequences, outcomes, actions=[f"task {k}" for k in range(n_learners + 2)]
    )


def test_actions_without_a_finite_difficulty_are_attacked_all_the_same():
    """What one learner did once always succeeded or never: the most telling rows must not be set aside."""
    assessment = assess(personal_log(), Markov(), n_halves=2, n_shadows=8)
    assert assessment.worst.auc > 0.7
    assert assessment.n_constant == 120


def test_learners_who_do_nothing_but_their_own_are_judged():
    rng = np.random.default_rng(7)
    sequences = [list(rng.integers(0, 3, 10)) for _ in range(100)] + [[3 + k] * 8 for k in range(30)]
    outcomes = [list(rng.integers(0, 2, len(s))) for s in sequences]
    log = Interactions.from_sequences(sequences, outcomes)
    assert attacker_knowledge(log).judged[100:].all()


def test_a_larger_release_is_attacked_at_its_size(log):
    small = assess(log, Markov(), n_learners=30, n_halves=2, n_shadows=8)
    large = assess(log, Markov(), n_learners=3000, n_halves=2, n_shadows=8)
    assert large.worst.auc > small.worst.auc + 0.05


def test_overspending_is_refused_before_anything_is_computed(log, tmp_path, monkeypatch):
    monkeypatch.setattr(bundle_module, "assess", lambda *a, **k: pytest.fail("computed"))
    with pytest.raises(RefusedError, match="epsilon 50 was asked") as refusal:
        release(real(log), tmp_path / "b", MarkovDP(50.0), population="a class", ledger=tmp_path / "l")
    assert refusal.value.fields["requested"] == 50
    assert not (tmp_path / "l").exists()


@pytest.mark.usefixtures("quick_releases")
def test_real_rows_are_called_real_rows(log, tmp_path):
    release(log, tmp_path / "b", "drop:0.2", accept_risk="test")
    metadata = pl.read_parquet_metadata(tmp_path / "b/share/synthetic.parquet")["understudy"]
    assert "no learner was invented" in metadata
    for name in ("codebook.csv", "card.html", "card.json", "CITATION.cff"):
        text = (tmp_path / "b/share" / name).read_text()
        assert "do not exist" not in text
        assert "belongs to no real learner" not in text


@pytest.mark.usefixtures("quick_releases")
@pytest.mark.parametrize("declared", [True, False])
def test_a_private_release_needs_no_accepted_risk(log, tmp_path, declared):
    """With the vocabulary declared, or found by the method, which then pools what few learners share."""
    source = real(log.declare() if declared else log)
    account = {"population": "a class", "ledger": tmp_path / "l"}
    released = release(source, tmp_path / "b", epsilon=4, anyway=not declared, **account)
    assert released.guarantee.formal
    assert ("other actions" in released.log.actions) is not declared
    assert released.charge.balance.epsilon == 4
    card = json.loads((tmp_path / "b/share/card.json").read_text())
    assert card["guarantee"]["epsilon"] == 4
    assert 0 < card["expected"]["shares"]["expected"] <= 1
    assert card["protection"]["worst_case"]["auc"] < 0.8
    with pytest.raises(RefusedError, match=r"epsilon 9\.9 was asked"):
        release(source, tmp_path / "c", "markov-dp:epsilon=9.9", **account)


def test_what_stays_inside_is_readable_by_its_owner_only(bundle):
    assert (bundle.folder / "keep").stat().st_mode & 0o077 == 0
    assert bundle.charge.account.ledger.path.stat().st_mode & 0o077 == 0


@pytest.mark.usefixtures("quick_releases")
def test_a_seeded_release_says_so_on_its_card(bundle, log, tmp_path):
    release(log, tmp_path / "b", "markov", accept_risk="test", seed=1)
    assert "a seed chosen by the custodian" in (tmp_path / "b/share/card.html").read_text()
    assert "a seed chosen by the custodian" not in (bundle.folder / "share/card.html").read_text()


@pytest.mark.usefixtures("quick_releases")
def test_the_number_of_actions_is_that_of_the_synthetic_log(tmp_path):
    """A vocabulary counts what single learners did; the card must not."""
    log = replace(personal_log(), simulated=True)
    released = release(log, tmp_path / "b", "markov", n_learners=5, accept_risk="t")
    card = json.loads((tmp_path / "b/share/card.json").read_text())
    assert card["n_actions"] == len(set(released.log.action.tolist())) < 122


def test_a_folder_in_use_is_not_overwritten(log, tmp_path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(UsageError, match="not empty"):
        release(log, tmp_path, "markov", ACCEPTED)


def test_groups_are_shown_and_small_ones_pooled():
    log = Classroom(n_learners=300, n_actions=12, shortest=8).simulate(np.random.default_rng(1))
    group = np.array(log.group)
    group[:3] = 3  # three learners of a school of their own
    changed = Interactions(
        log.action,
        log.outcome,
        log.offsets,
        log.actions,
        group=group,
        groups=(*log.groups, "tiny"),
        simulated=True,
    )
    assessment = assess(changed, Markov(), n_halves=2, n_shadows=16)
    assert [figures.group for figures in assessment.groups] == ["north", "south", "west"]
    assert all(figures.low <= figures.auc <= figures.high for figures in assessment.groups)


class Leak(Drop):
    """A generator that others wrote: it gives rows out and says that it is proved."""

    name = "leak"
    keeps_rows = False

    def guarantee(self, n_learners):
        return Guarantee(0.01)


@pytest.mark.usefixtures("quick_releases")
@pytest.mark.parametrize("given", [Leak, Leak(0.5), f"{__name__}:Leak:ratio=0.5"], ids=str)
def test_a_subclass_of_ours_has_no_guarantee(log, tmp_path, given):
    account = {"population": "a class", "ledger": tmp_path / "l"}
    with pytest.raises(RefusedError, match="no formal guarantee"):
        release(real(log), tmp_path / "b", given, **account)
    released = release(real(log), tmp_path / "c", given, accept_risk="a test needs it", **account)
    card = json.loads((tmp_path / "c/share/card.json").read_text())
    assert card["guarantee"]["formal"] is False
    assert "which others wrote" in card["guarantee"]["statement"]
    assert "It is proved" not in (tmp_path / "c/share/card.html").read_text()
    made = synthesize(real(log), given, **account)
    assert not made.guarantee.formal
    assert not made.log.guarantee.formal
    assert released.charge.balance.epsilon == made.charge.balance.epsilon == 0


@pytest.mark.usefixtures("quick_releases")
def test_a_guarantee_of_others_is_the_custodians_word(log, tmp_path):
    word = "epsilon 2 by its vendor's report"
    release(log, tmp_path / "b", "markov", ACCEPTED, declared_guarantee=word)
    card = json.loads((tmp_path / "b/share/card.json").read_text())
    assert card["declared_guarantee"] == word
    assert card["guarantee"]["formal"] is False
    page = (tmp_path / "b/share/card.html").read_text()
    assert "nothing of it was checked here" in page
    assert "No formal guarantee" in page
    with pytest.raises(UsageError, match="has one that is proved"):
        release(log, tmp_path / "c", epsilon=1, declared_guarantee=word)
