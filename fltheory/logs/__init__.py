"""Logs of who was online: read from files, described, and fitted."""

from fltheory.logs.availability_log import AvailabilityLog
from fltheory.logs.description import describe
from fltheory.logs.log_file import read_log, write_log
from fltheory.logs.transitions import fit_on_off

__all__ = [
    "AvailabilityLog",
    "describe",
    "fit_on_off",
    "read_log",
    "write_log",
]
