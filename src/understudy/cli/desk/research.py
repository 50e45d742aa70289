"""For researchers: `desk template`, `try`, `submit`, `status` and `certificate`."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli.desk.options import (
    DEFAULT_FOLDER,
    DeskFolder,
    existing,
    hexadecimal,
    opened,
    require_desk,
)
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson
from understudy.cli.terminal import echo_json, print_table
from understudy.core.engine import progress
from understudy.core.files.documents import parse_json
from understudy.core.files.words import counted
from understudy.core.files.writing import check_new, write_text
from understudy.desk.disclosure.code_review import CodeReading, read_code
from understudy.desk.disclosure.examination import Examination
from understudy.desk.domain.analysis import Failure, asks_privately, limits_of
from understudy.desk.domain.learners import LearnerTable
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Results
from understudy.desk.researcher.local_trial import (
    Tried,
    explained,
    synthetic_table,
    try_out,
    try_privately,
    unusable,
)
from understudy.errors import DataError, UsageError

if TYPE_CHECKING:
    from understudy.desk.researcher.client import DeskClient

app = command_group()

TOKEN = "UNDERSTUDY_TOKEN"
# Minutes that a desk may take for an answer before its researcher is warned.
LONG_MINUTES = 15.0

Analysis = Annotated[
    Path, typer.Argument(metavar="ANALYSIS", help="Python file with `analyze(data)`, or `analyze(ask)`.")
]
TokenFile = Annotated[
    Path | None, typer.Option(help=f"File with your token (default: the environment's {TOKEN}).")
]


@app.command()
def template(
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File to write, instead of printing.")
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Private questions, whose answers carry a guarantee.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print an analysis to start from, with comments.

    Example: understudy desk template -o analysis.py
    """
    name = "private.py.txt" if private else "analysis.py.txt"
    code = files("understudy.desk.researcher").joinpath(name).read_text(encoding="utf-8")
    if out is not None:
        check_new(out, folder=True)
        write_text(out, code)
    if as_json:
        echo_json({"out": None if out is None else str(out), "code": code})
    elif out is None:
        typer.echo(code, nl=False)
    else:
        schema = " --schema cohort.toml" if private else ""
        typer.echo(f"Written: {out}. Try it: understudy desk try {out} synthetic.parquet{schema}")


@app.command("try")
def try_(
    code: Analysis,
    synthetic: Annotated[
        Path, typer.Argument(metavar="SYNTHETIC", help="The synthetic table, csv or parquet.")
    ],
    policy: Annotated[
        Path | None, typer.Option(help="The desk's policy, if you have it (default: our limits).")
    ] = None,
    learner: Annotated[
        str, typer.Option(help="Column of the synthetic table that names the learner.")
    ] = "learner",
    schema: Annotated[
        Path | None,
        typer.Option(
            help="For private questions: the public schema, as a cohort's toml or with [[columns]]."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run an analysis on synthetic data exactly as a desk will, in the sandbox; no account is needed.

    Prints the results, what a reviewer will see about the code, and what the checks would find if the synthetic table
    were the real one. The price in privacy is about the real learners, and is measured at the desk. Private questions
    are answered with as much noise as on as many real learners: the widths of the intervals are what to expect.

    Example: understudy desk try analysis.py synthetic.parquet
    """
    require_desk()
    for path, what in ((code, "the analysis"), (synthetic, "the synthetic table")):
        existing(path, what)
    limits = Policy() if policy is None else Policy.read(existing(policy, "the policy"))
    text = _code(code, limits)
    if found := unusable(text, code.name):
        raise DataError(found[0], hint=found[1])
    if asks_privately(text):
        _try_privately(code.name, text, synthetic_table(synthetic, learner), schema, limits, as_json)
        return
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
    _show_results(tried.answer, None if seen is None else seen.released)
    typer.echo("")
    _show_reading(reading)
    if seen is not None:
        _show_checks(seen)
    _show_time(tried)


def _try_privately(
    name: str, code: str, table: LearnerTable, schema: Path | None, policy: Policy, as_json: bool
) -> None:
    if schema is None:
        raise UsageError(
            f"{name} asks private questions, which need the public bounds and categories of the columns.",
            hint="give the schema that the data set's page shows.",
            settings=("schema",),
        )
    from understudy.desk.private.public_schema import PublicSchema
    from understudy.desk.private.words import in_words
    from understudy.sandbox import Sandbox

    declared = PublicSchema.read(existing(schema, "the schema")).of_columns(table.columns).schema
    with ExitStack() as stack:
        with progress.task("Starting the sandbox"):
            sandbox = stack.enter_context(Sandbox(limits_of(policy)))
        found = try_privately(code, table, declared, sandbox)
    if isinstance(found, Failure):
        message, hint = explained(found, code, name, table.columns, policy)
        raise DataError(message, hint=hint)
    plan, answers = found
    sentences = [in_words(question, declared) for question in plan.questions]
    if as_json:
        echo_json({"questions": sentences, "epsilon": plan.epsilon, **answers.to_json()})
        return
    _show_answers(sentences, [answer.to_json() for answer in answers])
    typer.echo("")
    typer.echo(
        f"All of it would cost epsilon {plan.epsilon:g} (delta {plan.delta:.0e}); a desk takes up to "
        f"{policy.private_epsilon:g} by this policy. On more real learners than the {table.n_learners} here intervals "
        "are narrower."
    )


def _code(path: Path, policy: Policy) -> str:
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
    from understudy.sandbox import Sandbox

    table = synthetic_table(synthetic, learner)
    with ExitStack() as stack:
        with progress.task("Starting the sandbox"):
            sandbox = stack.enter_context(Sandbox(limits_of(policy)))
        # The first run is alone, and shows what the others will take.
        typer.echo("Running it once, then without single learners, for the checks.", err=True)
        return try_out(code, table, policy, sandbox), table.columns


def _show_reading(reading: CodeReading) -> None:
    typer.echo("What a reviewer will see about the code:")
    typer.echo(f"  imports: {', '.join(reading.imports) or 'nothing'}")
    typer.echo(f"  columns named: {', '.join(reading.columns) or 'none'}")
    for finding in reading.findings:
        typer.echo(f"  {finding}")
    for title, passages in (
        ("picks", reading.subsets),
        ("depends on single learners", reading.sensitive),
        ("look closely", reading.warnings),
    ):
        for one in passages:
            typer.echo(f"  line {one.line}, {title}: {one.code} ({one.remark.rstrip('.')})")
    if reading.chance:
        typer.echo(f"  chance: line {', '.join(map(str, reading.chance))}")


def _show_checks(found: Examination) -> None:
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
    if tried.desk_minutes > LONG_MINUTES:
        typer.echo(
            f"At a desk it is run about {tried.n_runs:,} times, about {tried.desk_minutes:.0f} minutes; "
            "make it faster if you can."
        )


@app.command()
def submit(
    code: Analysis,
    data: Annotated[
        str, typer.Option(metavar="NAME", help="Title or name of the data set, as the desk shows it.")
    ],
    question: Annotated[str, typer.Option(help="Your research question, in a sentence.")],
    url: Annotated[str, typer.Option(help="Address of the desk.")],
    shown: Annotated[str, typer.Option(help="What the synthetic data showed.")] = "",
    kind: Annotated[str, typer.Option(help="Kind of analysis, in a word: regression, causal, ...")] = "",
    draft: Annotated[
        bool, typer.Option("--draft", help="Keep it as a draft, and submit it on the page.")
    ] = False,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Submit an analysis. It is tried on the synthetic data first, then a reviewer reads it.

    Make a token on the page of your account, and pass it in a file or in the environment, never on the command line.

    Example: understudy desk submit analysis.py --data NAME --question "Do ...?" --url https://desk.school.example
    """
    require_desk()
    try:
        text = existing(code, "the analysis").read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{code.name} is not text in UTF-8.", hint="save it as plain text.") from None
    with _client(url, token_file) as client:
        said = client.submit(data, text, question=question, shown=shown, kind=kind, draft=draft)
    if as_json:
        echo_json(said)
        return
    done = "kept as a draft" if draft else "submitted"
    typer.echo(f"Request {said['name']}: {done}. See {url.rstrip('/')}/requests/{said['name']}")


@app.command()
def status(
    request: Annotated[
        str | None, typer.Argument(metavar="[REQUEST]", help="One of your requests (default: all).")
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(help="Address of the desk (default: the desk of the folder, seen from inside)."),
    ] = None,
    token_file: TokenFile = None,
    folder: DeskFolder = DEFAULT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Show the state of your requests; or, without --url, count the requests of a desk's folder by state.

    Example: understudy desk status --url https://desk.school.example
    """
    require_desk()
    if url is None:
        _inside(folder, request, as_json)
        return
    with _client(url, token_file) as client:
        said = client.requests() if request is None else client.request(request)
    if as_json:
        echo_json(said)
        return
    lines = [said] if isinstance(said, dict) else said
    if not lines:
        typer.echo("You have no requests at this desk.")
        return
    print_table(
        "Your requests",
        ["request", "state", "since", "question"],
        [[one["name"], one["state"], str(one["day"]), one["question"][:80]] for one in lines],
    )
    if not isinstance(said, dict):
        return
    if said.get("note"):
        typer.echo(f"Note of the reviewer: {said['note']}")
    if private := said.get("private"):
        released = bool(private["answers"])
        if private["questions"]:
            typer.echo("Answers:" if released else "Answers from the synthetic data, with as much noise:")
        _show_answers(private["questions"], private["answers" if released else "tried"])


def _inside(folder: Path, request: str | None, as_json: bool) -> None:
    """Counts only: what is inside of a request is for the pages."""
    if request is not None:
        raise UsageError(
            "a single request is shown only to its owner, with the desk's address and their token.",
            hint="leave its name out to count the requests in each state.",
            settings=("url", "token_file"),
        )
    with opened(folder) as desk:
        from understudy.desk.service.views import counts

        found = counts(desk)
    if as_json:
        echo_json({"states": found.states, "jobs": found.n_jobs})
        return
    for state, count in found.states.items():
        if count:
            typer.echo(f"{count:>5}  {state}")
    typer.echo(
        f"{counted(sum(found.states.values()), 'request')}; jobs that wait or are being done: {found.n_jobs}."
    )


def _client(url: str, token_file: Path | None) -> DeskClient:
    from understudy.desk.researcher.client import DeskClient

    token = (
        existing(token_file, "your token").read_text(encoding="utf-8")
        if token_file is not None
        else os.environ.get(TOKEN, "")
    ).strip()
    if not token:
        raise UsageError(
            "no token was given.",
            hint=f"make one on the page of your account; put it in a file, or into {TOKEN} in the environment.",
            settings=("token_file",),
        )
    return DeskClient(url, token)


@app.command()
def certificate(
    file: Annotated[Path, typer.Argument(metavar="CERTIFICATE", help="The json file of a released result.")],
    key: Annotated[
        str | None,
        typer.Option(
            metavar="HEX", help="The desk's public key, as `desk verify` prints it; ask its people."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Verify that a certificate was not changed after the desk signed it.

    Without --key it is checked against the key that it states itself, which reveals damage but not forgery.

    Example: understudy desk certificate certificate.json --key KEY
    """
    require_desk()
    hexadecimal(key, "key", "key", "give it as `desk verify` prints it at the desk.")
    from understudy.desk.domain.certificate import verify

    content = parse_json(existing(file, "the certificate"))[1]
    if not isinstance(content, dict):
        raise DataError(f"{file.name} is not a certificate.", hint="give the json file of a released result.")
    verify(content, key)
    by = "the key that was given" if key else "the key that it states"
    if as_json:
        echo_json(
            {"holds": True, "key": content["key"], "key_given": key is not None, "certificate": content}
        )
        return
    typer.echo(f"The certificate {content['certificate']} holds, by {by} ({content['key']}).")
    if key is None:
        typer.echo("Compare this key with the desk's own: anyone can sign with a key of their own.")
    typer.echo(f"Question: {content['question']}")
    typer.echo(
        f"Data: {content['data_set_title']} ({content['data_set']}), released on {content['released_on']}."
    )
    if content.get("simulated"):
        typer.echo("These learners are simulated: they do not exist.")
    typer.echo(f"Hash of the code that was run: {content['code_hash']}")
    typer.echo("Result:")
    if "guarantee" in content:
        _show_answers(content["questions"], content["answers"])
        _show_guarantee(content)
        return
    _show_results(Results.from_json(content["result"]))
    for check in content["checks"]:
        typer.echo(f"Check {check['name']}: {check['verdict']}")
    _show_price(content["price"])
    typer.echo(str(content["other_releases"]["meaning"]))
    typer.echo(str(content["not_covered"]))


def _show_answers(sentences: Sequence[str], answers: Sequence[dict[str, Any]]) -> None:
    """Print the answers to private questions, with their intervals."""
    for place, (sentence, answer) in enumerate(zip(sentences, answers, strict=True), 1):
        typer.echo(f"{place}. {sentence}")
        for one in answer["estimates"]:
            lost = one["low"] is None or one["high"] is None
            interval = "lost in the noise" if lost else f"{_said(one['low'])} to {_said(one['high'])}"
            typer.echo(f"   {one['of']}: {_said(one['value'])} ({interval})")
        if (test := answer["test"]) is not None:
            typer.echo(f"   {test['name']}: statistic {_said(test['statistic'])}, p {_said(test['p_value'])}")
        for line in (*answer["notes"], answer["warning"]):
            if line:
                typer.echo(textwrap.fill(line, 110, initial_indent="   ", subsequent_indent="   "))


def _show_guarantee(content: dict[str, Any]) -> None:
    typer.echo(f"Guaranteed: {content['guarantee']['statement']}.")
    typer.echo(str(content["public"]))
    typer.echo(str(content["together"]))


def _show_price(price: dict[str, Any]) -> None:
    known = [
        (words, price[part])
        for part, words in (
            ("this_answer", "of this answer"),
            ("everything_released", "of everything released so far"),
        )
        if price.get(part)
    ]
    for words, one in known:
        typer.echo(
            f"Measured price {words} (upper end of the 95 % interval, rounded up): mu {one['mu_measured_up_to']:g}, "
            f"advantage {one['advantage_measured_up_to']:g}."
        )
    if known:
        typer.echo("A lower bound on what an attacker could do, not a guarantee.")


def _show_results(results: Results, rounded: Results | None = None) -> None:
    """Print an answer; where it is given, with what would leave in brackets."""
    leaves = {} if rounded is None else dict(_flat(rounded.values))
    for name, value in _flat(results.values):
        typer.echo(f"{name}: {_beside(value, leaves.get(name, value))}")
    for name, table in results.tables.items():
        other = None if rounded is None else rounded.tables.get(name)
        same = other is not None and (other.columns, len(other.rows)) == (table.columns, len(table.rows))
        rows = other.rows if other is not None and same else table.rows
        print_table(
            name,
            list(table.columns),
            [
                [_beside(cell, leaving) for cell, leaving in zip(*pair, strict=True)]
                for pair in zip(table.rows, rows, strict=True)
            ],
        )


def _beside(value: object, leaving: object) -> str:
    """A value, and what it would leave as if that is written differently."""
    exact, rounded = _said(value), _said(leaving)
    return exact if exact == rounded else f"{exact} ({rounded})"


def _flat(value: object, way: str = "") -> list[tuple[str, object]]:
    if isinstance(value, dict):
        parts = [(f"{way} / {name}" if way else str(name), part) for name, part in value.items()]
    elif isinstance(value, list) and any(isinstance(part, dict | list) for part in value):
        parts = [(f"{way} / {place}", part) for place, part in enumerate(value, 1)]
    else:
        return [(way or "result", value)] if value is not None or way else []
    return [one for name, part in parts for one in _flat(part, name)]


def _said(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_said(part) for part in value)
    if isinstance(value, float):
        return f"{value:.4g}"
    return "missing" if value is None else str(value)
