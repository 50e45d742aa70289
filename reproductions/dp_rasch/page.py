"""The page of the private Rasch model (Steiner, Nyrnberg and Hansen): its results beside ours."""

from __future__ import annotations

import re
from functools import lru_cache

from scipy.stats import t as student_t

from reproductions.dp_rasch.penalty_tables import as_printed, choice_table, sweep_gains, sweep_table
from reproductions.dp_rasch.study import Findings, Result, read_table
from reproductions.dp_rasch.trials import GLOBAL
from reproductions.pages import fill, markdown_table, rows_of, tables_of
from understudy.exams.estimators.joint import PENALTY, PRINTED_PENALTY

TABLES = tables_of("dp_rasch")

EPSILONS = (1.0, 5.0, 10.0)
SIZES = (40, 80, 120, 160, 200)
BOTH = ("probabilities_true", "difficulties_true")

# The table of findings, section 2 (12 runs): probabilities / difficulties, by epsilon and learners.
FIRST = {
    (1.0, 40): {"objective": (0.49, 0.42), "statistics": (0.32, 0.32), "knorm": (0.69, 0.64)},
    (1.0, 120): {"objective": (0.82, 0.51), "statistics": (0.68, 0.74), "knorm": (0.93, 0.93)},
    (1.0, 200): {"objective": (0.89, 0.46), "statistics": (0.73, 0.81), "knorm": (0.95, 0.95)},
    (5.0, 40): {"objective": (0.91, 0.53), "statistics": (0.80, 0.51), "knorm": (0.93, 0.94)},
    (5.0, 120): {"objective": (0.95, 0.84), "statistics": (0.92, 0.74), "knorm": (0.96, 0.98)},
}
FIRST_NOT_PRIVATE = {
    (1.0, 40): (0.94, 0.97),
    (1.0, 120): (0.96, 0.99),
    (1.0, 200): (0.95, 0.99),
    (5.0, 40): (0.94, 0.96),
    (5.0, 120): (0.95, 0.99),
}


@lru_cache
def _findings() -> Findings:
    return read_table((TABLES / "results.csv").read_text(encoding="utf-8"))


def _one(**wanted: object) -> Result:
    row = _findings().one(**wanted)
    assert row is not None, wanted
    return row


def simulated(method: str, epsilon: float | None, n: int, measure: str) -> Result:
    """The result of a method on simulated classes."""
    return _one(experiment=2, method=method, epsilon=epsilon, n_learners=n, measure=measure)


def _with(row: Result, digits: int = 3, *, sign: bool = False) -> str:
    plus = "+" if sign else ""
    return f"{row.mean:{plus}.{digits}f} ({row.low:{plus}.{digits}f} to {row.high:{plus}.{digits}f})"


def _percent(row: Result) -> str:
    return f"{100 * row.mean:.1f} % ({100 * row.low:.1f} to {100 * row.high:.1f})"


def _experiment_1() -> str:
    rows = []
    for n in SIZES:
        of = {
            m: _one(experiment=1, method=m, n_learners=n, measure="misclassification") for m in _FIRST_METHODS
        }
        correlations = [
            _one(experiment=1, method=m, n_learners=n, measure="probabilities_true")
            for m in ("global", "re-estimated")
        ]
        correlations.append(_one(experiment=1, method="re-estimated", n_learners=n, measure=GLOBAL))
        rows.append(
            [str(n), *(_with(row) for row in correlations)] + [_percent(of[m]) for m in _FIRST_METHODS]
        )
    header = ["learners", "global: correlation", "re-estimated: correlation", "one with the other"]
    return markdown_table(
        [*header, "global: misclassified", "re-estimated: misclassified", "true model: misclassified"], rows
    )


_FIRST_METHODS = ("global", "re-estimated", "true model")


def _first_table() -> str:
    """The findings' table with 50 repetitions, with the same settings; the first 12 runs in parentheses."""
    rows = []
    for (epsilon, n), first in FIRST.items():
        row = [f"{epsilon:g}, {n}"]
        for method, used, at in (
            ("objective", "objective:printed", epsilon),
            ("statistics", "statistics:printed", epsilon),
            ("knorm", "knorm:ability-sd=1", epsilon),
            ("joint", "joint", None),
        ):
            pair = [simulated(used, at, n, measure).mean for measure in BOTH]
            before = first.get(method, FIRST_NOT_PRIVATE[epsilon, n])
            text = f"{pair[0]:.2f} / {pair[1]:.2f}"
            text = f"**{text}**" if method == "knorm" else text
            row.append(f"{text} ({before[0]:.2f} / {before[1]:.2f})")
        rows.append(row)
    header = ["epsilon, learners", "objective, as printed", "statistics, as printed", "knorm, told sd 1"]
    header.append("not private")
    return markdown_table(header, rows)


def _all_table() -> str:
    methods = ("knorm", "knorm:ability-sd=1", "gaussian", "gradients", "spectral", "objective", "statistics")
    rows = [
        [f"{epsilon:g}", str(n)]
        + [
            " / ".join(f"{simulated(m, e, n, measure).mean:.2f}" for measure in BOTH)
            for m, e in (*((m, epsilon) for m in methods), ("joint", None))
        ]
        for epsilon in EPSILONS
        for n in SIZES
    ]
    names = [
        "knorm",
        "knorm, told sd 1",
        "gaussian",
        "per-learner gradients",
        "spectral",
        "objective",
        "statistics",
        "not private",
    ]
    return markdown_table(["epsilon", "learners", *names], rows)


def _gains() -> str:
    rows = [
        [
            f"{epsilon:g}",
            str(n),
            *(_with(simulated("knorm - objective", epsilon, n, m), sign=True) for m in BOTH),
            *(
                _with(simulated("knorm - objective", epsilon, n, f"probabilities_{kind}"), sign=True)
                for kind in ("noiseless", "nonprivate")
            ),
        ]
        for epsilon in EPSILONS
        for n in SIZES
    ]
    header = ["epsilon", "learners", "probabilities, with the true ones", "difficulties, with the true ones"]
    header += [f"probabilities, with the {which} fit without noise" for which in ("same", "published")]
    return markdown_table(header, rows)


def _ways() -> str:
    """Does the prior make the difference? Both methods with both ways of finding abilities."""
    columns = (
        ("knorm", "probabilities_true"),
        ("objective", "probabilities_true_posterior"),
        ("knorm", "probabilities_true_reestimated"),
        ("objective", "probabilities_true"),
        ("statistics", "probabilities_true_posterior"),
        ("statistics", "probabilities_true"),
    )
    rows = [
        [
            f"{epsilon:g}",
            str(n),
            *(f"{simulated(m, epsilon, n, measure).mean:.3f}" for m, measure in columns[:2]),
            _with(simulated("knorm - objective", epsilon, n, "probabilities_true_posterior"), sign=True),
            *(f"{simulated(m, epsilon, n, measure).mean:.3f}" for m, measure in columns[2:4]),
            _with(simulated("knorm - objective", epsilon, n, "probabilities_true_reestimated"), sign=True),
            *(f"{simulated(m, epsilon, n, measure).mean:.3f}" for m, measure in columns[4:]),
        ]
        for epsilon in EPSILONS
        for n in (40, 120, 200)
    ]
    header = ["epsilon", "learners"]
    header += ["knorm, posterior", "objective, posterior", "difference"]
    header += ["knorm, re-estimated", "objective, re-estimated", "difference"]
    return markdown_table([*header, "statistics, posterior", "statistics, re-estimated"], rows)


def _told() -> str:
    """What knorm loses by finding the spread of abilities in place of being told the true one."""
    rows = [
        [
            f"{epsilon:g}",
            str(n),
            *(_with(simulated("knorm - knorm:ability-sd=1", epsilon, n, m), sign=True) for m in BOTH),
        ]
        for epsilon in EPSILONS
        for n in (40, 120, 200)
    ]
    return markdown_table(["epsilon", "learners", "probabilities", "difficulties"], rows)


def _misclassified() -> str:
    rows = []
    for epsilon in EPSILONS:
        for n in (40, 120, 200):
            found = [
                simulated(m, epsilon, n, "misclassification") for m in ("knorm", "objective", "statistics")
            ]
            found.append(simulated("joint", None, n, "misclassification"))
            found.append(_one(experiment=1, method="true model", n_learners=n, measure="misclassification"))
            rows.append([f"{epsilon:g}", str(n), *(_percent(row) for row in found)])
    return markdown_table(
        ["epsilon", "learners", "knorm", "objective", "statistics", "not private", "true model"], rows
    )


def _real(name: str) -> str:
    methods = ("knorm", "knorm:ability-sd=1", "objective", "statistics")
    sizes = sorted({row.n_learners for row in _findings().of(data=name)})
    rows = []
    for n in sizes:
        for method in methods:
            found = {
                m: _one(data=name, method=method, n_learners=n, measure=m)
                for m in ("probabilities_noiseless", "probabilities_nonprivate", "misclassification")
            }
            rows.append(
                [
                    str(n),
                    f"`{method}`",
                    _with(found["probabilities_noiseless"]),
                    f"± {found['probabilities_noiseless'].published_half:.4f}",
                    _with(found["probabilities_nonprivate"]),
                    _percent(found["misclassification"]),
                ]
            )
        both = _one(data=name, method="objective with statistics", n_learners=n)
        rows.append(
            [str(n), "objective with statistics", _with(both), f"± {both.published_half:.4f}", "–", "–"]
        )
        joint = _one(data=name, method="joint", n_learners=n, measure="misclassification")
        rows.append([str(n), "not private", "–", "–", "–", _percent(joint)])
    header = ["students", "method", "correlation with the same fit without noise", "the paper's interval"]
    return markdown_table(
        [*header, "correlation with the published fit without noise", "misclassified"], rows
    )


def _real_mean(data: str, method: str, n: int, kind: str) -> str:
    return f"{_one(data=data, method=method, n_learners=n, measure=f'probabilities_{kind}').mean:.3f}"


def audit_rows() -> list[dict[str, str]]:
    """What the audit found."""
    return rows_of(TABLES / "audit.csv")


def _audit() -> str:
    rows = [
        [
            row["mechanism"],
            row["setting"],
            f"{row['measure']} {row['claimed']}",
            f"**{row['found']}**",
            row["verdict"],
        ]
        for row in audit_rows()
    ]
    return markdown_table(["mechanism", "setting", "claimed", "found", "verdict"], rows)


def _audit_stories() -> str:
    """How often usual releases lose more than claimed, out of the audit's own words."""
    lines = []
    for row in audit_rows():
        share = re.search(r"([0-9.]+)% of the releases", row["story"])
        if "simulated exam" in row["mechanism"] and share:
            lines.append(
                f"- {row['setting']}: {share[1]} % lose more than epsilon, the worst {row['found']}."
            )
    return "\n".join(lines)


def _coverage() -> str:
    rows: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows_of(TABLES / "coverage.csv"):
        around = "2.5 away" if float(row["mean"]) else "around 0"
        rows.setdefault((row["n_learners"], row["n_items"], row["answers"] or "all", around), []).append(row)
    return markdown_table(
        [
            "learners",
            "items",
            "answers each",
            "difficulties",
            "cells",
            "lowest",
            "mean",
            "highest",
            "stated orders wrong",
        ],
        [
            [
                *shape,
                str(len(cells)),
                *(f"{100 * value:.1f} %" for value in _lowest_mean_highest(cells)),
                f"{100 * max(float(row['wrong']) for row in cells):.1f} %",
            ]
            for shape, cells in rows.items()
        ],
    )


def _lowest_mean_highest(rows: list[dict[str, str]]) -> tuple[float, float, float]:
    covered = [float(row["covered"]) for row in rows]
    return min(covered), sum(covered) / len(covered), max(covered)


def _outside() -> str:
    """The cells of the grid whose intervals hold the truth less often than 92 % or more often than 99 %."""
    return markdown_table(
        [
            "learners",
            "items",
            "answers each",
            "mean",
            "spread",
            "guess",
            "epsilon",
            "method",
            "covered",
            "why",
        ],
        [
            [
                row["n_learners"],
                row["n_items"],
                row["answers"] or "all",
                f"{float(row['mean']):g}",
                row["spread"],
                row["guess"],
                row["epsilon"],
                f"`{row['method']}`",
                f"{100 * float(row['covered']):.1f} ± {100 * float(row['doubt']):.1f} %",
                "the prior alone is left"
                if row["prior_only"] == "True" and float(row["covered"]) > 0.99
                else "",
            ]
            for row in rows_of(TABLES / "coverage.csv")
            if not 0.92 <= float(row["covered"]) <= 0.99
        ],
    )


def _inside() -> dict[str, str]:
    """How many cells of the grid lie within 92 to 99 %, below and above; and above where the prior alone is left."""
    rows = rows_of(TABLES / "coverage.csv")
    above = [row for row in rows if float(row["covered"]) > 0.99]
    below = sum(float(row["covered"]) < 0.92 for row in rows)
    return {
        "coverage_cells": str(len(rows)),
        "coverage_inside": str(len(rows) - below - len(above)),
        "coverage_below": str(below),
        "coverage_above": str(len(above)),
        "coverage_prior": str(sum(row["prior_only"] == "True" for row in above)),
        "coverage_wrong": f"{100 * max(float(row['wrong']) for row in rows):.1f} %",
    }


def _foreseen() -> dict[str, str]:
    """How many exams lie within the bounds of the forecast, in percent."""
    rows = rows_of(TABLES / "forecasts.csv")
    found = {"foreseen_exams": f"{sum(int(row['exams']) for row in rows):,}"}
    for kind, some in (("", rows), ("far_", [row for row in rows if float(row["mean"])])):
        exams = sum(int(row["exams"]) for row in some)
        for name in ("error", "correlation"):
            inside = sum(float(row[f"{name}_inside"]) * int(row["exams"]) for row in some) / exams
            found[f"foreseen_{kind}{name}"] = f"{100 * inside:.0f} %"
    return found


def _real_coverage() -> str:
    rows = rows_of(TABLES / "coverage-real.csv")
    return markdown_table(
        ["class", "spread, fitted", "epsilon", "method", "covered", "error", "stated", "correlation"],
        [
            [
                f"{row['class']} ({row['n_learners']} x {row['n_items']})",
                row["spread"],
                row["epsilon"],
                f"`{row['method']}`",
                f"{100 * float(row['covered']):.0f} %",
                row["error"],
                row["stated"],
                row["correlation"],
            ]
            for row in rows
        ],
    )


def wins(pair: str = "knorm - objective", measures: tuple[str, ...] = BOTH) -> tuple[int, int, int]:
    """Of all (epsilon, size, measure): the first ahead of the second, not told apart, behind."""
    rows = [simulated(pair, e, n, m) for e in EPSILONS for n in SIZES for m in measures]
    ahead, behind = sum(row.low > 0 for row in rows), sum(row.high < 0 for row in rows)
    return ahead, len(rows) - ahead - behind, behind


def page() -> str:
    """The paper's results beside ours."""
    ahead, untold, behind = wins()
    published = {
        f"{name}{printed.replace(':', '_')}": wins(
            f"objective{printed} - statistics{printed}", (f"{name}_true",)
        )
        for name in ("probabilities", "difficulties")
        for printed in ("", ":printed")
    }
    printed_ahead, _, printed_behind = wins("knorm - objective:printed")
    gains = sweep_gains()
    gaps = _findings().of(experiment=1, method="re-estimated - global", measure="probabilities_true")
    seconds = {row["method"]: row["seconds"] for row in rows_of(TABLES / "seconds.csv")}
    spread = {row["class"]: row["ability_sd"] for row in rows_of(TABLES / "classes.csv")}
    knorm = [simulated("knorm", 1.0, 120, measure) for measure in BOTH]
    parts = {
        "experiment_1": _experiment_1(),
        "first": _first_table(),
        "all": _all_table(),
        "gains": _gains(),
        "ways": _ways(),
        "misclassified": _misclassified(),
        "as_printed": as_printed(simulated, EPSILONS, (40, 120, 200)),
        "printed_ahead": str(printed_ahead),
        "printed_behind": str(printed_behind),
        "sweep": sweep_table(),
        "choice": choice_table(),
        "sweep_probabilities": f"{gains['probabilities_true']:.2f}",
        "sweep_difficulties": f"{gains['difficulties_true']:.2f}",
        "sweep_misclassified": f"{100 * gains['misclassification']:.1f}",
        "t_against_normal": f"{student_t.ppf(0.975, 49) / 1.96:.3f}",
        "told": _told(),
        "second": _real("simulated 212 x 27"),
        "epm": _real("EPM"),
        "fraction": _real("fraction"),
        "audit": _audit(),
        "coverage": _coverage(),
        "coverage_outside": _outside(),
        **_foreseen(),
        "coverage_real": _real_coverage(),
        **_inside(),
        "audit_stories": _audit_stories(),
        "epm_spread": spread["EPM"],
        "fraction_spread": spread["fraction"],
        **{f"published_{name}_ahead": str(counts[0]) for name, counts in published.items()},
        **{f"published_{name}_behind": str(counts[2]) for name, counts in published.items()},
        "ahead": str(ahead),
        "untold": str(untold),
        "behind": str(behind),
        "compared": str(ahead + untold + behind),
        "largest_gap": f"{max(abs(row.mean) for row in gaps):.0e}",
        "knorm_probabilities": _with(knorm[0]),
        "knorm_difficulties": _with(knorm[1]),
        **{f"seconds_{method}": spent for method, spent in seconds.items()},
        **{
            f"audit_objective{name}": next(
                row["found"]
                for row in audit_rows()
                if row["setting"] == f"9 items, 1 learner, penalty {penalty:g}"
            )
            for name, penalty in (("", PENALTY), ("_printed", PRINTED_PENALTY))
        },
        "objective_difficulties": f"{simulated('objective', 1.0, 120, 'difficulties_true').mean:.2f}",
        "statistics_difficulties": f"{simulated('statistics', 1.0, 120, 'difficulties_true').mean:.2f}",
        "epm_objective_small": _real_mean("EPM", "objective", 21, "nonprivate"),
        "epm_objective_large": _real_mean("EPM", "objective", 62, "nonprivate"),
        "epm_knorm_small": _real_mean("EPM", "knorm", 21, "noiseless"),
        "epm_knorm_large": _real_mean("EPM", "knorm", 62, "noiseless"),
        "epm_knorm": _real_mean("EPM", "knorm", 62, "nonprivate"),
        "epm_knorm_told": _real_mean("EPM", "knorm:ability-sd=1", 62, "nonprivate"),
        "fraction_knorm": _real_mean("fraction", "knorm", 536, "nonprivate"),
        "fraction_knorm_told": _real_mean("fraction", "knorm:ability-sd=1", 536, "nonprivate"),
        "second_objective_small": _real_mean("simulated 212 x 27", "objective", 71, "nonprivate"),
        "second_objective_large": _real_mean("simulated 212 x 27", "objective", 212, "nonprivate"),
        "second_statistics_large": _real_mean("simulated 212 x 27", "statistics", 212, "nonprivate"),
        "fraction_objective": _real_mean("fraction", "objective", 536, "nonprivate"),
    }
    return fill("dp_rasch", parts)
