"""Results for people: tables, files and explanations."""

from fltheory.report.figures.figure import figure
from fltheory.report.figures.figure_axes import write_figure
from fltheory.report.terminal.verdict_table import summary

__all__ = [
    "figure",
    "summary",
    "write_figure",
]
