"""Pages for people: what they say, what they must not hold, and how they fit a screen."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from tests.support.browser import FAINT_WORDS
from understudy.core.attacks.estimate import ChanceLevel, RiskEstimate
from understudy.core.attacks.subsequences import MatchingWork
from understudy.core.files.origin import Origin
from understudy.core.files.people.identifiers import Identifier
from understudy.core.pages.card import guarantee_in_words
from understudy.core.pages.levels import risk_levels
from understudy.core.pages.words import ATTACK_STORIES, certainty
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.risk import RiskLimit, worst_case
from understudy.logs.attacks.attribute import AttributeEstimate
from understudy.logs.audit import MEMBERSHIP_ATTACKS
from understudy.logs.expectation import expectation_figure
from understudy.logs.generators.details import Details
from understudy.logs.generators.expected_error import ExpectedError
from understudy.logs.generators.forecast import forecast, success_points
from understudy.logs.histograms import _whole_ticks, histograms
from understudy.logs.inspect import inspect
from understudy.logs.interactions import Interactions
from understudy.logs.release.accuracy import uses_of, verdict_of
from understudy.logs.release.assessment import Assessment
from understudy.logs.release.card import card_content
from understudy.logs.release.card import card_page as card_page_of
from understudy.logs.release.report import report_page
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.study_report import name_places, write_report
from understudy.logs.trial import GroupFigures
from understudy.logs.utility import METRICS

pytestmark = pytest.mark.functional

HOSTILE = "<script>alert('x')</script><img src=https://evil.example/x.png>"
LONG = "Donaudampfschifffahrtsgesellschaftskapitaensmuetzenabzeichenverordnungsgesetz" * 2

NONE = Guarantee.none("transition counts of the training log are released")
FORMAL = Guarantee(8.0, 1e-6, 1.53, ("Gaussian mechanism",))

# Figures that no page shows by accident.
AUC, LOW, HIGH, FOUND, LOST = 0.7391, 0.6127, 0.8273, 0.2468, 0.3579


def assessment() -> Assessment:
    return Assessment(
        estimates=tuple(
            RiskEstimate(name, AUC if name == "shadow" else 0.5341, LOW, HIGH, FOUND, 300, 300)
            for name in MEMBERSHIP_ATTACKS
        ),
        low=LOW,
        high=HIGH,
        found_low=0.1234,
        found_high=0.3456,
        chance=ChanceLevel(0.5312, 0.4477, 0.6161, 0.0234, 0.0423),
        white_box=RiskEstimate("transcript", 0.7714, 0.7228, 0.8136, 0.2591, 300, 300),
        exposed_share=0.0417,
        attribute=AttributeEstimate(0.6836, 0.6926, -0.009, -0.073, 0.0551, 284),
        utility={metric.name: LOST for metric in METRICS},
        groups=[
            GroupFigures("north", 194, 0.7163, 0.6452, 0.7873, 0.7479, 0.0072),
            GroupFigures(HOSTILE, 196, 0.7561, 0.6896, 0.8226, 0.759, 0.0063),
        ],
        n_learners=600,
        n_set_aside=2,
        n_constant=1,
        n_halves=3,
        n_attacked=500,
        matching=MatchingWork(1_000_000, 90_000_000, 1_234, 56_789),
    )


def small_log(*, simulated: bool) -> Interactions:
    log = Classroom(n_learners=60, n_actions=12).simulate(np.random.default_rng(7))
    return replace(log, simulated=simulated)


def content_of(
    guarantee: Guarantee,
    *,
    simulated: bool = False,
    publish: bool = False,
    keeps_rows: bool = False,
    text: str = "plain",
    accept_risk: str = "",
) -> dict[str, Any]:
    generator: Any = SimpleNamespace(keeps_rows=keeps_rows, guarantee_=guarantee, details_=Details())
    provenance = {
        "card": "0123456789abcdef",
        "method": "markov",
        "cut_short": text if text != "plain" else "",
        "made": "2026-01-31",
        "version": "0.1.0",
        "custodian": text,
        "simulated": simulated,
        "seeded": False,
    }
    return card_content(
        small_log(simulated=simulated),
        generator,
        assessment(),
        provenance,
        title=text,
        accepted_risk=accept_risk,
        declared=accept_risk,
        publish_figures=publish,
    )


def card_page(content: dict[str, Any]) -> str:
    return card_page_of(content, small_log(simulated=content["provenance"]["simulated"]))


def report_of(card: dict[str, Any], text: str = "plain", guarantee: Guarantee = NONE) -> str:
    log = small_log(simulated=card["provenance"]["simulated"])
    report = {
        **card["provenance"],
        "seed": 123456789,
        "population": text,
        "accepted_risk": card["accepted_risk"],
        "guarantee": card["guarantee"],
        "reading": [text],
        "measured": assessment().to_json(),
    }
    return report_page(log, log, assessment(), guarantee, card, report)


def study_of(folder: Path, text: str) -> str:
    log = small_log(simulated=False)
    rows = [
        {
            "method": name,
            "names": "as in the log",
            "seed": seed,
            # As it comes back from a finished cell.
            "histograms": json.loads(json.dumps(histograms(log, log))),
            **{metric.name: 0.1 * (seed + 1) for metric in METRICS},
            **{f"auc_{attack.replace('-', '_')}": 0.6 for attack in MEMBERSHIP_ATTACKS},
            **{"auc_worst": 0.7, "auc_worst_low": 0.6, "auc_worst_high": 0.8, "tpr_at_1pct": 0.1},
            **{"tpr_chance_high": 0.02},
            **{"auc_chance": 0.53, "auc_chance_low": 0.45, "auc_chance_high": 0.61},
            **{"worst_attack": "shadow", "auc_attribute": 0.6, "attribute_advantage": -0.0001},
            **{"attribute_advantage_low": -0.1, "attribute_advantage_high": 0.1},
        }
        for name in ("drop:0.5", text)
        for seed in range(2)
    ]
    write_report(folder, rows, log, 64, text)
    return (folder / "report.html").read_text(encoding="utf-8")


def inspection_of(text: str) -> str:
    log = small_log(simulated=False)
    identifier = Identifier(text, "name", text, "not read")
    origin = Origin(Path(text.replace("/", " ")), notes=(text,), identifiers=(identifier,))
    return inspect(replace(log, origin=origin)).page()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Every kind of page, each with texts that want to be markup and with very long words."""
    text = f"{HOSTILE} {LONG}"
    unproved = content_of(NONE, simulated=True, publish=True, text=text, accept_risk=text)
    proved = content_of(FORMAL, text=text)
    kept = content_of(Guarantee.none(text), keeps_rows=True, text=text, accept_risk=text)
    return {
        "card without a guarantee": card_page(unproved),
        "card with a guarantee": card_page(proved),
        "card of kept rows": card_page(kept),
        "report without a guarantee": report_of(unproved, text),
        "report with a guarantee": report_of(proved, text, FORMAL),
        "study": study_of(tmp_path_factory.mktemp("study"), text),
        "inspection": inspection_of(text),
    }


def words_of(page: str) -> str:
    """What a reader sees: no markup, no style, spaces made single."""
    body = re.sub(r"<(style|svg)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", body).replace("\u00a0", " ").replace("&#39;", "'").split())


class Markup(HTMLParser):
    """The elements and attributes of a page, as a browser reads them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")


def test_no_page_fetches_or_runs_anything(pages: dict[str, str]) -> None:
    forbidden = {"script", "link", "iframe", "object", "embed", "img", "image", "base", "form", "a", "use"}
    for name, page in pages.items():
        markup = Markup(page)
        assert not markup.elements & forbidden, name
        assert not markup.attributes.keys() & {"src", "srcset", "href", "xlink:href", "action"}, name
        assert not [attribute for attribute in markup.attributes if attribute.startswith("on")], name
        assert not re.search(r"url\((?!#)|@import", page, re.IGNORECASE), name
        assert any("default-src 'none'" in value for value in markup.attributes["content"]), name


def test_texts_of_others_are_shown_as_text(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        assert "<script" not in page, name
        assert "&lt;script&gt;" in page, name


@pytest.mark.parametrize("word", ["anonymous", "anonymis", "anonymiz", "safe", "cannot be re-identified"])
def test_no_page_promises_too_much(pages: dict[str, str], word: str) -> None:
    for name, page in pages.items():
        assert word not in words_of(page).lower(), name


def test_every_figure_has_words_and_a_drawing_for_telephones(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        wide, narrow = page.count('class="wide" role="img"'), page.count('class="narrow" role="img"')
        assert wide == narrow == page.count("<figure>"), name
        assert 'aria-label=""' not in page, name


def test_a_card_without_a_guarantee_says_so_and_why() -> None:
    words = words_of(card_page(content_of(NONE, accept_risk="a pilot")))
    assert (
        "No formal guarantee; the custodian accepted the risk "
        "Why: transition counts of the training log are released." in words
    )
    assert "risk-accepted" in content_of(NONE, accept_risk="a pilot")["guarantee"]["caveats"]
    assert "could partly be recognised" in words
    assert "gave this reason a pilot" in words
    assert "It is proved" not in words


def test_a_card_with_a_guarantee_explains_epsilon_and_the_worst_case() -> None:
    words = words_of(card_page(content_of(FORMAL)))
    assert "Formal guarantee: epsilon 8, delta 1.00e-06" in words
    assert "times as likely" not in words
    assert "about 1 in 1,000,000" in words
    # Phi(1.53 / sqrt 2) = 0.860, Phi(1.53 - 2.326) = 0.213, rounded up.
    assert "the attacker picks the right one 87 times in 100 50 times in 100" in words
    assert "and accuses one other in 100 22 times in 100 once in 100" in words
    assert "No formal guarantee" not in words
    assert "accepted the risk" not in words


def test_the_first_sentence_is_a_verdict_and_epsilon_comes_after_it() -> None:
    card = content_of(FORMAL)
    words = words_of(card_page(card)).partition(card["title"])[2]
    assert card["verdict"].startswith(
        "The learners in this file are invented; a proof limits what it gives away"
    )
    assert card["verdict"].count(".") == 1
    assert words.index(card["verdict"]) < words.index(card["what"]) < words.index("epsilon 8")
    unproved = content_of(NONE, accept_risk="a pilot")["verdict"]
    assert "nothing is proved" in unproved
    assert unproved.endswith("; the custodian accepted the risk.")
    assert "invented" not in content_of(NONE, keeps_rows=True)["verdict"]


def test_a_limit_that_limits_nothing_is_not_printed_as_one() -> None:
    wide = guarantee_in_words(Guarantee(20.0))
    assert wide["limits"] == []
    assert len(wide["unlimited"]) == 4
    words = words_of(card_page(content_of(Guarantee(20.0))))
    assert "Nothing worth stating is proved against this: distinguished:" in words
    assert "99 times in 100" not in words
    assert "100 times in 100" not in words
    tight = guarantee_in_words(Guarantee(1.0))
    assert [limit["at_most"] for limit in tight["limits"]] == list(worst_case(Guarantee(1.0)).values())
    assert tight["unlimited"] == []
    proved, *_ = risk_levels(Guarantee(20.0), assessment().strongest, None)
    assert (proved.auc, "no limit worth stating" in proved.sentence) == (None, True)


def test_the_risk_that_was_asked_for_is_repeated() -> None:
    asked = RiskLimit.parse("5 in 100").kept(FORMAL)
    assert asked == "Asked for: at most 5 in 100 members found. Epsilon 8 keeps to it."
    page = card_page_of({**content_of(FORMAL), "asked": asked}, small_log(simulated=False))
    assert asked in words_of(page)


def test_errors_are_totals_in_percentage_points_by_use() -> None:
    off = ExpectedError(noise=0.3, chance=0.1, unknowing=0.8).to_json()
    expected = {
        "shares": ExpectedError(noise=0.6, chance=0.0, unknowing=0.43).to_json(),
        "difficulties": off,
        "success_rate": 0.071,
        "rows_factor": 1.5,
        "steps": None,
        "times": {},
        "columns": {},
    }
    uses = uses_of(expected, 3000, 100)
    assert [(use.words, use.grade) for use in uses] == [
        ("about 60 percentage points, as a rule 30 to 100", "mostly noise"),
        ("about 8 percentage points of success, as a rule 4 to 14", "rough"),
        ("up to 8 percentage points", "fair"),
        ("in the order of the course, which was declared", "not predicted"),
        ("30.0 here, 20.0 to 45.0 in the original as a rule", "rough"),
    ]
    # As many rows as one likes make nothing more exact.
    assert [use.error for use in uses_of(expected, 3_000_000, 100_000)] == [use.error for use in uses]
    assert "little but noise about how often each action is attempted" in verdict_of(
        FORMAL, uses, keeps_rows=False
    )
    lost = ExpectedError(noise=0.7, chance=0.1, unknowing=0.8).to_json()
    hidden = uses_of({**expected, "difficulties": lost, "steps": lost}, 3000, 100)
    assert verdict_of(FORMAL, hidden, keeps_rows=False).endswith(
        "apart from the success rate of all attempts and attempts of a learner, on average it is mostly noise."
    )
    assert uses_of(None, 10, 1) == []
    tiny = uses_of({**expected, "success_rate": 1.0, "rows_factor": 42.0}, 953, 12)
    assert [use.words for use in tiny[2:]] == [
        "no limit worth stating",
        tiny[3].words,
        "79.4 here; the original may have far fewer or far more",
    ]
    details = {
        "times": {"hours": ExpectedError(noise=0.3, chance=0.1, unknowing=0.6).to_json()},
        "columns": {
            "grade": {"most": 0.034, "given": ["success rate", "'school'"]},
            "note": {"most": 0.9, "given": []},
        },
    }
    assert [(use.name, use.words, use.grade) for use in uses_of({**expected, **details}, 3000, 100)[5:]] == [
        (
            "the hours of the week at which learners work",
            "about 32 percentage points, as a rule 16 to 57",
            "rough",
        ),
        ("column 'grade'", "up to 4 percentage points; goes with success rate and 'school'", "close"),
        ("column 'note'", "no limit worth stating; goes with nothing that stands out", "mostly noise"),
    ]
    words = words_of(card_page(content_of(NONE)))
    assert "percentage points" not in words
    assert "A large file is not an exact one" in words


@pytest.mark.parametrize("highest", [0, 1, 2, 3, 7, 12, 480])
def test_axes_of_learners_have_whole_numbers(highest: int) -> None:
    ticks = _whole_ticks([{"value": highest}, {"value": 0}])
    assert ticks == sorted(set(ticks))
    assert all(isinstance(tick, int) for tick in ticks)
    assert highest <= ticks[-1]
    assert len(ticks) <= 7


def test_the_figure_of_an_explanation_has_one_unit() -> None:
    foreseen = forecast(300, 12, 20.0, 8.0)
    words = expectation_figure([foreseen]).description
    shares, rate, steps = (
        round(100 * error)
        for error in (
            foreseen.shares.expected,
            success_points(foreseen.difficulties.expected),
            foreseen.steps.expected,
        )
    )
    assert words.startswith("Expected errors in percentage points, by epsilon: ")
    assert f"8, shares of actions: {shares}" in words
    assert f"8, success rate of an action: {rate}" in words
    assert f"8, steps between actions: {steps}" in words


def test_real_beside_synthetic_stays_inside(pages: dict[str, str]) -> None:
    for name in ("report with a guarantee", "study"):
        assert "Real beside synthetic stays inside" in words_of(pages[name]), name
    # Each of the study's two methods has its picture.
    assert pages["study"].count("Real beside synthetic. Shares of actions") == 2 * 2
    assert "Real beside synthetic" not in words_of(card_page(content_of(FORMAL)))


def test_no_sentence_is_about_zero_learners() -> None:
    none_aside = replace(assessment(), n_set_aside=0, n_constant=0, exposed_share=0.0)
    card, log = content_of(FORMAL), small_log(simulated=False)
    report = {**card["provenance"], "seed": 1, "population": "p", "accepted_risk": "", "reading": []}
    report["guarantee"] = card["guarantee"]
    words = words_of(report_page(log, log, none_aside, FORMAL, card, report))
    assert "no learner is exposed" in words
    assert "What was set aside" not in words
    assert not re.search(r"(?<![\d.,])0 (of|learners)", words)


def test_published_figures_are_in_the_headline_and_in_the_guarantee() -> None:
    content = content_of(FORMAL, publish=True, accept_risk="needless")
    assert content["protection"]["headline"] == (
        "Formal guarantee: epsilon 8, delta 1.00e-06; figures measured on the real learners are published here "
        "without a guarantee"
    )
    assert content["guarantee"]["caveats"] == ["figures-published"]
    assert "no guarantee covers them" in content["guarantee"]["statement"]
    assert content_of(FORMAL)["protection"]["headline"] == "Formal guarantee: epsilon 8, delta 1.00e-06"


def test_kept_rows_are_not_called_invented_learners() -> None:
    words = words_of(card_page(content_of(NONE, keeps_rows=True)))
    assert "do not exist" not in words
    assert "drawn from a model" not in words
    assert "The rows are rows of learners in the original log" in words


def test_simulated_data_is_called_so_at_the_top() -> None:
    card = content_of(NONE, simulated=True)
    for page in (card_page(card), report_of(card)):
        assert words_of(page.partition("<main>")[2]) != words_of(page)
        assert "Simulated data." in words_of(page.partition("<main>")[0])
    assert "Simulated" not in words_of(card_page(content_of(NONE)))


def test_a_card_holds_no_measured_figure_unless_published() -> None:
    white = assessment().white_box
    assert white is not None
    figures = (AUC, LOW, HIGH, FOUND, LOST, white.auc, white.low, white.high)
    spellings = {f"{f:.{digits}f}" for f in figures for digits in (2, 3, 4)}
    spellings |= {f"{100 * f:.{digits}f} %" for f in figures for digits in (0, 1)}
    spellings |= {f"{round(100 * f)} times" for f in figures}
    silent = content_of(NONE, accept_risk="a pilot")
    for text in (words_of(card_page(silent)), json.dumps(silent)):
        assert not [spelling for spelling in spellings if spelling in text]
        assert "are with the custodian" in text
    published = words_of(card_page(content_of(NONE, publish=True)))
    assert "These figures were computed from the real data, and no guarantee covers them." in published
    assert "AUC 0.74 (0.61 to 0.83)" in published
    assert f"{AUC}" not in published


def test_the_card_shows_what_its_json_holds() -> None:
    card = content_of(FORMAL, publish=True)
    words = words_of(card_page(json.loads(json.dumps(card))))
    texts = [card["what"], *card["uses"], *card["misuses"], *card["protection"]["explanation"]]
    texts += card["protection"]["protects"] + card["protection"]["does_not_protect"]
    texts += [column["meaning"] for column in card["columns"]]
    assert [text for text in texts if text not in words] == []


def test_the_report_opens_with_the_verdict_and_stays_inside() -> None:
    page = report_of(content_of(NONE, accept_risk="a pilot"))
    words = words_of(page)
    assert "Internal. This page stays with the custodian." in words_of(page.partition("<main>")[0])
    assert (
        "The strongest attack (shadow) distinguishes members from others with AUC 0.74 (0.61 to 0.83); 0.5 would be "
        "guessing. In plain words: shown one member and one outsider, the attacker picks the member "
        "74 times in 100."
    ) in words
    assert "never released and never charged" in words
    assert "Seed (keep it inside) 123456789" in words


def test_the_report_quotes_the_attack_that_finds_most_and_what_luck_finds() -> None:
    found = assessment()
    rare = [replace(e, tpr_at_1pct=0.3579) if e.attack == "rare" else e for e in found.estimates]
    assert certainty(replace(found, estimates=tuple(rare)), found.chance) == (
        "Allowed one false alarm per 100 outsiders, the attack that finds most (rare) finds 36 of 100 members; by luck "
        "alone the best of these attacks finds 2.3, and in 95 of 100 draws no more than 4.2. The interval of the AUC "
        "lies above 0.5: this is more than luck."
    )


@pytest.mark.parametrize(
    ("auc", "low", "luck", "words"),
    [
        (0.52, 0.5041, 0.51, "was not shown to beat guessing"),  # printed as 0.50
        (0.53, 0.5051, 0.51, "more than luck"),
        (0.534, 0.52, 0.526, "so this may be luck"),  # printed as 0.53, both
        (0.536, 0.52, 0.534, "more than luck"),
    ],
)
def test_no_sentence_contradicts_the_figures_as_they_are_printed(auc, low, luck, words) -> None:
    found = assessment()
    estimates = tuple(replace(estimate, auc=auc) for estimate in found.estimates)
    risk = replace(found, estimates=estimates, low=low, high=0.54)
    said = certainty(risk, replace(found.chance, high=luck))
    assert words in said
    assert ("more than luck" in said) == (words == "more than luck")


def test_a_report_of_attacks_that_only_guess_does_not_cry_wolf() -> None:
    card = content_of(NONE)
    log = small_log(simulated=False)
    report = {**card["provenance"], "seed": 1, "population": "p", "accepted_risk": "", "reading": []}
    report["guarantee"] = card["guarantee"]
    guessing = replace(assessment(), low=0.45, high=0.54, groups=[])
    assert "was not shown to beat guessing" in words_of(report_page(log, log, guessing, NONE, card, report))
    too_few = replace(assessment(), low=0.45, high=0.9, groups=[])
    words = words_of(report_page(log, log, too_few, NONE, card, report))
    assert "was not shown to beat guessing" not in words
    assert "may do better or worse than it looks" in words
    assert "Does every group fare the same?" not in words


THREE = (
    "Proved, whatever the data and whatever an attacker knows: at most 87 times in 100.",
    "by an attacker who sees the noisy sums behind the synthetic log: 77 times in 100 (interval 72 to 81).",
    "by the strongest attack on the synthetic log that we ran (shadow): 74 times in 100 (interval 61 to 83).",
)


def test_proof_white_box_and_strongest_attack_stand_side_by_side() -> None:
    report = words_of(report_of(content_of(FORMAL), guarantee=FORMAL))
    published = words_of(card_page(content_of(FORMAL, publish=True)))
    for sentence in THREE:
        assert sentence in report
        assert sentence in published
    assert "sees the noisy sums (leaving aside which names were told), and" in report
    assert "21 of the 500 learners (4.2 %) are exposed" in report
    assert "Attacked were 500 of 600 learners, drawn at random" in report
    assert "all but 1,234 of 1,000,000 pairs" in report
    assert "exposed" not in published
    silent = words_of(card_page(content_of(FORMAL)))
    assert "87 times in 100" in silent
    assert not [sentence for sentence in THREE[1:] if sentence in silent]


def test_where_nothing_is_proved_or_no_sums_are_noisy_the_words_say_so() -> None:
    plain = risk_levels(NONE, assessment().strongest, None)
    assert [level.auc for level in plain] == [None, None, 0.74]
    assert "Nothing is proved" in plain[0].sentence
    assert "rests on no noisy sums" in plain[1].sentence


def test_every_attack_has_a_story() -> None:
    assert set(MEMBERSHIP_ATTACKS) <= set(ATTACK_STORIES)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (1.0, 1e-5), (3.0, 1e-2), (60.0, 0.0)])
def test_worst_case_is_the_area_under_the_best_test(epsilon: float, delta: float) -> None:
    alpha = np.linspace(0, 1, 2_000_001)
    with np.errstate(over="ignore"):
        missed = np.maximum(1 - delta - np.exp(epsilon) * alpha, np.exp(-epsilon) * (1 - delta - alpha))
    area = 1 - float(np.trapezoid(np.maximum(missed, 0), alpha))
    bound = worst_case(Guarantee(epsilon, delta))
    assert bound["auc"] == pytest.approx(math.ceil(100 * area - 1e-4) / 100)
    power = 1 - float(np.maximum(missed, 0)[20_000])
    assert bound["tpr_at_1pct"] == pytest.approx(math.ceil(100 * power - 1e-6) / 100)


def test_worst_case_of_a_gaussian_mechanism_is_that_of_two_normal_laws() -> None:
    rng = np.random.default_rng(3)
    with_learner, without = rng.normal(1.0, 1, 200_000), rng.normal(0, 1, 200_000)
    bound = worst_case(Guarantee(5.0, 1e-5, mu=1.0))
    # Standard error about 0.001; rounding up adds at most 0.01.
    assert 0 <= bound["auc"] - np.mean(with_learner > without) + 0.004 <= 0.018
    assert 0 <= bound["tpr_at_1pct"] - np.mean(with_learner > norm.ppf(0.99)) + 0.004 <= 0.018


def test_names_in_the_figure_keep_apart() -> None:
    summaries = [
        {"method": f"drop:0.{k}", "wrmse": 0.1 + 0.01 * k, "auc_worst": 0.97 + 0.002 * k, "auc_lcs": 0.9}
        | {"auc_worst_low": 0.96, "auc_worst_high": 0.99}
        for k in range(4)
    ]
    places = name_places(summaries, 0.3)
    assert {place["method"] for place in places} == {summary["method"] for summary in summaries}
    assert len({(round(place["auc"], 3), place["left"]) for place in places}) == len(places)


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_pages_fit_the_screen_can_be_read_and_stay_offline(
    pages: dict[str, str], browser: Any, tmp_path: Path, width: int, scheme: str
) -> None:
    for name, text in pages.items():
        path = tmp_path / "page.html"
        path.write_text(text, encoding="utf-8")
        said: list[str] = []
        asked: list[str] = []
        page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
        page.on("console", lambda message, said=said: said.append(message.text))
        page.on("pageerror", lambda error, said=said: said.append(str(error)))
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (name, width)
        assert page.evaluate("getComputedStyle(document.querySelector('h1')).fontWeight") == "700", name
        assert page.evaluate(FAINT_WORDS) == [], (name, scheme)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(16, 22, 29)") == (scheme == "dark"), name
        assert said == [], name
        assert asked == [path.as_uri()], name
        page.close()
