"""A desk with a request in every state, for tests of its pages; prices and checks are made up, the rest is real."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import select

from tests.desk.support.client import give_password
from tests.desk.support.fixtures import PRIVATE, Filled, InProcess, fill, school_frame, write_real
from understudy.cohorts.simulate import SCHEMA
from understudy.desk.disclosure.code_review import read_code
from understudy.desk.domain.analysis import Failure, code_hash
from understudy.desk.domain.people import Person
from understudy.desk.domain.policy import Policy
from understudy.desk.domain.results import Check, Results, Table
from understudy.desk.domain.states import State
from understudy.desk.risk.game import Attack, IntervalEstimate, Price
from understudy.desk.risk.pricing import Prices, Published
from understudy.desk.service import (
    answers,
    data_sets,
    feedback,
    private_answers,
    releases,
    requests,
    views,
)
from understudy.desk.service.answers import AnswerOrigin, HeldAnswer
from understudy.desk.store import jobs
from understudy.desk.store.tables import JobRow, RequestRow, now
from understudy.desk.worker.answering import private_trial

TITLE, DATA = "Desk of the Linden School", "Minutes of study, autumn term"
POLICY = Policy(may_override=("extremes",))
CODE = '''"""Do students who work more in the evening achieve more?"""

import pandas as pd
from scipy.stats import spearmanr

ORDER = {"low": 0, "average": 1, "high": 2}


def analyze(data):
    """Rank correlation of evening minutes with achievement, and means by group."""
    evening = data["evening_01"] + data["evening_02"]
    rho, p = spearmanr(evening, data["achievement"].map(ORDER))
    by_group = evening.groupby(data["achievement"]).mean().rename("minutes").reset_index()
    # A plot is given as the numbers that it would draw.
    return {
        "evening and achievement": {"rho": rho, "p": p},
        "median minutes": float(evening.median()),
        "minutes by group": pd.DataFrame(by_group),
    }
'''
# Numbers that no page shows by accident.
SECRET_MU, SECRET_WHY = 0.8317, "Two learners make up 0.4711 of a number."


READING = read_code(CODE, ["learner", "morning_01", "evening_01", "evening_02", "achievement"], POLICY)


def answer(shift: float = 0.0) -> Results:
    """What `CODE` gives; a little other on other data."""
    return Results(
        {
            "evening and achievement": {"rho": round(0.34 + shift, 2), "p": 0.003},
            "median minutes": round(41.0 + 10 * shift, 1),
            "growth": {"x": [1, 2, 3, 4, 5, 6], "y": [3.1, 4.0, 5.2, 5.1, 6.6, 7.4]},
        },
        {
            "minutes by group": Table(
                ("achievement", "minutes"),
                (
                    ("low", round(31 + shift, 1)),
                    ("average", round(40.5 + shift, 1)),
                    ("high", round(52 + shift, 1)),
                ),
            )
        },
    )


def price(mu: float, advantage: float, n_outputs: int = 18) -> Price:
    found = Attack(
        IntervalEstimate(mu, mu * 0.88, mu * 1.15),
        IntervalEstimate(advantage, advantage * 0.9, advantage * 1.1),
    )
    return Price(
        "linear",
        found.mu,
        found.advantage,
        0.021,
        mu * 1.3,
        (mu * 0.9, mu * 1.2),
        advantage * 1.2,
        n_outputs,
        2800,
        120,
        {"independent": found, "linear": found},
        tuple((20 - step) / 20 for step in range(21)),
    )


def prices(mu: float = SECRET_MU, advantage: float = 0.31) -> Prices:
    return Prices(
        price(mu * 0.6, advantage * 0.6),
        price(mu, advantage, 36),
        Published(0.5, mu * 0.9, mu * 1.1, mu * 1.2),
    )


def checks(**verdicts: str) -> tuple[Check, ...]:
    names = (
        *(
            "learners",
            "dominance",
            "freedom",
            "extremes",
            "individuals",
            "shape",
            "digits",
            "size",
            "consistency",
        ),
        *("differencing", "reconstruction"),
    )
    whys = {
        "pass": "Nothing speaks against it.",
        "review": SECRET_WHY,
        "fail": "2 numbers rest on fewer than 10 learners: 'growth / y / 3' moves when one learner is left out and "
        "hardly or not at all for others, so that it tells about them more than about everybody.",
    }
    return tuple(
        Check(
            name,
            verdicts.get(name, "pass"),  # type: ignore[arg-type]
            whys[verdicts.get(name, "pass")],
            ("median minutes", "growth / y / 3") if name in verdicts else (),
        )
        for name in names
    )


@dataclass
class Desks:
    """The filled desk, and the name of a request for every state and for some special cases."""

    filled: Filled
    names: dict[str, str]
    certificate: str
    declared: str
    """A data set with a public schema."""
    private_certificate: str

    @property
    def desk(self):
        return self.filled.desk


class Maker:
    """Takes requests to where a test wants them, through the same verbs as people and the worker."""

    def __init__(self, filled: Filled) -> None:
        self.filled = filled
        self.desk = filled.desk

    def draft(self, question: str, who: Person | None = None, kind: str = "correlation") -> str:
        return requests.create(
            self.desk,
            who or self.filled.researcher,
            self.filled.data_set,
            question=question,
            code=CODE,
            kind=kind,
            shown="Evening work went with higher achievement (rho 0.30).",
        )

    def submitted(self, question: str, who: Person | None = None, **more: str) -> str:
        name = self.draft(question, who, **more)
        requests.submit(self.desk, who or self.filled.researcher, name)
        return name

    def lease(self, name: str) -> jobs.Lease:
        """The job of this request alone, whatever else waits."""
        with self.desk.database.writing() as session:
            row = session.scalar(
                select(JobRow).join(RequestRow).where(RequestRow.name == name, JobRow.ended_at.is_(None))
            )
            assert row is not None
            row.lease, row.leased_until, row.attempts = f"test {row.id}", now() + jobs.LEASE, 1
            return jobs.Lease(row.id, row.lease, row.kind, name, 1)  # type: ignore[arg-type]

    def begun(self, name: str) -> jobs.Lease:
        lease = self.lease(name)
        answers.begin(self.desk, lease)
        return lease

    def origin(self) -> AnswerOrigin:
        real = data_sets.real_table(self.desk, self.filled.data_set)
        versions = {"numpy": "2.1.0", "pandas": "2.2.3", "scipy": "1.14.1"}
        return AnswerOrigin(code_hash(CODE), real.hash, real.version, versions)

    def in_review(self, question: str, who: Person | None = None, **more: str) -> str:
        name = self.submitted(question, who, **more)
        answers.pass_trial(self.desk, self.begun(name), self.origin(), answer(-0.04), READING.to_json())
        return name

    def approved(self, question: str, who: Person | None = None, **more: str) -> str:
        name = self.in_review(question, who, **more)
        reviewer = self.filled.reviewer if who != self.filled.reviewer else self.filled.second_reviewer
        requests.approve(self.desk, reviewer, name)
        return name

    def held(self, question: str, who: Person | None = None, kind: str = "correlation", **changes) -> str:
        name = self.approved(question, who, kind=kind)
        results = answer()
        given = {
            "results": results,
            "checks": checks(),
            "support": dict.fromkeys(results.numbers, 36) | {"growth / y / 3": 7},
            "prices": prices().to_json(),
            "basis": self.released_names(),
            **changes,
        }
        answers.hold(self.desk, self.begun(name), HeldAnswer(self.origin(), **given))
        return name

    def released_names(self) -> tuple[str, ...]:
        with self.desk.database.reading() as session:
            data = data_sets.find(session, self.filled.data_set)
            return tuple(one.request.name for one in releases.released(session, data))

    def released(self, question: str, who: Person | None = None, **changes) -> str:
        name = self.held(question, who, **changes)
        reviewer = self.filled.reviewer if who != self.filled.reviewer else self.filled.second_reviewer
        releases.decide(self.desk, reviewer, name, "many learners stand behind it")
        releases.hand_out(self.desk, self.lease(name))
        return name

    def asked(self, question: str, data_set: str, code: str = PRIVATE) -> str:
        """Private questions about another data set, which a reviewer has to approve."""
        who = self.filled.researcher
        name = requests.create(self.desk, who, data_set, question=question, code=code)
        requests.submit(self.desk, who, name)
        lease = self.lease(name)
        work = answers.begin(self.desk, lease)
        found = private_trial(self.desk, work, InProcess())
        assert not isinstance(found, Failure), found
        private_answers.pass_trial(self.desk, lease, answers.trial_origin(self.desk, work), *found)
        return name

    def answered(self, question: str, data_set: str, code: str = PRIVATE) -> str:
        name = self.asked(question, data_set, code)
        private_answers.approve(self.desk, self.filled.reviewer, name)
        private_answers.hand_out(self.desk, self.lease(name))
        return name


ASKED = """EPSILON = 1.0


def analyze(ask):
    ask.mean("evening_01", by="achievement")
    ask.compare("evening_01", by="achievement", groups=["low", "high"])
    ask.count("achievement")
"""


def declared_data_set(filled: Filled, folder: Path) -> str:
    """Another data set of the same desk, of a large school, with its public schema."""
    folder.mkdir()
    write_real(school_frame(3, 900), folder / "real.csv")
    school_frame(4, 900).write_csv(folder / "synthetic.csv")
    (folder / "cohort.toml").write_text(SCHEMA.to_toml())
    view = data_sets.register(
        filled.desk,
        filled.custodian,
        title="A large school",
        real=folder / "real.csv",
        synthetic=folder / "synthetic.csv",
        policy=POLICY,
        schema=folder / "cohort.toml",
        ledger=folder / "understudy.ledger",
    )
    return view.name


def desk_in_every_state(folder: Path) -> Desks:
    """One request for each state, and outputs that pass, ask for a look, fail, failed to run and are out of date."""
    filled = fill(folder, policy=POLICY)
    filled.desk = replace(filled.desk, settings=replace(filled.desk.settings, title=TITLE))
    with filled.desk.database.writing() as session:
        data_sets.find(session, filled.data_set).title = DATA
    give_password(filled.desk, *filled.people)
    make, names = Maker(filled), {}
    desk, reviewer, researcher, other = (
        filled.desk,
        filled.reviewer,
        filled.researcher,
        filled.second_researcher,
    )
    names["stale"] = make.held("Is the spread of evening minutes the same in both halves of the term?", other)
    names["released"] = make.released("Do students who work more in the evening achieve more?", kind="causal")
    make.released(
        "Does morning work fall before the exam?", other, kind="trends", prices=prices(0.9, 0.33).to_json()
    )
    names["feedback"] = make.released(
        "How many minutes does a typical student work in a week?",
        kind="description",
        prices=prices(1.0, 0.35).to_json(),
    )
    feedback.report(
        desk, researcher, names["feedback"], 0.5, "The mean is higher than in the synthetic data."
    )
    names["reviewers own"] = make.released(
        "Which week has the least work?", reviewer, prices=prices(1.05, 0.36).to_json()
    )
    names["releasing"] = make.held("Is the evening share higher in the last week?")
    releases.decide(desk, filled.second_reviewer, names["releasing"], "many learners stand behind it")
    # From here on nothing is released, so that prices stay what they are.
    names["draft"] = make.draft("Do groups of friends work at the same time of day?")
    names["trial"] = make.submitted("Does work at night predict low achievement?")
    make.begun(names["trial"])
    names["submitted"] = make.submitted("Is there a pause in the middle of the term?", other)
    names["in review"] = make.in_review("Do those who begin early in the term keep working until its end?")
    names["returned"] = make.submitted("Is evening work more regular than morning work?")
    answers.fail_trial(
        desk,
        make.begun(names["returned"]),
        make.origin(),
        Failure("error", error_type="KeyError", error_line=11),
    )
    names["refused"] = make.in_review("What are the minutes of each single student?")
    requests.refuse(desk, reviewer, names["refused"], "A list of single students is never answered here.")
    names["approved"] = make.approved("Does work on weekends go with achievement?", other)
    names["running"] = make.approved("Is the rise before the exam the same in all groups?")
    lease = make.begun(names["running"])
    with desk.database.writing() as session:
        jobs.renew_lease(session, lease, done=1130, total=2800, stage="running on shadows")
    names["passing"] = make.held("Do students who work at the same hour every day achieve more?")
    names["looking"] = make.held(
        "Does evening work raise achievement, or does achievement lead to evening work?",
        other,
        kind="causal",
        checks=checks(dominance="review", extremes="review"),
        prices=prices(1.21, 0.42).to_json(),
    )
    names["failing"] = make.held(
        "Which students worked more than 90 minutes on one evening?",
        other,
        checks=checks(learners="fail", differencing="fail", extremes="review"),
        prices=prices(2.3, 0.71).to_json(),
    )
    names["broken"] = make.held(
        "Is there a seasonal pattern in the minutes?",
        results=None,
        checks=(),
        support={},
        prices=None,
        failure=Failure("error", error_type="ZeroDivisionError", error_line=12),
    )
    names["withheld"] = make.held("Do late starters catch up?")
    releases.withhold(desk, reviewer, names["withheld"], "Ask for fewer numbers, please.")
    names["withdrawn"] = make.in_review("Was the second week shorter?", other)
    requests.withdraw(desk, other, names["withdrawn"])
    declared = declared_data_set(filled, folder / "large")
    names["private, in review"] = make.asked(
        "How many minutes does each group work in the evening?", declared
    )
    names["private, released"] = make.answered("Do the groups differ in the evening?", declared, ASKED)
    certificate = views.request(desk, researcher, names["released"]).certificate
    private = views.request(desk, researcher, names["private, released"]).certificate
    assert certificate is not None
    assert private is not None
    assert {filled.state(name) for name in names.values()} == {state.value for state in State}
    return Desks(filled, names, certificate, declared, private)
