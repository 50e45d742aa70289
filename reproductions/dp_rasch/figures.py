"""The figures of the study of difficulties: the seed's 2 to 6, and what knorm gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from reproductions.dp_rasch.study import (
    GUARANTEE,
    REAL_EPSILON,
    REAL_METHODS,
    DifficultyPlan,
    Findings,
    Histogram,
    Result,
)
from reproductions.dp_rasch.trials import N_BINS
from understudy.core.files.writing import write_text
from understudy.core.pages.charts import (
    HEIGHT,
    LABELS,
    domain_of,
    heading_of,
    is_share,
    lines_panel,
    panels_of,
)
from understudy.core.pages.figures import ACCENT, MUTED, WARNING, Figure, data
from understudy.core.pages.render import render
from understudy.exams.responses import Responses

# Cells below this share of their column would not be seen.
_FAINTEST = 0.01

COMPARED = ("knorm", "objective", "statistics")


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


def experiment_1(findings: Findings) -> Figure:
    """The seed's Figure 2: global abilities against re-estimated ones."""
    panels = []
    for measure, title, methods in (
        ("probabilities_true", "correlation with the true probabilities", ("global", "re-estimated")),
        ("misclassification", "misclassified new answers", ("true model", "global", "re-estimated")),
    ):
        rows = [row for m in methods for row in findings.of(experiment=1, method=m, measure=measure)]
        panels.append(
            lines_panel(rows, title=title, labelled=True, dashed="true model", percent=is_share(measure))
        )
    words = (
        "Correlation with the true probabilities and misclassification on new answers, by size of the class, for "
        "abilities of the joint fit and re-estimated ones: the two lines lie on each other."
    )
    return panels_of(panels, words, columns=2)


def by_epsilon(
    findings: Findings,
    measure: str,
    against: str,
    *,
    reference: str | None = "joint",
    what: str = "probabilities",
) -> Figure:
    """The seed's Figures 3 and 4: a panel per epsilon, the published methods and knorm in each."""
    epsilons = sorted({row.epsilon for row in findings.of(experiment=2) if row.epsilon is not None})
    constant = [] if reference is None else findings.of(method=reference, epsilon=None, measure=measure)
    constant = [row for row in constant if row.experiment in (1, 2)]
    rows = [
        row
        for method in COMPARED
        for row in findings.of(experiment=2, method=method, measure=measure)
        if row.epsilon is not None
    ]
    domain = domain_of([*rows, *constant], percent=is_share(measure))
    title = [f"correlation of {what}", against] if what else ["misclassified new answers"]
    panels = [
        lines_panel(
            [*constant, *(row for row in rows if row.epsilon == epsilon)],
            title=title if place == 0 else None,
            heading=f"epsilon {epsilon:g}",
            labelled=place == 0,
            dashed=reference,
            domain=domain,
            percent=is_share(measure),
        )
        for place, epsilon in enumerate(epsilons)
    ]
    largest = max((row.n_learners for row in rows), default=0)
    said = [row for row in rows if row.n_learners == largest]
    words = (
        f"{' '.join(title).capitalize()}, by size of the class and epsilon. At {largest} learners: "
        + "; ".join(
            f"{LABELS[row.method]}, epsilon {row.epsilon:g}: {row.mean:.3f} ({row.low:.3f} to {row.high:.3f})"
            for row in said
        )
    )
    return panels_of(panels, words + ".", columns=3, shared=(1.75, 1.0, 1.0)[: len(panels)])


# What knorm gains, and everybody at one size


def differences(findings: Findings) -> Figure:
    """What knorm gains over the published method: paired differences with their intervals."""
    import altair as alt

    kinds = {"difficulties_true": "difficulties", "probabilities_true": "probabilities"}
    rows = [row for m in kinds for row in findings.of(experiment=2, method="knorm - objective", measure=m)]
    epsilons = sorted({row.epsilon for row in rows if row.epsilon is not None})
    sizes = sorted({row.n_learners for row in rows})
    top = max(row.high for row in rows) * 1.05
    bottom = min(-0.02, *(row.low * 1.05 for row in rows))
    colours = alt.Scale(domain=list(kinds.values()), range=[WARNING, ACCENT])
    panels = []
    for place, epsilon in enumerate(epsilons):
        mine = [row for row in rows if row.epsilon == epsilon]
        values = [
            {
                "kind": kinds[row.measure],
                "n": row.n_learners + (2.5 if row.measure == "difficulties_true" else -2.5),
                "mean": row.mean,
                "low": row.low,
                "high": row.high,
            }
            for row in mine
        ]
        edge = 0.4 * (sizes[1] - sizes[0]) if len(sizes) > 1 else 10
        scale = alt.Scale(domain=[sizes[0] - edge, sizes[-1] + edge], nice=False)
        x = alt.X("n:Q", title="learners", scale=scale, axis=alt.Axis(values=sizes, format="d", grid=False))
        title = ["knorm minus objective,", "in correlation with the truth"] if place == 0 else None
        height = alt.Scale(domain=[bottom, top], nice=False)
        y = alt.Y("mean:Q", title=title, scale=height)
        legend = alt.Legend(title=None, orient="bottom") if place == 0 else None
        colour = alt.Color("kind:N", scale=colours, legend=legend)
        base = alt.Chart(data(values))
        zero = alt.Chart(data([{"mean": 0.0}])).mark_rule(color=MUTED).encode(y=y)
        line = base.mark_line(strokeWidth=1, opacity=0.5).encode(x=x, y=y, color=colour)
        rule = base.mark_rule(strokeWidth=2).encode(
            x=x, y=alt.Y("low:Q", scale=height), y2="high:Q", color=colour
        )
        dots = base.mark_point(filled=True, size=55, opacity=1).encode(x=x, y=y, color=colour)
        chart = alt.layer(zero, line, rule, dots).properties(height=HEIGHT)
        panels.append(chart.properties(title=heading_of(f"epsilon {epsilon:g}")))
    words = "Knorm minus objective on the same classes, in correlation with the truth: " + "; ".join(
        f"{kinds[row.measure]}, epsilon {row.epsilon:g}, {row.n_learners} learners: {row.mean:+.3f}"
        for row in rows
        if row.n_learners in (sizes[0], sizes[-1])
    )
    return panels_of(panels, words + ". Above 0 knorm is better.", columns=3)


def all_methods(findings: Findings, n_learners: int | None = None) -> Figure:
    """Every method at one size of the class: both correlations, with intervals."""
    import altair as alt

    sizes = sorted({row.n_learners for row in findings.of(experiment=2)})
    size = n_learners or (120 if 120 in sizes else sizes[-1])
    kinds = {"probabilities_true": "probabilities", "difficulties_true": "difficulties"}
    rows = [
        row
        for measure in kinds
        for row in findings.of(experiment=2, n_learners=size, measure=measure)
        if row.epsilon is not None and " - " not in row.method
    ]
    epsilons = sorted({row.epsilon for row in rows if row.epsilon is not None})
    first = [row for row in rows if row.epsilon == epsilons[0] and row.measure == "probabilities_true"]
    order = [LABELS[row.method] for row in sorted(first, key=lambda row: -row.mean)]
    colours = alt.Scale(domain=list(kinds.values()), range=[ACCENT, WARNING])
    shapes = alt.Scale(domain=list(kinds.values()), range=["circle", "diamond"])
    lowest = 0.1 * int(10 * min(row.low for row in rows))
    panels = []
    for place, epsilon in enumerate(epsilons):
        values = [
            {
                "method": LABELS[row.method],
                "kind": kinds[row.measure],
                "mean": row.mean,
                "low": row.low,
                "high": row.high,
            }
            for row in rows
            if row.epsilon == epsilon
        ]
        scale = alt.Scale(domain=[lowest, 1.0], nice=False, clamp=True)
        x = alt.X("mean:Q", title="correlation", scale=scale, axis=alt.Axis(tickCount=4, format=".1f"))
        y_axis = alt.Axis(labels=place == 0, ticks=False, domain=False, grid=True)
        y = alt.Y("method:N", sort=order, title=None, axis=y_axis)
        legend = alt.Legend(title=None, orient="bottom") if place == 0 else None
        colour = alt.Color("kind:N", scale=colours, legend=legend)
        base = alt.Chart(data(values))
        rule = base.mark_rule(strokeWidth=2).encode(
            x=alt.X("low:Q", scale=scale),
            x2="high:Q",
            y=y,
            color=colour,
        )
        dots = base.mark_point(filled=True, size=75, opacity=1).encode(
            x=x, y=y, color=colour, shape=alt.Shape("kind:N", scale=shapes, legend=legend)
        )
        chart = alt.layer(rule, dots).properties(height=alt.Step(30))
        panels.append(chart.properties(title=heading_of(f"epsilon {epsilon:g}")))
    words = f"Every method with {size} learners, correlation of probabilities and of difficulties with the truth: "
    words += "; ".join(
        f"{LABELS[row.method]}, epsilon {row.epsilon:g}, {kinds[row.measure]} {row.mean:.2f}" for row in rows
    )
    return panels_of(panels, words + ".", columns=3)


# Real data


def real_data(findings: Findings) -> Figure:
    """The seed's Figure 5: correlation and misclassification on each real class, by number of students."""
    names = list(dict.fromkeys(row.data for row in findings.results if row.experiment > 2))
    methods = ("knorm", "objective", "statistics")
    panels = []
    words = []
    for name in names:
        for measure, title in (
            ("probabilities_noiseless", ["correlation with", "the same fit without noise"]),
            ("misclassification", ["misclassified answers"]),
        ):
            shown = (*methods, "joint") if measure == "misclassification" else methods
            rows = [row for m in shown for row in findings.of(data=name, method=m, measure=measure)]
            panel = lines_panel(
                rows,
                title=title,
                heading=name,
                labelled=measure == "probabilities_noiseless",
                dashed="joint",
                percent=is_share(measure),
            )
            panels.append(panel)
            words += [
                f"{name}, {row.n_learners} students, {LABELS[row.method]}: {' '.join(title)} {row.mean:.3f}"
                for row in rows
            ]
    text = f"Epsilon {REAL_EPSILON:g}, bootstrap samples of students, 95 % of which lie in the intervals. "
    return panels_of(panels, text + "; ".join(words) + ".", columns=2, shared=(1.4, 1.0))


def histograms(found: Sequence[Histogram], name: str) -> Figure:
    """The seed's Figure 6 without its students: how often each pair of probabilities occurs."""
    import altair as alt

    methods = [m for m in COMPARED if any(h.method == m for h in found)]
    sizes = sorted({h.n_learners for h in found if h.data == name})
    panels = []
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
            equal = [{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}]
            line = (
                alt.Chart(data(equal))
                .mark_line(color=WARNING, strokeWidth=1)
                .encode(x=alt.X("x:Q", scale=scale), y=alt.Y("y:Q", scale=scale))
            )
            chart = alt.layer(cells, line).properties(height=170)
            if method == methods[0]:
                chart = chart.properties(title=heading_of(f"{size} students"))
            panels.append(chart)
    words = (
        "How often each pair of probabilities, private and of the same fit without noise, occurs on "
        f"{name}, epsilon {REAL_EPSILON:g}, "
        f"over all bootstrap samples of {', '.join(map(str, sizes))} students. The line is equality; the pairs "
        "draw close to it as the class grows."
    )
    return panels_of(panels, words, columns=len(sizes), stacked=False)


BOTH = ("probabilities_true", "difficulties_true")


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
