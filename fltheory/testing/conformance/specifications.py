"""What each algorithm's paper asks to be told, and how the suite chooses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from fltheory.testing.conformance.case import Case
from fltheory.testing.conformance.likely_causes import averaging, memory
from fltheory.testing.conformance.likely_causes.rounds import Paper

Options: TypeAlias = Mapping[str, Any]
Draw: TypeAlias = Callable[[np.random.Generator, int], Options]


def _nothing(rng: np.random.Generator, n: int) -> Options:
    return {}


def _as_it_is(case: Case) -> Case:
    return case


@dataclass(frozen=True)
class Specification:
    """An algorithm that the suite checks.

    Attributes
    ----------
    name : str
    paper : Paper
        Its pseudo-code and usual slips.
    draw : callable
        Options for a generator and a number of clients.
    options : mapping of str to str
        What each option is, in a few words.
    by_size : bool
        Whether data sizes weigh (by default).
    memory : bool
        Whether something is kept of each client.
    stationary : bool
        Whether the limit of its mean model is known exactly under random participation.
    tuple_steps : bool
        Whether each client has its own number of local steps.
    prepared : callable
        A case in which no choice is a tie, which papers leave open.
    """

    name: str
    paper: Paper
    draw: Draw = _nothing
    options: Mapping[str, str] = field(default_factory=dict)
    by_size: bool = False
    memory: bool = False
    stationary: bool = True
    tuple_steps: bool = False
    prepared: Callable[[Case], Case] = _as_it_is


def _weighting(rng: np.random.Generator, n: int) -> Options:
    return {"weighting": "n_samples" if rng.random() < 0.7 else "uniform"}


def _scaffold(rng: np.random.Generator, n: int) -> Options:
    return {"option": int(rng.integers(1, 3))}


def _mifa(rng: np.random.Generator, n: int) -> Options:
    return {"start": "wait" if rng.random() < 0.4 else "zero"}


SPECIFICATIONS: dict[str, Specification] = {
    one.name: one
    for one in (
        Specification(
            "fedavg",
            averaging.PAPERS["fedavg"],
            _weighting,
            {"weighting": '"n_samples" (by default) or "uniform"'},
            by_size=True,
        ),
        Specification(
            "scaffold",
            memory.PAPERS["scaffold"],
            _scaffold,
            {"option": "1 or 2: how a client's control is renewed"},
            memory=True,
        ),
        Specification("fedvarp", memory.PAPERS["fedvarp"], memory=True),
        Specification(
            "mifa",
            memory.PAPERS["mifa"],
            _mifa,
            {"start": '"wait" or "zero": until all clients have appeared'},
            memory=True,
        ),
    )
}
"""The algorithms that can be checked; a new one is one line."""


def specification(name: str) -> Specification:
    """Return an algorithm's specification by its name, in capital letters or not.

    Raises
    ------
    ValueError
        For an unknown name; the message lists those that exist.
    """
    known = name.lower() if isinstance(name, str) else name
    if known not in SPECIFICATIONS:
        raise ValueError(f"name must be one of {', '.join(SPECIFICATIONS)}, got {name!r}")
    return SPECIFICATIONS[known]
