"""Tasks on this machine: order, ticks, and what happens when one fails."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from understudy.core.engine import tasks
from understudy.core.engine.tasks import n_cores, run_tasks


def test_results_come_in_order_whatever_finishes_first():
    second_done = threading.Event()

    def first():
        assert n_cores() == 1 or second_done.wait(10)
        return 1

    def second():
        second_done.set()
        return 2

    assert run_tasks([first, second]) == [1, 2]


def test_each_task_ticks_once():
    ticks = []
    assert run_tasks([lambda k=k: k * k for k in range(20)], lambda: ticks.append(1)) == [
        k * k for k in range(20)
    ]
    assert len(ticks) == 20


def test_nothing_to_do():
    assert run_tasks([]) == []


def test_the_first_error_ends_it(monkeypatch):
    monkeypatch.setattr(tasks, "n_cores", lambda: 1)
    started = []
    release = threading.Event()

    def fail():
        raise ValueError("broken")

    def wait():
        started.append(1)
        release.wait(0.2)

    with pytest.raises(ValueError, match="broken"):
        run_tasks([fail, *[wait] * 50])
    assert len(started) < 50


def test_there_is_a_core():
    assert n_cores() >= 1


def test_an_error_does_not_wait_for_tasks_under_way():
    """Nor does an interruption: a person who presses Ctrl-C is answered at once."""
    ended = threading.Event()

    def failing():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tasks([failing, lambda: ended.wait(60)])
    ended.set()


def test_linear_algebra_in_tasks_has_one_thread():
    """So a product does not depend on the number of cores; afterwards it has as many as before."""

    def threads():
        np.ones((2, 2)) @ np.ones((2, 2))
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(2, "blas"):
        assert run_tasks([threads, threads]) == [{1}, {1}]
        assert threads() == {2}
