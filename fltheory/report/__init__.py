"""Results for people: tables, files and explanations."""

from fltheory.report.explanation import explanation, where_it_applies
from fltheory.report.findings import findings
from fltheory.report.refutation_text import certified_text, falsification_text
from fltheory.report.region_figure import (
    region_figure,
    region_heading,
    region_table,
    write_region,
)
from fltheory.report.verdict_file import verdict_document, write_verdicts
from fltheory.report.verdict_table import summary, verdict_table
from fltheory.report.weights_report import (
    weights_figure,
    weights_summary,
    weights_table,
    write_weights,
)

__all__ = [
    "certified_text",
    "explanation",
    "falsification_text",
    "findings",
    "region_figure",
    "region_heading",
    "region_table",
    "summary",
    "verdict_document",
    "verdict_table",
    "weights_figure",
    "weights_summary",
    "weights_table",
    "where_it_applies",
    "write_region",
    "write_verdicts",
    "write_weights",
]
