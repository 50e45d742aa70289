"""Tests here share warm sandboxes."""

from tests.support.warm_sandbox import warm_sandboxes

__all__ = ["warm_sandboxes"]
