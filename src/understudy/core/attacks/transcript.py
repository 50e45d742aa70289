"""`transcript`: what an attacker finds who sees the noisy sums themselves, and not only what is made of them.

The attacker's story: a private method adds noise to sums over learners and computes all else from these. Bob has
stolen the noisy sums. He knows what each learner would add to each of them and how large the noise is, so he can weigh
all memberships together (`linear.py`), with no model of the method between him and the sums.
Whatever can be found out from what is made of the sums is found out from the sums as well. So this is a ceiling for
attacks on that, on this data, and it lies below the proved worst case, which holds for any data.

The prior of memberships is normal there instead of 0 or 1; with many learners in each sum that makes no difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import ndtr

from understudy.core.attacks.linear import LinearPosterior

Floats = NDArray[np.float64]

# A learner whom an attacker could pick more often than this, in the worst case for that learner, is exposed.
EXPOSED = 0.75


@dataclass(frozen=True)
class LearnerSums:
    """Noisy sums over learners and what each learner would add: learners x sums, noise of variance 1 in each."""

    added: Any
    released: Floats


@dataclass(frozen=True)
class WhiteBox:
    """The scores of an attacker who sees the noisy sums, and how far each learner could be picked out at all.

    `reach` is the AUC of the best test of one learner for an attacker who knows all others too: what the learner adds
    to the sums, in units of their noise, is the distance between two normal laws.
    """

    scores: Floats
    reach: Floats

    @property
    def exposed_share(self) -> float:
        """The share of learners who are exposed. Who they are is nobody's business."""
        return float(np.mean(self.reach > EXPOSED))


def white_box(sums: LearnerSums, share: float) -> WhiteBox:
    """What noisy sums over a share `share` of the learners say about each of them."""
    added, ones = csr_array(sums.added), np.ones(len(sums.released))
    expected: Floats = share * np.asarray(added.sum(axis=0), dtype=np.float64).ravel()
    distance = np.sqrt(np.asarray(added.multiply(added).sum(axis=1)).ravel())
    return WhiteBox(
        scores=LinearPosterior(added, share, expected, ones, ones).scores(sums.released),
        reach=ndtr(distance / np.sqrt(2.0)),
    )
