"""Every figure on a card, computed again from the shared files; and what it says of the real log, from that log."""

import json
import re
from datetime import UTC, datetime
from statistics import fmean
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

import understudy
from tests.support.figures import numbers, unexplained
from understudy.core.pages.render import percent
from understudy.core.pages.words import in_100, sentence
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.generators.budget import predict
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.interactions import POOLED, Interactions, common_vocabulary, offsets_of
from understudy.logs.release.bundle import release
from understudy.logs.release.card import expected_errors
from understudy.logs.simulate import Classroom
from understudy.logs.trial import Split
from understudy.logs.utility import METRICS


@pytest.fixture(scope="module")
def log():
    """Forty actions for a hundred learners: too many for all their names to be told."""
    return Classroom(n_learners=100, n_actions=40).simulate(np.random.default_rng(5))


@pytest.fixture(scope="module", params=["names found", "names declared"])
def made(request, log, tmp_path_factory):
    """A release with all its figures on the card, and the trials on halves that it measured."""
    folder = tmp_path_factory.mktemp("figures") / "bundle"
    given = log.declare() if request.param == "names declared" else log
    trials, measured = [], Split.try_generator

    def noted(self, *arguments, **settings):
        trials.append(measured(self, *arguments, **settings))
        return trials[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Split, "try_generator", noted)
        settings = {"ledger": folder.with_name("l"), "publish_figures": True}
        released = release(given, folder, "markov-dp:epsilon=4", **settings)
    trials.sort(key=lambda trial: trial.seed)  # they run side by side
    return SimpleNamespace(folder=folder, given=given, trials=trials, release=released)


@pytest.fixture(scope="module")
def shared(made):
    card = json.loads((made.folder / "share/card.json").read_text())
    return card, pl.read_csv(made.folder / "share/synthetic.csv")


def pooled_share(rows):
    return float((rows["action"].cast(pl.String) == POOLED).mean())


def test_the_first_sentence_counts_what_is_in_the_file(shared):
    card, rows = shared
    found = [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", card["what"])]
    expected = [rows.height, rows["action"].n_unique(), rows["learner"].n_unique()]
    if pooled_share(rows) > 0.05:
        expected.append(round(100 * pooled_share(rows)))
    assert found == expected
    assert [card["n_rows"], card["n_actions"], card["n_learners"]] == expected[:3]


def test_what_is_pooled_counts_as_wrong_and_has_no_difficulty(shared):
    card, rows = shared
    assert card["expected"]["action_shares"] >= min(1.0, pooled_share(rows))
    assert (card["expected"]["difficulty"] is None) == (pooled_share(rows) > 0.05)


def test_the_two_kinds_of_card_are_both_tried(log):
    rng = np.random.default_rng(0)
    found = MarkovDP(4.0).fit(log, rng, seeded_noise(rng)).sample(None, rng)
    assert np.mean(found.action == found.actions.index(POOLED)) > 0.05


def test_accuracy_is_that_of_told_actions(shared):
    card, rows = shared
    told = rows.filter(pl.col("action").cast(pl.String) != POOLED)["action"].value_counts()["count"]
    assert [line["rows"] for line in card["accuracy"]] == (
        [told.max(), told.sort(descending=True)[len(told) // 2]] if len(told) else []
    )
    assert all(0 < line["plus_minus"] <= 0.5 for line in card["accuracy"])


@pytest.mark.parametrize(("epsilon", "kind"), [(1.0, MarkovDP), (8.0, MarkovDP), (8.0, RunsDP)])
def test_success_rate_and_number_of_rows_lie_within_their_stated_errors(epsilon, kind):
    """Two standard deviations and an allowance: of 30 fits at most 3 may be outside (chance below 0.2 % at 2.5 %)."""
    log = Classroom(n_learners=300, n_actions=12).simulate(np.random.default_rng(3)).declare()
    outside, rows_outside = 0, 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        fitted = kind(epsilon).fit(log, rng, seeded_noise(rng))
        drawn = fitted.sample(None, rng)
        outside += abs(drawn.outcome.mean() - log.outcome.mean()) > fitted.success_error_
        ratio = drawn.n_rows / log.n_rows
        rows_outside += not 1 / fitted.rows_factor_ <= ratio <= fitted.rows_factor_
    assert max(outside, rows_outside) <= 3


def test_a_few_learners_who_do_fifty_times_as_much_as_others_are_seen():
    """One in twenty has most of the rows, and succeeds at another rate."""
    rng = np.random.default_rng(5)
    many = rng.random(2000) < 0.05
    lengths = np.where(many, 500, np.clip(rng.lognormal(2.3, 0.5, 2000), 1, 1000).astype(int))
    chance = np.repeat(np.where(many, 0.9, 0.5), lengths)
    log = Interactions(
        rng.integers(0, 12, len(chance)).astype(np.int32),
        (rng.random(len(chance)) < chance).astype(np.int8),
        offsets_of(lengths),
        tuple(f"action {i}" for i in range(12)),
        declared=True,
    )
    for seed in range(3):
        rng = np.random.default_rng(seed)
        fitted = MarkovDP(8.0).fit(log, rng, seeded_noise(rng))
        drawn = fitted.sample(None, rng)
        assert 1 / fitted.rows_factor_ <= drawn.n_rows / log.n_rows <= fitted.rows_factor_ < 1.3
        assert abs(drawn.outcome.mean() - log.outcome.mean()) <= fitted.success_error_ < 0.4


def test_the_predicted_factor_of_rows_is_about_what_a_fit_states():
    log = Classroom(n_learners=300, n_actions=12).simulate(np.random.default_rng(3)).declare()
    for epsilon in (1.0, 4.0, 8.0):
        predicted = predict(300, 12, log.n_rows / 300, epsilon).rows_factor
        stated = [
            MarkovDP(epsilon).fit(log, rng, seeded_noise(rng)).rows_factor_
            for rng in map(np.random.default_rng, range(5))
        ]
        assert np.log(predicted) == pytest.approx(np.mean(np.log(stated)), rel=0.4)


def times(share):
    """The figures in `74 times in 100`."""
    return numbers(in_100(share))


def mean_of(made, figure):
    return fmean(figure(trial) for trial in made.trials)


def measured(made):
    """The attacks' means over halves, strongest first: name, AUC, interval, members found."""
    names = [estimate.attack for estimate in made.trials[0].risk.estimates]
    rows = []
    for place, name in enumerate(names):
        figures = [
            mean_of(made, lambda t, n=field, p=place: getattr(t.risk.estimates[p], n))
            for field in ("auc", "low", "high", "tpr_at_1pct")
        ]
        rows.append((name, *figures))
    return sorted(rows, key=lambda row: -row[1])


def worst_case_figures(claim):
    """By two normal laws and delta, rounded up: what an attacker reaches under Gaussian noise."""
    mu = np.sqrt(2 * claim.rho)
    found, guessed, singled = (norm.cdf(norm.ppf(alpha) + mu) + claim.delta for alpha in (0.01, 0.5, 0.001))
    shares = (norm.cdf(mu / np.sqrt(2)) + 1e-4, found, guessed, singled)
    return [float(np.ceil(100 * share) / 100) for share in shares]


def proved_figures(made):
    claim = MarkovDP(4.0).guarantee_for(made.given)
    auc, found, guessed, singled = worst_case_figures(claim)
    delta = "1.00e-06"
    return auc, {
        "Formal guarantee: epsilon": [4, delta],
        "Epsilon 4 sets": [4, round(np.exp(4)), delta, 1, 1_000_000],
        "In the worst case": [
            *(*times(auc), 50, 100, round(100 * found), 100),
            *(*times(guessed), 1000, *times(singled)),
        ],
        "at most": [*times(auc), 50, 100],
        "50: guessing": [50, *times(auc), 100],
        "Guarantee Epsilon": [4, delta],
    }


def risk_figures(made, auc):
    """The sentences about attacks, on card and report."""
    attacks = measured(made)
    name, worst, *_ = attacks[0]
    low, high = mean_of(made, lambda t: t.risk.low), mean_of(made, lambda t: t.risk.high)
    white = [mean_of(made, lambda t, n=field: getattr(t.white_box, n)) for field in ("auc", "low", "high")]
    found = max(row[4] for row in attacks)
    luck = [mean_of(made, lambda t, n=field: getattr(t.chance, n)) for field in ("found", "found_high")]
    shown = [f"{value:.2f}" for value in (worst, low, high)]
    seen = [f"{value:.2f}" for value in white]

    def interval(*values):
        return [str(round(100 * round(value, 2))) for value in values]

    reaches = [0.5] if round(low, 2) <= 0.5 else []
    return {
        f"The strongest attack ({name}) distinguishes": [*shown, 0.5, *times(round(worst, 2))],
        "Allowed one false alarm": [
            *(100, round(100 * found), 100, round(100 * luck[0]), 95, 100, round(100 * luck[1])),
            *reaches,
        ],
        "Three numbers about one game": [50, 100],
        "Proved, whatever": times(auc),
        "Measured, for these learners, by an attacker who sees": [
            *times(round(white[0], 2)),
            *interval(*white[1:]),
        ],
        "Measured, for these learners, by the strongest attack": [
            *times(round(worst, 2)),
            *interval(low, high),
        ],
        "How often an attacker picks the member": [f"{auc:.2f}", *seen, *shown, 0.5],
    }


def identity(made):
    """What is no figure: the number of the card, the day, the version, the seed, names of learners and methods."""
    report = json.loads((made.folder / "keep/report.json").read_text())
    card = made.release.charge.card
    assert (report["card"], report["version"]) == (card, understudy.__version__)
    day = datetime.now(UTC).date().isoformat()
    return (
        card,
        card[:6],
        day,
        report["made"],
        understudy.__version__,
        report["seed"],
        "markov-dp:epsilon=4",
    )


def utility_figures(made, digits):
    return {
        sentence(metric.meaning): [
            *numbers(metric.meaning + metric.name),
            f"{round(mean_of(made, lambda t, n=metric.name: t.utility[n]), digits) + 0.0:.{digits}f}",
            f"{metric.best:.0f}",
        ]
        for metric in METRICS
    }


def plus_minus(rows, action):
    """The uncertainty of a success rate with learners as the sample, by a sum over learners."""
    mine = rows.filter(pl.col("action").cast(pl.String) == action)
    attempts, successes = mine.height, int(mine["outcome"].sum())
    rate = (successes + 1) / (attempts + 2)
    per_learner = mine.group_by("learner").agg(pl.len().alias("n"), pl.col("outcome").sum().alias("s"))
    square = ((per_learner["s"] - rate * per_learner["n"]) ** 2).sum()
    return min(0.5, 1.96 * np.sqrt(square) / attempts)


def test_every_figure_on_the_card_is_computed_again(made, shared):
    card, rows = shared
    fitted, names = made.release.generator, rows["action"].cast(pl.String)
    pooled = pooled_share(rows)
    counts = dict(names.value_counts().iter_rows())
    drawn = np.array([counts.get(name, 0) / rows.height for name in fitted.actions_])
    predicted = predict(100, len(counts), rows.height / 100, 4.0)
    untold = sum(
        share for name, share in zip(fitted.actions_, fitted.popularity_, strict=True) if name == POOLED
    )
    shares = min(1.0, untold + 0.5 * np.abs(drawn - fitted.popularity_).sum() + predicted.action_shares)
    told = sorted((n for name, n in counts.items() if name != POOLED), reverse=True)
    typical = [told[0], told[len(told) // 2]] if told else []
    assert [line["rows"] for line in card["accuracy"]] == typical
    for line in card["accuracy"]:  # of actions with as many rows it may be any
        halves = [
            plus_minus(rows, name) for name, n in counts.items() if n == line["rows"] and name != POOLED
        ]
        assert line["plus_minus"] in [pytest.approx(half) for half in halves]
    auc, proved = proved_figures(made)
    expected = {
        **proved,
        **risk_figures(made, auc),
        **utility_figures(made, 2),
        "A synthetic log": [
            *(rows.height, len(counts), 100),
            *([round(100 * pooled)] if pooled > 0.05 else []),
        ],
        "learners here": [100],
        "attempts here": [rows.height],
        "actions here": [len(counts)],
        "learner text": [100],
        "action text": [len(counts)],
        "outcome integer": [1, 0],
        "Predicted from the noise": [
            round(100 * shares),
            *([] if pooled > 0.05 else [f"{predicted.difficulty:.2f}", 0.5, 12]),
            int(np.ceil(100 * fitted.success_error_)),
            *(round(rows.height / 100, 1), np.ceil(10 * fitted.rows_factor_) / 10),
            *(1000, int(np.ceil(3.5 * np.max(fitted.transcript_["lengths 0"].sigma)))),
            *(n for share in fitted.signal_.values() for n in numbers(percent(round(share, 2)))),
        ],
        **{
            f"Success rate of {which}": [line["rows"], f"{100 * line['plus_minus']:.1f}"]
            for which, line in zip(("the most frequent", "a typical"), card["accuracy"], strict=False)
        },
        **{" ".join(map(str, row)): numbers(" ".join(map(str, row))) for row in rows.head(8).iter_rows()},
    }
    page = (made.folder / "share/card.html").read_text()
    assert unexplained(page, expected, identity(made)) == []


def test_every_figure_on_the_report_is_computed_again(made, shared):
    """From the trials on halves, which are measured by attacks that have tests of their own, and from the real log."""
    _, rows = shared
    real = made.given.to_polars()
    attacks = measured(made)
    auc, proved = proved_figures(made)
    chance = {
        name: mean_of(made, lambda t, n=name: getattr(t.chance, n)) for name in vars(made.trials[0].chance)
    }
    guess = [
        mean_of(made, lambda t, n=name: getattr(t.attribute, n))
        for name in ("auc", "baseline", "advantage", "low", "high")
    ]
    exposed = mean_of(made, lambda t: t.exposed_share)
    tries = real.group_by("action").agg(pl.col("outcome").mean(), pl.col("learner").n_unique())
    n_constant = tries.filter(pl.col("outcome").is_in([0.0, 1.0])).height
    n_single = tries.filter(pl.col("learner") == 1).height

    def shares(table):
        return {
            name: n / table.height for name, n in table["action"].cast(pl.String).value_counts().iter_rows()
        }

    first, second = shares(real), shares(rows)
    distance = 0.5 * sum(abs(first.get(name, 0) - second.get(name, 0)) for name in {*first, *second})
    medians = [f"{table.group_by('learner').len()['len'].median():g}" for table in (real, rows)]
    groups = made.trials[0].groups
    expected = {
        **proved,
        **risk_figures(made, auc),
        **utility_figures(made, 3),
        "learners in the log": [real["learner"].n_unique()],
        "synthetic learners": [rows["learner"].n_unique()],
        "The method was fitted again on": [len(made.trials)],
        "AUC of each attack": [
            *(f"{value:.2f}" for _, *figures, _ in attacks for value in figures),
            *(f"{chance[name]:.2f}" for name in ("auc", "low", "high")),
            0.5,
        ],
        "Each attack with its 95 %": [95],
        "attack AUC interval": [1],
        **{
            f"{name} ": [*(f"{value:.2f}" for value in figures), *numbers(percent(tpr))]
            for name, *figures, tpr in attacks
        },
        "guessing What": ["0.50", "1.0"],
        "An average hides": [
            *(round(exposed * 100), 100, *numbers(percent(exposed))),
            *times(0.75),
        ],
        "The strongest of several": [
            *(f"{chance[name]:.2f}" for name in ("auc", "low", "high")),
            *(
                95,
                100,
                1,
                *numbers(percent(chance["found"])),
                *numbers(percent(chance["found_high"])),
                95,
                100,
            ),
        ],
        "the synthetic log": [f"{guess[0]:.2f}"],
        "other real learners": [f"{guess[1]:.2f}"],
        "advantage, with its": [
            95,
            *numbers(" ".join(f"{value:+.2f}" for value in guess[2:]).replace("+", "")),
        ],
        "The synthetic log": [min(trial.attribute.n_targets for trial in made.trials)],
        "Means over the fits": [len(made.trials)],
        "Shares of actions in the real": [f"{distance:.3f}"],
        "Lengths of real and synthetic": medians,
        f"{made.trials[0].risk.n_set_aside} of": [made.trials[0].risk.n_set_aside, 100],
        f"{n_constant} of": [n_constant, tries.height],
        "Actions that one learner": [n_single],
        **{
            f"{group.group} ": [
                group.n_learners,
                *(
                    f"{fmean(getattr(t.groups[place], name) for t in made.trials):.{digits}f}"
                    for name, digits in zip(
                        ("auc", "low", "high", "prediction_auc", "prediction_loss"),
                        (2, 2, 2, 2, 3),
                        strict=True,
                    )
                ),
            ]
            for place, group in enumerate(groups)
        },
    }
    page = (made.folder / "keep/report.html").read_text()
    assert unexplained(page, expected, identity(made)) == []


def test_a_figure_that_nobody_computes_again_is_noticed():
    page = (
        "<p>About 5 % of the attempts.</p><table><tr><th>members</th><td>0.53</td></tr></table><p>7 of 9.</p>"
    )
    expected = {"About": [5], "members": ["0.54"]}
    assert [found for _, found, _ in unexplained(page, expected, ())] == [["0.53"], ["7", "9"]]
    assert unexplained(page, {**expected, "members": ["0.53"]}, ["7 of 9"]) == []


def test_what_the_card_expects_of_action_shares_does_not_flatter(log):
    """Names found: the real distance, pooled attempts and all, is on average no larger than what is stated."""
    stated, real = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        fitted = MarkovDP(4.0)
        drawn = fitted.fit(log, rng, seeded_noise(rng)).sample(None, rng)
        claim = MarkovDP(4.0).guarantee_for(log)
        stated.append(expected_errors(drawn, fitted, claim)["action_shares"])
        first, second = common_vocabulary(log, drawn)
        shares = [np.bincount(one.action, minlength=first.n_actions) / one.n_rows for one in (first, second)]
        real.append(0.5 * np.abs(shares[0] - shares[1]).sum())
    assert np.mean(stated) > np.mean(real) - 0.03
    assert np.min(np.array(stated) - np.array(real)) > -0.2
