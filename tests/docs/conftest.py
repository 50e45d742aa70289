"""Tests here share warm sandboxes."""

from tests.support.warm_sandbox import kept_warm, warm_sandboxes

__all__ = ["kept_warm", "warm_sandboxes"]
