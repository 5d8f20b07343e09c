"""``fltheory certify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.shared.options import READ, Rocq
from fltheory.commands.shared.written_files import write_theorem
from fltheory.long_work.progress import shown_progress


def command(
    file: Annotated[
        Path,
        READ,
        typer.Argument(help="A certificate or a witness (.toml), as written by falsify or prove."),
    ],
    rocq: Rocq = None,
) -> None:
    """Check a certificate of refutation or proof in exact arithmetic, by an independent program.

    A witness saved as a setting is checked again as verify checks a regime. Exit status 1 if it no
    longer refutes its statement.
    """
    from fltheory.report.terminal.proof_text import proof_text
    from fltheory.worst_case import read_proof

    proof = None if file.suffix == ".toml" else read_proof(file)
    if rocq is not None and file.suffix == ".toml":
        raise ValueError(f"--rocq needs a certificate, got the setting {file}")
    if proof is not None:
        with shown_progress(f"checking {file} in exact arithmetic"):
            proof.verify()
        print(proof_text(proof))
        write_theorem(proof.rocq_theorem, rocq)
    elif file.suffix == ".toml":
        _check_again(file)
    else:
        _refutation(file, rocq)


def _refutation(file: Path, rocq: Path | None) -> None:
    from fltheory.report.terminal.refutation_text import certified_text
    from fltheory.verify import read_certificate
    from fltheory.verify.certificates.rocq_refutation import rocq_refutation

    with shown_progress(f"checking {file} in exact arithmetic"):
        certified = read_certificate(file)
    print(certified_text(certified))
    write_theorem(lambda: rocq_refutation(certified.document), rocq)


def _check_again(file: Path) -> None:
    from fltheory.report.terminal.refutation_text import kept_witness_text
    from fltheory.verify.check import read_kept_witness

    with shown_progress(f"checking {file}"):
        witness = read_kept_witness(file)
    print(kept_witness_text(witness))
    if not witness.refutes:
        raise typer.Exit(1)
