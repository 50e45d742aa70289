"""Inference of a trait from typing profiles, and what else coarser profiles still teach."""

from understudy.keystrokes.traits.inference import (
    CLASSIFIERS,
    Selection,
    TraitEstimate,
    TraitInference,
    infer_trait,
)
from understudy.keystrokes.traits.preservation import Measured, Preserved, preserved

__all__ = [
    "CLASSIFIERS",
    "Measured",
    "Preserved",
    "Selection",
    "TraitEstimate",
    "TraitInference",
    "infer_trait",
    "preserved",
]
