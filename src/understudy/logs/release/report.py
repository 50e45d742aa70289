"""The custodian's report: everything measured, with pictures. It stays inside."""

from __future__ import annotations

from typing import Any

from understudy.core.attacks.transcript import EXPOSED
from understudy.core.pages.levels import levels_figure, risk_levels
from understudy.core.pages.render import render
from understudy.core.pages.words import certainty, verdict
from understudy.core.privacy.guarantee import Guarantee
from understudy.logs.audit import risk_figure, strongest_first
from understudy.logs.description import n_by_one_learner
from understudy.logs.histograms import compared, comparison_figure, histograms
from understudy.logs.interactions import Interactions, common_vocabulary
from understudy.logs.release.assessment import Assessment
from understudy.logs.utility import METRICS


def report_page(
    log: Interactions,
    synthetic: Interactions,
    assessment: Assessment,
    guarantee: Guarantee,
    card: dict[str, Any],
    report: dict[str, Any],
) -> str:
    """The report as a page."""
    n_actions, declared = log.n_actions, log.declared
    log, synthetic = common_vocabulary(log, synthetic)
    worst = assessment.worst
    levels = [
        dict(vars(level)) for level in risk_levels(guarantee, assessment.strongest, assessment.white_box)
    ]
    return render(
        "logs/release/report.html",
        card=card,
        report=report,
        assessment=assessment,
        metrics=METRICS,
        log=log,
        n_actions=n_actions,
        declared=declared,
        n_single=n_by_one_learner(log),
        verdict=verdict(worst.attack, worst.auc, assessment.low, assessment.high),
        certainty=certainty(assessment, assessment.chance),
        levels=levels,
        exposed=EXPOSED,
        levels_figure=levels_figure(levels),
        strongest_first=strongest_first(assessment.estimates),
        attacks_figure=risk_figure(assessment.estimates, assessment.chance),
        comparison_figure=comparison_figure(histograms(log, synthetic)),
        compared=compared(log),
    )
