"""``fltheory certify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.shared.options import READ
from fltheory.long_work.progress import shown_progress


def command(
    file: Annotated[
        Path,
        READ,
        typer.Argument(help="A certificate or a witness (.toml), as written by falsify or prove."),
    ],
) -> None:
    """Check a certificate of refutation or proof in exact arithmetic, by an independent program.

    A witness that is kept as a setting is checked again as verify checks a regime; exit status 1
    if it no longer refutes its statement.
    """
    if file.suffix == ".toml":
        _check_again(file)
        return
    with shown_progress(f"checking {file} in exact arithmetic"):
        text = _proof(file) or _refutation(file)
    print(text)


def _proof(file: Path) -> str | None:
    """Return what a proof shows, None for a file that is none."""
    from fltheory.report.terminal.proof_text import proof_text
    from fltheory.worst_case import read_proof

    proof = read_proof(file)
    if proof is None:
        return None
    proof.verify()
    return proof_text(proof)


def _refutation(file: Path) -> str:
    from fltheory.report.terminal.refutation_text import certified_text
    from fltheory.verify import read_certificate

    return certified_text(read_certificate(file))


def _check_again(file: Path) -> None:
    from fltheory.report.terminal.refutation_text import kept_witness_text
    from fltheory.verify.kept_witness import read_kept_witness

    with shown_progress(f"checking {file}"):
        witness = read_kept_witness(file)
    print(kept_witness_text(witness))
    if not witness.refutes:
        raise typer.Exit(1)
