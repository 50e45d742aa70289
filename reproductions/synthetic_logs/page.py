"""The page of synthetic logs: the published results beside ours."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from reproductions.pages import fill, markdown_table, rows_of, tables_of
from reproductions.synthetic_logs import group, network
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.generators.registry import parse_generator
from understudy.logs.simulate import Classroom

TABLES = tables_of("synthetic_logs")
# Table 4 of the paper: RMSE, weighted RMSE, re-identification AUC.
PUBLISHED = {
    "assistments": {
        "drop:0": (0.000, 0.000, 0.913),
        "drop:0.25": (0.093, 0.035, 0.776),
        "drop:0.5": (0.147, 0.064, 0.680),
        "drop:0.75": (0.283, 0.105, 0.588),
        "drop:0.99": (0.719, 0.481, 0.497),
        "drop:0.999": (0.833, 0.692, 0.497),
        "markov": (0.245, 0.065, 0.495),
    },
    "duolingo-shape": {
        "drop:0": (0.000, 0.000, 1.000),
        "drop:0.5": (0.308, 0.113, 1.000),
        "drop:0.75": (0.450, 0.195, 1.000),
        "drop:0.99": (0.730, 0.624, 0.554),
        "markov": (0.369, 0.114, 0.511),
    },
}


def page() -> str:
    """The page from its template."""
    markov, long, private = _table("assistments")["markov"], _table("duolingo-shape"), _table("private")
    return fill(
        "synthetic_logs",
        {
            "description": _description(),
            "assistments": _compared("assistments"),
            "luck": markov["auc_chance_high"],
            "luck_found": f"{100 * float(markov['tpr_chance_high']):.0f}",
            "duolingo": _compared("duolingo-shape"),
            "examples": _examples(),
            "markov_lcs": markov["auc_lcs"],
            "markov_worst": markov["auc_worst"],
            "markov_found": f"{100 * float(markov['tpr_at_1pct']):.0f}",
            "private": _private(),
            "private_worst": f"{100 * float(private['markov-dp:epsilon=8']['auc_worst']):.0f}",
            "attacks": attacks_table(),
            **network.values(),
            **group.values(),
            "long_drop": long["drop:0.75"]["auc_worst"],
            "long_markov": long["markov"]["auc_worst"],
        },
    )


def _table(name: str) -> dict[str, dict[str, str]]:
    return {row["method"]: row for row in rows_of(TABLES / f"{name}.csv")}


def _interval(row: dict[str, str]) -> str:
    return f"{row['auc_worst_low']} to {row['auc_worst_high']}"


def _compared(name: str) -> str:
    found = _table(name)
    header = ["method", "RMSE (published)", "weighted RMSE (published)"]
    header += ["published attack as we read it: AUC (published)", "as its authors compute it: AUC"]
    header += ["strongest attack: AUC", "interval", "which", "found at 1 % false alarms", "interval"]
    rows = []
    for method, (rmse, wrmse, auc) in PUBLISHED[name].items():
        row = found[method]
        rows.append(
            [
                f"`{method}`",
                f"{row['rmse']} ({rmse:.3f})",
                f"{row['wrmse']} ({wrmse:.3f})",
                f"{row['auc_lcs']} ({auc:.3f})",
                row["auc_lcs_published"],
                f"**{row['auc_worst']}**",
                _interval(row),
                row["strongest"],
                _percent(row["tpr_at_1pct"]),
                f"{_percent(row['tpr_at_1pct_low'])} to {_percent(row['tpr_at_1pct_high'])}",
            ]
        )
    return markdown_table(header, rows)


def _percent(share: str) -> str:
    return f"{100 * float(share):.1f} %"


def _private() -> str:
    header = ["method", "weighted RMSE, centred", "actions: total variation", "transitions: total variation"]
    columns = ("wrmse_centred", "action_tv", "transition_tv")
    return markdown_table(
        [*header, "strongest attack: AUC", "interval", "by luck", "which", "noisy sums seen: AUC"],
        [
            [
                f"`{method}`",
                *(row[name] for name in columns),
                f"**{row['auc_worst']}**",
                _interval(row),
                f"up to {row['auc_chance_high']}",
                row["strongest"],
                row["auc_transcript"] or "–",
            ]
            for method, row in _table("private").items()
        ],
    )


def attacks_table() -> str:
    """Every attack on three logs: a row per attack, a column per log and method."""
    columns = rows_of(TABLES / "attacks.csv")
    names = [name for name in columns[0] if name.startswith("auc_")]
    attacks = [name for name in names if name not in ("auc_chance", "auc_transcript")]
    header = ["attack", *(f"{column['log']}: `{column['method']}`" for column in columns)]
    rows = []
    for name in attacks:
        cells = [
            f"**{column[name]}**"
            if float(column[name]) == max(float(column[other]) for other in attacks)
            else column[name]
            for column in columns
        ]
        rows.append([f"`{name.removeprefix('auc_').replace('_', '-')}`", *cells])
    rows.append(["luck alone, the strongest", *(column["auc_chance"] for column in columns)])
    rows.append(["most found at 1 % false alarms", *(_percent(column["tpr_at_1pct"]) for column in columns)])
    luck = [f"up to {_percent(column['tpr_chance_high'])}" for column in columns]
    rows.append(["luck alone, the most found", *luck])
    rows.append(["`transcript` (white box)", *(column["auc_transcript"] or "–" for column in columns)])
    return markdown_table(header, rows)


def _examples() -> str:
    """Sequences of a simulated classroom beside generated ones: no real learner is shown."""
    rng = np.random.default_rng(3)
    log = Classroom(n_learners=300, n_actions=20, shortest=12).simulate(rng)
    generated = parse_generator("markov").fit(log, rng, seeded_noise(rng)).sample(4, rng)
    rows = []
    for name, source in (("original (simulated)", log), ("generated by `markov`", generated)):
        for i in range(3):
            codes = source.action[source.offsets[i] : source.offsets[i + 1]]
            runs = [f"{source.actions[code]} x {len(list(run))}" for code, run in groupby(codes)]
            rows.append([name, ", ".join(runs[:9]) + (", ..." if len(runs) > 9 else "")])
    return markdown_table(["", "practice runs (action x attempts)"], rows)


def _description() -> str:
    (ours,) = rows_of(TABLES / "description.csv")
    *sizes, right, wrong = ours.values()
    header = ["", "rows", "learners", "actions", "repeats: median", "repeats: max", "length: min"]
    published = ["published", "279k", "4163", "112", "3", "144", "1", "20", "1021"]
    table = markdown_table([*header, "median", "max"], [["ours", *sizes], published])
    return (
        f"{table}\n\n{right} actions are always right and {wrong} always wrong; they have no finite difficulty and are "
        "set aside, as in the paper."
    )
