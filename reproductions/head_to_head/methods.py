"""The methods that are compared: how each is run, and on what of the log."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from reproductions.head_to_head.environments import (
    DATASYNTHESIZER,
    MOSTLYAI,
    OPENDP,
    OURS,
    SDV,
    Environment,
)
from reproductions.head_to_head.generators import generator_of

PROGRAMS = Path(__file__).parent / "programs"
# Among what a generator that runs here imports, these decide about its synthetic logs.
DECIDING = ("understudy.logs.generators.", "understudy.logs.models.")
EPSILON = 8.0
NOTHING, ROW, LEARNER = "nothing", "a row", "a learner"
# Training of networks that stop by the clock: what is left of the limit of a fit is for sampling.
MINUTES = 8.0
# A learner's rows where these are the unit of privacy of a table: a public bound, a little above the mean length.
MOST_STEPS = 64


@dataclass(frozen=True)
class Method:
    """One generator with its settings.

    `covers` is what its guarantee is for, as it is stated. `command` is what follows the interpreter, with `{train}`,
    `{out}`, `{domain}`, `{seed}`, `{delta}` and `{rho}` in it. A generator of tables reads and writes the flat table of
    steps. Of a learner it sees `most_steps` steps or rows, of all learners `most_learners`, where it could not cope
    with more. A generator of ours may be `refitted` by attacks.
    """

    label: str
    covers: str
    command: tuple[str, ...]
    environment: Environment | None = None
    form: Literal["sequences", "table"] = "sequences"
    most_steps: int | None = None
    most_learners: int | None = None
    refitted: bool = False

    def fingerprint(self) -> str:
        """Changes with the settings, the peer's version, and the programs and generators that the command runs."""
        if self.environment is None:
            sources, version = sources_of(self.label) if self.refitted else [], ""
        else:
            sources, version = [Path(self.command[0])], self.environment.version()
        # Paths differ from clone to clone.
        parts = [
            repr(self).replace(str(PROGRAMS), ""),
            version,
            *(path.read_text("utf-8") for path in sources),
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]

    def words(self, values: Mapping[str, object]) -> list[str]:
        """The command in full."""
        python = OURS if self.environment is None else str(self.environment.python())
        return [python, *(word.format(**values) for word in self.command)]


def sources_of(label: str) -> list[Path]:
    """The module of a generator that runs here, and every deciding one that it imports, directly or not."""
    generator = generator_of(label)
    waiting = [type(getattr(generator, "generator", generator)).__module__]
    found: dict[str, Path] = {}
    while waiting:
        name = waiting.pop()
        spec = find_spec(name)
        if name in found or spec is None or spec.origin is None:
            continue
        found[name] = Path(spec.origin)
        for node in ast.walk(ast.parse(found[name].read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(DECIDING):
                waiting.append(str(node.module))
    return [found[name] for name in sorted(found)]


def _ours(method: str, covers: str) -> Method:
    module = "reproductions.head_to_head.programs.ours"
    command = ("-m", module, "{train}", "{out}", "{domain}", method, "{seed}")
    return Method(method, covers, command, refitted=True)


def _marginals(algorithm: str, *, unit: Literal["row", "learner"]) -> Method:
    contributions = 1 if unit == "row" else MOST_STEPS
    return Method(
        f"opendp {algorithm.upper()}, per {unit}",
        ROW if unit == "row" else LEARNER,
        (*_on_table("opendp_marginals"), algorithm, "{rho}", str(contributions)),
        OPENDP,
        "table",
        most_steps=None if unit == "row" else MOST_STEPS,
    )


def _mostlyai(label: str, epsilon: float) -> Method:
    command = (_program("mostlyai_tabular"), "generate", "{train}", "{out}", "{seed}")
    covers = LEARNER if epsilon else NOTHING
    return Method(label, covers, (*command, str(epsilon), "{delta}", str(MINUTES)), MOSTLYAI)


def _on_table(program: str) -> tuple[str, ...]:
    return (_program(program), "generate", "{train}", "{out}", "{domain}")


def _program(name: str) -> str:
    return str(PROGRAMS / f"{name}.py")


# The parts that can be measured by themselves.
PEERS: dict[str, tuple[Method, ...]] = {
    "ours": (
        _ours("markov", NOTHING),
        _ours("runs", NOTHING),
        _ours("gru", NOTHING),
        _ours(f"markov-dp:epsilon={EPSILON:g}", LEARNER),
        _ours(f"runs-dp:epsilon={EPSILON:g}", LEARNER),
        _ours(f"gru-dp:epsilon={EPSILON:g}", LEARNER),
        _ours("markov-dp:epsilon=2", LEARNER),
        _ours("runs-dp:epsilon=2", LEARNER),
    ),
    "privtrace": (_ours(f"privtrace:{EPSILON:g}", LEARNER),),
    "datasynthesizer": (
        Method(
            "DataSynthesizer, per row",
            ROW,
            (*_on_table("datasynthesizer_table"), str(EPSILON), "{seed}"),
            DATASYNTHESIZER,
            "table",
        ),
    ),
    "opendp": (
        _marginals("mst", unit="row"),
        _marginals("mst", unit="learner"),
        _marginals("aim", unit="row"),
        _marginals("aim", unit="learner"),
    ),
    "mostlyai": (
        _mostlyai("mostlyai-engine with DP", EPSILON),
        _mostlyai("mostlyai-engine", 0.0),
    ),
    "sdv": (
        Method(
            "SDV PAR",
            NOTHING,
            (_program("sdv_par"), "generate", "{train}", "{out}", "{seed}", "128"),
            SDV,
            # The whole log is one padded tensor: with all rows of a half of ASSISTments it takes 7 GB.
            most_steps=100,
            most_learners=500,
        ),
    ),
}
