"""Inputs of the fuzzing: an entry of the corpus with one file broken; the same number always gives the same input."""

from __future__ import annotations

import functools
import random
import shutil
import traceback
from dataclasses import dataclass, replace
from pathlib import Path

from tests.fuzz.mutations import mutate
from tests.fuzz.readers import READERS
from understudy.errors import UnderstudyError

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True)
class Input:
    """What a reader is given: a file, or a folder of files that belong together."""

    reader: str
    name: str
    files: dict[str, bytes]
    """By their paths in the folder; a single file has its own name."""

    @property
    def is_folder(self) -> bool:
        """Whether the reader is given a folder."""
        return self.name not in self.files

    def write(self, folder: Path) -> Path:
        """Write it into an empty folder; gives the file or the folder that is to be read."""
        for name, content in self.files.items():
            place = folder / self.name / name if self.is_folder else folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        return folder / self.name

    def problem(self, folder: Path) -> str:
        """What is wrong with how its reader ends, if it is neither with a result nor with an error of ours."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        place = self.write(folder)
        try:
            READERS[self.reader](place)
        except UnderstudyError as error:
            return "" if error.hint else f"an error without a hint: {error.message}"
        except KeyboardInterrupt:
            raise
        # Panics of Rust libraries are no `Exception`.
        except BaseException:
            return traceback.format_exc()
        return ""

    def broken(self, chance: random.Random) -> Input:
        """The same with one file broken."""
        file = chance.choice(sorted(self.files))
        content = self.files[file]
        if chance.random() < 0.02:
            content = chance.choice(_donors())
        return replace(self, files={**self.files, file: mutate(content, chance, _donors())})


@functools.cache
def corpus() -> tuple[Input, ...]:
    """The entries of the corpus, which are in a folder for each reader."""
    found = []
    for place in sorted(CORPUS.glob("*/*")):
        if place.is_dir():
            inside = [file for file in sorted(place.rglob("*")) if file.is_file()]
            files = {str(file.relative_to(place)): file.read_bytes() for file in inside}
        else:
            files = {place.name: place.read_bytes()}
        found.append(Input(place.parent.name, place.name, files))
    return tuple(found)


@functools.cache
def _donors() -> tuple[bytes, ...]:
    return tuple(content for entry in corpus() for content in entry.files.values())


def numbered_input(seed: int, number: int) -> Input:
    """The input of this number: readers take turns, so that each gets its share however many entries it has."""
    chance = random.Random(f"{seed} {number}")
    reader = list(READERS)[number % len(READERS)]
    return chance.choice([entry for entry in corpus() if entry.reader == reader]).broken(chance)
