"""Builds the pages that tests keep true.

`python docs/build.py` renders the pages from the measured tables beside them and from the
commands' own help. `python docs/build.py measure` measures again (minutes; needs the data sets in
../shared/data) and then renders; `measure private`, `measure difficulties`, `measure cohorts` and `measure desk`
measure a part. A test compares the pages with what this file renders.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

DOCS = Path(__file__).resolve().parent
sys.path.append(str(DOCS))

import dp_rasch  # noqa: E402
import keystroke_privacy  # noqa: E402
import two_stage  # noqa: E402
import validation_desk  # noqa: E402

DATA = DOCS.parents[1] / "shared" / "data" / "assistments2009.csv.gz"
TABLES = DOCS / "reproductions" / "synthetic-logs"
RATIOS = ("0", "0.25", "0.5", "0.75", "0.99", "0.999")
METHODS = (*(f"drop:{ratio}" for ratio in RATIOS), "markov")
PRIVATE_METHODS = ("drop:0.5", "markov", *(f"markov-dp:epsilon={e}" for e in (1, 2, 4, 8)))
LONG_METHODS = ("drop:0", "drop:0.5", "drop:0.75", "drop:0.99", "markov")

# Table 4 of the seed: RMSE, weighted RMSE, re-identification AUC.
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

Table = dict[str, dict[str, str]]


# Measuring


def measure() -> None:
    """Run the studies behind the reproduction page and keep their means."""
    import tempfile

    from understudy.core.events.reading import read_log
    from understudy.logs.simulate import DUOLINGO_SHAPE
    from understudy.logs.study import Plan, run_study
    from understudy.logs.study_report import summarise, tradeoff

    log = read_log(DATA).interactions
    with tempfile.TemporaryDirectory() as scratch:
        summaries = summarise(run_study(log, Plan(METHODS, n_seeds=3), Path(scratch) / "a"))
        _keep(summaries, "assistments")
        tradeoff(summaries).save(TABLES, "tradeoff")
        _describe(log)
        long_log = DUOLINGO_SHAPE.simulate(np.random.default_rng(1))
        plan = Plan(LONG_METHODS, n_seeds=1, n_shadows=32)
        _keep(summarise(run_study(long_log, plan, Path(scratch) / "d")), "duolingo-shape")


def measure_private() -> None:
    """The private generator beside the baselines, and the small, hard case."""
    import tempfile

    from understudy.core.events.reading import read_log
    from understudy.logs.simulate import RARE_PATHS
    from understudy.logs.study import Plan, run_study
    from understudy.logs.study_report import summarise, tradeoff

    with tempfile.TemporaryDirectory() as scratch:
        log = read_log(DATA).interactions
        summaries = summarise(run_study(log, Plan(PRIVATE_METHODS, n_seeds=5), Path(scratch) / "p"))
        _keep(summaries, "private")
        tradeoff(summaries).save(TABLES, "private")
        rare = RARE_PATHS.simulate(np.random.default_rng(1))
        plan = Plan(("markov", "markov-dp:epsilon=8"), n_seeds=10, n_shadows=32, control=False)
        rows = run_study(rare, plan, Path(scratch) / "r")
        with open(TABLES / "rare-paths.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["method", "attack", "mean_auc"])
            for summary in summarise(rows):
                # The attack with the highest mean over the seeds, not the mean of the highest.
                areas = {k: v for k, v in summary.items() if k.startswith("auc_") and "worst" not in k}
                areas.pop("auc_attribute", None)
                best = max(areas, key=lambda name: areas[name])
                writer.writerow([summary["method"], best.removeprefix("auc_"), f"{areas[best]:.3f}"])


def _keep(summaries: list[dict[str, object]], name: str) -> None:
    columns = ("rmse", "wrmse", "wrmse_centred", "action_tv", "transition_tv", "auc_lcs", "auc_worst")
    columns += ("auc_worst_low", "auc_worst_high", "tpr_at_1pct", "auc_attribute", "attribute_advantage")
    with open(TABLES / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["method", "strongest", *columns])
        for summary in summaries:
            attacks = " and ".join(summary["worst_attacks"])  # type: ignore[arg-type]
            numbers = [f"{summary[c]:.3f}" if c in summary else "" for c in columns]
            writer.writerow([summary["method"], attacks, *numbers])


def _describe(log: object) -> None:
    """Table 2 and Figures 1 and 3 of the seed."""
    from understudy.core.privacy.noise import seeded_noise
    from understudy.logs.description import describe
    from understudy.logs.generators.generator import make_method
    from understudy.logs.interactions import Interactions
    from understudy.logs.models.rasch import fit_rasch
    from understudy.logs.release.report import shares_figure

    assert isinstance(log, Interactions)
    d = describe(log)
    with open(TABLES / "description.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["rows", "learners", "actions", "repeats_median", "repeats_max", "min", "median", "max"]
        )
        writer.writerow([d.n_rows, d.n_learners, d.n_actions, d.repeats_median, d.repeats_max])
        writer.writerow([d.length_min, d.length_median, d.length_max, d.n_always_right, d.n_always_wrong])
    rng = np.random.default_rng(1)
    half = log.select(rng.permutation(log.n_learners)[: log.n_learners // 2])
    shares_figure(half, make_method("markov").fit(half, rng, seeded_noise(rng)).sample(None, rng)).save(
        TABLES, "actions"
    )
    _ability_figure(fit_rasch(half).ability).save(TABLES, "abilities")


def _ability_figure(ability: np.ndarray):  # type: ignore[no-untyped-def,type-arg]
    import altair as alt
    from scipy.stats import norm

    from understudy.core.pages.figures import MUTED, WARNING, Figure, data

    heights, edges = np.histogram(ability, bins=40, density=True)
    bars = [
        {"from": float(a), "to": float(b), "density": float(h)}
        for a, b, h in zip(edges[:-1], edges[1:], heights, strict=True)
    ]
    at = np.linspace(edges[0], edges[-1], 200)
    law = norm.pdf(at, ability.mean(), ability.std())
    curve = [{"ability": float(x), "density": float(y)} for x, y in zip(at, law, strict=True)]
    x = alt.X("from:Q", title="estimated ability (log-odds)")
    histogram = alt.Chart(data(bars)).mark_bar(color=MUTED).encode(x=x, x2="to:Q", y="density:Q")
    normal = alt.Chart(data(curve)).mark_line(color=WARNING).encode(x="ability:Q", y="density:Q")
    words = (
        f"Histogram of abilities with a normal law of mean {ability.mean():.2f}, spread {ability.std():.2f}."
    )
    return Figure.of((histogram + normal).properties(width=520, height=220), words)


# Rendering


def render() -> dict[Path, str]:
    """Every built page by its path."""
    pages = {
        DOCS / "reproductions" / "synthetic-logs.md": reproduction_page(),
        DOCS / "reproductions" / "dp-rasch.md": dp_rasch.page(),
        DOCS / "reference" / "commands.md": commands_page(),
        DOCS / "reference" / "desk.md": desk_reference(),
        DOCS / "explanation" / "desk.md": desk_page(),
    }
    # The study over three years has not been measured yet; the page comes with its table.
    if (keystroke_privacy.TABLES / "seconds.csv").exists():
        pages[DOCS / "reproductions" / "keystrokes.md"] = keystroke_privacy.page()
    if (two_stage.TABLES / "cycles.csv").exists():
        pages[DOCS / "reproductions" / "two-stage.md"] = two_stage.page()
    if (validation_desk.TABLES / "requests.csv").exists():
        pages[DOCS / "reproductions" / "validation-desk.md"] = validation_desk.page()
    return pages


def desk_page() -> str:
    """The validation desk, with the table of states as a picture."""
    from understudy.desk.domain.states import diagram

    template = (DOCS / "explanation" / "desk.template.md").read_text(encoding="utf-8")
    return template.replace("```mermaid\n```", f"```mermaid\n{diagram()}\n```")


def desk_reference() -> str:
    """The desk's settings and policy, the latter with the words of the file that `desk init` writes."""
    from understudy.desk.domain.policy import WORDS, Policy

    lines = ["| line | default | says |", "|---|---|---|"]
    for name, value in vars(Policy()).items():
        shown = ", ".join(value) or "none" if isinstance(value, tuple) else f"{value:g}"
        lines.append(f"| `{name}` | {shown} | {WORDS[name]} |")
    template = (DOCS / "reference" / "desk.template.md").read_text(encoding="utf-8")
    return template.replace("{{policy}}", "\n".join(lines))


def commands_page() -> str:
    """The help of every command."""
    parts = ["# Commands\n\nGenerated from the commands' own help by `python docs/build.py`.\n"]
    environment = {**os.environ, "COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1"}
    for verb in verbs():
        arguments = ["understudy", *verb.split(), "--help"]
        code = f"import sys; sys.argv = {arguments!r}; from understudy.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
        )
        text = "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())
        parts.append(f"## understudy {verb}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def verbs() -> list[str]:
    """Every command, those of a group after its name, in the order of the help."""
    from understudy.cli.app import app

    def named(within: object, before: str = "") -> list[str]:
        # typer writes a hyphen for an underscore.
        found = [
            before + (command.name or command.callback.__name__.replace("_", "-"))
            for command in within.registered_commands  # type: ignore[attr-defined]
        ]
        for group in within.registered_groups:  # type: ignore[attr-defined]
            assert group.typer_instance is not None
            name = group.name or group.typer_instance.info.name
            found += named(group.typer_instance, f"{before}{name} ")
        return found

    return named(app)


def _table(name: str) -> Table:
    with open(TABLES / f"{name}.csv", newline="", encoding="utf-8") as file:
        return {row["method"]: row for row in csv.DictReader(file)}


def _compared(name: str) -> str:
    found, published = _table(name), PUBLISHED[name]
    lines = [
        "| method | RMSE (published) | weighted RMSE (published) | published attack: AUC (published) "
        "| strongest attack: AUC | interval | found at 1 % false alarms | which |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for method, (rmse, wrmse, auc) in published.items():
        row = found[method]
        lines.append(
            f"| `{method}` | {row['rmse']} ({rmse:.3f}) | {row['wrmse']} ({wrmse:.3f}) "
            f"| {row['auc_lcs']} ({auc:.3f}) | **{row['auc_worst']}** "
            f"| {row['auc_worst_low']} to {row['auc_worst_high']} "
            f"| {100 * float(row['tpr_at_1pct']):.1f} % | {row['strongest']} |"
        )
    return "\n".join(lines)


def _controls(name: str) -> str:
    rows = [row for method, row in _table(name).items() if method.startswith("control:")]
    lines = ["| control | strongest attack: AUC | interval |", "|---|---|---|"]
    lines += [
        f"| `{row['method']}` | {row['auc_worst']} | {row['auc_worst_low']} to {row['auc_worst_high']} |"
        for row in rows
    ]
    return "\n".join(lines)


def _private_table() -> str:
    lines = [
        "| method | weighted RMSE, centred | actions: total variation | transitions: total variation "
        "| strongest attack: AUC | interval |",
        "|---|---|---|---|---|---|",
    ]
    for method, row in _table("private").items():
        if not method.startswith("control:"):
            lines.append(
                f"| `{method}` | {row['wrmse_centred']} | {row['action_tv']} | {row['transition_tv']} "
                f"| **{row['auc_worst']}** | {row['auc_worst_low']} to {row['auc_worst_high']} |"
            )
    return "\n".join(lines)


def _rare_table() -> str:
    lines = ["| method | attack with the highest mean | mean AUC of 10 seeds |", "|---|---|---|"]
    lines += [
        f"| `{method}` | {row['attack']} | **{row['mean_auc']}** |"
        for method, row in _table("rare-paths").items()
    ]
    return "\n".join(lines)


def _examples() -> str:
    """Sequences of a simulated classroom beside generated ones: no real learner is shown."""
    from itertools import groupby

    from understudy.core.privacy.noise import seeded_noise
    from understudy.logs.generators.generator import make_method
    from understudy.logs.simulate import Classroom

    rng = np.random.default_rng(3)
    log = Classroom(n_learners=300, n_actions=20, shortest=12).simulate(rng)
    generated = make_method("markov").fit(log, rng, seeded_noise(rng)).sample(4, rng)
    lines = ["| | practice runs (action x attempts) |", "|---|---|"]
    for name, source in (("original (simulated)", log), ("generated by `markov`", generated)):
        for i in range(3):
            codes = source.action[source.offsets[i] : source.offsets[i + 1]]
            runs = [f"{source.actions[code]} x {len(list(run))}" for code, run in groupby(codes)]
            shown = ", ".join(runs[:9]) + (", ..." if len(runs) > 9 else "")
            lines.append(f"| {name} | {shown} |")
    return "\n".join(lines)


def _description() -> str:
    with open(TABLES / "description.csv", newline="", encoding="utf-8") as file:
        _, first, second = csv.reader(file)
    rows, learners, actions, median, largest = first
    shortest, middle, longest, right, wrong = second
    return "\n".join(
        [
            "| | rows | learners | actions | repeats: median | repeats: max | length: min | median | max |",
            "|---|---|---|---|---|---|---|---|---|",
            f"| ours | {rows} | {learners} | {actions} | {median} | {largest} | {shortest} | {middle} | {longest} |",
            "| published | 279k | 4163 | 112 | 3 | 144 | 1 | 20 | 1021 |",
            "",
            f"{right} actions are always right and {wrong} always wrong; they have no finite difficulty and are "
            "set aside, as in the seed.",
        ]
    )


def reproduction_page() -> str:
    """The seed's results beside ours."""
    template = (DOCS / "reproductions" / "synthetic-logs.template.md").read_text(encoding="utf-8")
    markov = _table("assistments")["markov"]
    long = _table("duolingo-shape")
    return (
        template.replace("{{description}}", _description())
        .replace("{{assistments}}", _compared("assistments"))
        .replace("{{controls}}", _controls("assistments"))
        .replace("{{duolingo}}", _compared("duolingo-shape"))
        .replace("{{examples}}", _examples())
        .replace("{{markov_lcs}}", markov["auc_lcs"])
        .replace("{{markov_worst}}", markov["auc_worst"])
        .replace("{{markov_found}}", f"{100 * float(markov['tpr_at_1pct']):.0f}")
        .replace("{{private}}", _private_table())
        .replace("{{rare}}", _rare_table())
        .replace("{{long_drop}}", long["drop:0.75"]["auc_worst"])
        .replace("{{long_markov}}", long["markov"]["auc_worst"])
    )


def main() -> None:
    """Measure if asked, then write every page."""
    if sys.argv[1:] == ["measure"]:
        measure()
    if sys.argv[1:] in (["measure"], ["measure", "private"]):
        measure_private()
    if sys.argv[1:] in (["measure"], ["measure", "difficulties"]):
        dp_rasch.measure()
    if sys.argv[1:] in (["measure"], ["measure", "keystrokes"]):
        keystroke_privacy.measure()
    if sys.argv[1:] in (["measure"], ["measure", "cohorts"]):
        two_stage.measure()
    if sys.argv[1:] in (["measure"], ["measure", "desk"]):
        validation_desk.measure()
    for path, text in render().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(DOCS.parent))


if __name__ == "__main__":
    main()
