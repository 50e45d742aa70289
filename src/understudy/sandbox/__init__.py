"""Runs code nobody here wrote: isolation, limits, many runs from one warm process."""

from understudy.sandbox.battery import check
from understudy.sandbox.jobs import Job, Limits, Outcome
from understudy.sandbox.pool import Sandbox
from understudy.sandbox.probes import Probe
from understudy.sandbox.requirement import require_sandbox

__all__ = ["Job", "Limits", "Outcome", "Probe", "Sandbox", "check", "require_sandbox"]
