"""Logs of who was online: read from files, described, and fitted."""

from fltheory.logs.availability_log import AvailabilityLog
from fltheory.logs.description import LogDescription, describe
from fltheory.logs.goodness_of_fit import ModelFit
from fltheory.logs.log_file import read_log, write_log
from fltheory.logs.transitions import draw_log, fit_on_off

__all__ = [
    "AvailabilityLog",
    "LogDescription",
    "ModelFit",
    "describe",
    "draw_log",
    "fit_on_off",
    "read_log",
    "write_log",
]
