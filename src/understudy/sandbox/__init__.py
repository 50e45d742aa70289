"""Runs code that others wrote: isolation, limits, many runs from one warm process."""

from understudy.sandbox.availability import require_sandbox
from understudy.sandbox.battery import check
from understudy.sandbox.expectations import Probe
from understudy.sandbox.jobs import Job, Limits, Outcome
from understudy.sandbox.pool import Sandbox

__all__ = ["Job", "Limits", "Outcome", "Probe", "Sandbox", "check", "require_sandbox"]
