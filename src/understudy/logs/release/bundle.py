"""release(): measures, decides, charges, fits and writes `share/`, which may leave, and `keep/`, which stays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl

import understudy
from understudy.core.engine import progress
from understudy.core.files.words import counted
from understudy.core.files.writing import (
    check_new,
    new_folder,
    write_json,
    write_table,
    write_text,
)
from understudy.core.names import SYNTHETIC_PREFIX
from understudy.core.options import settled
from understudy.core.pages.card import NO_LIMIT
from understudy.core.pages.notebook import notebook_table
from understudy.core.pages.words import of_100
from understudy.core.privacy.guarantee import Guarantee
from understudy.core.privacy.noise import Noise
from understudy.core.privacy.risk import ByRisk, worst_case
from understudy.core.privacy.spending import Account, Charge, Spending, SpentError
from understudy.errors import RefusedError, UsageError
from understudy.logs.audit import risk_figure
from understudy.logs.expectation import check_worth
from understudy.logs.generators.generator import Generator
from understudy.logs.generators.registry import chosen_generator
from understudy.logs.interactions import Interactions, as_log
from understudy.logs.release.assessment import Assessment, assess
from understudy.logs.release.card import card_content, card_page, citation, with_decisions
from understudy.logs.release.codebook import codebook
from understudy.logs.release.report import report_page
from understudy.logs.synthesize import Sampling, check_budget, check_room, fitted
from understudy.logs.trial import check_size

# Without a guarantee, a release is refused when the strongest attack reaches more than this AUC...
RISK_LIMIT = 0.55
# ...or when some attack finds more than this share of the members at 1 % false alarms, and more than luck would...
FOUND_LIMIT = 0.05
# ...or when fewer learners than this were judged on either side: then an audit shows nothing.
FEWEST_JUDGED = 50


@dataclass(frozen=True)
class ReleaseOptions(Sampling, ByRisk, Spending):
    """What the custodian decided about a release."""

    accept_risk: Annotated[
        str, "Release although learners can be distinguished, for this reason; it is on the card."
    ] = ""
    declared_guarantee: Annotated[
        str,
        "What you declare about a generator of others, in your words; the card says that it is your word.",
    ] = ""
    publish_figures: Annotated[bool, "Put the measured figures, rounded, on the card."] = False
    title: Annotated[str, "Title on the card."] = ""
    custodian: Annotated[str, "Who stands behind the release."] = ""


@dataclass(frozen=True)
class Release:
    """A release that was made: where it is, what was charged and what was measured."""

    folder: Path
    log: Interactions
    generator: Generator
    guarantee: Guarantee
    assessment: Assessment
    charge: Charge
    n_withdrawn: int
    asked: str = ""
    """The risk that was asked for, and what keeps to it."""

    @property
    def card(self) -> Path:
        """The card that travels with the data."""
        return self.folder / "share" / "card.html"

    @property
    def report(self) -> Path:
        """The report that stays inside."""
        return self.folder / "keep" / "report.html"

    def __repr__(self) -> str:
        return f"<Release: {' '.join(self.lines()[:4])}>"

    def to_json(self) -> dict[str, Any]:
        """The release for machines; `measured` stays inside."""
        return {
            "out": str(self.folder),
            "card": str(self.card),
            "report": str(self.report),
            "id": self.charge.card,
            "withdrawn": self.n_withdrawn,
            "guarantee": self.guarantee.to_json(),
            "measured": self.assessment.to_json(),
            "charge": self.charge.to_json(),
        }

    def lines(self) -> list[str]:
        """The release for people."""
        worst, assessment = self.assessment.worst, self.assessment
        who = "renumbered real" if self.generator.keeps_rows else "synthetic"
        return [
            f"{self.log.n_rows} rows of {self.log.n_learners} {who} learners.",
            *filter(None, [self.generator.cut_short_]),
            *self.generator.details_.notes,
            f"Guarantee: {self.guarantee}.",
            *filter(None, [self.asked]),
            f"Measured on halves of the learners: the strongest attack is {worst.attack}, AUC {worst.auc:.2f} "
            f"(interval {assessment.low:.2f} to {assessment.high:.2f}; 0.5 is guessing).{self._limits()} "
            f"Most members found at 1 % false alarms: {of_100(assessment.most_found.tpr_at_1pct)} of 100.",
            self.charge.sentence(),
            f"To share: {self.folder / 'share'}",
            f"To keep inside: {self.report}",
            f"Card: {self.card}",
        ]

    def _limits(self) -> str:
        """What stands above the strongest attack: the optimum on the noisy sums, and the proof."""
        white = self.assessment.white_box
        if white is None or not self.guarantee.formal:
            return ""
        most = worst_case(self.guarantee)["auc"]
        proved = f"at most {most:.2f}" if most < NO_LIMIT else "no limit worth stating"
        return (
            f" If the noisy sums were seen: AUC {white.auc:.2f} on this data; proved for any data: {proved}."
        )

    def to_frame(self) -> pl.DataFrame:
        """The attacks that were measured, a row each; they stay inside."""
        return pl.DataFrame([estimate.to_json() for estimate in self.assessment.estimates])

    def plot(self) -> Any:
        """The attacks with their intervals, as an altair chart; it stays inside."""
        return risk_figure(self.assessment.estimates, self.assessment.chance).chart

    def _repr_html_(self) -> str:
        return notebook_table(" ".join(self.lines()[:4]), self.to_frame())


def release(
    log: Interactions,
    out: Path | str,
    generator: Any = None,
    options: ReleaseOptions = ReleaseOptions(),  # noqa: B008 (frozen)
    *,
    epsilon: float | None = None,
    noise: Noise | None = None,
    **settings: Any,
) -> Release:
    """Measure, decide, charge, fit on all learners, and write the bundle whole or not at all.

    The generator is `runs-dp` with this `epsilon` unless another is given; by default 8, or 4 where more names are
    declared than there are learners. The settings of `ReleaseOptions` may be given as keywords. What can be refused is
    refused before anything is computed or charged; `core.privacy.spending` says what happens when the rest fails.
    """
    options, log = settled(options, settings), as_log(log)
    given = generator
    generator = chosen_generator(given, epsilon, options.risk, log)
    folder = Path(out)
    check_new(folder, folder=True)
    check_room(log, options.n_learners, folder)
    log.origin.refuse_people("the synthetic file", log.actions)
    check_size(log)
    accepted, figures = options.accept_risk.strip(), options.publish_figures
    guarantee = with_decisions(generator.guarantee_for(log), accepted, figures)
    if options.declared_guarantee.strip() and guarantee.formal:
        raise UsageError(
            f"a guarantee was declared, but {generator.label} has one that is proved.",
            hint="leave it out.",
            settings=("declared_guarantee",),
        )
    if generator.keeps_rows and not accepted:
        raise _refusal(generator, "it releases real rows.")
    account = Account.open(options, log.origin, simulated=log.simulated)
    log = replace(log, simulated=bool(account.simulated))
    earlier = check_budget(account, guarantee, given).n_without_guarantee
    # Measuring takes long: a person is asked before it.
    account = account.agree(guarantee, check_worth(log, generator, options.meant_for, anyway=options.anyway))
    assessment = assess(log, generator, n_learners=options.n_learners)
    risk = {**assessment.to_json(), "figures_published": figures}
    try:
        refuse_risk(assessment, guarantee, generator, options, 0 if account.simulated else earlier)
    except RefusedError:
        # Trying until an audit passes is a way of looking at the data: every try leaves a trace.
        account.note_refusal("release", generator.label, guarantee, risk)
        raise
    asked = " ".join(options.asked(guarantee))
    seed, rng = options.rng()
    # Two releases at once may both have found that there is no other: the ledger looks again when it charges.
    alone = not (guarantee.formal or accepted or account.simulated)
    with account.charge(
        "release", generator.label, guarantee, out=folder, risk=risk, noise=noise, alone=alone
    ) as charge:
        synthetic = fitted(generator, log, rng, charge.noise).sample(options.n_learners, rng)
        if not synthetic.n_rows:
            raise SpentError(
                f"{generator.label} left no row to release.", hint="use another generator or a larger log."
            )
        provenance = {
            "card": charge.card,
            "method": generator.label,
            "cut_short": generator.cut_short_,
            "made": datetime.now(UTC).date().isoformat(),
            "version": understudy.__version__,
            "custodian": options.custodian,
            "simulated": log.simulated,
            "seeded": options.seed is not None,
        }
        content = card_content(
            synthetic,
            generator,
            assessment,
            provenance,
            title=options.title,
            accepted_risk=accepted,
            declared=options.declared_guarantee.strip(),
            publish_figures=figures,
            asked=asked,
        )
        stated = with_decisions(generator.guarantee_, accepted, figures)
        report = {
            **provenance,
            "seed": seed,
            "population": account.population,
            "accepted_risk": accepted,
            "guarantee": stated.to_json(),
            "reading": list(log.origin.notes),
            "measured": assessment.to_json(),
        }
        _write(folder, log, synthetic, generator, assessment, content, report)
    return Release(
        folder,
        replace(synthetic, card=charge.card),
        generator,
        stated,
        assessment,
        charge,
        log.origin.n_withdrawn,
        asked,
    )


def _write(
    folder: Path,
    log: Interactions,
    synthetic: Interactions,
    generator: Generator,
    assessment: Assessment,
    content: dict[str, Any],
    report: dict[str, Any],
) -> None:
    with progress.task("Writing the bundle"), new_folder(folder) as temporary:
        share, keep = temporary / "share", temporary / "keep"
        share.mkdir()
        keep.mkdir()
        tables = {"synthetic": synthetic.to_polars(SYNTHETIC_PREFIX)}
        if synthetic.learner_columns:
            tables["learners"] = synthetic.learners_to_polars(SYNTHETIC_PREFIX)
        for name, table in tables.items():
            write_table(table, share / f"{name}.csv", kind=generator.kind)
            write_table(table, share / f"{name}.parquet", kind=generator.kind)
        write_text(share / "codebook.csv", codebook(synthetic, generator.keeps_rows))
        write_text(share / "CITATION.cff", citation(content))
        write_json(share / "card.json", content)
        write_text(share / "card.html", card_page(content, synthetic))
        write_json(keep / "report.json", report)
        write_text(
            keep / "report.html",
            report_page(log, synthetic, assessment, generator.guarantee_, content, report),
        )
        if arrays := generator.arrays():
            np.savez(keep / "model.npz", allow_pickle=False, **arrays)
        # The report, its figures and its seed are for the custodian alone.
        keep.chmod(0o700)


def refuse_risk(
    assessment: Assessment,
    guarantee: Guarantee,
    generator: Generator,
    options: ReleaseOptions,
    n_earlier: int = 0,
) -> None:
    """Refuse a generator without a guarantee unless its risk is shown to be small, or accepted.

    That an attack was not shown to beat guessing is not enough: with few learners nothing is.
    """
    if guarantee.formal or options.accept_risk.strip():
        return
    worst, most_found = assessment.worst, assessment.most_found
    found = (
        f"The strongest attack ('{worst.attack}') has AUC {worst.auc:.2f} "
        f"(interval {assessment.low:.2f} to {assessment.high:.2f}; 0.5 is guessing)."
    )
    if worst.auc > RISK_LIMIT:
        reason = f"its learners can be distinguished from others: the limit is AUC {RISK_LIMIT:g}."
    elif most_found.tpr_at_1pct > max(FOUND_LIMIT, assessment.chance.found_high):
        reason = (
            f"some of its learners can be found: '{most_found.attack}' finds "
            f"{of_100(most_found.tpr_at_1pct)} of 100 at 1 % false alarms, and the limit is {100 * FOUND_LIMIT:.0f}."
        )
    elif min(worst.n_members, worst.n_outsiders) < FEWEST_JUDGED:
        reason = f"fewer than {FEWEST_JUDGED} learners could be judged on a side, too few to show anything."
    elif n_earlier:
        reason = f"{counted(n_earlier, 'such release')} about these learners exist, and their risks add up unmeasured."
    else:
        return
    raise _refusal(generator, f"{reason} {found}")


def _refusal(generator: Generator, reason: str) -> RefusedError:
    return RefusedError(
        f"{generator.label} has no formal guarantee, and {reason} Nothing was released.",
        hint="use a generator with a guarantee, or accept the risk with a reason, which is printed on the card.",
        code="risk",
        settings=("method", "accept_risk"),
    )
