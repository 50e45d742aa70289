"""`understudy desk template` and `desk try`: what a researcher needs before anything is submitted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.desk.options import existing, require_desk
from understudy.cli.desk.results import show
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson
from understudy.cli.terminal import echo_json

if TYPE_CHECKING:
    from understudy.desk.disclosure.code_review import CodeReading
    from understudy.desk.disclosure.examination import Examination
    from understudy.desk.domain.policy import Policy
    from understudy.desk.researcher.local_trial import Tried

# What a desk needs for an answer without anybody wondering.
app = command_group()


_LONG_MINUTES = 15.0


@app.command()
def template(
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File to write, instead of printing.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print an analysis to start from, with comments.

    Example: understudy desk template -o analysis.py
    """
    from importlib.resources import files

    from understudy.core.files.writing import check_absent, write_text

    code = files("understudy.desk.researcher").joinpath("analysis.py.txt").read_text(encoding="utf-8")
    if out is not None:
        check_absent(out)
        write_text(out, code)
    if as_json:
        echo_json({"out": None if out is None else str(out), "code": code})
    elif out is None:
        typer.echo(code, nl=False)
    else:
        typer.echo(f"Written: {out}. Try it: understudy desk try {out} synthetic.parquet")


@app.command("try")
def try_(
    code: Annotated[Path, typer.Argument(metavar="ANALYSIS", help="Python file with `analyze(data)`.")],
    synthetic: Annotated[
        Path, typer.Argument(metavar="SYNTHETIC", help="The synthetic table, csv or parquet.")
    ],
    policy: Annotated[
        Path | None, typer.Option(help="The desk's policy, if you have it (default: our limits).")
    ] = None,
    learner: Annotated[
        str, typer.Option(help="Column of the synthetic table that says whose row it is.")
    ] = "learner",
    as_json: AsJson = False,
) -> None:
    """Run an analysis on synthetic data exactly as a desk will, in the sandbox; no account is needed.

    Prints the results, what reading the code shows to a reviewer, and what the checks would say if the synthetic table
    were the real one. The price in privacy is about the real learners, and is measured at the desk.

    Example: understudy desk try analysis.py synthetic.parquet
    """
    require_desk()
    for path, what in ((code, "the analysis"), (synthetic, "the synthetic table")):
        existing(path, what)

    from understudy.desk.disclosure.code_review import read_code
    from understudy.desk.domain.analysis import Failure
    from understudy.desk.domain.policy import Policy
    from understudy.desk.researcher.local_trial import explained, unusable
    from understudy.errors import DataError

    limits = Policy() if policy is None else Policy.read(existing(policy, "the policy"))
    text = _code(code, limits)
    if found := unusable(text, code.name):
        raise DataError(found[0], hint=found[1])
    tried, columns = _tried(text, synthetic, learner, limits)
    if isinstance(tried.answer, Failure):
        message, hint = explained(tried.answer, text, code.name, columns, limits)
        raise DataError(message, hint=hint)
    reading = read_code(text, columns, limits)
    seen = tried.examination
    if as_json:
        echo_json(
            {
                "results": tried.answer.to_json(),
                "rounded": None if seen is None else seen.released.to_json(),
                "reading": reading.to_json(),
                "checks": None if seen is None else [check.to_json() for check in seen.checks],
                "verdict": None if seen is None else seen.verdict,
                "seconds": round(tried.seconds, 2),
                "desk_minutes": round(tried.desk_minutes, 1),
            }
        )
        return
    typer.echo(
        f"Results on {synthetic.name}" + (" (and rounded, as they would leave):" if seen is not None else ":")
    )
    show(tried.answer, None if seen is None else seen.released)
    typer.echo("")
    _show_reading(reading)
    if seen is not None:
        _show_checks(seen)
    _show_time(tried)


def _code(path: Path, policy: Policy) -> str:
    from understudy.errors import DataError

    content = path.read_bytes()
    if len(content) > policy.most_code_bytes:
        raise DataError(
            f"{path.name} has {len(content)} bytes; a desk takes {policy.most_code_bytes}.",
            hint="leave out what is not needed.",
        )
    try:
        # Line ends as the desk stores them, so that seed and hash are the same.
        return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise DataError(f"{path.name} is not text in UTF-8.", hint="save it as plain text.") from None


def _tried(code: str, synthetic: Path, learner: str, policy: Policy) -> tuple[Tried, list[str]]:
    from contextlib import ExitStack

    from understudy.cli.progress import progress_bar
    from understudy.desk.domain.analysis import limits_of
    from understudy.desk.researcher.local_trial import synthetic_table, try_out
    from understudy.sandbox import Sandbox

    table = synthetic_table(synthetic, learner)
    with ExitStack() as stack:
        with progress_bar("Starting the sandbox") as begin:
            begin(1)
            sandbox = stack.enter_context(Sandbox(limits_of(policy)))
        # The first run is alone, and shows what the others will take.
        typer.echo("Running it once, then without single learners, for the checks.", err=True)
        with progress_bar("Running without single learners") as begin:
            return try_out(code, table, policy, sandbox, _counted(begin)), table.columns


def _counted(begin: Callable[[int], Callable[[], None]]) -> Callable[[int, int], None]:
    """Moves a bar, which goes step by step, to how many of how many runs are done."""
    step: Callable[[], None] | None = None
    at = 0

    def moved(done: int, total: int) -> None:
        nonlocal step, at
        step = step or begin(total)
        for _ in range(done - at):
            step()
        at = max(at, done)

    return moved


def _show_reading(reading: CodeReading) -> None:
    typer.echo("What reading the code shows to a reviewer:")
    typer.echo(f"  imports: {', '.join(reading.imports) or 'nothing'}")
    typer.echo(f"  columns named: {', '.join(reading.columns) or 'none'}")
    for finding in reading.findings:
        typer.echo(f"  {finding}")
    for title, passages in (
        ("picks", reading.subsets),
        ("hangs on single learners", reading.sensitive),
        ("look closely", reading.warnings),
    ):
        for one in passages:
            typer.echo(f"  line {one.line}, {title}: {one.code} ({one.remark.rstrip('.')})")
    if reading.chance:
        typer.echo(f"  chance: line {', '.join(map(str, reading.chance))}")


def _show_checks(found: Examination) -> None:
    import textwrap

    typer.echo("")
    typer.echo("Checks, if the synthetic table were the real one:")
    for check in found.checks:
        words = f"  {check.verdict:<6} {check.name}: {check.reason}"
        typer.echo(textwrap.fill(words, 110, subsequent_indent=" " * 9))
    typer.echo(
        {
            "pass": "All checks pass here. On the real data they may not; the price is measured there as well.",
            "review": "A reviewer would have to write a reason to release this.",
            "fail": "This would be held. Ask for less, or about more learners.",
        }[found.verdict]
    )


def _show_time(tried: Tried) -> None:
    if tried.examination is None:
        typer.echo("")
        typer.echo(f"One run took {tried.seconds:.1f} seconds: too long to make the checks here.")
    if tried.desk_minutes > _LONG_MINUTES:
        typer.echo(
            f"At a desk it is run about {tried.n_runs:,} times, which will take some {tried.desk_minutes:.0f} minutes; "
            "make it faster if you can."
        )
