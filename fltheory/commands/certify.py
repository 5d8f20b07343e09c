"""``fltheory certify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fltheory.progress import shown_progress


def command(
    file: Annotated[Path, typer.Argument(help="A certificate, as written by falsify.")],
) -> None:
    """Check a certificate of refutation in exact arithmetic, by code of its own."""
    from fltheory.report import certified_text, weight_certified_text
    from fltheory.verify import read_certificate
    from fltheory.verify.weight_certificate import read_weight_certificate

    with shown_progress(f"checking {file} in exact arithmetic"):
        of_weights = read_weight_certificate(file)
        certified = None if of_weights is not None else read_certificate(file)
    if of_weights is not None:
        print(weight_certified_text(of_weights))
    elif certified is not None:
        print(certified_text(certified))
