"""The figures of the study of difficulties: 2 to 6 of the paper, and what knorm gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reproductions.dp_rasch.study import (
    GUARANTEE,
    REAL_EPSILON,
    REAL_METHODS,
    DifficultyPlan,
    Findings,
    Histogram,
    Result,
)
from reproductions.dp_rasch.trials import GLOBAL, N_BINS
from understudy.core.files.writing import write_text
from understudy.core.pages.charts import Drawing, Look, Point, curves, dots, heading, panels
from understudy.core.pages.figures import ACCENT, INK, WARNING, Figure, data
from understudy.core.pages.render import render
from understudy.exams.responses import Responses

# Cells below this share of their column would not be seen.
_FAINTEST = 0.01

COMPARED = ("knorm", "objective", "statistics")
BOTH = ("probabilities_true", "difficulties_true")

LABELS = {
    "knorm": "knorm (ours)",
    "knorm:ability-sd=1": "knorm, told that sd is 1",
    "gaussian": "gaussian (ours)",
    "objective": "objective (published)",
    "statistics": "statistics (published)",
    "objective:printed": "objective, as printed",
    "statistics:printed": "statistics, as printed",
    "objective with statistics": "objective with statistics",
    "gradients": "per-learner gradients",
    "spectral": "spectral",
    "joint": "not private",
    "totals": "totals, no noise",
}
# In the order in which they lie on each other.
METHOD_LOOKS = {
    "joint": Look(INK, dashed=True),
    "true model": Look(INK, dashed=True),
    "global": Look(WARNING),
    "re-estimated": Look(ACCENT),
    "one with the other": Look("#8a6fb0"),
    "objective with statistics": Look("#8a6fb0"),
    "knorm": Look(ACCENT),
    "objective": Look(WARNING),
    "statistics": Look("#c9a227"),
}
KIND_LOOKS = {"probabilities": Look(ACCENT), "difficulties": Look(WARNING, "diamond")}


# Lines over the size of the class


def figures(findings: Findings) -> dict[str, Figure]:
    """All figures that the results allow, by the name of their files."""
    found: dict[str, Figure] = {}
    if findings.of(experiment=1):
        found["experiment-1"] = experiment_1(findings)
    if findings.of(experiment=2, method="objective") and findings.of(experiment=2, method="knorm"):
        found["experiment-2-nonprivate"] = by_epsilon(
            findings, "probabilities_noiseless", "with the same fit without noise", reference=None
        )
        found["experiment-2-true"] = by_epsilon(findings, "probabilities_true", "with the true ones")
        found["experiment-2-difficulties"] = by_epsilon(
            findings, "difficulties_true", "with the true ones", what="difficulties"
        )
        found["experiment-2-misclassification"] = by_epsilon(
            findings, "misclassification", "", reference="true model", what=""
        )
        found["knorm-objective"] = differences(findings)
        found["all-methods"] = all_methods(findings)
    if any(row.experiment > 2 for row in findings.results):
        found["real-data"] = real_data(findings)
    for histogram_of in dict.fromkeys(h.data for h in findings.histograms):
        found[f"probabilities-{_file_name(histogram_of)}"] = histograms(findings.histograms, histogram_of)
    return found


def _file_name(data_name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in data_name.lower()).strip("-")


def _by_size(
    rows: Sequence[Result],
    title: str | list[str] | None,
    *,
    labelled: bool = True,
    domain: list[float] | None = None,
) -> Drawing:
    """A line per method over the number of learners, with intervals."""
    points = [
        Point(row.n_learners, row.mean, row.low, row.high, LABELS.get(row.method, row.method)) for row in rows
    ]
    percent = rows[0].measure.startswith("misclassification")
    sizes = sorted({row.n_learners for row in rows})
    return curves(
        points,
        "learners",
        title,
        looks={LABELS.get(method, method): look for method, look in METHOD_LOOKS.items()},
        domain=domain or _domain_of(rows),
        axis=".0%" if percent else ".2~f",
        number=".3f",
        ticks=sizes[::2] if len(sizes) > 3 else sizes,
        legend="ends" if labelled else None,
    )


def _domain_of(rows: Sequence[Result]) -> list[float]:
    """The ends of the axis: round numbers around all intervals; a correlation ends at 1."""
    low, high = min(row.low for row in rows), max(row.high for row in rows)
    if not rows[0].measure.startswith("misclassification"):
        step = 0.1 if low < 0.8 else 0.02
        return [min(0.98, step * int(max(low, 0.0) / step)), 1.0]
    return [0.02 * int(50 * low), 0.02 * (1 + int(50 * high))]


def experiment_1(findings: Findings) -> Figure:
    """Figure 2 of the paper: global abilities against re-estimated ones."""
    parts = []
    each_other = [
        replace(row, method="one with the other")
        for row in findings.of(experiment=1, method="re-estimated", measure=GLOBAL)
    ]
    for measure, title, methods in (
        ("probabilities_true", "correlation with the true probabilities", ("global", "re-estimated")),
        ("misclassification", "misclassified new answers", ("true model", "global", "re-estimated")),
    ):
        rows = [row for m in methods for row in findings.of(experiment=1, method=m, measure=measure)]
        parts.append(_by_size([*rows, *each_other] if measure == "probabilities_true" else rows, title))
    words = (
        "Correlation with the true probabilities and misclassification on new answers, by size of the class, for "
        "abilities of the joint fit and re-estimated ones: the two lines lie on each other, and the third, the "
        "correlation of one with the other, is at 1. "
    )
    return panels(parts, words + "; ".join(part.words for part in parts) + ".", columns=2)


def by_epsilon(
    findings: Findings,
    measure: str,
    against: str,
    *,
    reference: str | None = "joint",
    what: str = "probabilities",
) -> Figure:
    """Figures 3 and 4 of the paper: a panel per epsilon, the published methods and knorm in each."""
    constant = [] if reference is None else findings.of(method=reference, epsilon=None, measure=measure)
    constant = [row for row in constant if row.experiment in (1, 2)]
    rows = [
        row
        for method in COMPARED
        for row in findings.of(experiment=2, method=method, measure=measure)
        if row.epsilon is not None
    ]
    domain = _domain_of([*rows, *constant])
    title = [f"correlation of {what}", against] if what else ["misclassified new answers"]
    parts = []
    words = f"{' '.join(title).capitalize()}, by size of the class and epsilon."
    for place, (epsilon, mine) in enumerate(_by_epsilon(rows)):
        labelled = place == 0
        drawing = _by_size([*constant, *mine], title if labelled else None, labelled=labelled, domain=domain)
        parts.append(drawing.headed(f"epsilon {epsilon:g}"))
        words += f" Epsilon {epsilon:g}: {drawing.words}."
    return panels(parts, words, columns=3, shares=(1.75, 1.0, 1.0)[: len(parts)])


def _by_epsilon(rows: Sequence[Result]) -> list[tuple[float, list[Result]]]:
    epsilons = sorted({row.epsilon for row in rows if row.epsilon is not None})
    return [(epsilon, [row for row in rows if row.epsilon == epsilon]) for epsilon in epsilons]


# What knorm gains, and everybody at one size


def differences(findings: Findings) -> Figure:
    """What knorm gains over the published method: paired differences with their intervals."""
    rows = [row for m in BOTH for row in findings.of(experiment=2, method="knorm - objective", measure=m)]
    domain = [min(-0.02, *(row.low * 1.05 for row in rows)), max(row.high for row in rows) * 1.05]
    parts = []
    words = "Knorm minus objective on the same classes, in correlation with the truth, by size of the class."
    for place, (epsilon, mine) in enumerate(_by_epsilon(rows)):
        drawing = curves(
            [Point(row.n_learners, row.mean, row.low, row.high, _kind(row)) for row in mine],
            "learners",
            ["knorm minus objective,", "in correlation with the truth"] if place == 0 else None,
            looks=KIND_LOOKS,
            domain=domain,
            number="+.3f",
            reference=0.0,
            legend="bottom" if place == 0 else None,
        )
        parts.append(drawing.headed(f"epsilon {epsilon:g}"))
        words += f" Epsilon {epsilon:g}: {drawing.words}."
    return panels(parts, words + " Above 0 knorm is better.", columns=3)


def _kind(row: Result) -> str:
    return row.measure.removesuffix("_true")


def all_methods(findings: Findings, n_learners: int | None = None) -> Figure:
    """Every method at one size of the class: both correlations, with intervals."""
    sizes = sorted({row.n_learners for row in findings.of(experiment=2)})
    size = n_learners or (120 if 120 in sizes else sizes[-1])
    rows = [
        row
        for measure in BOTH
        for row in findings.of(experiment=2, n_learners=size, measure=measure)
        if row.epsilon is not None and row.method in LABELS and ":" not in row.method
    ]
    (_, first), *_ = _by_epsilon(rows)
    order = [row.method for row in sorted(first, key=lambda row: -row.mean) if row.measure == BOTH[0]]
    lowest = 0.1 * int(10 * min(row.low for row in rows))
    parts = []
    words = (
        f"Every method with {size} learners, correlation of probabilities and of difficulties with the truth."
    )
    for place, (epsilon, mine) in enumerate(_by_epsilon(rows)):
        ordered = sorted(mine, key=lambda row: order.index(row.method))
        drawing = dots(
            [Point(LABELS[row.method], row.mean, row.low, row.high, _kind(row)) for row in ordered],
            "correlation",
            looks=KIND_LOOKS,
            domain=[lowest, 1.0],
            axis=".1f",
            named=place == 0,
            legend="bottom" if place == 0 else None,
        )
        parts.append(drawing.headed(f"epsilon {epsilon:g}"))
        words += f" Epsilon {epsilon:g}: {drawing.words}."
    return panels(parts, words, columns=3)


# Real data


def real_data(findings: Findings) -> Figure:
    """Figure 5 of the paper: correlation and misclassification on each real class, by number of students."""
    names = list(dict.fromkeys(row.data for row in findings.results if row.experiment > 2))
    parts = []
    words = f"Epsilon {REAL_EPSILON:g}, bootstrap samples of students, 95 % of which lie in the intervals."
    for name in names:
        for measure, title in (
            ("probabilities_noiseless", ["correlation with", "the same fit without noise"]),
            ("misclassification", ["misclassified answers"]),
        ):
            shown = (*COMPARED, "joint") if measure == "misclassification" else COMPARED
            rows = [row for m in shown for row in findings.of(data=name, method=m, measure=measure)]
            if measure == "probabilities_noiseless":
                rows += findings.of(data=name, method="objective with statistics")
            drawing = _by_size(rows, title, labelled=measure == "probabilities_noiseless")
            parts.append(drawing.headed(name))
            words += f" {name}, {' '.join(title)}: {drawing.words}."
    return panels(parts, words, columns=2, shares=(1.4, 1.0))


def equality_line(scale: Any) -> Any:
    """Where a private probability is the one without noise."""
    import altair as alt

    return (
        alt.Chart(data([{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}]))
        .mark_line(color=WARNING, strokeWidth=1)
        .encode(x=alt.X("x:Q", scale=scale), y=alt.Y("y:Q", scale=scale))
    )


def histograms(found: Sequence[Histogram], name: str) -> Figure:
    """Figure 6 of the paper without its students: how often each pair of probabilities occurs."""
    import altair as alt

    methods = [m for m in COMPARED if any(h.method == m for h in found)]
    sizes = sorted({h.n_learners for h in found if h.data == name})
    parts = []
    for method in methods:
        for size in sizes:
            (mine,) = [h for h in found if (h.data, h.method, h.n_learners) == (name, method, size)]
            # Each column's own shares: where a private probability falls, given the one without noise.
            column = mine.share.sum(axis=0)
            values = [
                {
                    "x": j / N_BINS,
                    "x2": (j + 1) / N_BINS,
                    "y": i / N_BINS,
                    "y2": (i + 1) / N_BINS,
                    "share": float(mine.share[i, j] / column[j]),
                }
                for i in range(N_BINS)
                for j in range(N_BINS)
                if column[j] > 0 and mine.share[i, j] > _FAINTEST * column[j]
            ]
            scale = alt.Scale(domain=[0, 1], nice=False)
            # Above the cells, which would cover it.
            axis = alt.Axis(values=[0, 0.5, 1], format=".1~f", grid=False, zindex=1)
            bottom, left = method == methods[-1], size == sizes[0]
            x = alt.X("x:Q", scale=scale, axis=axis, title="without noise" if bottom else None)
            y = alt.Y("y:Q", scale=scale, axis=axis, title=LABELS[method] if left else None)
            colour = alt.Color(
                "share:Q",
                scale=alt.Scale(domain=[0, 0.5], range=["#ffffff", ACCENT], interpolate="rgb", clamp=True),
                legend=None,
            )
            cells = (
                alt.Chart(data(values))
                .mark_rect(strokeWidth=0)
                .encode(x=x, x2="x2", y=y, y2="y2", color=colour)
            )
            chart = alt.layer(cells, equality_line(scale)).properties(height=170)
            if method == methods[0]:
                chart = chart.properties(title=heading(f"{size} students"))
            parts.append(Drawing(chart, ""))
    words = (
        "How often each pair of probabilities, private and of the same fit without noise, occurs on "
        f"{name}, epsilon {REAL_EPSILON:g}, "
        f"over all bootstrap samples of {', '.join(map(str, sizes))} students. The line is equality; the pairs "
        "draw close to it as the class grows."
    )
    return panels(parts, words, columns=len(sizes), stacked=False)


def write_report(
    folder: Path, findings: Findings, plan: DifficultyPlan, data: Mapping[str, Responses]
) -> None:
    """Write every figure as SVG and PNG, and `report.html`."""
    found = figures(findings)
    for name, figure in found.items():
        figure.save(folder, name)
    page = render(
        f"{Path(__file__).parent}/difficulties.html",
        figures=found,
        plan=plan,
        data=data,
        labels=LABELS,
        guarantee=GUARANTEE,
        findings=findings,
        both=both(findings, plan),
        gains=gains(findings, plan),
        real=real_rows(findings),
        real_epsilon=REAL_EPSILON,
        real_methods=REAL_METHODS,
        histograms=[name for name in found if name.startswith("probabilities-")],
    )
    write_text(folder / "report.html", page)


def both(findings: Findings, plan: DifficultyPlan) -> list[tuple[float, int, list[list[Result | None]]]]:
    """A row per epsilon and size: for each method, then without privacy, the two correlations with the truth."""
    return [
        (
            epsilon,
            n,
            [
                [findings.one(experiment=2, method=m, epsilon=e, n_learners=n, measure=name) for name in BOTH]
                for m, e in (*((method, epsilon) for method in plan.methods), ("joint", None))
            ],
        )
        for epsilon in plan.epsilons
        for n in plan.sizes
    ]


def gains(findings: Findings, plan: DifficultyPlan) -> list[tuple[float, int, list[Result]]]:
    """A row per epsilon and size: what knorm gains over the published method in both correlations."""
    rows = []
    for epsilon in plan.epsilons:
        for n in plan.sizes:
            mine = [
                findings.one(
                    experiment=2, method="knorm - objective", epsilon=epsilon, n_learners=n, measure=m
                )
                for m in BOTH
            ]
            rows.append((epsilon, n, [row for row in mine if row is not None]))
    return [row for row in rows if row[2]]


def real_rows(findings: Findings) -> list[tuple[str, int, str, list[Result]]]:
    """A row per class, size and method: like its own fit without noise, like the seed's, and how often wrong."""
    measures = ("probabilities_noiseless", "probabilities_nonprivate", "misclassification")
    keys = dict.fromkeys(
        (row.data, row.n_learners, row.method)
        for row in findings.results
        if row.experiment > 2 and row.method in REAL_METHODS
    )
    return [
        (
            data,
            n,
            method,
            [row for m in measures for row in findings.of(data=data, n_learners=n, method=method, measure=m)],
        )
        for data, n, method in keys
    ]
