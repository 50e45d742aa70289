"""The panel: its members write scripts independently, which are checked, run and pooled.

As by Ito, Hsu and Ogata (2026, sections III-B and IV-B2) each panelist's script gives 1,000 learners of each label,
the tables are pooled, and the wanted number is drawn label by label. A script that fails goes back once with the
kind of its error and the line; if it fails again it is dropped, and the report states that.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.cohorts.cohort import Cohort
from understudy.cohorts.panel.brief import Brief, for_scripts, panel_guarantee, write_brief
from understudy.cohorts.panel.providers import Answer, PanelistError
from understudy.cohorts.panel.report import PanelistReport, PanelReport, total_cost
from understudy.cohorts.panel.scripts import (
    ENTRY,
    NO_TOKENS,
    Script,
    ScriptFault,
    Tokens,
    check_names,
    check_script,
    extract_code,
    read_table,
    repair_request,
)
from understudy.cohorts.schema import Schema
from understudy.cohorts.summary.summary_file import PrivateSummary
from understudy.core.engine import progress
from understudy.core.privacy.guarantee import Guarantee
from understudy.errors import DataError, UsageError
from understudy.sandbox.jobs import Job, Limits, Outcome

Floats = NDArray[np.float64]

# Rows of each label by each panelist (Ito, Hsu and Ogata 2026, section IV-B2).
N_EACH = 1000
MOST_EACH = 100_000


def check_rows(n_each: int) -> None:
    """Refuse a number of rows per panelist and label that no table can come from."""
    if not 2 <= n_each <= MOST_EACH:
        raise UsageError(
            f"{n_each:,} rows of each panelist were asked for.",
            hint=f"choose from 2 to {MOST_EACH:,}; {N_EACH:,} are usual.",
            settings=("per_panelist",),
        )


def label_shares(summary: PrivateSummary) -> Floats:
    """The share of each label by the summary's noisy counts; equal ones when it has no counts.

    The number of learners is public, so the counts are moved to add up to it. What the noise could have
    made is shrunk towards equal shares: the excesses have the variance sd^2 + tau^2 in n_labels - 1
    dimensions, and tau^2 / (sd^2 + tau^2) of them is kept (empirical Bayes by moments).
    """
    n_labels = summary.schema.n_labels
    equal = np.full(n_labels, 1.0 / n_labels)
    found = summary.statistics.get("labels")
    if found is None or found.values.shape != equal.shape:
        return equal
    excess = found.values - found.values.mean()
    noise = float(np.mean(np.square(found.noise_sd))) * (n_labels - 1)
    size = float((excess**2).sum())
    kept = max(0.0, 1.0 - noise / size) if size > 0 else 0.0
    counts = np.maximum(summary.n_learners / n_labels + kept * excess, 0.0)
    return np.asarray(counts / counts.sum(), dtype=np.float64)


def counts_of(shares: Floats, n_learners: int) -> list[int]:
    """Whole numbers that add up to `n_learners` and are nearest to the shares (largest remainders)."""
    exact = shares * n_learners
    counts = np.floor(exact).astype(int)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: n_learners - int(counts.sum())]] += 1
    return [int(count) for count in counts]


def rows_needed(counts: Sequence[int], n_each: int) -> int:
    """How many rows of each label every panelist has to give: `n_each`, or as many as are drawn of a label.

    The shares are noisy, so how many of a label are drawn is not known beforehand; all panelists but one may be
    dropped. Up to the usual number of rows more are made without asking; beyond it the
    scripts' time limits, which are for 1,000 rows, are the user's to stretch.
    """
    most = max(counts)
    if most > max(n_each, N_EACH):
        raise UsageError(
            f"{most:,} learners of one label would be drawn; each panelist gives {n_each:,} of each label.",
            hint=f"{sum(counts):,} rows per panelist are enough whatever the labels' shares are; or ask for fewer "
            "learners.",
            code="too-few-rows",
            settings=("per_panelist", "n_learners"),
            rows_needed=sum(counts),
        )
    return max(n_each, most)


def draw_cohort(
    pools: Sequence[Sequence[Floats]], counts: Sequence[int], schema: Schema, rng: np.random.Generator
) -> Cohort:
    """`counts` learners of each label without replacement from `pools[panelist][label]`, in random order."""
    rows, labels = [], []
    for label, count in enumerate(counts):
        pool = np.concatenate([tables[label] for tables in pools])
        rows.append(pool[rng.choice(len(pool), count, replace=False)])
        labels.append(np.full(count, label, dtype=np.int8))
    order = rng.permutation(sum(counts))
    values = np.concatenate(rows)[order].reshape(-1, schema.n_features, schema.n_weeks)
    return Cohort(values, np.concatenate(labels)[order], schema)


N_LEARNERS = 120
# A script is sent back once.
MOST_ATTEMPTS = 2
# For one label's rows: more than the brief allows, since a loaded machine is slower.
LIMITS = Limits(wall_seconds=20.0, cpu_seconds=20, memory_bytes=1024 * 1024 * 1024)
# Rows of the runs that show whether the same seed gives the same table.
_N_REPEATED = 50


class Panelist(Protocol):
    """The author of a script: a language model, a person's chat, or a program of ours."""

    @property
    def name(self) -> str:
        """What the panelist is called in this panel, and its files."""

    @property
    def provider(self) -> str:
        """Where the answers come from."""

    @property
    def model(self) -> str:
        """Which model answers, as far as is known before."""

    @property
    def reads_brief(self) -> bool:
        """Whether it writes for this brief, and again after a failure; otherwise the script exists already."""

    def write(self, conversation: Sequence[str]) -> Answer:
        """The answer to a conversation: our words and the panelist's in turn, ours first and last."""


class Runner(Protocol):
    """What runs untrusted code: the sandbox."""

    def run_many(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Run jobs side by side; outcomes in the jobs' order."""


@dataclass(frozen=True)
class WrittenPanelist:
    """A script that exists already: one of our own (`offline`), or one from a chat (`manual`)."""

    name: str
    source: str
    provider: str
    model: str = ""
    written_at: str = ""

    reads_brief = False

    def write(self, conversation: Sequence[str]) -> Answer:
        """The script, whatever is asked."""
        text = f"```python\n{self.source.rstrip()}\n```\n"
        return Answer(text, self.model or self.provider, cost=0.0, written_at=self.written_at)


@dataclass(frozen=True)
class PanelResult:
    """A synthetic cohort, the brief, the scripts behind it (also of those dropped), the report and the guarantee."""

    cohort: Cohort
    brief: Brief
    scripts: tuple[Script, ...]
    report: PanelReport
    guarantee: Guarantee


class EmptyPanelError(DataError):
    """No panelist gave a script that can be used; the scripts and the report are there to look at."""

    def __init__(self, brief: Brief, scripts: tuple[Script, ...], report: PanelReport) -> None:
        why = "; ".join(
            f"{panelist.name}: {panelist.failures[-1]}" for panelist in report.panelists if panelist.failures
        )
        super().__init__(
            f"no panelist gave a script that can be used ({why}).",
            hint="see the scripts and the report, or leave panel and scripts out to work with the offline panelists.",
            code="empty-panel",
            settings=("panel", "script"),
        )
        self.brief, self.scripts, self.report = brief, scripts, report


@dataclass
class _Work:
    """Where a panelist stands."""

    panelist: Panelist
    seeds: Sequence[int]
    conversation: list[str]
    begun: float
    seconds: float = 0.0
    attempts: int = 0
    failures: list[str] = field(default_factory=list)
    repair: str = ""
    tokens: Tokens = NO_TOKENS
    costs: list[float | None] = field(default_factory=list)
    script: Script | None = None
    tables: list[Floats] | None = None

    def report(self) -> PanelistReport:
        """What the panelist did."""
        used = "repaired" if self.attempts > 1 else "used"
        return PanelistReport(
            name=self.panelist.name,
            provider=self.panelist.provider,
            model=self.script.model if self.script else self.panelist.model,
            status="dropped" if self.tables is None else used,
            attempts=self.attempts,
            failures=tuple(self.failures),
            tokens=self.tokens,
            cost=total_cost(self.costs),
            seconds=self.seconds,
            n_rows=sum(len(table) for table in self.tables or ()),
            repair=self.repair if self.tables is None else "",
        )


def run_panel(
    summary: PrivateSummary,
    panelists: Sequence[Panelist],
    sandbox: Runner,
    *,
    rng: np.random.Generator,
    n_learners: int = N_LEARNERS,
    n_each: int = N_EACH,
    suggestions: Sequence[str] = (),
    static_checks: bool = True,
) -> PanelResult:
    """A synthetic cohort by a panel: post-processing of the summary, whose guarantee it keeps.

    With `suggestions` from validation it is stated with what they are: see `panel_guarantee`.
    Panelists write at the same time; scripts run one after the other, each with seeds of its own
    that come from `rng`, so that neither order nor speed changes what a script gives.
    `static_checks` help reviewers and can be switched off; the sandbox cannot.
    """
    if not panelists:
        raise UsageError(
            "a panel without panelists was asked for.",
            hint="leave it out to work offline.",
            settings=("panel",),
        )
    check_names([panelist.name for panelist in panelists])
    schema = summary.schema
    counts = counts_of(label_shares(summary), n_learners)
    n_each = rows_needed(counts, n_each)
    brief = write_brief(summary, suggestions)
    trial = _Trial(sandbox, summary, brief.prompt_hash, n_each, static_checks, tuple(suggestions))
    seeds = rng.integers(0, 2**63, (len(panelists), schema.n_labels)).tolist()
    work = [
        _Work(panelist, own, [brief.text], time.monotonic())
        for panelist, own in zip(panelists, seeds, strict=True)
    ]

    answers: _Answers = queue.SimpleQueue()
    for task in work:
        _ask(task, answers)
    with progress.task("Panelists", len(work)) as step:
        unfinished = len(work)
        while unfinished:
            task, answer = answers.get()
            task.attempts += 1
            if isinstance(answer, Answer):
                fault = trial.judge(task, answer)
                if fault is not None:
                    task.failures.append(str(fault))
                    task.repair = repair_request(fault)
                    if task.panelist.reads_brief and task.attempts < MOST_ATTEMPTS:
                        task.conversation += [answer.text, task.repair]
                        _ask(task, answers)
                        continue
            elif isinstance(answer, PanelistError):
                task.failures.append(answer.kind)
                task.repair = ""
            else:
                raise answer
            task.seconds = time.monotonic() - task.begun
            unfinished -= 1
            step.advance()

    scripts = tuple(task.script for task in work if task.script is not None)
    reports = tuple(task.report() for task in work)
    pools = [task.tables for task in work if task.tables is not None]
    if not pools:
        raise EmptyPanelError(brief, scripts, PanelReport(brief.prompt_hash, reports, n_each))
    guarantee = panel_guarantee(summary, suggestions)
    cohort = replace(draw_cohort(pools, counts, schema, rng), guarantee=guarantee)
    drawn = dict(zip(schema.labels, counts, strict=True))
    return PanelResult(
        cohort,
        brief,
        scripts,
        PanelReport(brief.prompt_hash, reports, n_each, drawn),
        guarantee,
    )


_Answers = queue.SimpleQueue[tuple[_Work, Answer | BaseException]]


def _ask(task: _Work, answers: _Answers) -> None:
    """Have a panelist write, in a thread that does not keep an interrupted program alive."""

    def write() -> None:
        answer: Answer | BaseException
        try:
            answer = task.panelist.write(tuple(task.conversation))
        except BaseException as error:
            answer = error
        answers.put((task, answer))

    threading.Thread(target=write, name=f"panelist {task.panelist.name}", daemon=True).start()


class _Trial:
    """Puts answers to the test: is there a script, does it read well, does it run, does its table fit."""

    def __init__(
        self,
        sandbox: Runner,
        summary: PrivateSummary,
        prompt_hash: str,
        n_each: int,
        static_checks: bool,
        suggestions: tuple[str, ...],
    ) -> None:
        self._sandbox = sandbox
        self._schema = summary.schema
        self._given: dict[str, Any] = for_scripts(summary)
        self._prompt_hash = prompt_hash
        self._n_each = n_each
        self._static_checks = static_checks
        self._suggestions = suggestions

    def judge(self, task: _Work, answer: Answer) -> ScriptFault | None:
        """What is wrong with the answer; None when its tables are now in `one`."""
        task.tokens += answer.tokens
        task.costs.append(answer.cost)
        source = extract_code(answer.text)
        if source is None:
            return ScriptFault("NoScript")
        task.script = Script(
            source=source,
            author=task.panelist.name,
            model=answer.model,
            prompt_hash=self._prompt_hash if task.panelist.reads_brief else "",
            written_at=answer.written_at,
            tokens=task.tokens,
            cost=total_cost(task.costs),
            # Which prompt a script from a chat got is not known; our own programs read none.
            suggestions=() if task.panelist.provider == "offline" else self._suggestions,
        )
        if self._static_checks and (faults := check_script(source)):
            return faults[0]
        # Small and twice at first: the same seed has to give the same table, and a script that never ends
        # or fails does so before it costs much.
        small = self._run(source, [(self._schema.labels[0], _N_REPEATED, task.seeds[0])] * 2)
        if isinstance(small, ScriptFault):
            return small
        if not np.array_equal(small[0], small[1]):
            return ScriptFault("NotDeterministic")
        # Twice again, since chance may come in for one label or for many rows only. The sandbox seeds the
        # global generators of Python and numpy; this finds what cannot be seeded, such as the system's entropy.
        runs = [
            (label, self._n_each, seed) for label, seed in zip(self._schema.labels, task.seeds, strict=True)
        ]
        tables = self._run(source, [run for run in runs for _ in range(2)])
        if isinstance(tables, ScriptFault):
            return tables
        if not all(map(np.array_equal, tables[::2], tables[1::2])):
            return ScriptFault("NotDeterministic")
        task.tables = tables[::2]
        return None

    def _run(self, source: str, runs: Sequence[tuple[str, int, int]]) -> list[Floats] | ScriptFault:
        """The table of each (label, number of rows, seed), or the first thing that is wrong."""
        outcomes = self._sandbox.run_many(
            [
                Job(source, ENTRY, {"n": n, "label": label, "summary": self._given}, seed=seed)
                for label, n, seed in runs
            ]
        )
        tables = []
        for outcome, (_, n, _) in zip(outcomes, runs, strict=True):
            table = self._table(outcome, n)
            if isinstance(table, ScriptFault):
                return table
            tables.append(table)
        return tables

    def _table(self, outcome: Outcome, n: int) -> Floats | ScriptFault:
        if outcome.status == "error":
            return ScriptFault.of_error(outcome.error_type, outcome.error_line)
        if outcome.status != "done":
            return ScriptFault(_STATUSES[outcome.status])
        if set(outcome.tables) != {"result"}:
            return ScriptFault("NoTable")
        return read_table(outcome.tables["result"], self._schema, n)


_STATUSES = {"time": "TimedOut", "memory": "TooMuchMemory", "output": "Stopped", "killed": "Stopped"}
