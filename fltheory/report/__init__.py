"""Results for people: tables, files and explanations."""

from fltheory.report.figures.bound_figure import bound_figure, write_bound
from fltheory.report.figures.bounds_figure import bounds_figure, panels_figure
from fltheory.report.figures.region_figure import region_figure
from fltheory.report.files.verdict_file import write_verdicts
from fltheory.report.html.html_report import html_report
from fltheory.report.terminal.refutation_text import falsification_text
from fltheory.report.terminal.verdict_table import summary
from fltheory.report.terminal.weights_report import weights_figure

__all__ = [
    "bound_figure",
    "bounds_figure",
    "falsification_text",
    "html_report",
    "panels_figure",
    "region_figure",
    "summary",
    "weights_figure",
    "write_bound",
    "write_verdicts",
]
