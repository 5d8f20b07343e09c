"""The report: a self-contained HTML page."""
