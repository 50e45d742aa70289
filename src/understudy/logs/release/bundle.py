"""Makes a release: `share/` may leave, `keep/` stays with the custodian."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import understudy
from understudy.core.files.writing import (
    check_absent,
    check_parent,
    new_folder,
    write_json,
    write_table,
    write_text,
)
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.ledger import DEFAULT_POPULATION, FILE_NAME, REFUSED, Ledger, new_card_id
from understudy.core.privacy.noise import os_noise
from understudy.errors import DataError, RefusedError
from understudy.logs.generators.generator import Synthesizer, kind_of, make_method
from understudy.logs.interactions import Interactions
from understudy.logs.release.assessment import Assessment, assess
from understudy.logs.release.card import card_content, card_page
from understudy.logs.release.codebook import citation, codebook
from understudy.logs.release.report import report_page

# Without a guarantee, a release is refused when the strongest attack reaches more than this AUC...
RISK_LIMIT = 0.55
# ...or when fewer learners than this were judged on either side: then an audit shows nothing.
FEWEST_JUDGED = 50


@dataclass(frozen=True)
class Options:
    """What the custodian decided about a release."""

    method: str
    n_learners: int | None = None
    accept_risk: str = ""
    publish_figures: bool = False
    custodian: str = ""
    title: str = ""
    population: str = DEFAULT_POPULATION
    seed: int | None = None


@dataclass(frozen=True)
class Released:
    """What a release became: where it is and what was measured."""

    folder: Path
    card: str
    synthetic: Interactions
    synthesizer: Synthesizer
    guarantee: Guarantee
    assessment: Assessment


def make_release(
    log: Interactions,
    folder: Path,
    options: Options,
    *,
    ledger: Ledger | None,
    notes: tuple[str, ...] = (),
    progress: Callable[[int], Callable[[], None]] | None = None,
) -> Released:
    """Measure, decide, charge, fit on all learners, and write the bundle whole or not at all.

    `ledger` is None for simulated data, whose ledger goes into the bundle. A refusal comes
    before anything is charged or written.
    """
    check_absent(folder)
    check_parent(folder)
    synthesizer = make_method(options.method)
    guarantee = synthesizer.guarantee(log.n_learners)
    earlier = 0 if ledger is None else ledger.check(options.population, guarantee).n_without_guarantee
    assessment = assess(log, options.method, n_learners=options.n_learners, progress=progress)
    card = new_card_id()
    entry: dict[str, Any] = {
        "population": options.population,
        "card": card,
        "kind": "release",
        "method": options.method,
        "guarantee": guarantee,
        "risk": {**assessment.to_json(), "figures_published": options.publish_figures},
    }
    try:
        refuse_risk(assessment, guarantee, synthesizer.keeps_rows, options, earlier)
    except RefusedError:
        # Trying until an audit passes is a way of looking at the data: every try leaves a trace.
        if ledger is not None:
            ledger.record(**{**entry, "kind": REFUSED})
        raise
    if ledger is not None:
        ledger.record(**entry)
    # Whoever knows the seed can undo part of the randomness, so it is drawn afresh and kept back.
    seed = secrets.randbits(64) if options.seed is None else options.seed
    rng = np.random.default_rng(seed)
    synthetic = synthesizer.fit(log, rng, os_noise()).sample(options.n_learners, rng)
    if not synthetic.n_rows:
        raise DataError(
            f"{options.method} left no row to release.", hint="use another method or a larger log."
        )
    provenance = {
        "card": card,
        "method": options.method,
        "made": datetime.now(UTC).date().isoformat(),
        "version": understudy.__version__,
        "custodian": options.custodian,
        "simulated": log.simulated,
        "seeded": options.seed is not None,
    }
    content = card_content(synthetic, synthesizer, guarantee, assessment, options, provenance)
    report = {
        **provenance,
        "seed": seed,
        "population": options.population,
        "accepted_risk": options.accept_risk,
        "guarantee": guarantee.to_json(),
        "reading": list(notes),
        "measured": assessment.to_json(),
    }
    with new_folder(folder) as temporary:
        share, keep = temporary / "share", temporary / "keep"
        share.mkdir()
        keep.mkdir()
        table = synthetic.to_frame("synthetic-")
        kind = kind_of(synthesizer)
        write_table(table, share / "synthetic.csv", kind=kind)
        write_table(table, share / "synthetic.parquet", kind=kind)
        write_text(share / "codebook.csv", codebook(synthetic, synthesizer.keeps_rows))
        write_text(share / "CITATION.cff", citation(content))
        write_json(share / "card.json", content)
        write_text(share / "card.html", card_page(content))
        write_json(keep / "report.json", report)
        write_text(keep / "report.html", report_page(log, synthetic, assessment, content, report))
        # The report, its figures and the seed are for the custodian alone.
        keep.chmod(0o700)
        if ledger is None:
            Ledger(temporary / FILE_NAME).record(**entry)
    return Released(folder, card, synthetic, synthesizer, guarantee, assessment)


def refuse_risk(
    assessment: Assessment, guarantee: Guarantee, keeps_rows: bool, options: Options, n_earlier: int = 0
) -> None:
    """Refuse a method without a guarantee unless its risk is shown to be small, or accepted.

    That an attack was not shown to beat guessing is not enough: with few learners nothing is.
    """
    if guarantee.formal or options.accept_risk:
        return
    worst = assessment.worst
    found = (
        f"The strongest attack ('{worst.attack}') has AUC {worst.auc:.2f} "
        f"(interval {assessment.low:.2f} to {assessment.high:.2f}; 0.5 is guessing)."
    )
    if keeps_rows:
        reason = "it releases real rows."
    elif worst.auc > RISK_LIMIT:
        reason = f"its learners can be told from others: the limit is AUC {RISK_LIMIT:g}."
    elif min(worst.n_members, worst.n_outsiders) < FEWEST_JUDGED:
        reason = f"fewer than {FEWEST_JUDGED} learners could be judged on a side, too few to show anything."
    elif n_earlier:
        reason = f"{n_earlier} such release(s) about these learners exist, and their risks add up unmeasured."
    else:
        return
    raise RefusedError(
        f"{options.method} has no formal guarantee, and {reason} {found} Nothing was released.",
        hint="use a method with a guarantee, or override with --accept-risk 'your reason', "
        "which is printed on the card.",
    )
