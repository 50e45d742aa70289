"""A desk to look at: simulated learners, five people, and a request in every state, made by the desk's own verbs.

Requests whose state would not last (such as a run that goes on) are held by the lease of a worker that does not exist,
for a year: they move on only when a user cancels or withdraws them.
"""

from __future__ import annotations

import secrets
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import numpy as np

from understudy.cohorts.cohort import write_cohort
from understudy.cohorts.methods import pooled
from understudy.cohorts.simulate import School
from understudy.cohorts.summary.budget import propose
from understudy.cohorts.summary.mechanism import noisy_summary
from understudy.core.engine import progress
from understudy.core.files.simulated import mark_simulated
from understudy.core.files.writing import write_json, write_text
from understudy.core.privacy.noise import os_noise
from understudy.desk.domain.analysis import Analysis, RunsJobs, limits_of
from understudy.desk.domain.people import Person, Role
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Results
from understudy.desk.domain.states import State
from understudy.desk.researcher.examples import ANALYSES, ExampleRequest, read_examples
from understudy.desk.service import Desk, accounts, answers, data_sets, feedback, releases, requests, views
from understudy.desk.store import jobs
from understudy.desk.store.jobs import Lease
from understudy.desk.store.settings import POLICY, Settings
from understudy.desk.worker.answering import PRICING
from understudy.desk.worker.worker import OpensSandbox, Worker
from understudy.errors import DataError
from understudy.sandbox import Sandbox

TITLE = "A demonstration desk"
SIGN_INS = "sign-ins.txt"
STAGED = "(Staged for the demonstration: it stays in this state.)"
N_LEARNERS = 120
N_SHADOWS = 300
# With few shadows intervals are wide, and limits hold for their upper ends. So many show a mu of 2.3 at most.
POLICY_OF_DEMONSTRATION = Policy(n_shadows=N_SHADOWS, mu_limit=2.2, advantage_limit=0.9)
_A_YEAR = timedelta(days=365)
_PEOPLE = (
    ("Clara Custodian", "clara@desk.example", Role.CUSTODIAN),
    ("Rosa Reviewer", "rosa@desk.example", Role.REVIEWER),
    ("Rami Reviewer", "rami@desk.example", Role.REVIEWER),
    ("Ada Researcher", "ada@desk.example", Role.RESEARCHER),
    ("Alan Researcher", "alan@desk.example", Role.RESEARCHER),
)
_WORDS = (
    *(
        "apple",
        "river",
        "stone",
        "cloud",
        "maple",
        "copper",
        "violet",
        "lantern",
        "pepper",
        "marble",
        "anchor",
    ),
    *("meadow", "thunder", "walnut", "harbour", "window", "kettle", "ribbon", "orchard", "candle", "saddle"),
)
# Looks like a question about habits, and is about one student.
_ABOUT_ONE = '''"""How many minutes did the most eager student work in the evening?"""


def analyze(data):
    """The largest sum of minutes in the evening."""
    evening = data.filter(like="evening_").sum(axis=1)
    return {"most minutes": evening.max(), "mean minutes": evening.mean()}
'''
_BROKEN = '''"""Do minutes in the evening go with achievement?"""


def analyze(data):
    """A column is misspelled, which the trial finds."""
    return {"mean": data["evenings_1"].mean()}
'''
_REPORTS = {
    0.0: "Nothing of what the synthetic data showed was so.",
    0.5: "Some of what the synthetic data showed was so.",
    1.0: "Most of what the synthetic data showed was so.",
}
# What takes long: the learners, and each request that is run.
_N_STEPS = 8


@dataclass(frozen=True)
class SignIn:
    """A user of the demonstration, and their password."""

    name: str
    email: str
    role: Role
    password: str


def fill(
    folder: Path,
    analyses: Path = ANALYSES,
    *,
    n_learners: int = N_LEARNERS,
    policy: Policy = POLICY_OF_DEMONSTRATION,
    open_sandbox: OpensSandbox = Sandbox,
) -> list[SignIn]:
    """Make the desk and return its users. Everything in it is simulated; it takes some minutes."""
    asked = {one.name: one for one in read_examples(analyses)}
    desk, people, signs = _opened(folder, policy)
    with closing(desk), progress.task("Filling the desk", _N_STEPS) as task:
        task.note("simulating learners, their private summary and their stand-ins")
        data = _registered(desk, people["clara"], folder, n_learners, policy)
        with (
            open_sandbox(limits_of(policy)) as sandbox,
            Worker(desk, open_sandbox=lambda _: _Lent(sandbox)) as worker,
        ):
            _Scene(desk, data, people, worker, sandbox, asked, task).play()
        task.advance()
    lines = [f"{one.role.value:<10}  {one.email:<20}  {one.password}" for one in signs]
    write_text(folder / SIGN_INS, "\n".join(lines) + "\n")
    (folder / SIGN_INS).chmod(0o600)
    return signs


class _Lent:
    """A sandbox that its lender closes."""

    def __init__(self, sandbox: RunsJobs) -> None:
        self._sandbox = sandbox

    def __enter__(self) -> RunsJobs:
        return self._sandbox

    def __exit__(self, *_: object) -> None:
        return None


def _opened(folder: Path, policy: Policy) -> tuple[Desk, dict[str, Person], list[SignIn]]:
    Settings.write(folder, TITLE)
    write_text(folder / POLICY, policy.to_toml())
    desk = Desk.open(folder)
    people: dict[str, Person] = {}
    signs = []
    for name, email, role in _PEOPLE:
        short = email.partition("@")[0]
        secret = (
            accounts.invite(desk, people["clara"], email, name, role)
            if people
            else accounts.first_custodian(desk, email, name)
        )
        password = "-".join(secrets.SystemRandom().sample(_WORDS, 3))
        people[short] = accounts.accept(desk, secret, password)
        signs.append(SignIn(name, email, role, password))
    return desk, people, signs


def _registered(desk: Desk, custodian: Person, folder: Path, n_learners: int, policy: Policy) -> str:
    """A school's term: the real table, its private summary and the cohort that our own programs make from it."""
    place = folder / "data"
    place.mkdir()
    rng = np.random.default_rng(7)
    cohort = School(n_learners).simulate(0, rng)
    write_cohort(cohort, place / "cohort.parquet")
    mark_simulated(place / "cohort.parquet")
    summary = noisy_summary(cohort, propose(cohort.schema, cohort.n_learners, 3.0, 1e-3), os_noise())
    write_json(place / "summary.json", summary.to_json())
    pooled(summary, rng).to_polars().write_parquet(place / "synthetic.parquet")
    view = data_sets.register(
        desk,
        custodian,
        title="Autumn term (simulated)",
        description="Minutes of work in four windows of the day, week by week, and the achievement at the end. "
        + _looser(policy),
        real=place / "cohort.parquet",
        synthetic=place / "synthetic.parquet",
        summary=place / "summary.json",
        policy=policy,
    )
    return view.name


def _looser(policy: Policy) -> str:
    """How this desk differs from one that `desk init` makes."""
    usual = Policy()
    return (
        f"A demonstration: its limits are looser than the default (mu {policy.mu_limit:g} instead of "
        f"{usual.mu_limit:g}, "
        f"advantage {policy.advantage_limit:g} instead of {usual.advantage_limit:g}), so that few runs are enough "
        f"({policy.n_shadows:,} shadows instead of {usual.n_shadows:,})."
    )


@dataclass(frozen=True)
class _Scene:
    """The steps of the demonstration, in an order in which every held price is still the price of releasing it."""

    desk: Desk
    data: str
    people: dict[str, Person]
    worker: Worker
    sandbox: RunsJobs
    asked: dict[str, ExampleRequest]
    task: progress.Task

    def play(self) -> None:
        """Bring a request into every state; those that count for the price first, the held ones last."""
        rosa, rami = self.people["rosa"], self.people["rami"]
        self._reported("ada", "time_of_day_and_achievement", rosa)
        self._released("alan", "active_weeks", rami)
        withheld = self._held("alan", ExampleRequest("", "", "extremes", 1, _ABOUT_ONE), rosa)
        releases.withhold(self.desk, rosa, withheld, "The largest value is one student's: ask for a mean.")
        releasing = self._held("alan", self.asked["evening_share"], rosa, STAGED)
        releases.decide(self.desk, rosa, releasing, "All checks pass, and the price is below the limit.")
        self._stopped(State.RELEASING, releasing)
        self._held("ada", self.asked["trends_of_students"], rami)
        # As it was first written: a mean over few high achievers, which one of them makes up.
        first = self.asked["minutes_by_time_of_day"]
        self._held("ada", replace(first, code=first.first or first.code), rami)
        self._unrun(rosa)
        self._unfinished(rosa)

    def _unrun(self, rosa: Person) -> None:
        """Requests that came to an end, or wait, without a run on the real data."""
        self._step("requests that wait for people")
        self._draft("ada", self.asked["differences_between_groups"])
        requests.withdraw(self.desk, self.people["alan"], self._tried("alan", self.asked["overnight_work"]))
        self._tried("alan", ExampleRequest("", "", "time of day", 1, _BROKEN))
        requests.send_back(
            self.desk,
            rosa,
            self._tried("ada", self.asked["habit_clusters"]),
            "Say how many clusters, and why so many.",
        )
        requests.refuse(
            self.desk,
            rosa,
            self._tried("alan", self.asked["calendar_of_habits"]),
            "A number for each week is too many.",
        )
        for who, name in (
            ("ada", "persistence"),
            ("alan", "regularity_or_amount"),
            ("alan", "causes_of_achievement"),
        ):
            self._tried(who, self.asked[name])

    def _unfinished(self, rosa: Person) -> None:
        """Requests that a worker holds and never finishes."""
        submitted = self._draft("alan", self.asked["streaks"], STAGED)
        requests.submit(self.desk, self.people["alan"], submitted)
        self._stopped(State.SUBMITTED, submitted)
        tried = self._draft("ada", self.asked["before_the_exam"], STAGED)
        requests.submit(self.desk, self.people["ada"], tried)
        self._stopped(State.TRIAL, tried)
        for who, name, state in (
            ("ada", "chronotypes", State.APPROVED),
            ("alan", "evenness_over_weeks", State.RUNNING),
        ):
            request = self._tried(who, self.asked[name], STAGED)
            requests.approve(self.desk, rosa, request)
            self._stopped(state, request)

    def _draft(self, who: str, asked: ExampleRequest, remark: str = "") -> str:
        return requests.create(
            self.desk,
            self.people[who],
            self.data,
            question=f"{asked.question} {remark}".strip(),
            code=asked.code,
            kind=asked.kind,
            shown=self._shown(asked.code),
        )

    def _shown(self, code: str) -> str:
        """What its author saw on the synthetic data, in a sentence."""
        table = data_sets.synthetic_table(self.desk, self.data)
        answer = Analysis.seeded(code).answer(self.sandbox, table.whole())
        if not isinstance(answer, Results):
            return ""
        numbers = ", ".join(f"{name}: {value:.3g}" for name, value in list(answer.numbers.items())[1:4])
        return f"On the synthetic data, among others: {numbers}."

    def _tried(self, who: str, asked: ExampleRequest, remark: str = "") -> str:
        name = self._draft(who, asked, remark)
        requests.submit(self.desk, self.people[who], name)
        self._work()
        return name

    def _held(self, who: str, asked: ExampleRequest, reviewer: Person, remark: str = "") -> str:
        self._step(f"running, checking and pricing: {asked.question}")
        name = self._tried(who, asked, remark)
        requests.approve(self.desk, reviewer, name)
        self._work()
        self._expect(State.HELD, name)
        return name

    def _released(self, who: str, analysis: str, reviewer: Person) -> str:
        name = self._held(who, self.asked[analysis], reviewer)
        releases.decide(
            self.desk, reviewer, name, "All that was flagged is about the whole year, and robust."
        )
        self._work()
        self._expect(State.RELEASED, name)
        return name

    def _reported(self, who: str, analysis: str, reviewer: Person) -> None:
        name = self._released(who, analysis, reviewer)
        # What an honest researcher would say: what the desk counts.
        found = feedback.own_precision(self.desk, reviewer, name)
        precision = 0.5 if found is None else found
        feedback.report(self.desk, self.people[who], name, precision, _REPORTS[precision])

    def _step(self, text: str) -> None:
        self.task.note(text)
        self.task.advance()

    def _work(self) -> None:
        if not self.worker.do_one():
            raise DataError(
                "the demonstration found no work to do.", hint="report it: it is a fault of ours."
            )

    def _stopped(self, state: State, request: str) -> None:
        """Take the job of a request as a worker does, begin it if the state says so, and keep it."""
        with self.desk.database.writing() as session:
            lease = jobs.take(session, _A_YEAR)
        if lease is None or lease.request != request:
            raise DataError(
                "the demonstration found other work to do.", hint="report it: it is a fault of ours."
            )
        if state in (State.TRIAL, State.RUNNING):
            answers.begin(self.desk, lease)
            self._keep(lease, PRICING if state is State.RUNNING else "")
        self._expect(state, request)

    def _keep(self, lease: Lease, stage: str) -> None:
        done, total = (N_SHADOWS // 3, N_SHADOWS) if stage else (0, 0)
        with self.desk.database.writing() as session:
            jobs.renew_lease(session, lease, done=done, total=total, stage=stage)

    def _expect(self, state: State, request: str) -> None:
        found = views.request(self.desk, self.people["rosa"], request).state
        if found != state.value:
            raise DataError(
                f"a request of the demonstration is '{found}' and should be '{state.value}'.",
                hint="report it: it is a fault of ours.",
            )
