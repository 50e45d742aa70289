"""What learners did, as frozen and validated columns; and classrooms that never existed."""

from understudy.records.interactions import Interactions
from understudy.records.responses import Responses

__all__ = ["Interactions", "Responses"]
