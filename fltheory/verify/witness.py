"""A setting in rational numbers: small enough to print, exact enough to certify.

Clients share a diagonal Hessian and weigh equally; SAFARI runs on uniform subsets. All
numbers are fractions, so that the same witness can be run in float64 by the engines and
replayed without rounding.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np

from fltheory.algorithms import Safari
from fltheory.engines import Setting
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem


@dataclass(frozen=True)
class Witness:
    """SAFARI on quadratic clients, in fractions.

    Attributes
    ----------
    curvatures : tuple of Fraction, (d,)
        Diagonal of the Hessian that all clients share.
    optima : tuple of tuples, (N, d)
        The clients' minimisers.
    x0 : tuple of Fraction, (d,)
        Initial model.
    sigma, server_sigma : Fraction
        Noise of the clients' and of the server's gradients.
    participants : int
        m, clients in a clients' round.
    excluded : tuple of int
        Clients who never take part.
    q, client_lr, assist_lr : Fraction
    local_steps, rounds : int
        SAFARI's hyper-parameters, and R.
    """

    curvatures: tuple[Fraction, ...]
    optima: tuple[tuple[Fraction, ...], ...]
    x0: tuple[Fraction, ...]
    sigma: Fraction
    server_sigma: Fraction
    participants: int
    excluded: tuple[int, ...]
    q: Fraction
    client_lr: Fraction
    assist_lr: Fraction
    local_steps: int
    rounds: int

    def setting(self) -> Setting:
        """Return the setting in float64, for the engines."""
        problem = QuadraticProblem(
            np.diag(np.array(self.curvatures, dtype=np.float64)),
            np.array(self.optima, dtype=np.float64),
            sigma=float(self.sigma),
            server_sigma=float(self.server_sigma),
        )
        return Setting(
            Safari(float(self.q), float(self.client_lr), float(self.assist_lr), self.local_steps),
            problem,
            UniformSubset(len(self.optima), self.participants, excluded=self.excluded),
            self.rounds,
            np.array(self.x0, dtype=np.float64),
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, fractions as strings like ``"3/4"``."""
        return {item.name: _as_json(getattr(self, item.name)) for item in fields(self)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Witness:
        """Read what `to_json` wrote.

        Raises
        ------
        ValueError
            Naming the first field that is missing or is not what it must be.
        """
        return cls(**{item.name: _field(document, item.name, item.type) for item in fields(cls)})

    @property
    def lines(self) -> tuple[str, str, str]:
        """The witness in three lines: problem, participation and start, algorithm."""
        optima = ", ".join(_point(optimum) for optimum in self.optima)
        excluded = f", {list(self.excluded)} excluded" if self.excluded else ""
        return (
            f"Hessian diag{_point(self.curvatures)}, optima {optima}, "
            f"sigma = {self.sigma}, sigma_s = {self.server_sigma}",
            f"m = {self.participants} of {len(self.optima)} clients{excluded}, "
            f"x0 = {_point(self.x0)}, R = {self.rounds}",
            f"q = {self.q}, K = {self.local_steps}, eta_c = {self.client_lr}, "
            f"eta_s = {self.assist_lr}",
        )


def _point(point: tuple[Fraction, ...]) -> str:
    return f"({', '.join(str(coordinate) for coordinate in point)})"


def _as_json(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple):
        return [_as_json(item) for item in value]
    return value


def _field(document: Mapping[str, Any], name: str, kind: Any) -> Any:
    if name not in document:
        raise ValueError(f"witness field {name} must be given, it is missing")
    try:
        return _READERS[kind](document[name])
    except (TypeError, ValueError, ZeroDivisionError) as error:
        shown = json.dumps(document[name])[:60]
        raise ValueError(f"witness field {name} must be {kind}, got {shown}") from error


def _numbers(value: Any) -> tuple[Fraction, ...]:
    return tuple(_fraction(item) for item in _list(value))


def _fraction(value: Any) -> Fraction:
    if not isinstance(value, str):
        raise TypeError("not a fraction")
    return Fraction(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("not a whole number")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


_READERS: Mapping[Any, Callable[[Any], Any]] = {
    "Fraction": _fraction,
    "int": _whole,
    "tuple[int, ...]": lambda value: tuple(_whole(item) for item in _list(value)),
    "tuple[Fraction, ...]": _numbers,
    "tuple[tuple[Fraction, ...], ...]": lambda value: tuple(_numbers(row) for row in _list(value)),
}
