"""Tables of a file that people write: nothing unknown in them, and nothing missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches


def check_names(
    place: str, table: Iterable[str], known: Sequence[str], required: Sequence[str] = ()
) -> None:
    """Raise ValueError for names that are unknown, naming the nearest, or that are missing.

    Examples
    --------
    >>> check_names("training", ["round"], ["rounds", "client_lr"])
    Traceback (most recent call last):
    ValueError: training has rounds, got 'round'
    """
    complaints = wrong_names(place, tuple(table), known, required)
    if complaints:
        raise ValueError("; ".join(complaints))


def wrong_names(
    place: str, table: Collection[str], known: Sequence[str], required: Sequence[str]
) -> list[str]:
    """Return what a table has that nothing reads, and what it lacks."""
    complaints = []
    for name in table:
        if name not in known:
            near = get_close_matches(name, known, n=2, cutoff=0.5) or known
            complaints.append(f"{place} has {', '.join(near)}, got {name!r}")
    missing = [name for name in required if name not in table]
    if missing:
        given = ", ".join(table) or "nothing"
        complaints.append(f"{place} must have {', '.join(missing)}, got {given}")
    return complaints
