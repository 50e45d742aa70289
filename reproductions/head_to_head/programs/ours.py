"""Synthetic learners by a generator of ours, or by PrivTrace's rule, in a process of its own like those of others.

`python -m reproductions.head_to_head.programs.ours TRAIN OUT DOMAIN METHOD SEED`
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from reproductions.head_to_head.generators import generator_of
from understudy.core.privacy.noise import seeded_noise
from understudy.logs.reading import read_log


def generate(train: str, out: str, domain: str, method: str, seed: int) -> None:
    """Fit on one file and write the other, with as many learners."""
    # Before a step comes an action, or the start.
    _, *actions = json.loads(Path(domain).read_text(encoding="utf-8"))["previous"]
    log = read_log(Path(train)).recode(actions).declare()
    rng = np.random.default_rng(seed)
    # Seeded, so that the page can be made again: nothing of this is given out.
    drawn = generator_of(method).fit(log, rng, seeded_noise(rng)).sample(None, rng)
    drawn.to_polars("learner-").write_csv(out)


if __name__ == "__main__":
    train, out, domain, method, seed = sys.argv[1:]
    generate(train, out, domain, method, int(seed))
