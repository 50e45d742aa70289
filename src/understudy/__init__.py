"""Understudy: share what learners' data can teach without sharing the learners.

The front door for Python: `import understudy as us`. Names are loaded when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

# Where each public name stands.
_HOMES = {
    "understudy.core.engine.engine": ("running_on",),
    "understudy.core.privacy.guarantee": ("Guarantee",),
    "understudy.core.privacy.ledger": ("Ledger",),
    "understudy.core.privacy.spending": ("Spending",),
    "understudy.errors": ("DataError", "MissingError", "RefusedError", "UnderstudyError", "UsageError"),
    "understudy.logs.interactions": ("Interactions",),
    "understudy.logs.declared.columns": ("Declared",),
    "understudy.logs.declared.term": ("Term",),
    "understudy.logs.reading": ("read_log",),
    "understudy.logs.inspect": ("inspect",),
    "understudy.logs.audit": ("audit",),
    "understudy.logs.study": ("study",),
    "understudy.logs.synthesize": ("synthesize",),
    "understudy.logs.release.bundle": ("release",),
    "understudy.logs.generators.generator": ("Generator",),
    "understudy.logs.generators.baselines": ("Drop", "Markov"),
    "understudy.logs.generators.markov_dp": ("MarkovDP",),
    "understudy.logs.generators.runs": ("Runs",),
    "understudy.logs.generators.runs_dp": ("RunsDP",),
    "understudy.logs.generators.conformance": ("check_generator",),
    "understudy.logs.attacks.plugins": ("check_attack",),
    "understudy.logs.simulated.classroom": ("Classroom",),
    "understudy.exams.responses": ("Responses",),
    "understudy.exams.formats.reading": ("read_responses",),
    "understudy.exams.simulate": ("Exam",),
    "understudy.exams.difficulties": ("difficulties",),
    "understudy.exams.combine": ("combine_difficulties",),
    "understudy.exams.compare": ("compare_groups",),
    "understudy.exams.ladder": ("ladder",),
    "understudy.exams.released_file": ("Difficulties",),
    "understudy.exams.ability": ("ability",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

# Jobs with several verbs, which are names of their own: `us.keystrokes.sweep(...)`.
_WINGS = {"cohort": "understudy.cohorts", "keystrokes": "understudy.keystrokes"}

__all__ = ["__version__", *sorted((*_HOME_OF, *_WINGS))]

if TYPE_CHECKING:
    from understudy import cohorts as cohort  # noqa: F401 (the job, by its name)
    from understudy import keystrokes as keystrokes
    from understudy.core.engine.engine import running_on as running_on
    from understudy.core.privacy.guarantee import Guarantee as Guarantee
    from understudy.core.privacy.ledger import Ledger as Ledger
    from understudy.core.privacy.spending import Spending as Spending
    from understudy.errors import DataError as DataError
    from understudy.errors import MissingError as MissingError
    from understudy.errors import RefusedError as RefusedError
    from understudy.errors import UnderstudyError as UnderstudyError
    from understudy.errors import UsageError as UsageError
    from understudy.exams.ability import ability as ability
    from understudy.exams.combine import combine_difficulties as combine_difficulties
    from understudy.exams.compare import compare_groups as compare_groups
    from understudy.exams.difficulties import difficulties as difficulties
    from understudy.exams.formats.reading import read_responses as read_responses
    from understudy.exams.ladder import ladder as ladder
    from understudy.exams.released_file import Difficulties as Difficulties
    from understudy.exams.responses import Responses as Responses
    from understudy.exams.simulate import Exam as Exam
    from understudy.logs.attacks.plugins import check_attack as check_attack
    from understudy.logs.audit import audit as audit
    from understudy.logs.declared.columns import Declared as Declared
    from understudy.logs.declared.term import Term as Term
    from understudy.logs.generators.baselines import Drop as Drop
    from understudy.logs.generators.baselines import Markov as Markov
    from understudy.logs.generators.conformance import check_generator as check_generator
    from understudy.logs.generators.generator import Generator as Generator
    from understudy.logs.generators.markov_dp import MarkovDP as MarkovDP
    from understudy.logs.generators.runs import Runs as Runs
    from understudy.logs.generators.runs_dp import RunsDP as RunsDP
    from understudy.logs.inspect import inspect as inspect
    from understudy.logs.interactions import Interactions as Interactions
    from understudy.logs.reading import read_log as read_log
    from understudy.logs.release.bundle import release as release
    from understudy.logs.simulated.classroom import Classroom as Classroom
    from understudy.logs.study import study as study
    from understudy.logs.synthesize import synthesize as synthesize


def __getattr__(name: str) -> Any:
    if name in _WINGS:
        return import_module(_WINGS[name])
    if name not in _HOME_OF:
        raise AttributeError(f"module 'understudy' has no attribute '{name}'")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
