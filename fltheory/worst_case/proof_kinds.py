"""The kinds of proof, and reading one of any kind from a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from fltheory import validation
from fltheory.files.read_file import existing_file
from fltheory.worst_case.correlated.bound import CorrelatedCertificate
from fltheory.worst_case.correlated.phases import PhasesCertificate
from fltheory.worst_case.correlated.rich_bound import RichCertificate
from fltheory.worst_case.methods.lyapunov import LyapunovCertificate
from fltheory.worst_case.proof.proof_file import ProofFile
from fltheory.worst_case.rounds.certificate import Certificate

KINDS: Mapping[str, type[ProofFile]] = {
    one.kind: one
    for one in (
        Certificate,
        CorrelatedCertificate,
        RichCertificate,
        PhasesCertificate,
        LyapunovCertificate,
    )
}
_FORMER = ("bound on weighted averaging for every client loss",)
"""Kinds that are part of another one now."""


def read_proof(path: Path | str) -> ProofFile | None:
    """Return the proof that a file holds, not yet checked; None if it holds something else.

    The file says of which kind it is.

    Raises
    ------
    ValueError
        If it is a proof with a field that is not what it must be, or of an earlier format.

    Examples
    --------
    >>> read_proof("nowhere.json") is None
    True
    """
    path = validation.path("path", path)
    most = max(one.most_characters for one in KINDS.values())
    try:
        text = existing_file("proof must be a file", path, most_bytes=most).read_bytes().decode()
    except (OSError, ValueError):
        return None
    try:
        document = json.loads(text)
    except (RecursionError, ValueError):
        return None
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind in _FORMER:
        raise ValueError(
            f"kind: {kind!r} is of an earlier format and part of {Certificate.kind!r} now: make "
            "the proof again"
        )
    if not isinstance(kind, str) or kind not in KINDS:
        return None
    found = KINDS[kind](text)
    # A field that is not what it must be is told now.
    found.lines  # noqa: B018
    return found
