"""Commands and options that have another name now; the old ones go with the next release."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer

from fltheory.commands.explain import show_proof
from fltheory.commands.falsify import search_repairs
from fltheory.commands.reproduce.impossibility import command as impossibility
from fltheory.commands.shared.options import TheoremId


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


# By the words of their command: what they are called now.
FORMER_OPTIONS = {
    "reproduce pac-figures": {"--folder": "--out"},
    "reproduce shapley": {"--page": "--out"},
}


def with_options_of_now(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with old names of options replaced, and say the new ones.

    Examples
    --------
    >>> with_options_of_now(["reproduce", "shapley", "--out", "page.md"])
    ['reproduce', 'shapley', '--out', 'page.md']
    """
    found = list(arguments)
    for words, renamed in FORMER_OPTIONS.items():
        if words not in " ".join(found):
            continue
        for place, argument in enumerate(found):
            old, is_joined, value = argument.partition("=")
            if old in renamed:
                _tell(f"{words} {old}", f"{words} {renamed[old]}")
                found[place] = f"{renamed[old]}{is_joined}{value}"
    return found


def _tell(old: str, new: str) -> None:
    print(f"fltheory {old} is now fltheory {new}; the old name goes with 0.3", file=sys.stderr)


FORMER_NAMES: tuple[Callable[..., Any], ...] = (derive, repair, pac)


def add_hidden(root: typer.Typer) -> None:
    """Add the old names, which the help does not list."""
    for former in FORMER_NAMES:
        root.command(former.__name__, hidden=True)(former)
