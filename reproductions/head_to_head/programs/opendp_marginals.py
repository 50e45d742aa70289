"""A synthetic table by opendp's AIM or MST: runs in an environment with `opendp[mbi]`.

`python opendp_marginals.py generate TRAIN OUT DOMAIN ALGORITHM RHO CONTRIBUTIONS`, where DOMAIN is a JSON file with
the values of each column and CONTRIBUTIONS the rows of one unit of privacy; and `python opendp_marginals.py check`,
which prints what one learner can move, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import opendp.prelude as dp
import polars as pl
from opendp.extras.mbi import AIM, MST

dp.enable_features("contrib")
ALGORITHMS = {"aim": AIM(), "mst": MST()}


def generate(train: str, out: str, domain: str, algorithm: str, rho: float, contributions: int) -> None:
    """Release noisy marginals of one file, and write a table with them to the other."""
    keys = json.loads(Path(domain).read_text(encoding="utf-8"))
    context = dp.Context.compositor(
        data=pl.scan_csv(train, schema_overrides=dict.fromkeys(keys, pl.String)),
        privacy_unit=dp.unit_of(contributions=contributions),
        privacy_loss=dp.loss_of(rho=rho),
    )
    table = (
        context.query(rho=rho)
        .select(*keys)
        .contingency_table(keys=keys, algorithm=ALGORITHMS[algorithm])
        .release()
    )
    # Not rounded, which is usual: rows that are rounded one column after the other couple columns that the model holds
    # to be independent. And opendp adds a key for what was not declared: no row of ours has it.
    table.synthesize(method="sample").drop_nulls().write_csv(out)
    print(json.dumps({"marginals": [list(clique) for clique in table.marginals.by_clique]}))


# The learner of the check: so many rows.
N_OWN_ROWS = 300


def check(rho: float = 1.0) -> dict[str, Any]:
    """The standard deviation of the noise of a marginal by the rows of a unit, and what a learner's rows move of it."""
    actions = [f"a{i}" for i in range(5)]
    rows = [(actions[i % 5], actions[(i + j) % 5]) for i in range(40) for j in range(4)]
    keys = {"previous": actions, "action": actions}
    tables = {
        n_own: pl.DataFrame([*rows, *[("a0", "a0")] * n_own], schema=list(keys), orient="row")
        for n_own in (0, N_OWN_ROWS)
    }
    counts = {n_own: dict(table["action"].value_counts().iter_rows()) for n_own, table in tables.items()}
    deviations = {}
    for contributions in (1, N_OWN_ROWS):
        context = dp.Context.compositor(
            data=tables[N_OWN_ROWS].lazy(),
            privacy_unit=dp.unit_of(contributions=contributions),
            privacy_loss=dp.loss_of(rho=rho),
        )
        released = (
            context.query(rho=rho).select(*keys).contingency_table(keys=keys, algorithm=MST()).release()
        )
        deviations[contributions] = released.marginals.by_clique[("action",)][0].stddev
    return {
        "counts_moved": sum(abs(counts[N_OWN_ROWS][name] - counts[0][name]) for name in actions),
        "deviation_per_row": deviations[1],
        "deviation_per_learner": deviations[N_OWN_ROWS],
    }


if __name__ == "__main__":
    if sys.argv[1] == "check":
        print(json.dumps(check()))
    if sys.argv[1] == "generate":
        train, out, domain, algorithm, rho, contributions = sys.argv[2:]
        generate(train, out, domain, algorithm, float(rho), int(contributions))
