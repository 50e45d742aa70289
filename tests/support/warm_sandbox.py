"""Real sandboxes whose warm processes go from test to test: to start one takes seconds of imports.

For tests of what is done in a sandbox. That it holds, and how it starts and ends, is shown in tests/sandbox and
tests/privacy, with processes of their own. The root conftest keeps them for all folders, whose own
conftest takes `warm_sandboxes` in.
"""

import pytest

from understudy.sandbox import Sandbox, pool
from understudy.sandbox.process import Worker


class Lent(Worker):
    """A worker that needs no second start: every run begins from the same clean state, whoever asks for it."""

    tried = False
    """Whether it was warm, and held against the core of the battery."""

    def wait_until_warm(self):
        if not self.tried:
            super().wait_until_warm()


@pytest.fixture(scope="session")
def kept_warm():
    kept = []
    yield kept
    for worker in kept:
        worker.stop()


@pytest.fixture(scope="module", autouse=True)
def warm_sandboxes(kept_warm):
    """Opening a sandbox takes over what an earlier test left; closing it leaves what still works."""
    close, try_the_core = Sandbox.close, Sandbox._try_the_core

    def lend(limits):
        worker = kept_warm.pop() if kept_warm else Lent(limits)
        worker.limits = limits
        return worker

    def keep(sandbox):
        while not sandbox._idle.empty():
            worker = sandbox._idle.get()
            if worker.tried and not worker.stopped:
                sandbox._workers.remove(worker)
                kept_warm.append(worker)
        close(sandbox)

    def try_new_ones(sandbox):
        if not all(worker.tried for worker in sandbox._workers):
            try_the_core(sandbox)
        for worker in sandbox._workers:
            worker.tried = True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "Worker", lend)
        patch.setattr(Sandbox, "close", keep)
        patch.setattr(Sandbox, "_try_the_core", try_new_ones)
        yield
