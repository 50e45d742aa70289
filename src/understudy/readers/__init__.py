"""Files to Interactions: one module per format, found from the content, keeping only what was asked for."""

from understudy.readers.columns import Columns
from understudy.readers.identifiers import Identifier
from understudy.readers.log import LogFile, formats, read_log

__all__ = ["Columns", "Identifier", "LogFile", "formats", "read_log"]
