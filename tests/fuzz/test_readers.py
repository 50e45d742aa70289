"""Every reader ends in a result or in an error of ours: some thousand inputs here, a million in `make fuzz`.

Numbered inputs are read in a child process with limits of memory and time; those of Hypothesis are made smaller when
one fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.inputs import Input, corpus, numbered_input
from tests.fuzz.readers import READERS
from tests.support.fuzz import quick

N_INPUTS = 1500
ROOT = Path(__file__).parents[2]
needs_limits = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits of memory need Linux")
# In the corpus, and refused: files that once crashed a reader, and some that no reader should take.
REFUSED = ("regression-", "headerless", "two-columns")


@pytest.mark.parametrize("reader", READERS)
def test_there_is_an_entry_for_every_reader(reader):
    assert [entry for entry in corpus() if entry.reader == reader]


@pytest.mark.parametrize("entry", corpus(), ids=lambda entry: f"{entry.reader}-{entry.name}")
def test_the_corpus(tmp_path, entry):
    assert entry.problem(tmp_path / "input") == ""
    if not entry.name.startswith(REFUSED):
        READERS[entry.reader](tmp_path / "input" / entry.name)


def test_the_corpus_is_small():
    assert sum(len(content) for entry in corpus() for content in entry.files.values()) < 1_000_000


@pytest.mark.parametrize("reader", READERS)
@quick(25)
@given(chance=st.randoms(use_true_random=False), data=st.data())
def test_broken_files(tmp_path, reader, chance, data):
    entry = data.draw(st.sampled_from([entry for entry in corpus() if entry.reader == reader]))
    assert entry.broken(chance).problem(tmp_path / "input") == ""


@pytest.mark.parametrize("reader", READERS)
@quick(10)
@given(content=st.binary(max_size=300))
def test_arbitrary_bytes(tmp_path, reader, content):
    entry = next(entry for entry in corpus() if entry.reader == reader)
    file = sorted(entry.files)[0]
    changed = Input(entry.reader, entry.name, {**entry.files, file: content})
    assert changed.problem(tmp_path / "input") == ""


# In a process of its own: a fork of one in which polars has threads would wait for them.
def _in_process(code: str, tmp_path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT)))},
        check=False,
    )
    return done.stdout + done.stderr


@needs_limits
def test_inputs_in_a_child_with_limits(tmp_path):
    code = f"import sys; from tests.fuzz.run import main; sys.exit(main(['--inputs', '{N_INPUTS}', '--workers', '1']))"
    told = _in_process(code, tmp_path)
    assert told.rstrip().endswith(f"{N_INPUTS:,} inputs, 0 problems."), told
    # The same command has nothing left to do.
    assert _in_process(code, tmp_path).rstrip().endswith(f"{N_INPUTS:,} inputs, 0 problems.")


@needs_limits
@pytest.mark.parametrize(
    ("reader", "words"),
    [
        ("while True: pass", "it hangs"),
        ("return [bytearray(1 << 28) for _ in range(100)]", "it takes more memory than is allowed"),
        ("os.abort()", "the process died"),
        ("raise LookupError('of nobody')", "LookupError: of nobody"),
        ("os.write(2, b'a panic')", "a panic"),
    ],
)
def test_what_goes_wrong_is_found_and_the_rest_goes_on(tmp_path, reader, words):
    """The harness itself: a reader of each bad kind next to a good one."""
    code = (
        "import os\n"
        "from tests.fuzz import inputs, run\n"
        f"def bad(path):\n    {reader}\n"
        f"run.MOST_PROCESSOR_SECONDS = {1 if words == 'it hangs' else 30}\n"
        "inputs.READERS = {'people': lambda path: None, 'names': bad}\n"
        "for done, found in run.run(0, 4):\n"
        "    for problem in found:\n"
        "        print(problem.number, problem.reader, problem.problem.strip().splitlines()[-1])\n"
        "print('done', done)\n"
    )
    *found, last = _in_process(code, tmp_path).strip().splitlines()
    assert last == "done 4"
    assert [line.split()[:2] for line in found] == [["1", "names"], ["3", "names"]]
    assert all(words in line for line in found)


def test_a_number_always_gives_the_same_input():
    assert numbered_input(3, 1234) == numbered_input(3, 1234)
