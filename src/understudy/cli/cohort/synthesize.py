"""`understudy cohort synthesize` and `cohort prompt`: a synthetic cohort from a private summary, by a panel.

Both read the summary and nothing else about the learners.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson, OptionalSeed
from understudy.cli.terminal import echo_json

if TYPE_CHECKING:
    from understudy.cohorts.panel.brief import Brief
    from understudy.cohorts.panel.panel import Panelist
    from understudy.cohorts.panel.report import PanelReport
    from understudy.cohorts.summary.summary_file import PrivateSummary
    from understudy.core.privacy.guarantee import Guarantee
    from understudy.sandbox import Sandbox

app = command_group()


SummaryPath = Annotated[
    Path, typer.Argument(metavar="SUMMARY", help="The private summary, from `understudy cohort summarize`.")
]
Suggestions = Annotated[
    Path | None,
    typer.Option(
        help="File with suggestions from the last cycle, one a line; they become part of the prompt."
    ),
]


@app.command()
def prompt(
    summary: SummaryPath,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File to write, instead of printing.")
    ] = None,
    suggestions: Suggestions = None,
    as_json: AsJson = False,
) -> None:
    """Print exactly what every panelist is sent, to look at it or to paste it into any chat.

    Save the script that the chat gives and name it with `understudy cohort synthesize --script`.

    Example: understudy cohort prompt summary.json -o prompt.txt
    """
    brief, guarantee = _brief(summary, suggestions)
    if out is None:
        _show(brief, guarantee, as_json)
        return
    _export(brief, out, summary, suggestions)
    if as_json:
        echo_json({"out": str(out), "sha256": brief.prompt_hash, "guarantee": guarantee.to_json()})


@app.command()
def synthesize(
    summary: SummaryPath,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File to write, csv or parquet by extension.")
    ] = None,
    panel: Annotated[
        Path | None,
        typer.Option(help="TOML list of language models to ask (default: our own programs, offline)."),
    ] = None,
    script: Annotated[
        list[Path] | None,
        typer.Option(help="Script that a chat gave for the exported prompt; several times."),
    ] = None,
    learners: Annotated[int, typer.Option(min=1, help="Number of synthetic learners.")] = 120,
    per_panelist: Annotated[
        int,
        typer.Option(
            min=2, max=100_000, help="Rows that each panelist's script gives for each label; more if drawn."
        ),
    ] = 1000,
    suggestions: Suggestions = None,
    seed: OptionalSeed = None,
    as_json: AsJson = False,
) -> None:
    """Write a synthetic cohort by a panel that sees the private summary only.

    Beside it, to be shared with it: its schema (.toml) and a data card (-card.html, -card.json). To be kept:
    a folder (-panel) with the prompt, every script and a report. Scripts run in the sandbox. What the summary
    guarantees holds for the cohort too. `understudy cohort prompt` shows what a panel is sent.

    Example: understudy cohort synthesize summary.json -o synthetic.parquet
    """
    from contextlib import ExitStack

    from understudy.cli.progress import progress_bar

    with ExitStack() as stack:
        # Libraries, tries to break out and warm processes take seconds: said before any of it.
        with progress_bar("Starting the sandbox") as begin:
            begin(1)
            job = _prepare(summary, out, panel, script or [], suggestions, as_json)
            sandbox = stack.enter_context(_sandbox())
        _run(job, sandbox, learners, per_panelist, seed, as_json)


@dataclass(frozen=True)
class _Job:
    """What was asked for, checked before anything is started."""

    summary: PrivateSummary
    advice: tuple[str, ...]
    panelists: list[Panelist]
    out: Path

    @property
    def schema(self) -> Path:
        return self.out.with_suffix(".toml")

    @property
    def card(self) -> Path:
        return self.out.with_name(f"{self.out.stem}-card.html")

    @property
    def shared(self) -> list[Path]:
        """The files that may leave together."""
        return [self.out, self.schema, self.card, self.card.with_suffix(".json")]

    @property
    def folder(self) -> Path:
        """What stays: prompt, scripts and report."""
        return self.out.with_name(f"{self.out.stem}-panel")


def _prepare(
    summary: Path,
    out: Path | None,
    panel: Path | None,
    scripts: list[Path],
    suggestions: Path | None,
    quiet: bool,
) -> _Job:
    from understudy.cohorts.summary.suggestions import read_suggestions
    from understudy.cohorts.summary.summary_file import PrivateSummary
    from understudy.core.files.writing import check_absent, check_not_input, check_parent, check_suffix
    from understudy.errors import UsageError

    if out is None:
        raise UsageError("no file was named for the synthetic cohort.", hint="-o synthetic.parquet")
    check_suffix(out)
    check_parent(out)
    check_not_input(out, summary)
    private = PrivateSummary.read(summary)
    advice = () if suggestions is None else read_suggestions(suggestions).sentences
    job = _Job(private, advice, _panelists(panel, scripts, quiet), out)
    # A real cohort and its schema may have these names.
    for path in (*job.shared, job.folder):
        check_absent(path)
    return job


def _sandbox() -> Sandbox:
    """The sandbox, or one sentence and the command that installs what is missing."""
    import importlib.util
    import shutil
    import sys

    from understudy.cohorts.panel.panel import LIMITS
    from understudy.errors import MissingError
    from understudy.sandbox import Sandbox, require_sandbox

    try:
        require_sandbox()
    except MissingError as error:
        packages = "sudo apt-get install bubblewrap libseccomp2"
        libraries = f"{sys.executable} -m pip install 'understudy[sandbox]'"
        no_program = (
            shutil.which("bwrap", path=f"{os.environ.get('PATH', '')}:/usr/bin:/usr/local/bin") is None
        )
        no_binding = importlib.util.find_spec("pyseccomp") is None
        commands = [*([packages] if no_program or "libseccomp" in error.message else [])]
        commands += [libraries] if no_binding else []
        if sys.platform != "linux" or not commands:
            raise
        raise MissingError(error.message, hint="run: " + " && ".join(commands)) from error
    return Sandbox(LIMITS)


def _run(
    job: _Job, sandbox: Sandbox, learners: int, per_panelist: int, seed: int | None, as_json: bool
) -> None:
    """Have the panel write, draw the cohort, write everything, and say what may leave."""
    import secrets
    from datetime import UTC, datetime

    import numpy as np

    import understudy
    from understudy.cohorts.card import cohort_card, cohort_card_page, synthetic_schema
    from understudy.cohorts.panel.brief import panel_guarantee
    from understudy.cohorts.panel.panel import EmptyPanelError, run_panel
    from understudy.cohorts.panel.report import failed_folder, save_panel, spent
    from understudy.core.files.writing import write_json, write_table, write_text
    from understudy.errors import DataError

    private = job.summary
    # Suggestions in the prompt are in whatever the panel writes.
    guarantee = panel_guarantee(private, job.advice)
    # Post-processing: the seed may be known, and lets anybody repeat what the scripts gave.
    used_seed = secrets.randbits(64) if seed is None else seed
    facts = {
        "understudy": understudy.__version__,
        "seed": used_seed,
        "learners": learners,
        "guarantee": guarantee.to_json(),
    }
    try:
        result = run_panel(
            private,
            job.panelists,
            sandbox,
            rng=np.random.default_rng(used_seed),
            n_learners=learners,
            n_each=per_panelist,
            suggestions=job.advice,
        )
    except EmptyPanelError as error:
        failed = failed_folder(job.folder)
        save_panel(failed, error.brief, error.scripts, error.report, facts)
        words = [
            f"the scripts and the report are in {failed}/; the same command can be given again.",
            *_to_paste_back(error.report),
            "Our own programs need no script: leave --panel and --script out.",
        ]
        raise DataError(error.message, hint="\n".join(words)) from None
    save_panel(job.folder, result.brief, result.scripts, result.report, facts)
    write_text(job.schema, synthetic_schema(private, result.guarantee).to_toml())
    used = [one for one in result.report.panelists if one.status != "dropped"]
    card = cohort_card(
        private,
        result.cohort,
        authors=[f"{one.name} ({one.model or one.provider})" for one in used],
        files=[path.name for path in job.shared],
        made=datetime.now(UTC).date().isoformat(),
        version=understudy.__version__,
        guarantee=result.guarantee,
    )
    write_json(job.card.with_suffix(".json"), card)
    write_text(job.card, cohort_card_page(card))
    write_table(result.cohort.to_polars(), job.out, kind="synthetic data: these learners do not exist")
    if as_json:
        echo_json(
            {
                "out": str(job.out),
                "schema": str(job.schema),
                "card": str(job.card),
                "panel": str(job.folder),
                "share": [str(path) for path in job.shared],
                "keep": [str(job.folder)],
                "learners": result.cohort.n_learners,
                "seed": used_seed,
                "guarantee": result.guarantee.to_json(),
                "report": result.report.to_json(),
            }
        )
        return
    for one in result.report.panelists:
        typer.echo(f"{one}.")
    for line in _to_paste_back(result.report):
        typer.echo(line)
    if result.report.tokens.read and len(result.report.panelists) > 1:
        typer.echo(f"Together: {spent(result.report.tokens, result.report.cost)}.")
    drawn = ", ".join(f"{count} {label}" for label, count in result.report.drawn.items())
    typer.echo(f"{job.out}: {result.cohort.n_learners} synthetic learners ({drawn}).")
    for line in _guarantee_lines(result.guarantee):
        typer.echo(line)
    typer.echo(f"To share: {', '.join(map(str, job.shared))}")
    typer.echo(f"To keep inside: {job.folder}/ (prompt, scripts, report)")
    typer.echo(f"Card: {job.card}")


def _to_paste_back(report: PanelReport) -> list[str]:
    """For every script from a chat that was dropped: what to tell the chat, without a word of the script."""
    return [
        f"To paste back to the chat that wrote {one.name}: {one.repair.strip()}"
        for one in report.panelists
        if one.provider == "manual" and one.repair
    ]


def _guarantee_lines(guarantee: Guarantee) -> list[str]:
    """The guarantee, and each caveat in lines of its own."""
    import textwrap
    from dataclasses import replace

    proved = f"Guarantee of the summary, which the cohort keeps: {replace(guarantee, caveats=())}."
    lines = textwrap.wrap(proved, 100, subsequent_indent="  ")
    for one in guarantee.caveats:
        lines += textwrap.wrap(f"- {one}.", 100, initial_indent="  ", subsequent_indent="    ")
    return lines


def _brief(summary: Path, suggestions: Path | None) -> tuple[Brief, Guarantee]:
    """The prompt, and what holds for it; that nothing covers the suggestions is said aloud."""
    from understudy.cohorts.panel.brief import panel_guarantee, write_brief
    from understudy.cohorts.summary.caveats import FEEDBACK
    from understudy.cohorts.summary.suggestions import read_suggestions
    from understudy.cohorts.summary.summary_file import PrivateSummary

    advice = () if suggestions is None else read_suggestions(suggestions).sentences
    private = PrivateSummary.read(summary)
    brief = write_brief(private, advice)
    if advice:
        typer.echo(f"In this prompt {FEEDBACK}.", err=True)
    return brief, panel_guarantee(private, advice)


def _show(brief: Brief, guarantee: Guarantee, as_json: bool) -> None:
    """The bytes that are sent, whatever the terminal's encoding or the system's line ends; or in JSON."""
    if as_json:
        echo_json({"prompt": brief.text, "sha256": brief.prompt_hash, "guarantee": guarantee.to_json()})
        return
    typer.get_binary_stream("stdout").write(brief.text.encode("utf-8"))


def _export(brief: Brief, out: Path, summary: Path, suggestions: Path | None) -> None:
    from understudy.core.files.writing import check_not_input, write_text

    check_not_input(out, summary)
    write_text(out, brief.text)
    typer.echo(
        f"{out}: the prompt (SHA-256 {brief.prompt_hash}). Paste it into a chat, save the script that it gives, "
        f"then: understudy cohort synthesize {summary} -o synthetic.parquet --script FILE.py"
        # So that the card of what the script makes says it too.
        + ("" if suggestions is None else f" --suggestions {suggestions}"),
        err=True,
    )


def _panelists(panel: Path | None, scripts: list[Path], quiet: bool) -> list[Panelist]:
    """Who was asked for: a panel file, scripts from chats, or all of our own programs."""
    import re
    from datetime import UTC, datetime

    from understudy.cohorts import offline
    from understudy.cohorts.panel.panel import WrittenPanelist
    from understudy.cohorts.panel.providers import read_panel
    from understudy.cohorts.panel.scripts import check_names, read_script
    from understudy.errors import UsageError

    own = offline.scripts()
    panelists: list[Panelist] = []
    for one in read_panel(panel) if panel is not None else ():
        if not isinstance(one, str):
            one.ready()
            panelists.append(one)
            if not quiet:
                typer.echo(f"{one.name}: the prompt goes to {one.model} at {one.address}.", err=True)
        elif one in own:
            panelists.append(WrittenPanelist(one, own[one], "offline"))
        else:
            raise UsageError(
                f"there is no offline panelist '{one}'.", hint="there are " + ", ".join(own) + "."
            )
    for path in scripts:
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", path.stem).strip("-_") or "script"
        source = read_script(path)
        saved = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
        panelists.append(WrittenPanelist(name, source, "manual", written_at=saved))
    if panel is None and not scripts:
        panelists = [WrittenPanelist(name, source, "offline") for name, source in own.items()]
    check_names([one.name for one in panelists])
    return panelists
