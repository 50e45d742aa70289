"""Progress: whoever started a step decides what is shown, and a step within another one is not shown."""

import contextlib

from understudy.core.engine import progress


class Recorder:
    def __init__(self):
        self.shown = []

    @contextlib.contextmanager
    def task(self, name, total):
        self.shown.append((name, total))
        yield self

    def advance(self, n=1):
        self.shown.append(n)

    def note(self, text):
        self.shown.append(text)


def test_steps_are_shown_to_the_reporter_of_the_block_only():
    recorder = Recorder()
    with progress.task("before", 1) as step:
        step.advance()
    with progress.reported_by(recorder):
        assert list(progress.each([7, 8], "items")) == [7, 8]
    with progress.task("after", 1) as step:
        step.note("silent")
    assert recorder.shown == [("items", 2), 1, 1]


def test_a_step_within_another_one_is_not_shown():
    """A terminal has room for one bar, and a verb may call another."""
    recorder = Recorder()
    with progress.reported_by(recorder):
        with progress.task("outer", 2) as outer:
            with progress.task("inner", 9) as inner:
                inner.advance()
            outer.advance()
        with progress.task("next", None):
            pass
    assert recorder.shown == [("outer", 2), 1, ("next", None)]
