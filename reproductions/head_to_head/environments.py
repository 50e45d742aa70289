"""Environments of others: one per peer, outside of the repository, made when it is needed."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from understudy.errors import MissingError

# Any other torch pulls gigabytes of what only graphics cards need.
CONSTRAINT = "torch==2.13.0"
# Set this variable to keep the environments elsewhere.
FOLDER_VARIABLE = "UNDERSTUDY_PEERS"


def folder() -> Path:
    """Where the environments are kept."""
    return Path(os.environ.get(FOLDER_VARIABLE) or Path.home() / ".cache" / "understudy-peers")


@dataclass(frozen=True)
class Environment:
    """The packages of a peer; `removed` are those that come with them and do not work without a graphics card."""

    name: str
    packages: tuple[str, ...]
    removed: tuple[str, ...] = ()

    def python(self) -> Path:
        """Its interpreter; the environment is made if it is not there yet."""
        place = folder() / self.name
        python, ready = place / "bin" / "python", place / "ready"
        if ready.exists():
            return python
        if not python.exists():
            venv.create(place, with_pip=True)
        constraint = place / "constraint.txt"
        constraint.write_text(CONSTRAINT + "\n", encoding="utf-8")
        self._pip(python, "install", "-q", "-c", str(constraint), *self.packages)
        if self.removed:
            self._pip(python, "uninstall", "-q", "-y", *self.removed)
        ready.touch()
        return python

    def version(self) -> str:
        """The version of its first package."""
        name = self.packages[0].partition("[")[0]
        code = f"from importlib.metadata import version; print(version({name!r}))"
        done = subprocess.run([self.python(), "-c", code], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def _pip(self, python: Path, *arguments: str) -> None:
        done = subprocess.run([python, "-m", "pip", *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise MissingError(
                f"the environment of {self.name} cannot be made: pip ended with exit code {done.returncode}.",
                hint="its methods are skipped; make the environment by hand to see why.",
                code="no-environment",
            )


OURS = sys.executable
SDV = Environment("sdv", ("sdv",))
MOSTLYAI = Environment("mostlyai", ("mostlyai-engine", "mostlyai-qa"), removed=("torchvision", "torchaudio"))
OPENDP = Environment("opendp", ("opendp[mbi]", "pandas"))
DATASYNTHESIZER = Environment("datasynthesizer", ("DataSynthesizer",))
ENVIRONMENTS = (SDV, MOSTLYAI, OPENDP, DATASYNTHESIZER)
