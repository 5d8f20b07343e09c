"""``fltheory certify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.shared.options import READ, Rocq
from fltheory.commands.shared.written_files import check_places, write_theorem
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

    A witness that is kept as a setting is checked again as verify checks a regime; exit status 1
    if it no longer refutes its statement.
    """
    from fltheory.report.terminal.proof_text import proof_text
    from fltheory.worst_case import read_proof

    check_places(".v", rocq=rocq)
    proof = None if file.suffix == ".toml" else read_proof(file)
    if rocq is not None and proof is None:
        raise ValueError(f"--rocq needs a proof for every client loss, got {file}")
    if proof is not None:
        with shown_progress(f"checking {file} in exact arithmetic"):
            proof.verify()
        print(proof_text(proof))
        write_theorem(proof, rocq)
    elif file.suffix == ".toml":
        _check_again(file)
    else:
        with shown_progress(f"checking {file} in exact arithmetic"):
            text = _refutation(file)
        print(text)


def _refutation(file: Path) -> str:
    from fltheory.report.terminal.refutation_text import certified_text
    from fltheory.verify import read_certificate

    return certified_text(read_certificate(file))


def _check_again(file: Path) -> None:
    from fltheory.report.terminal.refutation_text import kept_witness_text
    from fltheory.verify.check import read_kept_witness

    with shown_progress(f"checking {file}"):
        witness = read_kept_witness(file)
    print(kept_witness_text(witness))
    if not witness.refutes:
        raise typer.Exit(1)
