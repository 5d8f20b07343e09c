"""A setting as the text that certificates hold, every number a fraction, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fltheory.algorithms import AdaFed, AveragedIterate, F3ast, LocalSgd, Unbiased
from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.algorithms.table import class_named
from fltheory.decimals import as_fraction, normalised
from fltheory.engines import Setting
from fltheory.participation import (
    Bernoulli,
    Cyclic,
    FiniteChain,
    MarkovOnOff,
    Participation,
    UniformSubset,
)
from fltheory.problems import Ball, QuadraticProblem

Document = dict[str, Any]

_WHOLE = ("local_steps", "option", "clusters", "cutoff", "size", "excluded", "periods", "offsets",
          "active", "start")  # fmt: skip
_SHARES: Mapping[type, tuple[str, ...]] = {
    **dict.fromkeys((AdaFed, F3ast, Unbiased), ("target_weights",)),
    LocalSgd: ("aggregation_weights",),
}
_COUNTS = ("int", "tuple[int, ...]", int, tuple[int, ...])


def setting_text(setting: Setting) -> Document:
    """Return a setting as a certificate holds it; a float stands for its shortest decimal.

    Raises
    ------
    ValueError
        For clients that are not quadratic, and participation that certificates do not know.
    """
    problem = setting.problem
    if not isinstance(problem, QuadraticProblem):
        raise ValueError(
            f"problem must be a QuadraticProblem to be certified, got {type(problem).__name__}"
        )
    shape = problem.n_clients, problem.dim, problem.dim
    alpha = problem.alpha if problem.target_weights is not None else [1] * problem.n_clients
    return {
        "algorithm": _algorithm_text(setting.algorithm),
        "problem": {
            "hessians": _text(np.broadcast_to(problem.hessians, shape)),
            "optima": _text(problem.optima),
            "sigma": _text(problem.sigma),
            "server_sigma": _text(problem.server_sigma),
            "target_weights": _text(normalised(alpha)),
        },
        "participation": _participation_text(setting.participation),
        "rounds": int(setting.rounds),
        "x0": _text(setting.x0),
    }


def _text(value: Any) -> Any:
    """Return numbers as text, lists of them as lists; what is infinite is nothing."""
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, list | tuple | np.ndarray):
        return [_text(item) for item in value]
    if is_dataclass(value):
        return _dataclass_text(value)
    if isinstance(value, float) and math.isinf(value):
        return None
    return str(as_fraction(value))


def _whole(value: Any) -> Any:
    if callable(value):
        raise ValueError(f"cutoff must be a number to be certified, got {value!r}")
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and math.isinf(value):
        return None
    return np.asarray(value).astype(int).tolist()


def _dataclass_text(value: Any) -> Document:
    found = {
        item.name: (_whole if item.name in _WHOLE or item.type in _COUNTS else _text)(
            getattr(value, item.name)
        )
        for item in fields(value)
    }
    return found if isinstance(value, Ball) else {"name": type(value).__name__, **found}


def _algorithm_text(algorithm: Algorithm | Schedule) -> Document:
    found = _dataclass_text(algorithm)
    if isinstance(algorithm, AveragedIterate):
        found["weights"] = _text(algorithm.used_weights)
    # Thirds have no decimals that sum to one.
    for name in _SHARES.get(type(algorithm), ()):
        found[name] = _text(normalised(getattr(algorithm, name)))
    return found


def _participation_text(participation: Participation) -> Document:
    given: Document = {"name": type(participation).__name__}
    match participation:
        case UniformSubset(size=size, excluded=excluded):
            return {**given, "size": size, "excluded": list(excluded)}
        case Bernoulli(availability=availability):
            return {**given, "availability": _text(availability)}
        case MarkovOnOff():
            each = ("availability", "correlation")
            return {
                **given,
                **{name: _text(getattr(participation, name)) for name in each},
                "start": _whole(participation.start),
            }
        case FiniteChain(transition=transition, state_masks=masks, start=start):
            sets = [np.flatnonzero(mask).tolist() for mask in masks]
            rows = [_text(normalised(row)) for row in transition]
            return {**given, "transition": rows, "sets": sets, "start": start}
        case Cyclic():
            cycle = ("periods", "offsets", "active")
            return {**given, **{name: _whole(getattr(participation, name)) for name in cycle}}
    raise ValueError(
        f"participation must be known to certificates, got {type(participation).__name__}"
    )


def setting_from_text(document: Mapping[str, Any]) -> Setting:
    """Return the setting that a certificate holds, in float64, for the engines."""
    problem = document["problem"]
    clients = QuadraticProblem(
        _floats(problem["hessians"]),
        _floats(problem["optima"]),
        sigma=_floats(problem["sigma"]),
        server_sigma=_floats(problem["server_sigma"]),
        target_weights=_floats(problem["target_weights"]),
    )
    return Setting(
        _made(document["algorithm"]),
        clients,
        _participation(document["participation"], clients.n_clients),
        document["rounds"],
        _floats(document["x0"]),
    )


def _floats(value: Any) -> Any:
    """Return numbers for text, and objects of the library for what has a name."""
    if isinstance(value, list):
        return [_floats(item) for item in value]
    if isinstance(value, Mapping):
        return _made(value)
    return float(Fraction(value)) if isinstance(value, str) and value[-1:].isdigit() else value


def _made(document: Mapping[str, Any]) -> Any:
    given = {name: _floats(value) for name, value in document.items() if name != "name"}
    for name, value in given.items():
        if name == "cutoff" and value is None:
            given[name] = math.inf
        elif isinstance(value, list):
            given[name] = tuple(value)
    if "name" not in document:
        return Ball(**given)
    return class_named(document["name"])(**given)


def _participation(document: Mapping[str, Any], n_clients: int) -> Participation:
    given = {name: _floats(value) for name, value in document.items() if name != "name"}
    match document["name"]:
        case "UniformSubset":
            return UniformSubset(n_clients, given["size"], excluded=given["excluded"])
        case "FiniteChain":
            masks = [np.isin(np.arange(n_clients), clients) for clients in given["sets"]]
            return FiniteChain(given["transition"], masks, start=given["start"])
        case "Bernoulli":
            return Bernoulli(given["availability"])
        case "MarkovOnOff":
            return MarkovOnOff(**given)
    return Cyclic(**given)
