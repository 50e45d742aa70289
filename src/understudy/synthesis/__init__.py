"""Methods that turn a log into a synthetic one, and the registry that finds them by name."""

from understudy.synthesis.registry import make_method, method_names
from understudy.synthesis.synthesizer import Synthesizer

__all__ = ["Synthesizer", "make_method", "method_names"]
