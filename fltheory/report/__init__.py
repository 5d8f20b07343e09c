"""Results for people: tables, files and explanations."""

from fltheory.report.explanation import explanation, where_it_applies
from fltheory.report.verdict_file import verdict_document, write_verdicts
from fltheory.report.verdict_table import summary, verdict_table

__all__ = [
    "explanation",
    "summary",
    "verdict_document",
    "verdict_table",
    "where_it_applies",
    "write_verdicts",
]
