"""The sandbox as callers meet it: what goes in, what comes out, what stays out."""

import os
import socket
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pytest

from understudy.errors import MissingError, UsageError
from understudy.sandbox import (
    Job,
    Limits,
    Outcome,
    Probe,
    Sandbox,
    availability,
    battery,
    bubblewrap,
    process,
    require_sandbox,
    seccomp,
)
from understudy.sandbox.battery import Untried
from understudy.sandbox.jobs import MEBIBYTE

pytestmark = pytest.mark.sandbox
ROOT = Path(__file__).parents[2]
ALLOW_ALL = struct.pack("<HBBI", 6, 0, 0, 0x7FFF0000)


@pytest.fixture(autouse=True, scope="module")
def _own_state(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="module")
def usable():
    try:
        require_sandbox()
    except MissingError as error:
        pytest.skip(error.message)


@pytest.fixture(scope="module")
def sandbox(usable):
    with Sandbox(Limits(wall_seconds=60.0), workers=2) as opened:
        yield opened


def arrow(frame, as_file=False):
    table = pa.Table.from_pandas(frame)
    sink = pa.BufferOutputStream()
    with (pa.ipc.new_file if as_file else pa.ipc.new_stream)(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def frame(content):
    return pa.ipc.open_stream(content).read_all().to_pandas()


def test_values_tables_and_seed(sandbox):
    code = """
import numpy as np
def analyse(habits, cut, rng):
    high = habits[habits["minutes"] > cut]
    return {
        "mean": habits.groupby("window")["minutes"].mean().to_dict(),
        "draw": rng.normal(),
        "shape": np.array(high.shape),
        "none": float("nan"),
        "high": high,
    }
"""
    habits = pd.DataFrame({"window": ["am", "pm"] * 3, "minutes": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})
    for as_file in (False, True):
        job = Job(code, "analyse", {"cut": 3}, {"habits": arrow(habits, as_file)}, seed=5)
        first, second = sandbox.run_many([job, job])
        assert first.status == "done", first
        assert first.values["mean"] == {"am": 3.0, "pm": 4.0}
        assert first.values["shape"] == [3, 2]
        assert first.values["draw"] == second.values["draw"]
        assert frame(first.tables["high"])["minutes"].to_list() == [4.0, 5.0, 6.0]


def test_a_frame_alone_and_odd_columns(sandbox):
    code = """
import pandas as pd
def f():
    return pd.DataFrame({0: [1, 2], "c": pd.Categorical(["a", "b"]), "n": [None, None]})
"""
    outcome = sandbox.run(Job(code, "f"))
    assert outcome.status == "done", outcome
    assert frame(outcome.tables["result"]).astype(object).where(lambda x: x.notna(), None).to_dict(
        "list"
    ) == {
        "0": [1, 2],
        "c": ["a", "b"],
        "n": [None, None],
    }


@pytest.mark.parametrize("zone", ["Europe/Berlin", "+02:00", "UTC"])
def test_moments_come_out_in_utc(sandbox, zone):
    code = """
import pandas as pd
def f(zone):
    return pd.DataFrame({"t": pd.to_datetime(["2025-07-01 12:00", None]).tz_localize("UTC").tz_convert(zone)})
"""
    outcome = sandbox.run(Job(code, "f", {"zone": zone}))
    assert outcome.status == "done", outcome
    found = frame(outcome.tables["result"])["t"]
    assert str(found.dt.tz) == "UTC"
    assert found[0] == pd.Timestamp("2025-07-01 12:00", tz="UTC")
    assert pd.isna(found[1])


def test_a_zone_of_ones_own_carries_nothing_out(sandbox):
    code = """
import pandas as pd, pyarrow as pa
def f():
    return pd.DataFrame({"t": pd.array([0], dtype=pd.ArrowDtype(pa.timestamp("s", tz="canary")))})
"""
    assert "canary" not in repr(sandbox.run(Job(code, "f")))


@pytest.mark.parametrize(
    ("code", "kind", "line"),
    [
        ("def f():\n    x = {}\n    return x['canary']\n", "KeyError", 3),
        ("def f(:\n", "SyntaxError", 1),
        ("import pandas as pd\ndef f():\n    return pd.DataFrame()['canary']\n", "KeyError", 3),
        ("x = 1\nraise SystemExit('canary')\n", "SystemExit", 2),
        ("def g(): pass\n", "KeyError", None),
        ("def f():\n    return object()\n", "TypeError", None),
        ("class canary(ValueError): pass\ndef f():\n    raise canary('canary')\n", "ValueError", 3),
        ("import socket\ndef f():\n    socket.socket()\n", "PermissionError", 3),
        ("import polars\ndef f(): pass\n", "ModuleNotFoundError", 1),
    ],
)
def test_errors_are_a_type_and_a_line(sandbox, code, kind, line):
    outcome = sandbox.run(Job(code, "f"))
    assert (outcome.status, outcome.error_type, outcome.error_line) == ("error", kind, line)
    assert "canary" not in repr(outcome)


@pytest.mark.parametrize("ending", ["os._exit(0)", "ctypes.string_at(0)"])
def test_a_run_that_ends_without_a_result(sandbox, ending):
    code = f"import ctypes, os\ndef f():\n    {ending}\n"
    assert sandbox.run(Job(code, "f")).status == "killed"


def most_memory_of_a_result_in_tiny_pieces(output_bytes):
    """What a process that does nothing else takes for it at the most."""
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_DIRECT)  # every write is a packet, and a read takes one
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    watching = object.__new__(process.Worker)
    limits = Limits(output_bytes=output_bytes, wall_seconds=600.0)
    watching._control, watching._started, watching._warm = ours, time.monotonic(), os.getpid()

    def write():
        for _ in range(output_bytes // 2):
            os.write(writing, b"ab")
        os.close(writing)
        theirs.send(b"ended")

    with ours, theirs:
        thread = threading.Thread(target=write)
        tracemalloc.start()
        thread.start()
        reason, ended, result, _ = watching._watch(reading, limits)
        _, most = tracemalloc.get_traced_memory()
        thread.join()
    assert (reason, ended, bytes(result)) == (None, True, b"ab" * (output_bytes // 2))
    return most


def test_a_result_in_tiny_pieces_takes_no_more_than_its_size():
    output_bytes = 40_000
    code = (
        "from tests.sandbox.test_pool import most_memory_of_a_result_in_tiny_pieces as most\n"
        f"print(most({output_bytes}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    # Kept piece by piece, each of two bytes would take more than forty.
    assert int(done.stdout) < 10 * output_bytes


def test_the_result_stays_a_stream(sandbox):
    code = """
import fcntl, os, stat
def f():
    found = []
    for number in range(3, 64):
        try:
            if stat.S_ISFIFO(os.fstat(number).st_mode):
                fcntl.fcntl(number, fcntl.F_SETFL, os.O_WRONLY | os.O_DIRECT)
                found.append(number)
        except OSError:
            pass
    return found
"""
    assert sandbox.run(Job(code, "f")).values == []


def test_started_by_root_it_is_a_user_that_nobody_else_is(usable, monkeypatch, tmp_path):
    first, second = bubblewrap.unprivileged(), bubblewrap.unprivileged()
    assert first != second
    assert all(2_000_000_000 <= number < 2_100_000_000 for number in (*first, *second))
    few = tmp_path / "map"
    few.write_text("         0     100000      65536\n")
    monkeypatch.setattr(bubblewrap, "_MAPS", (str(few), str(few)))
    assert bubblewrap.unprivileged() == (65534, 65534)


def test_a_machine_where_the_battery_failed_is_refused(usable, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert battery.got_through() is None
    battery.remember([Probe("fork", "denied", "denied"), Probe("read /etc/passwd", "denied", "got through")])
    monkeypatch.setattr(process.Worker, "__init__", lambda *_: pytest.fail("a sandbox was started"))
    with pytest.raises(MissingError, match=r"does not hold.*read /etc/passwd") as caught, Sandbox():
        pass
    assert caught.value.exit_code == 5
    assert "fork" not in caught.value.message


def test_a_way_out_is_remembered_whatever_changes(usable, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    battery.remember([Probe("fork", "denied", "got through"), Probe("read", "denied", "denied")])
    known = battery.conditions()
    for name in known:
        monkeypatch.setattr(battery, "conditions", lambda name=name: {**known, name: "another"})
        assert battery.got_through() == ["fork"]
        with pytest.raises(MissingError, match=r"does not hold.*fork"), Sandbox():
            pass
    monkeypatch.setattr(battery, "conditions", lambda: pytest.fail("a way out needs no conditions"))
    assert battery.got_through() == ["fork"]
    monkeypatch.setattr(battery, "conditions", lambda: known)
    battery.remember([Probe("fork", "denied", "denied"), Probe("read", "denied", "denied")])
    assert battery.got_through() == []


def test_what_a_finding_was_made_on(usable, monkeypatch, tmp_path):
    known = battery.conditions()
    assert known["seccomp"].startswith("libseccomp 2.")
    # The same version, another program.
    other = tmp_path / "bwrap"
    other.write_text('#!/bin/sh\necho "bubblewrap 0.8.0"\n')
    other.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "bubblewrap", lambda: str(other))
    first = battery.conditions()["bubblewrap"]
    other.write_text('#!/bin/sh\necho "bubblewrap 0.8.0" # and more\n')
    assert battery.conditions()["bubblewrap"] != first


def test_a_finding_holds_for_what_it_was_made_on(usable, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    battery.remember([Probe("fork", "denied", "denied")])
    assert battery.got_through() == []
    known = battery.conditions()
    for name in known:
        monkeypatch.setattr(battery, "conditions", lambda name=name: {**known, name: "another"})
        assert battery.got_through() is None
    monkeypatch.undo()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for content in ("", "[]", "{}", '{"conditions": 1}'):
        battery.place().write_text(content)
        assert battery.got_through() is None


def test_a_machine_where_the_battery_was_not_run_tries_the_core(usable, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("outer", "warm", "run"):
        monkeypatch.setattr(seccomp, name, lambda: ALLOW_ALL)
    opened = Sandbox(workers=1)
    with pytest.raises(MissingError, match=r"does not hold.*socket inet stream, socket unix stream"), opened:
        pass
    assert opened._workers == []
    # Kept, and found again without trying: the next start does not even look.
    assert "socket inet stream" in battery.got_through()


def test_an_attempt_that_was_cut_short_is_refused_and_not_kept(sandbox, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(sandbox, "run_many", lambda jobs: [Outcome("time") for _ in jobs])
    with pytest.raises(MissingError, match="does not hold"):
        sandbox._try_the_core()
    assert battery.got_through() is None


def test_the_libraries_work_inside(sandbox):
    code = """
import numpy as np, pandas as pd
def f(rng):
    import statsmodels.formula.api as smf
    from scipy import stats
    from sklearn.cluster import KMeans
    from sklearn.ensemble import RandomForestClassifier
    x = rng.normal(size=200)
    data = pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=200), "g": np.where(x > 0, "a", "b")})
    slope = smf.ols("y ~ x", data).fit().params["x"]
    groups = KMeans(2, n_init=3, random_state=0).fit_predict(data[["x", "y"]])
    forest = RandomForestClassifier(10, random_state=0).fit(data[["x", "y"]], data["g"])
    when = pd.Timestamp("2025-07-01", tz="Europe/Berlin").utcoffset().total_seconds()
    data["g"].str.upper().value_counts()
    data.to_csv("/scratch/out.csv"); pd.read_csv("/scratch/out.csv")
    p = stats.ttest_1samp(x, 5).pvalue
    score = forest.score(data[["x", "y"]], data["g"])
    return {"slope": slope, "groups": int(groups.max()), "p": p, "forest": score, "offset": when}
"""
    outcome = sandbox.run(Job(code, "f", seed=1))
    assert outcome.status == "done", outcome
    assert outcome.values["slope"] == pytest.approx(2, abs=0.3)
    assert outcome.values["groups"] == 1
    assert outcome.values["p"] < 1e-6
    assert outcome.values["offset"] == 7200


def test_lingam_finds_an_order(sandbox):
    code = """
import lingam, pandas as pd
def f(rng):
    x = rng.uniform(size=300)
    y = 2 * x + rng.uniform(size=300)
    data = pd.DataFrame({"z": y - x + rng.uniform(size=300), "x": x, "y": y})
    direct, by_ica = lingam.DirectLiNGAM(), lingam.ICALiNGAM(random_state=0)
    orders = [[data.columns[place] for place in model.fit(data).causal_order_] for model in (direct, by_ica)]
    # What this imports is put off until it is used.
    fit = lingam.utils.evaluate_model_fit(direct.adjacency_matrix_, data)
    return {"orders": orders, "fit": float(fit["CFI"].iloc[0])}
"""
    outcome = sandbox.run(Job(code, "f", seed=1))
    assert outcome.status == "done", outcome
    assert outcome.values["orders"] == [["x", "y", "z"]] * 2
    assert outcome.values["fit"] > 0.9


def test_nothing_that_a_run_says_is_heard(sandbox, capfd):
    outcome = sandbox.run(Job("import os, sys\ndef f():\n    print('canary'); os.write(2, b'canary')\n", "f"))
    assert outcome.status == "done"
    assert capfd.readouterr() == ("", "")


def test_the_launcher_has_an_empty_environment_and_no_root(sandbox, monkeypatch):
    for warm in sandbox._workers:
        if os.geteuid() == 0:
            assert Path(f"/proc/{warm._process.pid}/environ").read_bytes() == b""
            assert b"scratch" not in Path(f"/proc/{warm._process.pid}/cmdline").read_bytes()
        status = Path(f"/proc/{warm._warm}/status").read_text()
        assert "\nThreads:\t1\n" in status  # a filter is put on one thread only
        assert "\nNoNewPrivs:\t1\n" in status
    assert 0 not in sandbox.outside_users()


def test_the_sum_over_children_is_limited_even_if_forks_were_not(usable, monkeypatch):
    for name in ("outer", "warm", "run"):
        monkeypatch.setattr(seccomp, name, lambda: ALLOW_ALL)
    code = """
import os, time
def f():
    for _ in range(6):
        if os.fork() == 0:
            kept = bytearray(b"x") * (100 << 20)
            time.sleep(60)
    time.sleep(60)
"""
    limits = Limits(wall_seconds=50.0, memory_bytes=300 * MEBIBYTE, processes=20)
    with Untried(limits, workers=1) as weak:
        assert weak.run(Job(code, "f")).status == "memory"
        assert weak.run(Job("def f(): return 1", "f")).values == 1


def test_a_warm_process_that_ends_is_replaced_and_nothing_is_left_running(usable):
    import signal

    with Sandbox(workers=1) as opened:
        first = opened._workers[0]
        os.kill(first._warm, signal.SIGKILL)
        first._process.wait()
        assert opened.run(Job("def f(): return 1", "f")).values == 1
        processes = [opened._workers[0]._warm, opened._workers[0]._process.pid]
        assert first._warm not in processes
    deadline = time.monotonic() + 120
    while any(os.path.exists(f"/proc/{process}") for process in processes):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_progress_and_order(sandbox):
    heard = []
    code = "def f(n): return n"
    outcomes = sandbox.run_many(
        [Job(code, "f", {"n": n}) for n in range(10)], lambda done, of: heard.append((done, of))
    )
    assert [outcome.values for outcome in outcomes] == list(range(10))
    assert heard == [(done, 10) for done in range(1, 11)]


def test_it_has_to_be_open():
    with pytest.raises(UsageError, match="not open"):
        Sandbox().run(Job("", "f"))


@pytest.mark.parametrize(("platform", "name"), [("darwin", "macOS"), ("win32", "Windows")])
def test_other_systems_get_a_sentence(monkeypatch, platform, name):
    monkeypatch.setattr(availability, "sys", SimpleNamespace(platform=platform))
    with pytest.raises(MissingError, match=name) as caught:
        require_sandbox()
    assert "virtual machine" in caught.value.hint
    with pytest.raises(MissingError, match=name), Sandbox():
        pass


def test_without_bubblewrap_nothing_is_run(monkeypatch):
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda *_, **__: None)
    with pytest.raises(MissingError, match="bubblewrap"), Sandbox():
        pass


def test_without_user_namespaces_nothing_is_run(usable, monkeypatch, tmp_path):
    refusing = tmp_path / "bwrap"
    refusing.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "bubblewrap 0.8.0" && exit 0\n'
        'echo "bwrap: No permissions to create new namespace" >&2\nexit 1\n'
    )
    refusing.chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "bubblewrap", lambda: str(refusing))
    with pytest.raises(MissingError, match=r"user namespaces.*No permissions"), Sandbox():
        pass
