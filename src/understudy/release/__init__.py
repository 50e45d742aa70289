"""Releases: the bundle that may leave, and the report that stays."""

from understudy.release.bundle import Options, Released, make_release

__all__ = ["Options", "Released", "make_release"]
