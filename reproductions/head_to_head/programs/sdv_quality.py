"""SDV's own scores of a synthetic log: `python sdv_quality.py REAL SYNTHETIC`, in an environment with `sdv`.

Prints JSON: `quality`, SDV's quality score (shapes of columns, and trends of pairs of columns), and
`sequence_length`, sdmetrics' similarity of the lengths of sequences. 1 is best for both.
"""

from __future__ import annotations

import json
import sys

import pandas as pd
from sdmetrics.single_column import SequenceLengthSimilarity
from sdv.evaluation import evaluate_quality
from sdv.metadata import Metadata

TABLE = "log"


def scores(real: pd.DataFrame, synthetic: pd.DataFrame) -> dict[str, float]:
    """The scores of two logs."""
    columns = {name: {"sdtype": "categorical"} for name in ("action", "outcome")}
    metadata = Metadata.load_from_dict(
        {"tables": {TABLE: {"columns": {"learner": {"sdtype": "id"}, **columns}}}}
    )
    report = evaluate_quality({TABLE: real}, {TABLE: synthetic}, metadata, verbose=False)
    lengths = SequenceLengthSimilarity.compute(
        real_data=real["learner"].astype("object"), synthetic_data=synthetic["learner"].astype("object")
    )
    return {"quality": float(report.get_score()), "sequence_length": float(lengths)}


if __name__ == "__main__":
    tables = [pd.read_csv(path, dtype=str) for path in sys.argv[1:3]]
    print(json.dumps(scores(*tables)))
