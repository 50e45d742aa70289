"""The page of the comparison with generators of others."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, median

from reproductions.head_to_head.claims import TABLE as CLAIMS
from reproductions.head_to_head.methods import (
    EPSILON,
    LEARNER,
    MINUTES,
    MOST_STEPS,
    NOTHING,
    PEERS,
    ROW,
    Method,
)
from reproductions.head_to_head.trials import (
    FAST_SECONDS,
    MOST_SECONDS,
    N_HALVES,
    N_REFITS,
    REFITTED_SECONDS,
)
from reproductions.pages import fill, markdown_table, rows_of, tables_of

TABLES = tables_of("head_to_head")
LOGS = {"assistments": "ASSISTments", "classroom": "the classroom", "rare-paths": "the log of rare paths"}

# By method and column: a mean over halves, or words.
Means = dict[str, dict[str, str | float]]


@dataclass(frozen=True)
class Column:
    """A measured column: its name on the page, and whether less of it is better."""

    name: str
    title: str
    lower: bool = True
    digits: int = 3


UTILITY = (
    Column("wrmse_centred", "difficulties: weighted RMSE, centred"),
    Column("action_tv", "actions: total variation"),
    Column("transition_tv", "transitions: total variation"),
    Column("length_ks", "lengths: KS"),
    Column("repeats_ks", "repeats: KS"),
    Column("success_gap", "success rate: gap"),
    Column("curve_gap", "learning curve: gap"),
    Column("leaving_success_gap", "leaving after success: gap"),
    Column("leaving_failure_gap", "leaving after failure: gap"),
    Column("prediction_auc", "next outcome: AUC", lower=False),
)
OWN_SCORES = (
    Column("sdv_quality", "SDV: quality", lower=False),
    Column("sdv_sequence_length", "SDV: lengths", lower=False),
    Column("mostlyai_accuracy", "mostlyai: accuracy", lower=False),
    Column("mostlyai_coherence", "mostlyai: coherence", lower=False),
)
# What the walk over a table of steps is judged by.
WALKED = ("wrmse_centred", "transition_tv", "prediction_auc")
# By these a method is said to be better or worse.
COMPARED = (*UTILITY, *OWN_SCORES)
# A difference that other halves of the same log would show as well.
MATTERS = 0.01


def page() -> str:
    """The page from its template."""
    return fill(
        "head_to_head",
        {
            "versions": _versions(),
            "minutes": f"{MINUTES:g}",
            "most_steps": str(MOST_STEPS),
            "n_refits": str(N_REFITS),
            **{name.replace("-", "_"): _log_tables(name) for name in LOGS},
            **{f"{name.replace('-', '_')}_better": better(name) for name in LOGS},
            "best": best_table("assistments"),
            "better_at_equal_cover": better_at_equal_cover(),
            "strongest_row": strongest(ROW),
            "strongest_learner": strongest(LEARNER),
            "strongest_refits": strongest(LEARNER, "auc_refits"),
            "most_minutes": f"{MOST_SECONDS / 60:g}",
            "n_halves": str(N_HALVES),
            "fast_seconds": f"{FAST_SECONDS:g}",
            "refitted_seconds": f"{REFITTED_SECONDS:g}",
            **{f"{name.replace('-', '_')}_size": size(name) for name in LOGS},
            "walk": lost_by_walking(),
            "walk_difficulties": f"{float(_logs()['assistments']['wrmse_centred']):.3f}",
            "halves_differ": halves_differ(),
            "unfinished": unfinished(),
            "claims": claims_table(),
            "datasynthesizer_chance": _facts()["datasynthesizer"].get(
                "chance_of_the_best_parent", "(not checked)"
            ),
        },
    )


def means(log: str) -> Means:
    """By method: the mean over halves of each measured column, or its words; methods that failed have a problem."""
    found: Means = {}
    rows = [row for row in rows_of(TABLES / "results.csv") if row["log"] == log]
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        good = [row for row in mine if not row["problem"]]
        found[method] = {"problem": mine[0]["problem"]} if not good else {"halves": len(good)}
        for name in good[0] if good else ():
            values = [row[name] for row in good if row[name]]
            if values:
                found[method][name] = fmean(map(float, values)) if _is_number(values[0]) else values[0]
    return found


def _log_tables(log: str) -> str:
    """Both tables of a log."""
    found = means(log)
    return f"{utility_table(found)}\n\n{risk_table(found)}"


def utility_table(found: Means) -> str:
    """Our metrics."""
    return _table(found, UTILITY)


def risk_table(found: Means) -> str:
    """The scores of peers, attacks and cost."""
    return _table(found, OWN_SCORES, attacks=True)


def _table(found: Means, columns: tuple[Column, ...], *, attacks: bool = False) -> str:
    best = {
        column.name: (min if column.lower else max)(
            [float(row[column.name]) for row in found.values() if column.name in row], default=None
        )
        for column in columns
    }
    header = ["method", "covers", *(column.title for column in columns)]
    if attacks:
        header += ["strongest attack: AUC", "interval", "which", "with refits", "seconds", "MB", "halves"]
    rows = []
    for label, method in METHODS.items():
        if label not in found:
            continue
        row = found[label]
        if row.get("problem"):
            rows.append([f"`{label}`", method.covers, str(row["problem"])])
            rows[-1] += [""] * (len(header) - 3)
            continue
        cells = [_cell(row, column, best[column.name]) for column in columns]
        if attacks:
            refits = f"{row['auc_refits']:.3f}" if "auc_refits" in row else "–"
            cells += [
                f"{row['auc']:.3f}",
                f"{row['auc_low']:.3f} to {row['auc_high']:.3f}",
                str(row["attack"]),
            ]
            cells += [refits, f"{row['seconds']:.0f}", f"{row['megabytes']:.0f}", halves(row)]
        rows.append([f"`{label}`", method.covers, *cells])
    return markdown_table(header, rows)


def halves(row: dict[str, str | float]) -> str:
    """How many halves a row is the mean of; where more are meant to be measured, of how many."""
    found = int(row["halves"])
    meant = N_HALVES if float(row["seconds"]) <= FAST_SECONDS else 1
    return str(found) if found >= meant else f"{found} of {meant}"


def _cell(row: dict[str, str | float], column: Column, best: float | None) -> str:
    if column.name not in row:
        return "–"
    value = float(row[column.name])
    text = f"{value:.{column.digits}f}"
    return f"**{text}**" if value == best else text


def best_table(log: str) -> str:
    """The best of ours and of others by what they cover, and its figure, for every metric of ours."""
    found = means(log)
    groups = {
        f"{whose}, covers {covers}": [
            label
            for label, method in METHODS.items()
            if (label in OUR_LABELS) == (whose == "ours")
            and method.covers == covers
            and label not in LESS_EPSILON
        ]
        for covers in (LEARNER, ROW, NOTHING)
        for whose in ("ours", "others")
    }
    groups = {title: labels for title, labels in groups.items() if any(label in found for label in labels)}
    rows = []
    for column in UTILITY:
        cells = []
        for labels in groups.values():
            reached = [
                (float(found[label][column.name]), label)
                for label in labels
                if column.name in found.get(label, {})
            ]
            value, label = (min if column.lower else max)(reached, default=(None, ""))
            cells.append("–" if value is None else f"{value:.3f} (`{label}`)")
        rows.append([column.title, *cells])
    return markdown_table(["", *groups], rows)


Winners = list[tuple[float, str, float]]


def winners(log: str) -> dict[Column, tuple[float, Winners]]:
    """By column: our default's figure, and the peers that are better with by how much and theirs, the best first."""
    found = means(log)
    ours = found.get(DEFAULT, {})
    better_peers: dict[Column, tuple[float, Winners]] = {}
    for column in COMPARED:
        if column.name not in ours:
            continue
        reached = float(ours[column.name])
        gains = [
            (
                (reached - float(row[column.name])) * (1 if column.lower else -1),
                label,
                float(row[column.name]),
            )
            for label, row in found.items()
            if label not in OUR_LABELS and column.name in row
        ]
        if better := sorted((gain for gain in gains if gain[0] > MATTERS), reverse=True):
            better_peers[column] = reached, better
    return better_peers


def better(log: str) -> str:
    """Where a peer, whatever it covers, is better than our default, and by how much."""
    if DEFAULT not in means(log):
        return "Not measured."
    lines = []
    for column, (reached, peers) in winners(log).items():
        words = ", ".join(f"`{label}` by {gain:.3f} ({value:.3f})" for gain, label, value in peers)
        lines.append(f"- {column.title} (ours: {reached:.3f}): {words}.")
    return "\n".join(lines) or f"On {LOGS[log]}, none."


def better_at_equal_cover() -> str:
    """A line per log: the peers that protect a learner as ours do, and are better than our default."""
    lines = []
    for log, title in LOGS.items():
        if DEFAULT not in means(log):
            continue
        words = [
            f"{column.title} (`{label}`, by {gain:.3f})"
            for column, (_, peers) in winners(log).items()
            for gain, label, _ in peers
            if METHODS[label].covers == LEARNER
        ]
        lines.append(f"- On {title}: {'; '.join(words) or 'none'}.")
    return "\n".join(lines)


def unfinished() -> str:
    """A line per log: what did not finish, what was not measured, and how many rows lack halves."""
    lines = []
    for log, title in LOGS.items():
        found = means(log)
        said = [f"`{label}`: {row['problem']}" for label, row in found.items() if "problem" in row]
        if absent := [f"`{label}`" for label in METHODS if label not in found]:
            said.append(f"not measured: {', '.join(absent)}")
        n_short = sum(" of " in halves(row) for row in found.values() if "seconds" in row)
        if n_short:
            said.append(f"{n_short} of {len(found)} rows lack halves")
        lines.append(f"- On {title}: {'; '.join(part.rstrip('.') for part in said) or 'complete'}.")
    return "\n".join(lines)


def halves_differ() -> str:
    """By log: how far halves lie apart, for methods with more than one; the median over methods and metrics."""
    words = []
    for log, title in LOGS.items():
        found: dict[tuple[str, str], list[float]] = {}
        for row in rows_of(TABLES / "results.csv"):
            for column in UTILITY:
                if row["log"] == log and row[column.name]:
                    found.setdefault((row["method"], column.name), []).append(float(row[column.name]))
        ranges = [max(values) - min(values) for values in found.values() if len(values) > 1]
        if ranges:
            words.append(f"by {median(ranges):.3f} on {title}")
    return ", ".join(words)


def _logs() -> dict[str, dict[str, str]]:
    """The size of every log, and what walking over its real table of steps loses."""
    return {row["log"]: row for row in rows_of(TABLES / "logs.csv")}


def size(log: str) -> str:
    """The size of a log in words."""
    found = _logs()[log]
    return ", ".join(f"{int(found[name]):,} {name}" for name in ("learners", "actions", "rows"))


def lost_by_walking() -> str:
    """What walking over the real table of steps loses, on each log, in words."""
    columns = [column for column in UTILITY if column.name in WALKED]
    return "; ".join(
        f"{column.title} "
        + ", ".join(f"{float(_logs()[log][column.name]):.3f} on {title}" for log, title in LOGS.items())
        for column in columns
    )


def strongest(covers: str, column: str = "auc") -> str:
    """The strongest attack on any method that covers this, on any log; without refits, or `auc_refits`."""
    found = [
        (float(row[column]), label, LOGS[log])
        for log in LOGS
        for label, row in means(log).items()
        if column in row and METHODS[label].covers == covers
    ]
    auc, label, title = max(found)
    return f"{auc:.2f} (`{label}` on {title})"


METHODS: dict[str, Method] = {method.label: method for methods in PEERS.values() for method in methods}
OUR_LABELS = tuple(method.label for method in PEERS["ours"])
# What `release` takes unless another is asked for.
DEFAULT = f"runs-dp:epsilon={EPSILON:g}"
# Not at the epsilon of the peers.
LESS_EPSILON = tuple(label for label in OUR_LABELS if label.endswith("epsilon=2"))


def _versions() -> str:
    rows = [[row["peer"], row["version"] or row["problem"]] for row in rows_of(TABLES / "peers.csv")]
    return markdown_table(["environment", "version"], rows)


def claims_table() -> str:
    """What every check found, in words, a row per peer."""
    facts = _facts()
    rows = []
    for peer, (unit, moved, outside, noise) in CHECKED.items():
        found = facts.get(peer, {"problem": "it was not run."})
        cells = (
            (unit, f"not checked: {found['problem']}", "", "")
            if "problem" in found
            else (unit, *(text.format(**found) for text in (moved, outside, noise)))
        )
        rows.append([peer, *cells])
    header = ["", "epsilon is for", "one learner with 300 rows, measured", "outside of epsilon", "noise"]
    return markdown_table(header, rows)


def _of_ours(moved: str) -> tuple[str, str, str, str]:
    outside = "the number of learners; names of actions and a bound of the rows per learner are declared"
    noise = "the operating system's entropy; seeded on this page, where nothing is given out"
    return "a learner (replace one)", moved, outside, noise


# By peer: the unit of its epsilon, what the check found, what else is read off the data, and where noise comes from.
CHECKED = {
    "markov-dp": _of_ours("uses rho {rho_used} of the {rho_stated} that are stated"),
    "runs-dp": _of_ours("uses rho {rho_used} of the {rho_stated} that are stated"),
    "gru-dp": _of_ours(
        "moves the sum of clipped gradients by at most {gradient_moved} clipping norms in each of {steps} steps, "
        "where 2 are stated"
    ),
    "privtrace": (
        "a learner (add or remove one; replacing one costs twice the epsilon)",
        "moves each sum by {counts_moved} in L1, behind Laplace noise of scale {laplace_scale}: as stated",
        "the number of learners",
        "ours here; numpy's in the authors' program",
    ),
    "opendp": (
        "as many rows as the user declares",
        "moves {counts_moved} counts: noise of deviation {deviation_per_row} if the unit is a row, "
        "{deviation_per_learner} if it is declared to be 300 rows: as stated, in both cases",
        "nothing, with declared keys",
        "OpenSSL's generator, seeded by the system",
    ),
    "mostlyai": (
        "a learner, as stated; a row where categories are found",
        "moves {counts_moved} counts of categories behind Laplace noise of scale {laplace_scale}, whose stated "
        "sensitivity is 1, and her own action is kept in a share of {own_action_kept} of analyses; leaving her out "
        "of a batch of {batch} moves the sum of clipped gradients by {gradient_moved}, where {clipping_norm} is stated",
        "the validation loss of a fifth of the learners: one of five who are set aside moves it by "
        "{validation_loss_moved} (of {validation_loss}), and the accountant charges {validation_epsilon} for it; "
        "the number of learners",
        "numpy's and torch's generators for simulations; Opacus' `secure_mode` is {secure_mode}",
    ),
    "datasynthesizer": (
        "a row",
        "moves {counts_moved} counts in each of {n_tables} tables, behind Laplace noise of scale {laplace_scale}; "
        "single columns spend another epsilon of {epsilon_of_columns} at a stated {epsilon}: twice that in all",
        "the number of rows; values of columns unless they are declared",
        "numpy's generator, whose seed is {usual_seed} unless the user gives another: two runs have the same noise "
        "(measured: {same_noise_twice})",
    ),
}


def _facts() -> dict[str, dict[str, str]]:
    """What the checks measured, by peer."""
    facts: dict[str, dict[str, str]] = {}
    for row in rows_of(CLAIMS):
        facts.setdefault(row["peer"], {})[row["fact"]] = _short(row["value"])
    return facts


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).lstrip("-").isdigit()


def _short(text: str) -> str:
    return f"{float(text):.3g}" if _is_number(text) else text
