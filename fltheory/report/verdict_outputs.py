"""The output files of a table of verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fltheory.claims.statement import Statement
from fltheory.files.whole_file import writable, write_whole
from fltheory.long_work.progress import Progress
from fltheory.report.html.html_report import html_report
from fltheory.report.html.report_view import BesideView, CertificateView, KeptView
from fltheory.report.verdict_file import MadeBy, verdict_csv, write_verdicts
from fltheory.verify.runs import Cell


@dataclass(frozen=True)
class VerdictOutputs:
    """Output files for verdicts in up to three formats, which are checked before the work starts.

    Attributes
    ----------
    json, csv, html : Path or None

    Raises
    ------
    ValueError
        If a file's suffix does not match its format, or if the file cannot be written there.
    """

    json: Path | None = None
    csv: Path | None = None
    html: Path | None = None

    def __post_init__(self) -> None:
        # Each format has its own suffix, so no two share a file.
        for name, path in self.files.items():
            writable(name, path, f".{name}")

    @property
    def files(self) -> dict[str, Path]:
        """The requested formats and their files."""
        every = {"json": self.json, "csv": self.csv, "html": self.html}
        return {name: path for name, path in every.items() if path is not None}

    def write(
        self,
        statements: Sequence[Statement],
        cells: Sequence[Cell],
        certificates: Sequence[CertificateView],
        made_by: MadeBy,
        *,
        kept: Sequence[KeptView] = (),
        beside: Sequence[BesideView] = (),
        progress: Progress | None = None,
    ) -> None:
        """Write every requested file; if writing fails, leave an existing file as it was."""
        for done, (name, path) in enumerate(self.files.items()):
            if progress is not None:
                progress(done, len(self.files), f"writing {path}")
            if name == "json":
                write_verdicts(path, cells, made_by)
            elif name == "csv":
                write_whole(path, verdict_csv(cells, made_by))
            else:
                write_whole(
                    path, html_report(statements, cells, certificates, made_by, kept, beside)
                )
