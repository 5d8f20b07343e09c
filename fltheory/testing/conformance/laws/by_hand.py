"""Rounds worked out by hand, from ``by_hand.toml``: numbers that owe nothing to any code."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fltheory.testing.conformance.cases.case import Case
from fltheory.testing.conformance.cases.clients import QuadraticClient
from fltheory.testing.conformance.specifications import Specification
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class Worked:
    """An example with its arithmetic.

    Attributes
    ----------
    case : Case
    expected : array, (rounds + 1, 1)
    words : tuple of str
        The arithmetic of each round.
    """

    case: Case
    expected: FloatArray
    words: tuple[str, ...]


@cache
def _examples() -> Mapping[str, list[dict[str, Any]]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def worked(one: Specification) -> Iterator[Worked]:
    """Yield an algorithm's examples."""
    for told in _examples().get(one.name, ()):
        optima = told.get("optima", (0.0, 8.0))
        sizes = told.get("sizes", (1, 3))
        present, models, words = zip(*told["rounds"], strict=True)
        case = Case(
            tuple(
                QuadraticClient(np.eye(1), np.array([c]), n)
                for c, n in zip(optima, sizes, strict=True)
            ),
            np.array([told["x0"]]),
            np.array([np.isin(np.arange(len(optima)), who) for who in present]),
            client_lr=0.5,
            local_steps=_tuples(told.get("local_steps", 2)),
            server_lr=told.get("server_lr", 1.0) if one.server_lr else None,
            options={name: _tuples(value) for name, value in told.get("options", {}).items()},
        )
        numbers = [float(Fraction(model)) for model in (told["x0"], *models)]
        yield Worked(case, np.array(numbers)[:, None], words)
