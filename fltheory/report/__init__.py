"""Results for people: tables, files and explanations."""

from fltheory.report.bias_report import bias_figure, bias_page, bias_text, write_bias_figure
from fltheory.report.bound_figure import bound_figure, write_bound
from fltheory.report.bounds_figure import bounds_figure, panels_figure
from fltheory.report.cutoff_report import cutoff_figure, cutoff_table, write_cutoffs
from fltheory.report.derivation_text import derivation_text
from fltheory.report.drift_map import drift_summary, drift_table, write_drift_map
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
from fltheory.report.html_report import certificates_in, html_report
from fltheory.report.learnability_report import (
    comparison_table,
    comparisons,
    impossibility_figure,
    impossibility_table,
    no_worse_figure,
    server_data_figure,
    write_learnability_figures,
)
from fltheory.report.made_by import MadeBy
from fltheory.report.paper_page import paper_name, paper_page, papers
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
    weight_certified_text,
)
from fltheory.report.region_figure import (
    region_figure,
    region_heading,
    region_table,
    write_region,
)
from fltheory.report.shapley_report import (
    measured_scenarios,
    relative_values,
    shapley_figure,
    shapley_page,
    write_shapley_figure,
)
from fltheory.report.survival_text import survival_text
from fltheory.report.training_report import training_page, training_summary, training_table
from fltheory.report.verdict_file import verdict_csv, verdict_document, write_verdicts
from fltheory.report.verdict_outputs import VerdictOutputs
from fltheory.report.verdict_table import summary, verdict_table
from fltheory.report.weights_report import (
    weights_figure,
    weights_summary,
    weights_table,
    write_weights,
)
from fltheory.report.whole_file import writable, write_whole

__all__ = [
    "MadeBy",
    "VerdictOutputs",
    "bias_figure",
    "bias_page",
    "bias_text",
    "bound_figure",
    "bounds_figure",
    "certificates_in",
    "certified_text",
    "comparison_table",
    "comparisons",
    "cutoff_figure",
    "cutoff_table",
    "derivation_text",
    "drift_summary",
    "drift_table",
    "experiment_page",
    "experiment_summary",
    "experiment_tables",
    "explanation",
    "falsification_text",
    "findings",
    "hardware_text",
    "html_report",
    "impossibility_figure",
    "impossibility_table",
    "measured_scenarios",
    "no_worse_figure",
    "panels_figure",
    "paper_name",
    "paper_page",
    "papers",
    "power_page",
    "power_summary",
    "rate_falsification_text",
    "read_judged",
    "read_measured",
    "region_figure",
    "region_heading",
    "region_table",
    "relative_values",
    "server_data_figure",
    "shapley_figure",
    "shapley_page",
    "summary",
    "survival_text",
    "training_page",
    "training_summary",
    "training_table",
    "verdict_csv",
    "verdict_document",
    "verdict_table",
    "weight_certified_text",
    "weights_figure",
    "weights_summary",
    "weights_table",
    "where_it_applies",
    "writable",
    "write_bias_figure",
    "write_bound",
    "write_cutoffs",
    "write_drift_map",
    "write_judged",
    "write_learnability_figures",
    "write_measured",
    "write_region",
    "write_shapley_figure",
    "write_verdicts",
    "write_weights",
    "write_whole",
]
