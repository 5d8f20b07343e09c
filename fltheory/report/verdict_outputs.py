"""The files that a table of verdicts is written to."""

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
    """Where verdicts go, in up to three formats; made before the work, it checks the places.

    Attributes
    ----------
    json, csv, html : Path or None

    Raises
    ------
    ValueError
        If a file has another ending than its format, or cannot be written to its place.
    """

    json: Path | None = None
    csv: Path | None = None
    html: Path | None = None

    def __post_init__(self) -> None:
        # Each has an ending of its own, so that no two share a file.
        for name, path in self.files.items():
            writable(name, path, f".{name}")

    @property
    def files(self) -> dict[str, Path]:
        """The formats that were asked for, and their files."""
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
        """Write every file that was asked for, each whole or not at all."""
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
