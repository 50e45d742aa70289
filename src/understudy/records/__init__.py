"""What learners did, as frozen and validated columns; and classrooms that never existed."""

from understudy.records.interactions import Interactions

__all__ = ["Interactions"]
