"""synthesize(): a synthetic cohort by a panel that sees a private summary only; prompt(): what a panel is sent."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import secrets
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl

import understudy
from understudy.cohorts import offline
from understudy.cohorts.card import cohort_card, cohort_card_page, synthetic_schema
from understudy.cohorts.cohort import Cohort
from understudy.cohorts.panel.brief import Brief, panel_guarantee, write_brief
from understudy.cohorts.panel.panel import (
    LIMITS,
    N_EACH,
    N_LEARNERS,
    EmptyPanelError,
    Panelist,
    PanelResult,
    Runner,
    WrittenPanelist,
    check_rows,
    run_panel,
)
from understudy.cohorts.panel.providers import read_panel
from understudy.cohorts.panel.report import PanelReport, failed_folder, save_panel, spent
from understudy.cohorts.panel.scripts import check_names, read_script
from understudy.cohorts.summary.caveats import FEEDBACK
from understudy.cohorts.summary.suggestions import read_suggestions
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.core.engine import progress
from understudy.core.extras import install_hint
from understudy.core.files.writing import (
    check_new,
    check_not_input,
    check_parent,
    check_suffix,
    write_json,
    write_table,
    write_text,
)
from understudy.core.options import settled
from understudy.core.pages.charts import Point, dots
from understudy.core.pages.notebook import notebook_table
from understudy.core.privacy.guarantee import Guarantee
from understudy.errors import DataError, MissingError, UsageError
from understudy.sandbox import Sandbox, require_sandbox


@dataclass(frozen=True)
class SynthesizeOptions:
    """Who writes the programs, how many learners are drawn, and with which seed."""

    panel: Annotated[
        Path | None, "TOML list of language models to ask (default: our own programs, offline)."
    ] = None
    script: Annotated[
        list[Path] | None, "Script that a chat gave for the exported prompt; several times."
    ] = None
    n_learners: Annotated[int, "Number of synthetic learners."] = N_LEARNERS
    per_panelist: Annotated[int, "Rows that each panelist's script gives for each label; more if drawn."] = (
        N_EACH
    )
    suggestions: Annotated[
        Path | None,
        "File with suggestions from the last cycle, one per line; they become part of the prompt.",
    ] = None
    seed: Annotated[int | None, "Seed of the sampling, for tests; drawn afresh by default."] = None

    def __post_init__(self) -> None:
        if self.n_learners < 1:
            raise UsageError(
                f"{self.n_learners} learners were asked for.",
                hint="ask for one at least.",
                settings=("n_learners",),
            )
        check_rows(self.per_panelist)


@dataclass(frozen=True)
class Prompt:
    """Exactly what every panelist is sent, and what holds for whatever is made from it."""

    brief: Brief
    guarantee: Guarantee
    out: Path | None
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The prompt for machines: its text, or the file that it was written to."""
        where = {"prompt": self.brief.text} if self.out is None else {"out": str(self.out)}
        return {**where, "sha256": self.brief.prompt_hash, "guarantee": self.guarantee.to_json()}

    def lines(self) -> list[str]:
        """The prompt for people."""
        if self.out is None:
            return self.brief.text.splitlines()
        return [f"{self.out}: the prompt (SHA-256 {self.brief.prompt_hash})."]


@dataclass(frozen=True)
class Synthesized:
    """A synthetic cohort with the guarantee of its summary; `shared` files may leave, `folder` stays."""

    result: PanelResult
    seed: int
    out: Path | None

    @property
    def cohort(self) -> Cohort:
        """The synthetic cohort."""
        return self.result.cohort

    @property
    def guarantee(self) -> Guarantee:
        """What the summary guarantees, and the cohort keeps."""
        return self.result.guarantee

    @property
    def shared(self) -> list[Path]:
        """The files that may leave together."""
        return [] if self.out is None else _shared(self.out)

    @property
    def folder(self) -> Path | None:
        """What stays: prompt, scripts and report."""
        return None if self.out is None else _folder(self.out)

    def to_json(self) -> dict[str, Any]:
        """The result for machines."""
        names = ("out", "schema", "card")
        return {
            **(dict.fromkeys(names) | dict(zip(names, map(str, self.shared), strict=False))),
            "panel": None if self.folder is None else str(self.folder),
            "share": [str(path) for path in self.shared],
            "keep": [] if self.folder is None else [str(self.folder)],
            "learners": self.cohort.n_learners,
            "seed": self.seed,
            "guarantee": self.guarantee.to_json(),
            "report": self.result.report.to_json(),
        }

    def lines(self) -> list[str]:
        """The result for people."""
        report = self.result.report
        lines = [*(f"{panelist}." for panelist in report.panelists), *_to_paste_back(report)]
        if report.tokens.read and len(report.panelists) > 1:
            lines.append(f"Together: {spent(report.tokens, report.cost)}.")
        drawn = ", ".join(f"{count} {label}" for label, count in report.drawn.items())
        where = "" if self.out is None else f"{self.out}: "
        lines.append(f"{where}{self.cohort.n_learners} synthetic learners ({drawn}).")
        proved = f"Guarantee of the summary, which the cohort keeps: {replace(self.guarantee, caveats=())}."
        lines += textwrap.wrap(proved, 100, subsequent_indent="  ")
        for caveat in self.guarantee.caveats:
            lines += textwrap.wrap(f"- {caveat}.", 100, initial_indent="  ", subsequent_indent="    ")
        if self.out is not None:
            lines += [
                f"To share: {', '.join(map(str, self.shared))}",
                f"To keep inside: {self.folder}/ (prompt, scripts, report)",
                f"Card: {self.shared[2]}",
            ]
        return lines

    def to_frame(self) -> pl.DataFrame:
        """The synthetic learners, a row each."""
        return self.cohort.to_polars()

    def plot(self) -> Any:
        """The mean of each feature and week, as an altair chart of one dot per feature."""
        means = self.cohort.values.mean(axis=(0, 2))
        points = [
            Point(feature.name, float(mean))
            for feature, mean in zip(self.cohort.schema.features, means, strict=True)
        ]
        return dots(points, "mean per week").figure("Synthetic learners").chart

    def _repr_html_(self) -> str:
        return notebook_table(" ".join(self.lines()), self.to_frame().head(3))


def prompt(
    summary: PrivateSummary | Path | str,
    *,
    suggestions: Path | str | None = None,
    out: Path | str | None = None,
) -> Prompt:
    """Exactly what every panelist is sent, to look at or to paste into any chat; written to `out` if given."""
    private = _read(summary)
    out = None if out is None else Path(out)
    advice = _advice(suggestions)
    brief = write_brief(private, advice)
    if out is not None:
        if not isinstance(summary, PrivateSummary):
            check_not_input(out, Path(summary))
        write_text(out, brief.text)
    notes = (f"In this prompt {FEEDBACK}.",) if advice else ()
    return Prompt(brief, panel_guarantee(private, advice), out, notes)


def synthesize(
    summary: PrivateSummary | Path | str,
    options: SynthesizeOptions = SynthesizeOptions(),  # noqa: B008 (frozen)
    *,
    out: Path | str | None = None,
    panelists: Sequence[Panelist] | None = None,
    sandbox: Runner | None = None,
    **settings: Any,
) -> Synthesized:
    """Let a panel write generators from a private summary, run them in the sandbox, and draw a cohort.

    It sees the summary and nothing else about the learners, so what the summary guarantees holds for the cohort, and
    nothing is charged. With `out` the table is written with its schema, a data card and a folder about the panel.
    `panelists` are those that the options name unless others are given. The settings of `SynthesizeOptions` may
    be given as keywords.
    """
    options = settled(options, settings)
    out = None if out is None else Path(out)
    with contextlib.ExitStack() as stack:
        # Libraries, attempts to break out and warm processes take seconds: shown before any of it.
        with progress.task("Starting the sandbox", 1):
            if out is not None:
                check_suffix(out)
                check_parent(out)
                if not isinstance(summary, PrivateSummary):
                    check_not_input(out, Path(summary))
            private = _read(summary)
            advice = _advice(options.suggestions)
            members = chosen_panelists(options) if panelists is None else panelists
            # A real cohort and its schema may have these names.
            for path in () if out is None else (*_shared(out), _folder(out)):
                check_new(path, folder=True)
            runner = stack.enter_context(panel_sandbox()) if sandbox is None else sandbox
        return _synthesized(private, advice, members, runner, options, out)


def chosen_panelists(options: SynthesizeOptions) -> list[Panelist]:
    """The panelists of a panel file and scripts from chats; without either, all of our own programs."""
    own = offline.scripts()
    panelists: list[Panelist] = []
    for member in read_panel(Path(options.panel)) if options.panel is not None else ():
        if not isinstance(member, str):
            member.ready()
            panelists.append(member)
        elif member in own:
            panelists.append(WrittenPanelist(member, own[member], "offline"))
        else:
            raise UsageError(
                f"there is no offline panelist '{member}'.", hint="there are " + ", ".join(own) + "."
            )
    for path in map(Path, options.script or ()):
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", path.stem).strip("-_") or "script"
        source = read_script(path)
        saved = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
        panelists.append(WrittenPanelist(name, source, "manual", written_at=saved))
    if options.panel is None and not options.script:
        panelists = [WrittenPanelist(name, source, "offline") for name, source in own.items()]
    check_names([panelist.name for panelist in panelists])
    return panelists


def panel_sandbox() -> Sandbox:
    """The sandbox of a panel's scripts, or one sentence and the command that installs what is missing."""
    try:
        require_sandbox()
    except MissingError as error:
        known = f"{os.environ.get('PATH', '')}:/usr/bin:/usr/local/bin"
        commands = []
        if shutil.which("bwrap", path=known) is None or error.code == "no-seccomp":
            commands.append("run: sudo apt-get install bubblewrap libseccomp2")
        if importlib.util.find_spec("pyseccomp") is None:
            commands.append(install_hint("sandbox", sys.executable))
        if sys.platform != "linux" or not commands:
            raise
        raise MissingError(error.message, hint="; then ".join(commands)) from error
    return Sandbox(LIMITS)


def _synthesized(
    private: PrivateSummary,
    advice: tuple[str, ...],
    panelists: Sequence[Panelist],
    sandbox: Runner,
    options: SynthesizeOptions,
    out: Path | None,
) -> Synthesized:
    """Have the panel write, draw the cohort, and write everything."""
    # Post-processing: this seed may be known, and lets anyone repeat what the scripts gave.
    seed = secrets.randbits(64) if options.seed is None else options.seed
    facts = {
        "understudy": understudy.__version__,
        "seed": seed,
        "learners": options.n_learners,
        # Suggestions in the prompt are in whatever the panel writes.
        "guarantee": panel_guarantee(private, advice).to_json(),
    }
    try:
        result = run_panel(
            private,
            panelists,
            sandbox,
            rng=np.random.default_rng(seed),
            n_learners=options.n_learners,
            n_each=options.per_panelist,
            suggestions=advice,
        )
    except EmptyPanelError as error:
        if out is None:
            raise
        failed = failed_folder(_folder(out))
        save_panel(failed, error.brief, error.scripts, error.report, facts)
        hint = [
            f"the scripts and the report are in {failed}/; the same can be asked again.",
            *_to_paste_back(error.report),
            "Our own programs need no script: leave panel and script out.",
        ]
        raise DataError(
            error.message, hint="\n".join(hint), code=error.code, settings=error.settings
        ) from None
    if out is not None:
        _write(private, result, facts, out)
    return Synthesized(result, seed, out)


def _write(private: PrivateSummary, result: PanelResult, facts: dict[str, Any], out: Path) -> None:
    table, schema, card_page, card_json = _shared(out)
    save_panel(_folder(out), result.brief, result.scripts, result.report, facts)
    write_text(schema, synthetic_schema(private, result.guarantee).to_toml())
    card = cohort_card(
        private,
        result.cohort,
        authors=[
            f"{panelist.name} ({panelist.model or panelist.provider})"
            for panelist in result.report.panelists
            if panelist.status != "dropped"
        ],
        files=[path.name for path in (table, schema, card_page, card_json)],
        made=datetime.now(UTC).date().isoformat(),
        version=understudy.__version__,
        guarantee=result.guarantee,
    )
    write_json(card_json, card)
    write_text(card_page, cohort_card_page(card))
    write_table(result.cohort.to_polars(), table, kind="synthetic data: these learners do not exist")


def _shared(out: Path) -> list[Path]:
    """Table, schema, and the card as a page and as json: what may leave together."""
    card = out.with_name(f"{out.stem}-card.html")
    return [out, out.with_suffix(".toml"), card, card.with_suffix(".json")]


def _folder(out: Path) -> Path:
    return out.with_name(f"{out.stem}-panel")


def _read(summary: PrivateSummary | Path | str) -> PrivateSummary:
    return summary if isinstance(summary, PrivateSummary) else PrivateSummary.read(Path(summary))


def _advice(suggestions: Path | str | None) -> tuple[str, ...]:
    return () if suggestions is None else read_suggestions(Path(suggestions)).sentences


def _to_paste_back(report: PanelReport) -> list[str]:
    """For every script from a chat that was dropped: what to reply to the chat, without a word of the script."""
    return [
        f"To paste back to the chat that wrote {panelist.name}: {panelist.repair.strip()}"
        for panelist in report.panelists
        if panelist.provider == "manual" and panelist.repair
    ]
