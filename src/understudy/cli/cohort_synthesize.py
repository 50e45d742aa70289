"""`understudy cohort synthesize` and `cohort prompt`: a synthetic cohort from a private summary, by a panel.

Both read the summary and nothing else about the learners.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.options import AsJson, OptionalSeed, echo_json

if TYPE_CHECKING:
    from understudy.synthesis.cohorts.panel.brief import Brief
    from understudy.synthesis.cohorts.panel.panel import Panelist

SummaryPath = Annotated[
    Path, typer.Argument(metavar="SUMMARY", help="The private summary, from `understudy cohort summarize`.")
]
Suggestions = Annotated[
    Path | None,
    typer.Option(
        help="File with suggestions from the last cycle, one a line; they become part of the prompt."
    ),
]


def prompt(
    summary: SummaryPath,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File to write, instead of printing.")
    ] = None,
    suggestions: Suggestions = None,
) -> None:
    """Print the prompt that panelists get, to paste it into any chat.

    Save the script that the chat gives and name it with `understudy cohort synthesize --script`.

    Example: understudy cohort prompt summary.json -o prompt.txt
    """
    brief = _brief(summary, suggestions)
    if out is None:
        _print_exactly(brief)
    else:
        _export(brief, out, summary)


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
    show_prompt: Annotated[
        bool, typer.Option("--show-prompt", help="Print exactly what would be sent, and stop.")
    ] = False,
    export_prompt: Annotated[
        Path | None, typer.Option(help="Write exactly what would be sent to a file, and stop.")
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

    Beside it: its schema (.toml) and a folder with the prompt, every script and a report.
    Scripts run in the sandbox. What the summary guarantees holds for the cohort too.

    Example: understudy cohort synthesize summary.json -o synthetic.parquet
    """
    if show_prompt or export_prompt is not None:
        brief = _brief(summary, suggestions)
        if export_prompt is not None:
            _export(brief, export_prompt, summary)
        if show_prompt:
            _print_exactly(brief)
        return

    import secrets

    import numpy as np

    import understudy
    from understudy.cli.progress import progress_bar
    from understudy.errors import UsageError
    from understudy.pages.writing import check_absent, check_not_input, check_parent, write_text
    from understudy.sandbox import Sandbox, require_sandbox
    from understudy.synthesis.cohorts.panel.artefacts import save_panel
    from understudy.synthesis.cohorts.panel.brief import read_suggestions
    from understudy.synthesis.cohorts.panel.panel import LIMITS, EmptyPanelError, run_panel
    from understudy.synthesis.cohorts.panel.report import spent
    from understudy.synthesis.cohorts.summary import PrivateSummary
    from understudy.synthesis.writing import check_suffix, write_table

    if out is None:
        raise UsageError("no file was named for the synthetic cohort.", hint="-o synthetic.parquet")
    check_suffix(out)
    check_parent(out)
    schema_file, folder = out.with_suffix(".toml"), out.with_name(f"{out.stem}-panel")
    check_not_input(out, summary)
    check_absent(folder)
    private = PrivateSummary.read(summary)
    advice = () if suggestions is None else read_suggestions(suggestions)
    panelists = _panelists(panel, script or [], as_json)
    require_sandbox()
    # Post-processing: the seed may be known, and lets anybody repeat what the scripts gave.
    used_seed = secrets.randbits(64) if seed is None else seed
    facts = {
        "understudy": understudy.__version__,
        "seed": used_seed,
        "learners": learners,
        "guarantee": private.guarantee.to_json(),
    }
    with Sandbox(LIMITS) as sandbox, progress_bar("Panelists") as begin:
        try:
            result = run_panel(
                private,
                panelists,
                sandbox,
                rng=np.random.default_rng(used_seed),
                n_learners=learners,
                n_each=per_panelist,
                suggestions=advice,
                advance=begin(len(panelists)),
            )
        except EmptyPanelError as error:
            save_panel(folder, error.brief, error.scripts, error.report, facts)
            raise
    save_panel(folder, result.brief, result.scripts, result.report, facts)
    write_text(schema_file, private.schema.to_toml())
    write_table(result.cohort.to_frame(), out, kind="synthetic data: these learners do not exist")
    if as_json:
        echo_json(
            {
                "out": str(out),
                "schema": str(schema_file),
                "panel": str(folder),
                "learners": result.cohort.n_learners,
                "seed": used_seed,
                "guarantee": private.guarantee.to_json(),
                "report": result.report.to_json(),
            }
        )
        return
    for one in result.report.panelists:
        typer.echo(f"{one}.")
    if result.report.tokens.read and len(result.report.panelists) > 1:
        typer.echo(f"Together: {spent(result.report.tokens, result.report.cost)}.")
    drawn = ", ".join(f"{count} {label}" for label, count in result.report.drawn.items())
    typer.echo(f"{out}: {result.cohort.n_learners} synthetic learners ({drawn}).")
    typer.echo(f"Schema: {schema_file}. Prompt, scripts and report: {folder}/.")
    typer.echo(f"Guarantee of the summary, which the cohort keeps: {private.guarantee}.")


def _brief(summary: Path, suggestions: Path | None) -> Brief:
    from understudy.synthesis.cohorts.panel.brief import read_suggestions, write_brief
    from understudy.synthesis.cohorts.summary import PrivateSummary

    advice = () if suggestions is None else read_suggestions(suggestions)
    return write_brief(PrivateSummary.read(summary), advice)


def _print_exactly(brief: Brief) -> None:
    """The bytes that are sent, whatever the terminal's encoding or the system's line ends."""
    typer.get_binary_stream("stdout").write(brief.text.encode("utf-8"))


def _export(brief: Brief, out: Path, summary: Path) -> None:
    from understudy.pages.writing import check_not_input, write_text

    check_not_input(out, summary)
    write_text(out, brief.text)
    typer.echo(
        f"{out}: the prompt (SHA-256 {brief.prompt_hash}). Paste it into a chat, save the script that it gives, "
        f"then: understudy cohort synthesize {summary} -o synthetic.parquet --script FILE.py",
        err=True,
    )


def _panelists(panel: Path | None, scripts: list[Path], quiet: bool) -> list[Panelist]:
    """Who was asked for: a panel file, scripts from chats, or all of our own programs."""
    import re
    from datetime import UTC, datetime

    from understudy.errors import UsageError
    from understudy.synthesis.cohorts import offline
    from understudy.synthesis.cohorts.panel.panel import WrittenPanelist
    from understudy.synthesis.cohorts.panel.providers import read_panel
    from understudy.synthesis.cohorts.panel.scripts import check_names, read_script

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
