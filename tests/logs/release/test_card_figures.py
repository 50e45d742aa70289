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
from understudy.core.names import natural_order
from understudy.core.pages.render import percent
from understudy.core.pages.words import in_100, of_100, sentence
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.generators.forecast import UNKNOWN_DIFFICULTIES, forecast, success_points
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.runs_dp import RunsDP
from understudy.logs.interactions import POOLED, Interactions, common_vocabulary, offsets_of
from understudy.logs.release.bundle import release
from understudy.logs.release.card import expected_errors
from understudy.logs.simulated.classroom import Classroom
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
        settings = {"ledger": folder.with_name("l"), "publish_figures": True, "anyway": True}
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
    pooled, expected = pooled_share(rows), card["expected"]
    assert expected["shares"]["expected"] >= min(1.0, pooled)
    assert expected["difficulties"]["noise"] >= UNKNOWN_DIFFICULTIES * np.sqrt(pooled)


def test_the_two_kinds_of_card_are_both_tried(log):
    rng = np.random.default_rng(0)
    found = MarkovDP(4.0).fit(log, rng, seeded_noise(rng)).sample(None, rng)
    assert np.mean(found.action == found.actions.index(POOLED)) > 0.05


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
        predicted = forecast(300, 12, log.n_rows / 300, epsilon).rows_factor
        stated = [
            RunsDP(epsilon).fit(log, rng, seeded_noise(rng)).rows_factor_
            for rng in map(np.random.default_rng, range(4))
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
        "Epsilon 4 is": [4, delta, 1, 1_000_000],
        "Distinguished": [*times(auc), 50, 100],
        "Found": [100, *times(found), 100],
        "Guessed": [*times(guessed), 50, 100],
        "Singled out": [1000, *times(singled), 1000],
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
            *(100, of_100(found), 100, of_100(luck[0]), 95, 100, of_100(luck[1])),
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
        if metric.name in made.trials[0].utility
    }


def bins(table):
    """Learners by attempts, in bins that double, as words and numbers."""
    lengths = table.group_by("learner").len()["len"].to_list()
    found, first, last = [], 1, 1
    while first <= max(lengths):
        name = str(first) if first == last else f"{first}–{last}"
        found.append((name, sum(first <= length <= last for length in lengths), len(lengths)))
        first, last = last + 1, 2 * last
    return found


def test_every_figure_on_the_card_is_computed_again(made, shared):
    _, rows = shared
    fitted, names = made.release.generator, rows["action"].cast(pl.String)
    pooled = pooled_share(rows)
    counts = dict(names.value_counts().iter_rows())
    shares = dict(zip(fitted.actions_, fitted.popularity_, strict=True))
    hidden = None
    if not made.given.declared:
        stands_out = shares[POOLED] >= 2.0 * fitted.share_noise_
        hidden = min(1.0, 1.2 * shares[POOLED]) if stands_out else 0.0
    foreseen = forecast(100, len(fitted.actions_), rows.height / 100, 4.0, pooled=hidden)

    def figures(error, points=float):
        """Expected, and from where to where as a rule, in percentage points."""
        return [
            max(1, round(100 * min(points(value), 1.0))) for value in (error.expected, error.low, error.high)
        ]

    counted = rows.group_by("action").agg(pl.len().alias("n"), pl.col("outcome").sum().alias("good"))
    good = {str(name): (n, right) for name, n, right in counted.iter_rows()}
    order = sorted(counts, key=lambda name: (-counts[name], fitted.actions_.index(name)))
    mean, factor = rows.height / 100, fitted.rows_factor_
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
        "The most frequent actions:": [
            *(
                number
                for name in order[:8]
                for number in (
                    *numbers(name),
                    f"{100 * good[name][0] / rows.height:.1f}",
                    f"{100 * good[name][1] / good[name][0]:.0f}",
                )
            ),
            *(number for name, n, _ in bins(rows) for number in (*numbers(name), n)),
        ],
        "The data itself": [] if len(counts) <= 8 else [8, len(counts)],
        "How often each action is attempted": figures(foreseen.shares),
        "How difficult actions are": figures(foreseen.difficulties, success_points),
        "Which action follows which": figures(foreseen.steps),
        "The success rate of all attempts": (
            [int(np.ceil(100 * fitted.success_error_))] if fitted.success_error_ <= 0.4 * 2 / 3 else []
        ),
        "Attempts of a learner, on average": [
            f"{mean:.1f}",
            *((f"{mean / factor:.1f}", f"{mean * factor:.1f}") if factor <= 5 else ()),
        ],
        # Beyond 1,000 rows there are six bins, which add their noise to that of the last one; there are 100 learners.
        "The first": [
            1000,
            min(100, int(np.ceil(3.5 * np.sqrt(7) * np.max(fitted.transcript_["lengths 0"].sigma)))),
        ],
        **{" ".join(map(str, row)): numbers(" ".join(map(str, row))) for row in rows.head(8).iter_rows()},
    }
    page = (made.folder / "share/card.html").read_text()
    assert unexplained(page, expected, identity(made)) == []


def comparison_figures(real, rows):
    """The histograms in words, from the two tables alone."""
    tables = [table.with_columns(pl.col("action").cast(pl.String)) for table in (real, rows)]
    tables = [table.with_columns(pl.col("learner").cast(pl.String)) for table in tables]

    names = natural_order({name for table in tables for name in table["action"]})

    def ranked(first, second, most):
        # Equally frequent ones are in the order of their names, a step by where it begins.
        places = {each: [names.index(name) for name in each.split("\t")] for each in {*first, *second}}
        order = sorted(places, key=lambda each: (-first.get(each, 0.0), places[each]))[:most]
        pairs = [(first.get(name, 0.0), second.get(name, 0.0)) for name in order]
        heads = [number for n, (a, b) in enumerate(pairs[:3], 1) for number in (n, *percents(a, b))]
        return [*heads, len(pairs), f"{50 * sum(abs(a - b) for a, b in pairs):.1f}"]

    def percents(*shares):
        return [f"{100 * share:.1f}" for share in shares]

    def shares(values):
        return {name: n / len(values) for name, n in values.value_counts().iter_rows()}

    def steps(table):
        inner = table.filter(pl.col("learner") == pl.col("learner").shift(-1).fill_null(""))
        after = table["action"].shift(-1).filter(table["learner"] == table["learner"].shift(-1).fill_null(""))
        return shares(pl.Series(a + "\t" + b for a, b in zip(inner["action"], after, strict=True)))

    lengths = [{name: n / total for name, n, total in bins(table)} for table in tables]
    pairs = [table.group_by("learner", "action").len()["len"] for table in tables]
    curves = [
        table.with_columns(pl.int_range(1, pl.len() + 1).over("learner", "action").alias("attempt"))
        for table in tables
    ]
    found = ranked(*map(shares, (table["action"] for table in tables)), 60)
    found += ranked(*map(steps, tables), 40)
    for name in max(lengths, key=len):
        found += [*numbers(name), *(f"{100 * each.get(name, 0.0):.0f}" for each in lengths)]
    for n in range(1, 9):
        found += [n, *(f"{100 * (pair == n if n < 8 else pair >= n).mean():.0f}" for pair in pairs)]
    for n in range(1, 7):
        rates = [curve.filter(pl.col("attempt") == n)["outcome"].mean() for curve in curves]
        found += [n, *(f"{100 * rate:.0f}" for rate in rates)]
    return found


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

    compared = comparison_figures(real, rows)
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
            *((round(exposed * 100), 100, *numbers(percent(exposed))) if round(exposed * 100) else ()),
            *times(0.75),
        ],
        # Actions alone, and with outcomes.
        "Attacked were all": [
            100,
            sum(trial.matching.compared_pairs for trial in made.trials),
            sum(2 * 100 * trial.n_learners for trial in made.trials),
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
        "Real beside synthetic.": compared,
        "Learners who were not judged": [made.trials[0].risk.n_set_aside, 100],
        "Actions that always": [n_constant, tries.height],
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
        stated.append(expected_errors(drawn, fitted, claim)["shares"]["expected"])
        first, second = common_vocabulary(log, drawn)
        shares = [np.bincount(one.action, minlength=first.n_actions) / one.n_rows for one in (first, second)]
        real.append(0.5 * np.abs(shares[0] - shares[1]).sum())
    assert np.mean(stated) > np.mean(real) - 0.03
    assert np.min(np.array(stated) - np.array(real)) > -0.2
