"""Commands and options that have another name now; the old ones go with the next release."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from fltheory.commands.explain import show_proof
from fltheory.commands.falsify import search_repairs
from fltheory.commands.shared.options import TheoremId


def derive(theorem: TheoremId, reading: str | None = None) -> None:
    """Check the last steps of a theorem's proof: now explain ID --proof."""
    _tell("derive", "explain ID --proof")
    show_proof(theorem, reading)


def repair(theorem: TheoremId, budget: int = 10_000, seed: int = 0) -> None:
    """Search for refutations of a repaired statement: now falsify ID --repairs."""
    _tell("repair", "falsify ID --repairs")
    search_repairs(theorem, budget, seed)


Rest = Annotated[list[str] | None, typer.Argument(hidden=True)]
# What made this project's pages: a script each, in a checkout.
_PAGES = ("bias", "ca-fed", "drift", "findings", "impossibility", "pac-figures", "power", "shapley")


def reproduce(page: str, rest: Rest = None) -> None:
    """Make a page of this project: now a script in docs/scripts/."""
    del rest
    if page not in _PAGES:
        raise ValueError(f"page must be one of {', '.join(_PAGES)}, got {page!r}")
    script = page.replace("-", "_")
    raise ValueError(
        f"reproduce {page} is now python docs/scripts/{script}.py, in a checkout of fltheory"
    )


def pac(what: str, rest: Rest = None) -> None:
    """Show how surely every learner fails: now a script in docs/scripts/."""
    del what, rest
    reproduce("impossibility")


_FORMER_OPTIONS = {
    "map": {"--out": "--figure"},
    "compare": {"--out": "--figure"},
    "cutoff": {"--out": "--figure"},
    "conformance": {"--option": "--set"},
}


def with_new_options(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with options by their names of today, and tell which had others.

    Examples
    --------
    >>> with_new_options(["verify", "sa-fl/5", "--seed", "1"])
    ['verify', 'sa-fl/5', '--seed', '1']
    """
    # Files to load come first, each after its --load.
    place = 0
    while place < len(arguments) and arguments[place].startswith("--load"):
        place += 1 if "=" in arguments[place] else 2
    command = "".join(arguments[place : place + 1])
    renamed = _FORMER_OPTIONS.get(command, {})
    answer = []
    for argument in arguments:
        name, sign, value = argument.partition("=")
        new = renamed.get(name)
        if new is not None:
            _tell(f"{command} {name}", f"{command} {new}")
        answer.append(argument if new is None else new + sign + value)
    return answer


def _tell(old: str, new: str) -> None:
    print(
        f"fltheory {old} is now fltheory {new}; the old name will be removed in 0.3",
        file=sys.stderr,
    )


FORMER_NAMES: tuple[Callable[..., Any], ...] = (derive, repair, reproduce, pac)


def add_hidden(root: typer.Typer) -> None:
    """Add the old names, which the help does not list."""
    for former in FORMER_NAMES:
        root.command(
            former.__name__, hidden=True, context_settings={"ignore_unknown_options": True}
        )(former)
