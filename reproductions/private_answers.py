"""Do intervals of private answers hold what they should? Simulated learners, asked again and again.

`python -m reproductions.private_answers measure` draws 5,000 learners many times, asks every kind of question at
epsilon 1, and counts how often the interval holds the exact answer for these learners, and the population's. For tests
it counts how often they reject where there is nothing to find, and how often they decide as the exact test does. Then
113 learners are asked the same. It writes docs/explanation/private-answers.csv and the tables of
docs/explanation/private-answers.md, in some minutes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import polars as pl
import scipy.stats
import typer

from reproductions.command import new_app, run
from reproductions.forecasts import with_table
from reproductions.pages import ROOT, markdown_table, rows_of, write_rows
from understudy.core.engine import progress
from understudy.core.privacy.noise import seeded_noise
from understudy.desk import private
from understudy.desk.private.mechanism import answer_privately
from understudy.logs.declared.columns import Declared, Kind

TABLE = ROOT / "docs/explanation/private-answers.csv"
PAGE = ROOT / "docs/explanation/private-answers.md"
COLUMNS = (
    "learners",
    "question",
    "figure",
    "draws",
    "exact",
    "population",
    "width",
    "too_wide",
    "enough_epsilon",
    "enough_learners",
)
LARGE, SMALL, EPSILON = 5_000, 113, 1.0
SCHOOLS = ("north", "south", "west")
SHARES = (0.45, 0.3, 0.25)

SCHEMA = private.Schema(
    (
        Declared("minutes", Kind.number, "learner", low=0.0, high=600.0),
        Declared("grade", Kind.number, "learner", low=0.0, high=100.0),
        Declared("school", Kind.category, "learner", values=SCHOOLS),
        Declared("club", Kind.category, "learner", values=("none", "chess", "choir")),
        Declared("passed", Kind.flag, "learner"),
    ),
    complete=("minutes", "grade", "passed"),
)

app = new_app("Measure whether intervals of private answers hold what they should.")


def learners(n: int, rng: np.random.Generator) -> pl.DataFrame:
    """Learners of three schools, with skewed minutes; the club has nothing to do with anything."""
    school = rng.choice(SCHOOLS, n, p=SHARES)
    minutes = 600.0 * rng.beta(2.0, 4.0, n)
    noise = 10.0 * np.clip(rng.normal(size=n), -3.0, 3.0)
    log_odds = -1.0 + 0.006 * minutes - 0.5 * (school == "west")
    return pl.DataFrame(
        {
            "minutes": minutes,
            "grade": 35.0 + 0.05 * minutes + 4.0 * (school == "south") + noise,
            "school": school,
            "club": rng.choice(["none", "chess", "choir"], n),
            "passed": rng.random(n) < 1.0 / (1.0 + np.exp(-log_odds)),
        }
    )


ANALYSES: dict[str, Callable[[private.Ask], Any]] = {
    "counts": lambda ask: ask.count("school", "passed"),
    "shares by group": lambda ask: ask.proportion("passed", by="school"),
    "quantiles": lambda ask: ask.quantiles("minutes"),
    "mean": lambda ask: ask.mean("minutes"),
    "means by group": lambda ask: ask.mean("grade", by="school"),
    "variance": lambda ask: ask.variance("grade"),
    "correlation": lambda ask: ask.correlations("minutes", "grade"),
    "linear regression": lambda ask: ask.linear("grade", on=["minutes", "school"]),
    "logistic regression": lambda ask: ask.logistic("passed", on=["minutes", "school"]),
    "Welch": lambda ask: ask.compare("grade", by="school", groups=["north", "south"]),
    "ANOVA": lambda ask: ask.compare("grade", by="school", test="anova"),
    "chi-square": lambda ask: ask.independence("passed", by="school"),
    "Welch, no difference": lambda ask: ask.compare("grade", by="club", groups=["chess", "choir"]),
    "ANOVA, no difference": lambda ask: ask.compare("grade", by="club", test="anova"),
    "chi-square, no difference": lambda ask: ask.independence("passed", by="club"),
}


def exact_figures(rows: pl.DataFrame) -> dict[str, dict[str, float]]:
    """The same figures without noise, by numpy, scipy and statsmodels; tests by their p values."""
    import statsmodels.formula.api as models  # type: ignore[import-untyped]

    frame: Any = rows.to_pandas().assign(yes=lambda table: table.passed.astype(int))
    grades = {name: group.to_numpy() for name, group in frame.groupby("school").grade}
    clubs = {name: group.to_numpy() for name, group in frame.groupby("club").grade}
    passed = frame.groupby("school").yes.mean()
    found: dict[str, dict[str, float]] = {
        "counts": {
            f"school = {school}, passed = {'yes' if yes else 'no'}": float(n)
            for (school, yes), n in frame.groupby(["school", "yes"]).size().items()
        },
        "shares by group": {f"passed = yes, school = {name}": float(passed[name]) for name in SCHOOLS},
        "quantiles": {
            f"minutes, {100 * at:g} %": float(frame.minutes.quantile(at)) for at in (0.25, 0.5, 0.75)
        },
        "mean": {"minutes": float(frame.minutes.mean())},
        "means by group": {f"grade, school = {name}": float(grades[name].mean()) for name in SCHOOLS},
        "variance": {"grade": float(frame.grade.var())},
        "correlation": {"minutes with grade": float(frame.minutes.corr(frame.grade))},
        "Welch": {"grade, north minus south": float(grades["north"].mean() - grades["south"].mean())},
    }
    names = {"minutes": "minutes", "school[T.south]": "school = south", "school[T.west]": "school = west"}
    for kind, fit in (
        ("linear regression", models.ols("grade ~ minutes + school", frame).fit()),
        ("logistic regression", models.logit("yes ~ minutes + school", frame).fit(disp=0)),
    ):
        found[kind] = {ours: float(fit.params[theirs]) for theirs, ours in names.items()}
    by_school, by_club = (frame.groupby([name, "yes"]).size().unstack() for name in ("school", "club"))
    p_values = {
        "Welch": scipy.stats.ttest_ind(grades["north"], grades["south"], equal_var=False).pvalue,
        "ANOVA": scipy.stats.f_oneway(*grades.values()).pvalue,
        "chi-square": scipy.stats.chi2_contingency(by_school, correction=False).pvalue,
        "Welch, no difference": scipy.stats.ttest_ind(clubs["chess"], clubs["choir"], equal_var=False).pvalue,
        "ANOVA, no difference": scipy.stats.f_oneway(*clubs.values()).pvalue,
        "chi-square, no difference": scipy.stats.chi2_contingency(by_club, correction=False).pvalue,
    }
    for name, p_value in p_values.items():
        found.setdefault(name, {})["p"] = float(p_value)
    return found


@dataclass
class Figure:
    """What was found about one figure, draw by draw; of a test, `exact` is whether it decides as the exact one."""

    exact: list[bool] = field(default_factory=list)
    population: list[bool] = field(default_factory=list)
    width: list[float] = field(default_factory=list)
    too_wide: list[bool] = field(default_factory=list)
    epsilon: list[float] = field(default_factory=list)
    learners: list[float] = field(default_factory=list)

    def cells(self) -> list[str]:
        """The last columns of the table."""
        shares = (f"{np.mean(found):.4f}" if found else "" for found in (self.exact, self.population))
        width = f"{np.median(self.width):.4f}" if self.width else ""
        too_wide = f"{np.mean(self.too_wide):.4f}" if self.too_wide else ""
        enough = (f"{np.median(found):g}" if found else "" for found in (self.epsilon, self.learners))
        return [str(len(self.exact)), *shares, width, too_wide, *enough]


def measured(n: int, n_draws: int, seed: int) -> list[list[object]]:
    """The values of `COLUMNS` for every figure."""
    population = exact_figures(learners(400_000, np.random.default_rng(seed)))
    plans = {
        name: private.propose(private.questions_of(analyze), SCHEMA, n, EPSILON)
        for name, analyze in ANALYSES.items()
    }
    found: dict[tuple[str, str], Figure] = defaultdict(Figure)
    for draw in progress.each(range(n_draws), f"{n:,} learners"):
        rng = np.random.default_rng((seed, n, draw))
        rows = learners(n, rng)
        exact, records = exact_figures(rows), private.read_records(rows, SCHEMA, learner=None)
        for name, plan in plans.items():
            (answer,) = answer_privately(plan, records, seeded_noise(rng))
            for estimate in answer.estimates:
                if estimate.of in exact.get(name, {}):
                    _note(found[name, estimate.of], answer, estimate, exact[name], population[name])
            if answer.test is not None:
                rejects = [p < 0.05 for p in (answer.test.p_value, exact[name]["p"])]
                found[name, "p"].exact.append(rejects[0] == rejects[1])
                found[name, "p"].population.append(rejects[0])
    return [[n, name, of, *figure.cells()] for (name, of), figure in found.items()]


def _note(
    figure: Figure,
    answer: private.Answer,
    estimate: private.Estimate,
    exact: dict[str, float],
    population: dict[str, float],
) -> None:
    figure.exact.append(estimate.low <= exact[estimate.of] <= estimate.high)
    if answer.question.ask != "count":  # a count is of these learners, and of no population
        figure.population.append(estimate.low <= population[estimate.of] <= estimate.high)
    figure.width.append(estimate.width)
    figure.too_wide.append(estimate.too_wide)
    if answer.enough is not None and answer.enough.epsilon is not None:
        figure.epsilon.append(answer.enough.epsilon)
    if answer.enough is not None and answer.enough.n_learners is not None:
        figure.learners.append(answer.enough.n_learners)


def coverage_table(rows: list[dict[str, str]], n: int) -> str:
    """How often intervals hold the exact answer and the population's figure, and how wide they are."""
    body = [
        [
            name,
            str(len(figures)),
            _range(figures, "exact"),
            _range(figures, "population") or "does not apply",
            _range(figures, "width"),
        ]
        for name, figures in _by_question(rows, n, tests=False).items()
    ]
    header = ["question", "figures", "hold the exact answer", "hold the population's", "width"]
    return markdown_table(header, body)


def tests_table(rows: list[dict[str, str]], n: int) -> str:
    """How often tests reject, and decide as the exact ones do."""
    body = [
        [name, _range(figures, "population"), _range(figures, "exact")]
        for name, figures in _by_question(rows, n, tests=True).items()
    ]
    return markdown_table(["test", "p below 0.05", "decides as the exact test"], body)


def small_table(rows: list[dict[str, str]], n: int) -> str:
    """What is said of few learners."""
    body = []
    for name, figures in _by_question(rows, n, tests=False).items():
        enough = [
            max((float(figure[key]) for figure in figures if figure[key]), default=None)
            for key in ("enough_epsilon", "enough_learners")
        ]
        words = [
            "" if number is None else f"{number:,.3g}" if number < 100 else f"{number:,.0f}"
            for number in enough
        ]
        shares = (_range(figures, key) for key in ("width", "too_wide", "exact"))
        body.append([name, *shares, *words])
    header = ["question", "width", "too wide", "hold the exact answer", "enough: epsilon", "or learners"]
    return markdown_table(header, body)


def _by_question(rows: list[dict[str, str]], n: int, *, tests: bool) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        if int(row["learners"]) == n and (row["figure"] == "p") == tests:
            found[row["question"]].append(row)
    return found


def _range(figures: list[dict[str, str]], key: str) -> str:
    """From the smallest share to the largest, in percent; an interval without ends is as wide as what is possible."""
    shares = [min(float(figure[key]), 1.0) for figure in figures if figure[key]]
    if not shares:
        return ""
    ends = dict.fromkeys(
        f"{100 * end:.1f}" if end < 0.1 else f"{100 * end:.0f}" for end in (min(shares), max(shares))
    )
    return f"{' to '.join(ends)} %"


@app.command()
def measure(
    n_draws: Annotated[int, typer.Option(help="Draws of 5,000 learners, and of 113.")] = 400,
    seed: Annotated[int, typer.Option(help="Which learners.")] = 21,
) -> None:
    """Draw learners, ask, and write the tables."""
    write_rows(TABLE, COLUMNS, [*measured(LARGE, n_draws, seed), *measured(SMALL, n_draws, seed)])
    render()


@app.command()
def render() -> None:
    """Write the tables of the page from what was measured."""
    rows, text = rows_of(TABLE), PAGE.read_text(encoding="utf-8")
    for name, table in (
        ("coverage", coverage_table(rows, LARGE)),
        ("tests", tests_table(rows, LARGE)),
        ("small", small_table(rows, SMALL)),
    ):
        text = with_table(text, table, name)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    run(app)
