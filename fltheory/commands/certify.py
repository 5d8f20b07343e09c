"""``fltheory certify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fltheory.progress import shown_progress


def command(
    file: Annotated[Path, typer.Argument(help="A certificate, as written by falsify or prove.")],
) -> None:
    """Check a certificate of refutation or proof in exact arithmetic, by an independent program."""
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
