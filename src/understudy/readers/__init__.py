"""Files to records: one module per format, found from the content, keeping only what was asked for."""

from understudy.readers.columns import Columns
from understudy.readers.identifiers import Identifier
from understudy.readers.log import LogFile, formats, read_log
from understudy.readers.responses import ResponsesFile, read_responses

__all__ = ["Columns", "Identifier", "LogFile", "ResponsesFile", "formats", "read_log", "read_responses"]
