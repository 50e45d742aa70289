"""The page of synthetic logs: the published results beside ours."""

from __future__ import annotations

from reproductions.pages import fill, markdown_table, rows_of, tables_of
from reproductions.synthetic_logs import group, network, practice
from reproductions.synthetic_logs.figures import short_method
from reproductions.synthetic_logs.table_four import LEARNED, LONG_NETWORK

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
        "gru": (0.213, 0.061, 0.508),
    },
    "duolingo-shape": {
        "drop:0": (0.000, 0.000, 1.000),
        "drop:0.25": (0.208, 0.067, 1.000),
        "drop:0.5": (0.308, 0.113, 1.000),
        "drop:0.75": (0.450, 0.195, 1.000),
        "drop:0.99": (0.730, 0.624, 0.554),
        "drop:0.999": (0.793, 0.985, 0.506),
        "markov": (0.369, 0.114, 0.511),
        "gru": (0.431, 0.143, 0.516),
    },
}
# Tables 2 and section 5.3: rows, learners, actions, repeats (median and most), lengths (least, median and most).
PUBLISHED_SIZES = {
    "ASSISTments, the paper's": ("279k", "4163", "112", "3", "144", "1", "20", "1021"),
    "Duolingo, the paper's": ("1.2M", "1213", "2416", "4", "–", "90", "742", "10008"),
}


def page() -> str:
    """The page from its template."""
    markov, private = _table("assistments")["markov"], _table("private")
    samples, half = _table("samples"), _table("published-half")
    long, full = _table("duolingo-shape"), _table("duolingo-full")
    entropy = {row["log"]: row for row in rows_of(TABLES / "entropy.csv")}
    set_aside = entropy["ASSISTments, ours"]
    return fill(
        "synthetic_logs",
        {
            "description": _description(),
            "set_aside": _percent(set_aside["by_paper"]),
            "set_aside_by_us": _percent(set_aside["by_us"]),
            "set_aside_half": _percent(entropy["ASSISTments, their half"]["by_paper"]),
            "set_aside_long": _percent(entropy["Duolingo's shape, simulated"]["by_paper"]),
            "half": _half(),
            "half_gru": half["gru"]["rmse"],
            "half_gru_range": _range(half["gru"]),
            "half_markov_range": _range(half["markov"]),
            "half_gru_weighted": half["gru"]["wrmse"],
            "half_markov_weighted": half["markov"]["wrmse"],
            "half_learned_weighted": half[LEARNED]["wrmse"],
            "assistments": _compared("assistments", "samples", "private"),
            "gru_lcs": samples["gru"]["auc_lcs"],
            "gru_worst": samples["gru"]["auc_worst"],
            "gru_strongest": samples["gru"]["strongest"],
            "luck": markov["auc_chance_high"],
            "luck_found": f"{100 * float(markov['tpr_chance_high']):.0f}",
            "lengths": _lengths(),
            **practice.values(),
            "duolingo": _compared("duolingo-shape", "duolingo-full"),
            "sentences": _sentences(),
            "examples": _examples(),
            "markov_lcs": markov["auc_lcs"],
            "markov_worst": markov["auc_worst"],
            "markov_found": f"{100 * float(markov['tpr_at_1pct']):.0f}",
            "private": _private(),
            "private_worst": f"{100 * float(private['runs-dp:epsilon=8']['auc_worst']):.0f}",
            **network.values(),
            **group.values(),
            "long_drop": long["drop:0.99"]["auc_lcs"],
            "full_drop": full["drop:0.99"]["auc_lcs"],
            "full_drop_more": full["drop:0.999"]["auc_lcs"],
            "long_markov": long["markov"]["auc_worst"],
            "long_markov_error": long["markov"]["wrmse"],
            "long_gru": long[LONG_NETWORK]["auc_worst"],
            "long_strongest": long["markov"]["strongest"],
            "speed": _speed(),
            "load": f"{max(float(row['load']) for row in rows_of(TABLES / 'speed.csv')):.0f}",
        },
    )


def _table(name: str) -> dict[str, dict[str, str]]:
    return {row["method"]: row for row in rows_of(TABLES / f"{name}.csv")}


def _interval(row: dict[str, str]) -> str:
    return f"{row['auc_worst_low']} to {row['auc_worst_high']}"


def _range(row: dict[str, str]) -> str:
    return f"{row['rmse_low']} to {row['rmse_high']}"


def _half() -> str:
    """The errors on the authors' own half: ours, how single samples scatter, and the published ones."""
    published = PUBLISHED["assistments"]
    rows = []
    for method, row in _table("published-half").items():
        rmse, wrmse, _ = published.get(_paper_method(method), (None, None, None))
        rows.append(
            [
                f"`{short_method(method)}`",
                _beside(row["rmse"], rmse),
                _range(row),
                _beside(row["wrmse"], wrmse),
                row["action_tv"],
                row["transition_tv"],
            ]
        )
    header = ["method", "RMSE (published)", "single samples", "weighted RMSE (published)"]
    return markdown_table([*header, "actions: total variation", "transitions: total variation"], rows)


def _paper_method(method: str) -> str:
    """The column of the paper that a method belongs to; the paper's network has no outcomes of its own."""
    return "gru" if method.split(":")[0] == "gru" and method != LEARNED else method


def _beside(ours: str, published: float | None) -> str:
    return ours if published is None else f"{ours} ({published:.3f})"


def _compared(name: str, *others: str) -> str:
    """Table 4: errors from the table with several samples where there is one, attacks from the first that has them."""
    found = [_table(table) for table in (name, *others)]
    methods = dict.fromkeys((*found[0], *found[min(1, len(others))]))
    columns = list(PUBLISHED[name])
    # As in the paper, and what it does not have at the end.
    ordered = sorted(
        methods, key=lambda method: [*columns, _paper_method(method)].index(_paper_method(method))
    )
    header = ["method", "RMSE (published)", "weighted RMSE (published)"]
    header += ["published attack as we read it: AUC (published)", "as its authors compute it: AUC"]
    header += ["strongest attack: AUC", "interval", "which", "found at 1 % false alarms"]
    rows = []
    for method in ordered:
        errors = found[min(1, len(others))].get(method) or found[0][method]
        attacked = next(table[method] for table in found if table.get(method, {}).get("auc_worst"))
        rmse, wrmse, auc = PUBLISHED[name].get(_paper_method(method), (None, None, None))
        rows.append(
            [
                f"`{short_method(method)}`",
                _beside(errors["rmse"], rmse),
                _beside(errors["wrmse"], wrmse),
                _beside(attacked["auc_lcs"], auc),
                attacked["auc_lcs_published"],
                f"**{attacked['auc_worst']}**",
                _interval(attacked),
                attacked["strongest"],
                _percent(attacked["tpr_at_1pct"]),
            ]
        )
    return markdown_table(header, rows)


def _lengths() -> str:
    """Lengths and repeats of what each method writes; `drop:0` is the training half itself."""
    names = {"drop:0": "training half"}
    rows = []
    for method, row in _table("samples").items():
        rows.append(
            [
                names.get(method, f"`{method}`"),
                *(f"{float(row[name]):.0f}" for name in ("length_min", "length_median", "length_max")),
                row["length_ks"],
                f"{float(row['repeats_median']):.1f}",
                f"{float(row['repeats_max']):.0f}",
                row["repeats_ks"],
            ]
        )
    header = ["", "length: min", "median", "max", "distance (KS)"]
    return markdown_table([*header, "repeats: median", "max", "distance (KS)"], rows)


def _sentences() -> str:
    header = [
        "",
        "steps that the original has",
        "words in whole sentences",
        "next sentence of the same theme",
    ]
    rows = [
        [_named(row["method"]), *(_percent(row[name]) for name in list(row)[1:])]
        for row in rows_of(TABLES / "sentences.csv")
    ]
    return markdown_table(header, rows)


def _named(method: str) -> str:
    return method if method == "original" else f"`{method}`"


def _examples() -> str:
    """Sequences of the simulated course beside generated ones: no real learner is shown."""
    rows = [[_named(row["method"]), row["text"]] for row in rows_of(TABLES / "examples.csv")]
    return markdown_table(["", "how a sequence begins"], rows)


def _speed() -> str:
    header = ["log", "method", "rows read", "rows written", "read", "fit", "sample", "write", "in all"]
    rows = []
    for row in rows_of(TABLES / "speed.csv"):
        steps = [float(row[name]) for name in ("read", "fit", "sample", "write")]
        seconds = [f"{step:.1f} s" for step in (*steps, sum(steps))]
        sizes = [f"{int(row[name]):,}" for name in ("n_rows", "n_sampled")]
        rows.append([row["log"], f"`{row['method']}`", *sizes, *seconds])
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


def _description() -> str:
    """Sizes of the logs, and what has no finite difficulty in ours."""
    ours = {row["log"]: list(row.values())[1:] for row in rows_of(TABLES / "description.csv")}
    *sizes, right, wrong = ours["ours"]
    header = ["", "rows", "learners", "actions", "repeats: median", "repeats: max", "length: min"]
    rows = [
        ["ASSISTments, ours", *sizes],
        ["their training half", *ours["half"][:-2]],
        *([name, *figures] for name, figures in PUBLISHED_SIZES.items()),
        ["Duolingo's shape, simulated", *ours["simulated"][:-2]],
    ]
    table = markdown_table([*header, "median", "max"], rows)
    return (
        f"{table}\n\nIn our log {right} actions are always right and {wrong} always wrong; they have no finite "
        "difficulty and are set aside, as in the paper."
    )
