"""`understudy desk`: the validation desk, where researchers' code meets the real data."""

from __future__ import annotations

from understudy.cli.lazy import lazy_group

COMMANDS = {
    "For researchers": {
        "template": ("understudy.cli.desk.research", "Write an analysis to start from."),
        "try": ("understudy.cli.desk.research", "Run an analysis on synthetic data, as the desk will."),
        "submit": ("understudy.cli.desk.research", "Submit an analysis to a desk."),
        "status": ("understudy.cli.desk.research", "Show where requests stand."),
        "certificate": ("understudy.cli.desk.research", "Check the certificate of a released answer."),
    },
    "For those who run a desk": {
        "init": ("understudy.cli.desk.setup", "Make a desk."),
        "serve": ("understudy.cli.desk.serve", "Serve a desk's pages and its API."),
        "work": ("understudy.cli.desk.serve", "Answer requests that wait."),
        "user": ("understudy.cli.desk.setup", "Invite people, list them, close accounts."),
        "data": ("understudy.cli.desk.data", "Register data sets, list them, close them."),
        "verify": ("understudy.cli.desk.serve", "Check that log, ledger and releases agree."),
        "feedback": ("understudy.cli.desk.serve", "Export what validation found, for the next cycle."),
        "backup": ("understudy.cli.desk.serve", "Write a backup of a desk."),
        "restore": ("understudy.cli.desk.serve", "Restore a desk from a backup."),
        "demonstrate": ("understudy.cli.desk.serve", "Make a desk to look at, with simulated learners."),
    },
}

app = lazy_group(
    "desk",
    "Answer researchers' questions on real data: code is reviewed, run, checked and priced before anything leaves.\n\n"
    "Example, for those who run a desk: understudy desk init, then understudy desk serve\n\n"
    "Example, for researchers: understudy desk template -o analysis.py, then understudy desk try analysis.py "
    "synthetic.parquet",
    COMMANDS,
)
