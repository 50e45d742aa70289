"""Measures the tables and figures of synthetic logs."""

from __future__ import annotations

import numpy as np

from reproductions.pages import tables_of, write_rows
from reproductions.synthetic_logs import table_four
from reproductions.synthetic_logs.figures import ability_histogram, draw_figures
from reproductions.synthetic_logs.practice import measure_practice
from reproductions.synthetic_logs.sentences import measure_sentences
from reproductions.synthetic_logs.speed import measure_speed
from reproductions.synthetic_logs.table_four import BASELINES, LOG, PUBLISHED_HALF
from understudy.logs.audit import MEMBERSHIP_ATTACKS
from understudy.logs.description import describe
from understudy.logs.models.rasch import fit_rasch
from understudy.logs.reading import read_log
from understudy.logs.simulated.classroom import RARE_PATHS, Classroom
from understudy.logs.simulated.vocabulary import DUOLINGO_SHAPE
from understudy.logs.study import study

TABLES = tables_of("synthetic_logs")
PRIVATE_METHODS = ("drop:0.5", "markov", "runs-dp:epsilon=8", "runs-dp:epsilon=2")


def measure_published() -> None:
    """The published methods on ASSISTments."""
    _keep(study(read_log(LOG), BASELINES).summaries, "assistments")


def measure_private() -> None:
    """The private generator beside the baselines, and every attack on three logs, of which one is small and hard."""
    summaries = study(read_log(LOG), PRIVATE_METHODS, seeds=5).summaries
    _keep(summaries, "private")
    found = {"ASSISTments": summaries}
    for name, shape in (("classroom", Classroom()), ("rare paths", RARE_PATHS)):
        log = shape.simulate(np.random.default_rng(1))
        found[name] = study(log, PRIVATE_METHODS, seeds=5).summaries
    run = {name for log_summaries in found.values() for summary in log_summaries for name in summary}
    columns = [name for attack in MEMBERSHIP_ATTACKS if (name := f"auc_{attack.replace('-', '_')}") in run]
    columns += ["auc_chance", "auc_transcript", "tpr_at_1pct", "tpr_chance_high"]
    rows = [
        (name, summary["method"], *(f"{summary[c]:.3f}" if c in summary else "" for c in columns))
        for name, log_summaries in found.items()
        for summary in log_summaries
    ]
    write_rows(TABLES / "attacks.csv", ("log", "method", *columns), rows)


def _keep(summaries: list[dict[str, object]], name: str) -> None:
    columns = [
        *(
            "rmse",
            "wrmse",
            "wrmse_centred",
            "action_tv",
            "transition_tv",
            "auc_lcs",
            "auc_lcs_published",
            "auc_worst",
        ),
        *("auc_worst_low", "auc_worst_high", "auc_chance", "auc_chance_low", "auc_chance_high"),
        *("auc_transcript", "tpr_at_1pct", "tpr_at_1pct_low", "tpr_at_1pct_high", "tpr_chance_high"),
        *("auc_attribute", "attribute_advantage"),
    ]
    rows = []
    for summary in summaries:
        attacks = " and ".join(summary["worst_attacks"])  # type: ignore[arg-type]
        numbers = [f"{summary[c]:.3f}" if c in summary else "" for c in columns]
        rows.append((summary["method"], attacks, *numbers))
    write_rows(TABLES / f"{name}.csv", ("method", "strongest", *columns), rows)


_DESCRIBED = (
    *("n_rows", "n_learners", "n_actions", "repeats_median", "repeats_max"),
    *("length_min", "length_median", "length_max", "n_always_right", "n_always_wrong"),
)


def measure_descriptions() -> None:
    """The sizes of the logs (the paper's Table 2) and the abilities of the learners whom the authors trained on."""
    half = read_log(PUBLISHED_HALF)
    logs = {
        "ours": read_log(LOG),
        "half": half,
        "simulated": DUOLINGO_SHAPE.simulate(np.random.default_rng(1)),
    }
    rows = []
    for name, log in logs.items():
        description = describe(log)
        rows.append([name, *(getattr(description, column) for column in _DESCRIBED)])
    write_rows(TABLES / "description.csv", ("log", *_DESCRIBED), rows)
    ability = fit_rasch(half).ability
    write_rows(TABLES / "abilities.csv", ("from", "to", "density"), ability_histogram(ability))
    write_rows(
        TABLES / "ability-law.csv", ("mean", "spread"), [(f"{ability.mean():.4f}", f"{ability.std():.4f}")]
    )


PARTS = {
    "published": measure_published,
    "private": measure_private,
    "published_half": table_four.measure_published_half,
    "samples": table_four.measure_samples,
    "practice": measure_practice,
    "long": table_four.measure_long,
    "entropy": table_four.measure_entropy,
    "descriptions": measure_descriptions,
    "sentences": measure_sentences,
    "speed": measure_speed,
    "figures": draw_figures,
}
