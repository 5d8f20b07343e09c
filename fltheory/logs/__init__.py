"""Logs of who was online: read from files, described, and fitted."""

from fltheory.logs.availability_log import AvailabilityLog
from fltheory.logs.description import describe
from fltheory.logs.log_file import read_log, write_log

__all__ = [
    "AvailabilityLog",
    "describe",
    "read_log",
    "write_log",
]
