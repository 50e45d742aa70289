"""Synthetic learners by SDV's PAR: `python sdv_par.py generate TRAIN OUT SEED EPOCHS`, in an environment with `sdv`.

A learner is a sequence; action and outcome are categorical and vary along it. PAR has no guarantee.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import torch
from sdv.metadata import Metadata
from sdv.sequential import PARSynthesizer

TABLE = "log"


def metadata() -> Metadata:
    """The log as SDV wants it described."""
    columns = {
        "learner": {"sdtype": "id"},
        "action": {"sdtype": "categorical"},
        "outcome": {"sdtype": "categorical"},
    }
    return Metadata.load_from_dict({"tables": {TABLE: {"columns": columns, "sequence_key": "learner"}}})


def generate(train: str, out: str, seed: int, epochs: int) -> None:
    """Fit on one file and write the other, with as many learners."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    np.random.seed(seed)
    log = pd.read_csv(train, dtype=str)
    model = PARSynthesizer(metadata(), epochs=epochs, cuda=False)
    model.fit({TABLE: log})
    drawn = model.sample_sequences(num_sequences=log["learner"].nunique())
    drawn[TABLE].to_csv(out, index=False)


if __name__ == "__main__":
    if sys.argv[1] == "generate":
        train, out, seed, epochs = sys.argv[2:]
        generate(train, out, int(seed), int(epochs))
