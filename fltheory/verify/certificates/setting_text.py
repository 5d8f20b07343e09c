"""A setting as the text that certificates hold, every number a fraction, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from inspect import signature
from typing import Any

import numpy as np

from fltheory import participation as processes
from fltheory.algorithms import AdaFed, AveragedIterate, F3ast, LocalSgd, Unbiased
from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.algorithms.table import class_named
from fltheory.decimals import as_fraction, normalised
from fltheory.engines import Setting
from fltheory.participation import Participation
from fltheory.problems import Ball, QuadraticProblem
from fltheory.problems.quadratic_problem import quadratic_for
from fltheory.verify.certificates.certificate_checker import PARTICIPATIONS

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
    problem = quadratic_for("to be certified", setting.problem)
    shape = problem.n_clients, problem.dim, problem.dim
    shares = problem.noise_shares
    alpha = problem.alpha if problem.target_weights is not None else [1] * problem.n_clients
    return {
        "algorithm": _algorithm_text(setting.algorithm),
        "problem": {
            "hessians": _text(np.broadcast_to(problem.hessians, shape)),
            "optima": _text(problem.optima),
            "sigma": _text(problem.sigma),
            "server_sigma": _text(problem.server_sigma),
            "target_weights": _text(normalised(alpha)),
            **({} if shares is None else {"noise_shares": _text(shares)}),
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
    if isinstance(algorithm, LocalSgd):
        # The checker knows those who take part as those who step, averaging after every E-th step.
        sampled, first = found.pop("sampled"), found.pop("first_average")
        if sampled != "steps" or first not in (None, str(algorithm.local_steps)):
            raise ValueError(
                "algorithm must have sampled 'steps' and its first average after local_steps to be "
                f"certified, got sampled {sampled!r} and first_average {first}"
            )
    # Thirds have no decimals that sum to one.
    for name in _SHARES.get(type(algorithm), ()):
        found[name] = _text(normalised(getattr(algorithm, name)))
    return found


def _participation_text(participation: Participation) -> Document:
    """Return the fields that the checker knows of a process, as it wants them."""
    kind = type(participation)
    if getattr(processes, kind.__name__, None) is not kind or kind.__name__ not in PARTICIPATIONS:
        raise ValueError(f"participation must be known to certificates, got {kind.__name__}")
    given: Document = {"name": kind.__name__}
    for name in PARTICIPATIONS[kind.__name__]:
        value = getattr(participation, name)
        match name:
            case "transition":
                given[name] = [_text(normalised(row)) for row in value]
            case "sets":
                given[name] = [list(members) for members in value]
            case _:
                given[name] = _whole(value) if name in _WHOLE else _text(value)
    return given


def setting_from_text(document: Mapping[str, Any]) -> Setting:
    """Return the setting that a certificate holds, in float64, for the engines."""
    problem = document["problem"]
    clients = QuadraticProblem(
        _floats(problem["hessians"]),
        _floats(problem["optima"]),
        sigma=_floats(problem["sigma"]),
        server_sigma=_floats(problem["server_sigma"]),
        target_weights=_floats(problem["target_weights"]),
        noise_shares=_floats(problem.get("noise_shares")),
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
    given = {name: _floats(document[name]) for name in PARTICIPATIONS[document["name"]]}
    if "sets" in given:
        clients = np.arange(n_clients)
        given["state_masks"] = [np.isin(clients, members) for members in given.pop("sets")]
    kind = getattr(processes, document["name"])
    if "n_clients" in signature(kind).parameters:
        given["n_clients"] = n_clients
    return kind(**given)
