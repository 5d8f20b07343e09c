"""Results for people: tables, files and explanations."""

from fltheory.report.figures.bounds_figure import bound_figure
from fltheory.report.figures.figure_file import write_figure
from fltheory.report.figures.region_figure import region_figure
from fltheory.report.files.verdict_file import write_verdicts
from fltheory.report.html.html_report import html_report
from fltheory.report.terminal.refutation_text import falsification_text
from fltheory.report.terminal.verdict_table import summary
from fltheory.report.terminal.weights_report import weights_figure

__all__ = [
    "bound_figure",
    "falsification_text",
    "html_report",
    "region_figure",
    "summary",
    "weights_figure",
    "write_figure",
    "write_verdicts",
]
