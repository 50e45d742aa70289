"""Rows of a chain by lea: `python lea_walks.py TRAIN N_ROWS SEED`, in an environment with `lea`.

The chain is that of all learners' actions one after the other, with a state of its own between two learners. Prints the
processor seconds of sampling alone.
"""

from __future__ import annotations

import csv
import random
import sys
import time

from lea import markov

BETWEEN = "(between)"


def states(train: str) -> list[str]:
    """The actions of all learners, and what stands between two of them."""
    found, before = [], None
    with open(train, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["learner"] != before:
                found.append(BETWEEN)
            before = row["learner"]
            found.append(row["action"])
    return [*found, BETWEEN]


if __name__ == "__main__":
    train, n_rows, seed = sys.argv[1:]
    random.seed(int(seed))
    start = markov.Chain.from_seq(states(train)).get_state(BETWEEN)
    began = time.process_time()
    start.random_seq(int(n_rows))
    print(time.process_time() - began)
