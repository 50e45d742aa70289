"""How much epsilon costs and buys: the default of `release` rests on it.

`python -m reproductions.epsilons` fits `runs-dp` at two epsilons to halves of five logs: 100 to 4,000 learners, and in
one of them more actions than learners. It writes docs/explanation/epsilons.csv, of which
`python -m reproductions.attack_strength` prints the table for docs/explanation/attacks.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from reproductions.command import new_app, run
from reproductions.pages import DATA, ROOT, markdown_table, rows_of, write_rows
from understudy.core.attacks.estimate import auc_with_error
from understudy.core.engine import progress
from understudy.core.engine.tasks import run_tasks
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.shadow import Refits, cheap_scores, fit_shadow
from understudy.logs.attacks.transcript import white_box
from understudy.logs.generators.registry import parse_generator
from understudy.logs.interactions import Interactions
from understudy.logs.reading import read_log
from understudy.logs.simulated.classroom import RARE_PATHS, Classroom
from understudy.logs.trial import Split, attacker_knowledge
from understudy.logs.utility import Comparison, action_tv, transition_tv, wrmse_centred

TABLE = ROOT / "docs/explanation/epsilons.csv"
EPSILONS = (8, 4)
N_HALVES = 8
N_SHADOWS = 16
MEASURES = ("joint_linear", "transcript", "exposed", "wrmse_centred", "action_tv", "transition_tv")
COLUMNS = ("log", "learners", "actions", "epsilon", *MEASURES, "joint_linear_error")
SHAPES = {
    "rare paths": RARE_PATHS,
    "classroom, 100": Classroom(n_learners=100, n_actions=20),
    "classroom, 600": Classroom(),
    "classroom, 2,000": Classroom(n_learners=2000),
}

app = new_app("Measure what epsilon costs and buys.")


def logs() -> Iterator[tuple[str, Interactions]]:
    """The logs by name; names of actions are taken as public."""
    for name, shape in SHAPES.items():
        yield name, shape.simulate(np.random.default_rng(1)).declare()
    yield "ASSISTments", read_log(DATA / "assistments2009.csv.gz").declare()


def measured(
    log: Interactions, method: str, n_halves: int = N_HALVES, n_shadows: int = N_SHADOWS
) -> dict[str, float]:
    """Means over halves: `joint-linear` with refits, the white box, and how far the synthetic log is off."""
    knowledge = attacker_knowledge(log)

    def generate(log: Interactions, rng: np.random.Generator) -> Interactions:
        generator = parse_generator(method).fit(log, rng, seeded_noise(rng))
        return generator.sample(None, rng).recode(log.actions)

    seeds = np.random.SeedSequence([1, *method.encode()]).spawn(n_shadows)
    refits = Refits(
        knowledge,
        run_tasks(
            [partial(fit_shadow, knowledge, generate, np.random.default_rng(seed)) for seed in seeds],
        ),
    )
    halves = [partial(_half, log, method, seed, knowledge, refits) for seed in range(n_halves)]
    found = run_tasks(halves)
    means = {name: float(np.mean([half[name] for half in found])) for name in MEASURES}
    spread = float(np.std([half["joint_linear"] for half in found], ddof=1))
    return {**means, "joint_linear_error": spread / np.sqrt(n_halves)}


def _half(
    log: Interactions, method: str, seed: int, knowledge: Knowledge, refits: Refits
) -> dict[str, float]:
    split = Split(log, seed, knowledge=knowledge)
    rng = np.random.default_rng([seed, *method.encode()])
    fitted = parse_generator(method).fit(split.real.training, rng, seeded_noise(rng))
    synthetic = fitted.sample(None, rng).recode(log.actions)
    scores = refits.scores(cheap_scores(knowledge, synthetic), knowledge.statistics.of(synthetic))
    seen = white_box(knowledge, fitted)
    assert seen is not None
    judged, comparison = knowledge.judged, Comparison(split.real, synthetic)
    return {
        "joint_linear": auc_with_error(scores["joint-linear"][judged], split.member[judged])[0],
        "transcript": auc_with_error(seen.scores[judged], split.member[judged])[0],
        "exposed": seen.exposed_share,
        "wrmse_centred": wrmse_centred(comparison),
        "action_tv": action_tv(comparison),
        "transition_tv": transition_tv(comparison),
    }


def table() -> str:
    """The measured table for the page."""
    rows = [
        [
            f"{row['log'].split(',')[0]}: {int(row['learners']):,} learners, {int(row['actions']):,} actions",
            row["epsilon"],
            row["joint_linear"],
            row["transcript"],
            f"{100 * float(row['exposed']):.0f} %",
            " / ".join(f"{float(row[name]):.2f}" for name in MEASURES[3:]),
        ]
        for row in rows_of(TABLE)
    ]
    header = ["log", "epsilon", "`joint-linear`", "noisy sums seen", "exposed learners", "utility"]
    return markdown_table(header, rows)


@app.command()
def measure() -> None:
    """Measure all logs at both epsilons; it takes some minutes on two cores."""
    rows: list[list[object]] = []
    with progress.task("Fitting halves", (len(SHAPES) + 1) * len(EPSILONS)) as task:
        for name, log in logs():
            for epsilon in EPSILONS:
                found = measured(log, f"runs-dp:epsilon={epsilon}")
                figures = (f"{found[column]:.3f}" for column in COLUMNS[4:])
                rows.append([name, log.n_learners, log.n_actions, epsilon, *figures])
                task.advance()
    write_rows(TABLE, COLUMNS, rows)


if __name__ == "__main__":
    run(app)
