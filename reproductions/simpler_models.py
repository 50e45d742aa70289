"""Is `runs-dp` ever worse than a simpler model at the same epsilon?

`python -m reproductions.simpler_models measure` simulates classrooms of sixty sizes (30 to 2,000 learners, 5 to 500
actions, epsilon 0.5, 2 and 8), fits `runs-dp` and two simpler models to each, and writes
docs/how-to/simpler-models.csv and the table of docs/how-to/methods.md. It takes five minutes of one core.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.special import expit

from reproductions.command import new_app, run
from reproductions.pages import ROOT, markdown_table, rows_of, write_rows
from understudy.core.engine import progress
from understudy.core.privacy.noise import Noise, seeded_noise
from understudy.logs.generators.budget import Spending
from understudy.logs.generators.calibration import spread_abilities
from understudy.logs.generators.markov_dp import MarkovDP
from understudy.logs.generators.private_sums import WalkStatistics
from understudy.logs.generators.runs_dp import RunsDP, shares_for, shares_of_rows
from understudy.logs.interactions import IntArray, Interactions, offsets_of, totals
from understudy.logs.models.lengths import spread_lengths
from understudy.logs.simulated.classroom import Classroom
from understudy.logs.utility import Comparison, Real, action_tv, transition_tv, wrmse_centred

Floats = NDArray[np.float64]

TABLE = ROOT / "docs/how-to/simpler-models.csv"
PAGE = ROOT / "docs/how-to/methods.md"
BEGIN, END = "<!-- simpler models -->", "<!-- end of simpler models -->"
LEARNERS, ACTIONS, EPSILONS = (30, 100, 300, 1000, 2000), (5, 20, 100, 500), (0.5, 2.0, 8.0)
SIZES = tuple(product(LEARNERS, ACTIONS, EPSILONS))
MEASURES = {"actions": action_tv, "difficulties": wrmse_centred, "transitions": transition_tv}
MODELS = ("ours", "simpler", "alike")
COLUMNS = (
    "learners", "actions", "epsilon", "log", *(f"{name} {model}" for name in MEASURES for model in MODELS)
)  # fmt: skip

# What only walks need; the last three are asked for by code that both models share, and get next to nothing.
OF_WALKS = ("first stays", "second stays", "first new jumps", "second new jumps", "jumps", "staying")
UNUSED, NEXT_TO_NOTHING = ("starts", "runs", "practice"), 1e-9
# Limits of `runs-dp` were chosen on classrooms with other seeds than this one.
FRESH = 2026

app = new_app("Compare runs-dp with simpler models at the same epsilon.")


class PopularityAndRasch(RunsDP):
    """Private popularity with Rasch outcomes: every row's action is drawn by itself.

    The whole budget is for lengths, popularity and outcomes, in the proportions that they have in `runs-dp` where
    jumps are asked for. Lengths, shares, difficulties and abilities are made of noisy sums by the very same functions.
    """

    @property
    def _shares(self) -> dict[str, float]:
        shares = shares_for(self.n_learners_, None, 0.0)
        used = {name: share for name, share in shares.items() if name not in OF_WALKS}
        return {name: NEXT_TO_NOTHING if name in UNUSED else share for name, share in used.items()}

    def _fit(self, log: Interactions, rng: np.random.Generator, noise: Noise) -> None:
        MarkovDP._fit(self, log, rng, noise)
        self.ability_mean_ = 0.0
        self.easiness_ = self.easiness_ + self._shift_to_success_rate()

    def _fit_chain(self, log: Interactions, spending: Spending) -> None:
        walks = WalkStatistics(log)
        _, stay_share = self._fit_lengths(walks, spending)
        successes = totals(log.learner, log.success, log.n_learners)
        self.success_rate_, self.success_error_ = self._closer(
            *self._guessed(self.success_rate_), successes, log.lengths, spending, "successes"
        )
        row_norm, run_norm = self._norms(walks, spending, stay_share)
        spending.spend("runs", walks.runs(run_norm))
        (rows,) = spending.spend("rows", walks.rows(row_norm))
        self.popularity_, self.expected_popularity_, self.signal_["actions"] = shares_of_rows(rows, None)

    def _sample(self, n_learners: int | None, rng: np.random.Generator) -> Interactions:
        lengths = spread_lengths(self.length_law_, n_learners or self.n_learners_, rng)
        ability = spread_abilities(lengths, self.ability_spread_, rng)
        n_rows = int(lengths.sum())
        # As close to the model as so many rows can be, like the walks of `runs-dp`.
        place = (rng.permutation(n_rows) + rng.random()) / n_rows
        action = np.searchsorted(np.cumsum(self.popularity_)[:-1], place, side="right").astype(np.int32)
        chance = expit(self.easiness_[action] + np.repeat(ability, lengths))
        outcome = (_evenly(action, rng) < chance).astype(np.int8)
        return Interactions(action, outcome, offsets_of(lengths), self.actions_)


def _evenly(action: IntArray, rng: np.random.Generator) -> Floats:
    """A number from 0 to 1 for each row, those of each action spread evenly and in random order."""
    order = np.lexsort((rng.random(len(action)), action))
    count = np.bincount(action)
    first = np.cumsum(count) - count
    even = np.empty(len(action))
    even[order] = (np.arange(len(action)) - first[action[order]] + rng.random(len(action))) / count[
        action[order]
    ]
    return even


def measured(n_learners: int, n_actions: int, epsilon: float, number: int) -> list[float]:
    """One log of a size: each measure for `runs-dp`, for popularity and Rasch, and for difficulties all alike."""
    seed = (n_learners, n_actions, round(10 * epsilon), FRESH, number)
    log = Classroom(n_learners, n_actions).simulate(np.random.default_rng(seed)).declare()
    real, made = Real(log, log), []
    for place, kind in enumerate((RunsDP, PopularityAndRasch)):
        rng = np.random.default_rng((*seed, place))
        fitted = kind(epsilon).fit(log, rng, seeded_noise(rng))
        made.append(Comparison(real, fitted.sample(None, rng)))
    fitted.easiness_ = np.zeros(n_actions)
    fitted.easiness_ += fitted._shift_to_success_rate()
    made.append(Comparison(real, fitted.sample(None, rng)))
    return [measure(comparison) for measure in MEASURES.values() for comparison in made]


def compared(rows: Iterable[dict[str, str]]) -> str:
    """The table of the page."""
    found = [{name: float(value) for name, value in row.items()} for row in rows]
    groups: dict[str, list[dict[str, float]]] = {"all sizes": found}
    for name, values, word in (("actions", ACTIONS, "{:g} actions"), ("epsilon", EPSILONS, "epsilon {:g}")):
        groups |= {word.format(value): [row for row in found if row[name] == value] for value in values}
    body = []
    for words, some in groups.items():
        line = [words]
        for measure, others in (
            ("actions", MODELS[1:2]),
            ("difficulties", MODELS[1:]),
            ("transitions", MODELS[1:2]),
        ):
            line.append(f"{np.mean([row[f'{measure} ours'] for row in some]):.3f}")
            line += [_beside(some, measure, other) for other in others]
        body.append(line)
    header = ["", "actions", "popularity and Rasch", "difficulties", "popularity and Rasch", "all alike"]
    return markdown_table([*header, "transitions", "popularity and Rasch"], body)


def _beside(rows: list[dict[str, float]], measure: str, other: str) -> str:
    """The other model's error, and by how much ours differs from it."""
    theirs = np.array([row[f"{measure} {other}"] for row in rows])
    difference = np.array([row[f"{measure} ours"] for row in rows]) - theirs
    return f"{theirs.mean():.3f} ({difference.mean():+.3f} ± {_error(difference):.3f})"


def _error(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def page(text: str, rows: Iterable[dict[str, str]]) -> str:
    """The page with its table."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{compared(rows)}\n{END}{rest.partition(END)[2]}"


@app.command()
def measure(n_logs: Annotated[int, typer.Option(help="Logs of each size.")] = 3) -> None:
    """Fit the models to logs of every size and write the table."""
    rows: list[list[Any]] = []
    with progress.task("Logs", len(SIZES) * n_logs) as task:
        for size, number in product(SIZES, range(n_logs)):
            rows.append([*size, number, *(f"{value:.4f}" for value in measured(*size, number))])
            task.advance()
    write_rows(TABLE, COLUMNS, rows)
    render()


@app.command()
def render() -> None:
    """Write the measured table into the page again."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), rows_of(TABLE)), encoding="utf-8")


if __name__ == "__main__":
    run(app)
