"""A worker in a process of its own that is killed, or stopped, at a chosen line of the desk's own code."""

import multiprocessing
import os
import signal
import sys
import threading
from collections import Counter
from datetime import timedelta
from pathlib import Path

LEASE = timedelta(seconds=0.5)
# Each line counts so often, so that loops do not take all the points.
_VISITS = 2
_SOURCES = ("understudy/desk/", "understudy/core/privacy/ledger.py")


class Points:
    """Counts the lines of our code that are reached, and strikes at one of them."""

    def __init__(self, strike_at=None, number=signal.SIGKILL):
        self.reached, self._visits = 0, Counter()
        self._strike_at, self._number = strike_at, number

    def watch(self):
        threading.settrace(self._call)
        sys.settrace(self._call)

    def rest(self):
        sys.settrace(None)
        threading.settrace(None)

    def _call(self, frame, event, argument):
        return self._line if any(part in frame.f_code.co_filename for part in _SOURCES) else None

    def _line(self, frame, event, argument):
        if event == "line":
            site = (frame.f_code.co_filename, frame.f_lineno)
            self._visits[site] += 1
            if self._visits[site] <= _VISITS:
                self.reached += 1
                if self.reached == self._strike_at:
                    os.kill(os.getpid(), self._number)
        return self._line


def life(folder, strike_at, number, told):
    """One job of a desk; how many points there were is written down at the end."""
    from tests.desk.support.fixtures import InProcess, make_rough
    from understudy.desk.service import Desk
    from understudy.desk.worker.worker import Worker

    make_rough(setattr)
    desk = Desk.open(Path(folder))
    points = Points(strike_at, number)
    with Worker(desk, open_sandbox=InProcess, lasting=LEASE) as worker:
        points.watch()
        worker.do_one()
        points.rest()
    Path(told).write_text(str(points.reached))


def start(folder, told, strike_at=None, number=signal.SIGKILL):
    """The process of a worker that does one job."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["polars", "pandas", "alembic.command", "understudy.desk.worker.worker"])
    process = context.Process(target=life, args=(str(folder), strike_at, number, str(told)))
    process.start()
    return process
