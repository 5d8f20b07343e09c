"""Results for people: tables, files and explanations."""

from fltheory.report.cutoff_report import cutoff_table, write_cutoffs
from fltheory.report.derivation_text import derivation_text
from fltheory.report.experiment_report import (
    experiment_page,
    experiment_summary,
    experiment_tables,
    read_measured,
    write_measured,
)
from fltheory.report.explanation import explanation, where_it_applies
from fltheory.report.findings import findings
from fltheory.report.hardware_report import hardware_text
from fltheory.report.power_report import (
    power_page,
    power_summary,
    read_judged,
    write_judged,
)
from fltheory.report.refutation_text import (
    certified_text,
    falsification_text,
    rate_falsification_text,
)
from fltheory.report.region_figure import (
    region_figure,
    region_heading,
    region_table,
    write_region,
)
from fltheory.report.survival_text import survival_text
from fltheory.report.training_report import training_page, training_summary, training_table
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
    "cutoff_table",
    "derivation_text",
    "experiment_page",
    "experiment_summary",
    "experiment_tables",
    "explanation",
    "falsification_text",
    "findings",
    "hardware_text",
    "power_page",
    "power_summary",
    "rate_falsification_text",
    "read_judged",
    "read_measured",
    "region_figure",
    "region_heading",
    "region_table",
    "summary",
    "survival_text",
    "training_page",
    "training_summary",
    "training_table",
    "verdict_document",
    "verdict_table",
    "weights_figure",
    "weights_summary",
    "weights_table",
    "where_it_applies",
    "write_cutoffs",
    "write_judged",
    "write_measured",
    "write_region",
    "write_verdicts",
    "write_weights",
]
