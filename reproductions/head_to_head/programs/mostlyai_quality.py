"""mostlyai's own score of a synthetic log: `python mostlyai_quality.py REAL SYNTHETIC`, with `mostlyai-qa` installed.

Prints JSON: `accuracy`, the mean agreement of the laws of single columns, pairs and triples, and of steps within a
learner (their "coherence"). 1 is best.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import pandas as pd
import torch
from mostlyai import qa


def scores(real: pd.DataFrame, synthetic: pd.DataFrame) -> dict[str, float]:
    """The scores of two logs."""
    with tempfile.TemporaryDirectory() as folder:
        _, metrics = qa.report(
            syn_tgt_data=synthetic,
            trn_tgt_data=real,
            tgt_context_key="learner",
            report_path=Path(folder) / "report.html",
            # Distances between embeddings are not read here, and take longest; mostlyai's own kit asks for as few.
            max_sample_size_embeddings=1000,
        )
    return {"accuracy": float(metrics.accuracy.overall), "coherence": float(metrics.accuracy.coherence)}


if __name__ == "__main__":
    torch.set_num_threads(1)
    tables = [pd.read_csv(path, dtype=str) for path in sys.argv[1:3]]
    print(json.dumps(scores(*tables)))
