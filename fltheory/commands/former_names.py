"""Commands that have another name now; the old ones go with the next release."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import typer

from fltheory.commands.explain import show_proof
from fltheory.commands.falsify import search_repairs
from fltheory.commands.options import TheoremId
from fltheory.commands.reproduce_impossibility import command as impossibility


def derive(theorem: TheoremId, reading: str | None = None) -> None:
    """Check the last steps of a theorem's proof: now explain ID --proof."""
    _tell("derive", "explain ID --proof")
    show_proof(theorem, reading)


def repair(theorem: TheoremId, budget: int = 10_000, seed: int = 0) -> None:
    """Search for refutations of a repaired statement: now falsify ID --repairs."""
    _tell("repair", "falsify ID --repairs")
    search_repairs(theorem, budget, seed)


def pac(what: str, M: int, n: int, m: int) -> None:
    """Show how surely every learner fails: now reproduce impossibility M n m."""
    if what != "impossible":
        raise ValueError(f"what follows pac must be impossible, got {what!r}")
    _tell("pac impossible", "reproduce impossibility M n m")
    impossibility(M, n, m)


def _tell(old: str, new: str) -> None:
    print(f"fltheory {old} is now fltheory {new}; the old name goes with 0.3", file=sys.stderr)


FORMER_NAMES: tuple[Callable[..., Any], ...] = (derive, repair, pac)


def add_hidden(root: typer.Typer) -> None:
    """Add the old names, which the help does not list."""
    for former in FORMER_NAMES:
        root.command(former.__name__, hidden=True)(former)
