"""What has been found: a page made from the stored witnesses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from fltheory.report.refutation_text import shown
from fltheory.theorems import Theorem, get
from fltheory.verify import Certified, read_certificate

_INTRODUCTION = """\
# Findings

Made by `fltheory findings` from the certificates in `verification/witnesses/`; do not edit. Each
was found by `fltheory falsify` and is checked in exact arithmetic by `fltheory certify FILE`. This
is about formulas as they stand in the texts at hand, not about people: a misprint, or a slip in
the conversion of a text, counts like any other fault of a formula.
"""


def findings(paths: Sequence[Path], shown_from: Path) -> str:
    """Return the page for these certificates, in Markdown.

    Parameters
    ----------
    paths : sequence of Path
        Certificates, each of which is checked first.
    shown_from : Path
        Folder that file names are shown relative to.

    Raises
    ------
    ValueError
        If a certificate fails.
    """
    sections = [_section(read_certificate(path), path.relative_to(shown_from)) for path in paths]
    return "\n".join([_INTRODUCTION, *sections])


def _section(certified: Certified, path: Path) -> str:
    return "\n".join(_lines(certified, path)) + "\n"


def _lines(certified: Certified, path: Path) -> Iterator[str]:
    theorem = certified.theorem
    yield f"## {theorem.id}, {theorem.reading}"
    yield ""
    yield f"{theorem.title}. Source: {theorem.source}."
    yield ""
    yield f"**Claim.** If all conditions hold, `{theorem.quantity.text}` is at most"
    yield ""
    yield f"    {theorem.bound}"
    yield ""
    for hypothesis in theorem.hypotheses:
        yield f"- {hypothesis.name}: `{hypothesis.condition}`"
    yield ""
    yield f"**Witness** (`{path.as_posix()}`). Every condition holds, and"
    yield f"`{theorem.quantity.text} = {shown(certified.truth)}` exceeds the bound,"
    yield f"`{shown(certified.bound)}`."
    yield ""
    for line in certified.witness.lines:
        yield f"    {line}"
    yield ""
    yield f"**As printed.** {theorem.note}"
    yield ""
    yield f"**Where statement and proof part, and the repair.** {_repair(theorem).note}"


def _repair(theorem: Theorem) -> Theorem:
    derived = get(theorem.id, "derived")
    if not isinstance(derived, Theorem):
        raise ValueError(f"theorem must be an inequality, got {theorem.id}")
    return derived
