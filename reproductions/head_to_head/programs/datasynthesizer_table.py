"""A synthetic table by DataSynthesizer's correlated attribute mode (PrivBayes), in an environment with it.

`python datasynthesizer_table.py generate TRAIN OUT DOMAIN EPSILON SEED`, where DOMAIN is a JSON file with the values
of each column, and `python datasynthesizer_table.py check`, which prints what one learner can move, as JSON.
"""

from __future__ import annotations

import csv
import inspect
import json
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator
from DataSynthesizer.lib import PrivBayes

# At most so many columns decide about another.
MOST_PARENTS = 2


def describe(train: str, domain: str, epsilon: float, seed: int) -> DataDescriber:
    """The noisy Bayesian network of a table whose columns are all categorical."""
    columns = list(json.loads(Path(domain).read_text(encoding="utf-8")))
    describer = DataDescriber()
    describer.describe_dataset_in_correlated_attribute_mode(
        train,
        k=MOST_PARENTS,
        epsilon=epsilon,
        attribute_to_datatype=dict.fromkeys(columns, "String"),
        attribute_to_is_categorical=dict.fromkeys(columns, True),
        attribute_to_is_candidate_key=dict.fromkeys(columns, False),
        categorical_attribute_domain_file=domain,
        seed=seed,
    )
    return describer


def generate(train: str, out: str, domain: str, epsilon: float, seed: int) -> None:
    """Fit on one file and write the other, with as many rows."""
    describer = describe(train, domain, epsilon, seed)
    with open(train, newline="", encoding="utf-8") as file:
        n_rows = sum(1 for _ in csv.reader(file)) - 1
    generator = DataGenerator()
    with tempfile.TemporaryDirectory() as folder:
        description = str(Path(folder) / "description.json")
        describer.save_dataset_description_to_file(description)
        generator.generate_dataset_in_correlated_attribute_mode(n_rows, description, seed=seed)
    generator.save_synthetic_data(out)


# The learner of the check: so many rows, all the same.
N_OWN_ROWS = 300
# About as many as half of ASSISTments 2009 has.
N_REAL_ROWS = 140_000


def write_steps(folder: Path, *, with_her: bool) -> tuple[str, str]:
    """A table of forty learners' steps and one learner's many, and its domain."""
    rows = [(f"a{i % 5}", f"a{(i + j) % 5}", f"o{j % 2}") for i in range(40) for j in range(4)]
    rows += [("a0", "a0", "o1")] * (N_OWN_ROWS if with_her else 0)
    train, domain = folder / f"train {with_her}.csv", folder / "domain.json"
    with open(train, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([("previous", "action", "outcome"), *rows])
    actions = [f"a{i}" for i in range(5)]
    values = {"previous": actions, "action": actions, "outcome": ["o0", "o1"]}
    domain.write_text(json.dumps(values), encoding="utf-8")
    return str(train), str(domain)


def check(epsilon: float = 8.0) -> dict[str, Any]:
    """The counts before noise with and without one learner, the noise, and what all parts of a fit spend."""
    counts: dict[bool, list[Any]] = {False: [], True: []}
    scales: list[float] = []
    original = PrivBayes.get_noisy_distribution_of_attributes

    def silent(loc: float, scale: float, size: int) -> Any:
        scales.append(scale)
        return np.zeros(size)

    with tempfile.TemporaryDirectory() as name:
        files = {with_her: write_steps(Path(name), with_her=with_her) for with_her in counts}
        for with_her, paths in files.items():

            def spy(*arguments: Any, to: list[Any] = counts[with_her], **named: Any) -> Any:
                table = original(*arguments, **named)
                to.append(table["count"].to_numpy())
                return table

            scales.clear()
            # One parent at most, so that both networks are trees of the same tables.
            with (
                mock.patch.object(PrivBayes, "get_noisy_distribution_of_attributes", spy),
                mock.patch.object(np.random, "laplace", silent),
                mock.patch(f"{__name__}.MOST_PARENTS", 1),
            ):
                describe(*paths, epsilon, seed=0)
        drawn = [describe(*files[False], epsilon, seed=0).data_description for _ in range(2)]
        usual = inspect.signature(DataDescriber.describe_dataset_in_correlated_attribute_mode).parameters[
            "seed"
        ]
    # How likely the best of three parents is, with the rows of a real log: the exponential of its score overflows.
    scores, pairs = [0.5, 1.0, 3.0], [(child, ["parent"]) for child in ("a", "b", "c")]
    binary = dict.fromkeys(("a", "b", "c", "parent"), False)
    *_, chance = PrivBayes.exponential_mechanism(epsilon / 2, scores, pairs, binary, N_REAL_ROWS, 4)
    n_rows = 4 * 40 + N_OWN_ROWS
    n_columns = len(scales) - len(counts[True])
    return {
        "counts_moved": float(
            max(np.abs(a - b).sum() for a, b in zip(counts[True], counts[False], strict=True))
        ),
        "laplace_scale": scales[-1],
        "n_tables": len(counts[True]),
        # What one row may move of the shares of a column, over the noise that they got: before the network is begun.
        "epsilon_of_columns": sum(2 / n_rows / scale for scale in scales[:n_columns]),
        "epsilon": epsilon,
        "chance_of_the_best_parent": chance,
        "usual_seed": usual.default,
        "same_noise_twice": drawn[0] == drawn[1],
    }


if __name__ == "__main__":
    if sys.argv[1] == "check":
        print(json.dumps(check()))
    if sys.argv[1] == "generate":
        train, out, domain, epsilon, seed = sys.argv[2:]
        generate(train, out, domain, float(epsilon), int(seed))
