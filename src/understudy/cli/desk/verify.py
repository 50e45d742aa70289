"""`understudy desk verify` and `desk certificate`: whether the log, the ledger and a certificate are whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from understudy.cli.desk.options import DEFAULT_FOLDER, DeskFolder, counted, existing, opened, require_desk
from understudy.cli.lazy import command_group
from understudy.cli.options import AsJson
from understudy.cli.terminal import echo_json

app = command_group()


@app.command()
def verify(
    known: Annotated[
        str | None, typer.Option(metavar="HASH", help="A newest hash that an earlier `verify` printed.")
    ] = None,
    folder: DeskFolder = DEFAULT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Check the desk's log line by line, that every release is in the ledger once, and every certificate.

    Keep the hash that it prints somewhere else: who can write the database could write the whole log anew, and only
    an old hash (--known) shows that.

    Example: understudy desk verify
    """
    _hexadecimal(known, "hash", "give --known as an earlier `desk verify` printed it.")
    with opened(folder) as desk:
        from understudy.desk.service.verification import verify as verified

        found = verified(desk, known)
    if as_json:
        echo_json(vars(found))
        return
    typer.echo(f"The log holds: {counted(found.n_events, 'line')}, each chained to the one before.")
    typer.echo(
        f"Releases: {found.n_releases}, each of them once in the ledger, with a certificate that holds."
    )
    typer.echo(f"Key by which anybody can verify certificates: {found.key}")
    typer.echo(f"Newest hash, to keep elsewhere: {found.newest}")


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
    """Verify a certificate: that nobody changed it after the desk signed it.

    Without --key it is checked against the key that it states itself, which shows damage and not forgery.

    Example: understudy desk certificate certificate.json --key KEY
    """
    require_desk()
    _hexadecimal(key, "key", "give --key as `desk verify` prints it at the desk.")
    import json

    from understudy.cli.desk.results import show
    from understudy.desk.domain.certificate import verify as verified
    from understudy.desk.domain.results import Results
    from understudy.errors import DataError

    try:
        content = json.loads(existing(file, "the certificate").read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError):
        raise DataError(
            f"{file.name} is not JSON.", hint="give the json file of a released result."
        ) from None
    if not isinstance(content, dict):
        raise DataError(f"{file.name} is no certificate.", hint="give the json file of a released result.")
    verified(content, key)
    by = "the key that was given" if key else "the key that it states"
    if as_json:
        echo_json(
            {"holds": True, "key": content["key"], "key_given": key is not None, "certificate": content}
        )
        return
    typer.echo(f"The certificate {content['certificate']} holds, by {by} ({content['key']}).")
    if key is None:
        typer.echo("Compare this key with the desk's own: anybody can sign with a key of theirs.")
    typer.echo(f"Question: {content['question']}")
    typer.echo(
        f"Data: {content['data_set_title']} ({content['data_set']}), released on {content['released_on']}."
    )
    if content.get("simulated"):
        typer.echo("These learners are simulated: they do not exist.")
    typer.echo(f"Hash of the code that was run: {content['code_hash']}")
    typer.echo("Result:")
    show(Results.from_json(content["result"]))
    for check in content["checks"]:
        typer.echo(f"Check {check['name']}: {check['verdict']}")
    _show_price(content["price"])
    typer.echo(str(content["other_releases"]["meaning"]))
    typer.echo(str(content["not_covered"]))


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


def _hexadecimal(text: str | None, what: str, hint: str) -> None:
    import re

    from understudy.errors import UsageError

    if text is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", text.strip()):
        raise UsageError(f"this is no {what}: 64 hexadecimal digits.", hint=hint)
