"""Replace a statement's regimes, keeping the faults that the new ones still show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

S = TypeVar("S")


def with_regimes(statement: S, regimes: Mapping[str, Any]) -> S:
    """Return the statement on ``regimes``, without faults that nothing then shows.

    A statement rejects a fault that cites a regime it does not have.
    """
    owner: Any = statement
    kept = (
        replace(fault, regimes=tuple(name for name in fault.regimes if name in regimes))
        for fault in owner.refutations
        if fault.certificates or set(fault.regimes) & set(regimes)
    )
    changed: S = replace(owner, regimes=dict(regimes), refutations=tuple(kept))
    return changed
