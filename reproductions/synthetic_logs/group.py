"""A sensitive group: what a synthetic log of learners who share a condition tells about a learner.

`python -m reproductions.synthetic_logs.group` measures it and writes docs/reproductions/synthetic-logs/group.csv.

The paper's example (section 7): a log of students with ADHD is shared, and somebody with a larger log finds out who
of its learners has ADHD. Two things may tell. Ada's own rows may be behind the shared log: that is membership, and
what a guarantee bounds. Or learners with the condition act differently, the shared log shows how, and Ada acts so:
that would be told without her as well, and no guarantee about single learners takes it away.

The control that tells them apart: only half of the learners with the condition are shared. The others have the
condition as well and are not behind the log; whatever it tells about them it tells without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from reproductions.command import new_app, run
from reproductions.pages import markdown_table, rows_of, tables_of, write_rows
from understudy.core.attacks.estimate import auc_with_error
from understudy.core.engine import progress
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.attacks.knowledge import Knowledge
from understudy.logs.attacks.scores import scores_without_refits
from understudy.logs.attacks.shadow import joint_linear_scores
from understudy.logs.generators.registry import parse_generator
from understudy.logs.interactions import Interactions, offsets_of, totals
from understudy.logs.simulated.classroom import Classroom

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

TABLE = tables_of("synthetic_logs") / "group.csv"
METHODS = ("drop:0.5", "markov", "markov-dp:epsilon=8", "markov-dp:epsilon=2")
CLASSROOM = Classroom(n_learners=1200, n_actions=40)
# A third has the condition; half of them are shared.
SHARE = 1 / 3
# Learners with the condition fail this share of what they would have solved, and give up this share of repeats.
FAILS, GIVES_UP = 0.25, 0.4
COLUMNS = ("method", "group", "attack", "members", "same condition", "in the log or not", "luck")


def with_condition(log: Interactions, condition: Flags, rng: np.random.Generator) -> Interactions:
    """The log in which learners with the condition fail more often and stay less long at an action."""
    has = condition[log.learner]
    outcome = np.where(has & (rng.random(log.n_rows) < FAILS), 0, log.success).astype(np.int8)
    again = np.append(False, log.action[1:] == log.action[:-1])
    again[log.offsets[:-1]] = False
    kept = ~(has & again & (rng.random(log.n_rows) < GIVES_UP))
    lengths = totals(log.learner, kept.astype(np.float64), log.n_learners).astype(np.int64)
    return Interactions(log.action[kept], outcome[kept], offsets_of(lengths), log.actions, simulated=True)


def told(scores: Floats, member: Flags, condition: Flags, luck: Flags) -> dict[str, float]:
    """What scores tell, as AUCs: 0.5 is guessing.

    `members`: those behind the log against learners without the condition. `same condition`: those who have it
    and are not behind the log, against the same learners. `in the log or not`: the first against the second.
    `luck` is the last for a random choice of those who have it.
    """

    def auc(ones: Flags, others: Flags) -> float:
        some = ones | others
        return auc_with_error(scores[some], ones[some])[0]

    return {
        "members": auc(member, ~condition),
        "same condition": auc(condition & ~member, ~condition),
        "in the log or not": auc(member, condition & ~member),
        "luck": auc(luck, condition & ~luck),
    }


def measure_once(
    method: str, differs: bool, seed: int, classroom: Classroom = CLASSROOM
) -> dict[str, dict[str, float]]:
    """What every attack tells about one simulated group, by attack."""
    rng = np.random.default_rng(seed)
    log = classroom.simulate(rng)
    order = rng.permutation(log.n_learners)
    n_with = round(SHARE * log.n_learners)
    condition, member, luck = (np.zeros(log.n_learners, dtype=bool) for _ in range(3))
    condition[order[:n_with]] = True
    member[order[: n_with // 2]] = True
    luck[rng.permutation(order[:n_with])[: n_with // 2]] = True
    if differs:
        log = with_condition(log, condition, rng)
    generator = parse_generator(method).fit(log.select(member).declare(), rng, seeded_noise(rng))
    synthetic = generator.sample(None, rng).recode(log.actions)
    knowledge = Knowledge(log, int(member.sum()))
    scores = scores_without_refits(knowledge, synthetic)
    scores["joint-linear"] = joint_linear_scores(knowledge, synthetic)
    return {attack: told(each, member, condition, luck) for attack, each in scores.items()}


def measure(
    methods: Sequence[str] = METHODS, n_seeds: int = 5, classroom: Classroom = CLASSROOM
) -> list[tuple[str, ...]]:
    """Means over seeds of every attack: on a group that differs as such, and on one that does not."""
    rows = []
    with progress.task("Sharing groups", 2 * len(methods) * n_seeds) as task:
        for method in methods:
            for group in ("differs", "does not differ"):
                found = []
                for seed in range(n_seeds):
                    found.append(measure_once(method, group == "differs", seed, classroom))
                    task.advance()
                for attack in found[0]:
                    means = (fmean(one[attack][column] for one in found) for column in COLUMNS[3:])
                    rows.append((method, group, attack, *(f"{mean:.3f}" for mean in means)))
    return rows


def strongest(method: str, group: str, column: str) -> tuple[str, str, str]:
    """The largest AUC of a column, its attack, and what luck gives there."""
    found = [row for row in rows_of(TABLE) if (row["method"], row["group"]) == (method, group)]
    row = max(found, key=lambda row: float(row[column]))
    return row[column], row["attack"], row["luck"]


def table() -> str:
    """For each method and group what the strongest attack on each question tells."""
    rows = []
    for method, group in dict.fromkeys((row["method"], row["group"]) for row in rows_of(TABLE)):
        told_most = [strongest(method, group, column) for column in COLUMNS[3:6]]
        cells = [f"**{auc}** (`{attack}`)" for auc, attack, _ in told_most]
        rows.append([f"`{method}`", group, *cells, told_most[-1][2]])
    header = ["method", "the group", "member told from learners without the condition"]
    header += [
        "the same, not in the log, told from them",
        "member told from the same, not in the log",
        "luck",
    ]
    return markdown_table(header, rows)


def values() -> dict[str, str]:
    """What the page shows."""
    private = {column: strongest("markov-dp:epsilon=8", "differs", column)[0] for column in COLUMNS[3:6]}
    chain = strongest("markov", "differs", "in the log or not")[0]
    words = [
        "A log of real rows or a chain's log gives its own learners away, whether the group differs or not "
        f"(`markov`: {chain} against others with the same condition).",
        f"`markov-dp` at epsilon 8 hardly does ({private['in the log or not']}).",
        "But where the group differs as such, it tells a learner with the condition from one without at "
        f"{private['members']} if they are in the log, and at {private['same condition']} if they are not.",
        "That is what the log is for: it says what learners with the condition do.",
        "Whoever shares the log of a group says it about all of them; no guarantee for single learners takes that "
        "away, and an attack without this control takes it for membership.",
    ]
    return {"group": table(), "group_words": "\n".join(words)}


app = new_app("What a synthetic log of a sensitive group tells.")


@app.command()
def groups(
    methods: Annotated[list[str] | None, typer.Argument(help="Methods; all by default.")] = None,
    n_seeds: Annotated[int, typer.Option(help="Groups that are simulated.")] = 5,
) -> None:
    """Measure it on simulated learners; it takes some minutes."""
    chosen = tuple(methods or METHODS)
    kept = [tuple(row.values()) for row in rows_of(TABLE) if row["method"] not in chosen]
    write_rows(TABLE, COLUMNS, [*kept, *measure(chosen, n_seeds)])


if __name__ == "__main__":
    run(app)
