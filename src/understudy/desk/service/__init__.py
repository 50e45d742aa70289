"""What people and the worker can do at the desk: every verb is one transaction with its line in the log."""

from understudy.desk.service.desk import Desk

__all__ = ["Desk"]
