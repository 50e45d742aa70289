"""Fuzzing that is guided by what the code does with an input: `make fuzz-guided READER=log`, with atheris.

atheris notices which inputs reach new lines of our code and breaks these further. It is installed in a folder of its
own, where it can be; a crash is kept as out/fuzz/crash-*, to be read with `--read`.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

OUT = Path("out") / "fuzz"


def main() -> int:
    """Fuzz one reader, or read one input again."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reader")
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--read", type=Path, help="an input that was kept, instead of new ones")
    given = parser.parse_args()
    try:
        import atheris
    except ImportError:
        print("atheris is not installed here; `make fuzz-guided` installs it where it can be. Skipped.")
        return 0
    with atheris.instrument_imports(include=["understudy"]):
        from tests.fuzz.inputs import Input, corpus
    from tests.fuzz.mutations import mutate

    entries = [entry for entry in corpus() if entry.reader == given.reader]
    # Of files that belong together the first one is broken.
    files = [sorted(entry.files)[0] for entry in entries]
    scratch = tempfile.TemporaryDirectory(prefix="understudy-fuzz-")

    def read(data: bytes) -> None:
        # The first byte says which entry of the corpus it is about.
        number = data[0] % len(entries) if data else 0
        entry, file = entries[number], files[number]
        tried = Input(entry.reader, entry.name, {**entry.files, file: data[1:]})
        if problem := tried.problem(Path(scratch.name) / "input"):
            raise RuntimeError(problem)

    def break_more(data: bytes, most: int, seed: int) -> bytes:
        chance = random.Random(seed)
        broken = data[:1] + mutate(
            data[1:], chance, [entry.files[file] for entry, file in zip(entries, files, strict=True)]
        )
        return broken[:most]

    if given.read is not None:
        read(given.read.read_bytes())
        print("no problem.")
        return 0
    OUT.mkdir(parents=True, exist_ok=True)
    seeds = OUT / f"guided-{given.reader}"
    seeds.mkdir(exist_ok=True)
    for number, (entry, file) in enumerate(zip(entries, files, strict=True)):
        (seeds / entry.name).write_bytes(bytes([number]) + entry.files[file])
    options = [
        f"-runs={given.inputs}",
        "-timeout=60",
        "-rss_limit_mb=4096",
        "-max_len=200000",
        f"-artifact_prefix={OUT}/",
    ]
    atheris.Setup([sys.argv[0], str(seeds), *options], read, custom_mutator=break_more)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
