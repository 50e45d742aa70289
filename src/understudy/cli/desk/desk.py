"""`understudy desk`: the validation desk, where researchers' code meets the real data; one module per step."""

from __future__ import annotations

from understudy.cli.desk.backup import backup, restore
from understudy.cli.desk.data import data
from understudy.cli.desk.demonstrate import demonstrate
from understudy.cli.desk.feedback import feedback
from understudy.cli.desk.local_try import template, try_
from understudy.cli.desk.options import group
from understudy.cli.desk.people import user
from understudy.cli.desk.research import status, submit
from understudy.cli.desk.serve import serve, work
from understudy.cli.desk.setup import init
from understudy.cli.desk.verify import certificate, verify

desk = group(
    "desk",
    "Answer researchers' questions on real data: code is reviewed, run, checked and priced before anything leaves.\n\n"
    "Example, for who runs a desk: understudy desk init, then understudy desk serve\n\n"
    "Example, for researchers: understudy desk template -o analysis.py, then understudy desk try analysis.py "
    "synthetic.parquet",
)

# For researchers first, then for who runs a desk.
desk.command()(template)
desk.command("try")(try_)
for step in (submit, status, certificate, init, serve, work, verify, feedback, backup, restore, demonstrate):
    desk.command()(step)
desk.add_typer(user)
desk.add_typer(data)
