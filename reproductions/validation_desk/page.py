"""The page of two-stage sharing, stage two: the published results beside ours."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from reproductions.pages import fill
from reproductions.validation_desk.measure import PLAN
from reproductions.validation_desk.study import CAUSAL, Drivers
from reproductions.validation_desk.tables import (
    FIRST,
    MENDED,
    every,
    found_drivers,
    measured,
    stage_one_mu,
    studied,
)
from understudy.desk.researcher.examples import read_examples
from understudy.desk.service.views import Interval
from understudy.desk.web.price_figures import rank_correlation

# Table I of the paper: requests by reported precision 0, 0.5 and 1, all, and the mean.
PUBLISHED = {1: (3, 5, 1, 9, 0.39), 2: (5, 6, 0, 11, 0.27), 3: (0, 5, 0, 5, 0.50)}


def page() -> str:
    """The paper's results beside ours."""
    values = {
        "n_learners": str(PLAN.n_learners),
        "n_shadows": f"{PLAN.n_shadows:,}",
        "epsilon": f"{PLAN.epsilon:g}",
        "delta": f"{PLAN.delta:.0e}",
        "stage_one_mu": f"{stage_one_mu():.2f}",
        "verdict_first": _verdict(found_drivers(FIRST)),
        "verdict_mended": _verdict(found_drivers(MENDED)),
        "drivers": _drivers(),
        "by_checks": _by_checks(),
        "dearest_first": _dearest(FIRST),
        "dearest_mended": _dearest(MENDED),
        "figure_5": _last_of_years(),
        "figure_5_words": _published_words(),
        "figure_6_words": _growth_words(),
        "figure_8_words": _pair_words(),
        "table_1": _table_1(),
        "requests": _requests(),
    }
    return fill("validation_desk", values)


def _shown(interval: Interval, digits: int = 2) -> str:
    value, low, high = interval
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _signed(interval: Interval) -> str:
    return "{:+.2f} ({:+.2f} to {:+.2f})".format(*interval)


def _verdict(found: Drivers) -> str:
    """Whether the published finding is seen, from intervals and not from a wish."""
    _, low, high = found.difference
    causal = (
        "causal analyses cost more than the others"
        if low > 0
        else "causal analyses cost less than the others"
        if high < 0
        else "causal analyses cannot be told from the others"
    )
    _, low, high = found.by_size
    size = (
        "larger answers cost more"
        if low > 0
        else "larger answers cost less"
        if high < 0
        else "no relation of size and price is shown"
    )
    seen = "is seen" if found.method_drives else "is **not** seen"
    return f"the published finding, method and not output size, {seen}; {causal}, and {size}"


def _drivers() -> str:
    lines = [
        "| 95 % intervals over requests | as first written | after the checks | published |",
        "|---|---|---|---|",
    ]
    first, mended = found_drivers(FIRST), found_drivers(MENDED)
    rows = (
        (f"mean advantage of {mended.n_causal} causal requests", "causal", _shown, '"remarkably high"'),
        (f"mean advantage of {mended.n_others} others", "others", _shown, "lower"),
        ("difference", "difference", _signed, "above 0"),
        ("chance of such a difference, requests dealt out at random", "chance", "{:.3f}".format, "–"),
        ("rank correlation of output size and advantage", "by_size", _signed, "negative"),
        ("the same without causal requests", "by_size_of_others", _signed, "–"),
        (
            "rank correlation of the largest influence of one learner and advantage",
            "by_influence",
            _signed,
            "–",
        ),
    )
    lines += [
        f"| {words} | {shown(getattr(first, name))} | {shown(getattr(mended, name))} | {published} |"
        for words, name, shown, published in rows
    ]
    return "\n".join(lines)


def _by_checks() -> str:
    """Advantages of what the disclosure checks let leave and of what they do not."""
    lines = [
        "| round | checks | causal: requests | mean advantage | others: requests | mean advantage |",
        "|---|---|---|---|---|---|",
    ]
    for name, words in ((FIRST, "as first written"), (MENDED, "after the checks")):
        for fails in (True, False):
            chosen = [one.request for one in studied(name) if bool(one.failed) == fails]
            cells = []
            for causal in (True, False):
                mine = [one.advantage[0] for one in chosen if (one.kind == CAUSAL) == causal]
                cells += [str(len(mine)), f"{np.mean(mine):.2f}" if mine else "–"]
            lines.append(f"| {words} | {'fail' if fails else 'pass or review'} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _dearest(name: str) -> str:
    """The most expensive requests of a round, and whether the checks hold them."""
    dearest = sorted(studied(name), key=lambda one: -one.request.advantage[0])[:6]
    shown = [
        f"{one.request.label} ({one.request.kind}) {one.request.advantage[0]:.2f}, "
        + (f"held by {', '.join(one.failed)}" if one.failed else "held by none")
        for one in dearest
    ]
    return "; ".join(shown)


def _last_of_years() -> str:
    lines = [
        "| year | requests | numbers released | measured mu of everything | published formula | advantage |",
        "|---|---|---|---|---|---|",
    ]
    for year, requests in measured().items():
        last = requests[-1]
        lines.append(
            f"| {year} | {len(requests)} | {sum(one.n_outputs for one in requests)} | {_shown(last.together_mu)} "
            f"| {last.published_mu:.2f} | {_shown(last.together_advantage)} |"
        )
    return "\n".join(lines)


def _published_words() -> str:
    above = sum(one.together_mu[1] > one.published_mu for one in every())
    below = sum(one.together_mu[2] < one.published_mu for one in every())
    return (
        f"The measured mu lies above the published formula, by its whole interval, after {above} of "
        f"{len(every())} requests, and below it after {below}."
    )


def _growth_words() -> str:
    """Largest steps of the advantage of everything together."""
    steps = [
        (one.together_advantage[0] - before.together_advantage[0], one, year)
        for year, requests in measured().items()
        for before, one in pairwise(requests)
    ]
    largest = [
        f"{one.label} ({one.researcher}, {one.kind}, year {year}) {step:+.2f}"
        for step, one, year in sorted(steps, key=lambda found: -found[0])[:3]
    ]
    return f"The three largest steps are {', '.join(largest)}."


def _pair_words() -> str:
    judged = [one for one in every() if one.precision is not None]
    wanted = (
        ("precision and output size", [(float(one.n_outputs), one.precision) for one in judged], "negative"),
        ("precision and mu", [(one.mu[0], one.precision) for one in judged], "positive"),
        ("precision and advantage", [(one.advantage[0], one.precision) for one in judged], "positive"),
    )
    lines = ["| rank correlation | ours | published |", "|---|---|---|"]
    for name, points, published in wanted:
        found = rank_correlation(points)  # type: ignore[arg-type]
        lines.append(
            f"| {name} | {'–' if found is None else f'{found:+.2f}'} | {published}, not significant |"
        )
    return "\n".join(lines)


def _table_1() -> str:
    lines = [
        "| year | requests at 0 / 0.5 / 1 / nothing claimed | precision | published: 0 / 0.5 / 1 | precision |",
        "|---|---|---|---|---|",
    ]
    for year, requests in measured().items():
        scores = [one.precision for one in requests]
        none, half, most, _, mean = PUBLISHED[year]
        lines.append(
            f"| {year} | {_counted(scores)} | {_mean(scores)} | {none} / {half} / {most} | {mean:.2f} |"
        )
    scores = [one.precision for one in every()]
    return "\n".join([*lines, f"| all | {_counted(scores)} | {_mean(scores)} | 8 / 16 / 1 | 0.36 |"])


def _counted(scores: list[float | None]) -> str:
    return " / ".join(str(sum(score == step for score in scores)) for step in (0.0, 0.5, 1.0, None))


def _mean(scores: list[float | None]) -> str:
    known = [score for score in scores if score is not None]
    return f"{np.mean(known):.2f}" if known else "–"


def _requests() -> str:
    asked = {one.label: one for one in read_examples()}
    before = {one.request.label: one.request for one in studied(FIRST)}
    held = {one.request.label: one.failed for one in studied()}
    lines = [
        "| year | who | kind | question | numbers | precision | mu alone | advantage alone | as first written "
        "| fails |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for year, requests in measured().items():
        for one in requests:
            mine = asked[one.label]
            path = f"../../src/understudy/desk/researcher/analyses/year_{mine.year}/{mine.name}.py"
            precision = "–" if one.precision is None else f"{one.precision:g}"
            first = f"{before[one.label].advantage[0]:.2f}" if mine.first else "the same"
            lines.append(
                f"| {year} | {one.researcher} | {one.kind} | [{mine.question}]({path}) | {one.n_outputs} "
                f"| {precision} | {_shown(one.mu)} | {_shown(one.advantage)} | {first} "
                f"| {', '.join(held[one.label]) or '–'} |"
            )
    return "\n".join(lines)
