"""Numbers of a setting by name: what the symbols of statements stand for.

Each is exact where the setting's numbers are: a fraction, or a ball where a root is none. The
checker of certificates works out the same names, apart from this code and on purpose.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cached_property, lru_cache
from types import CodeType
from typing import Any

import numpy as np

from fltheory.content import cached_by_content
from fltheory.engines import Setting
from fltheory.exact_or_float import largest, log, number, root
from fltheory.participation.uniformity import distance_from_uniform, mean_size
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


class SettingView(ReadOnlyArrays):
    """What the numbers of a setting are made of, each worked out when it is first asked for.

    Parameters
    ----------
    setting : Setting

    Examples
    --------
    >>> from fltheory.theorems import get
    >>> view = SettingView(get("sa-fl/5").regimes["q = 0"].setting)
    >>> view["local_steps"], view.start.shape
    (5, (5,))
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.problem: Any = setting.problem

    def __getitem__(self, name: str) -> Any:
        """Return a number by its name in `NUMBERS`."""
        return NUMBERS[name][1](self)

    def parameter(self, name: str) -> Any:
        """Return a hyper-parameter of the algorithm, or of the one that it is wrapped around.

        Raises
        ------
        ValueError
            If none of them has it.
        """
        part: Any = self.setting.algorithm
        while part is not None:
            if hasattr(part, name):
                return getattr(part, name)
            part = getattr(part, "algorithm", None) or getattr(part, "scaffold", None)
        raise ValueError(f"algorithm must have {name}, got {self.setting.algorithm!r}")

    @cached_property
    def start(self) -> FloatArray:
        """(d,) ``x_0 - x*``."""
        return np.asarray(self.setting.x0 - self.problem.x_star)

    @cached_property
    def gradients_at_optimum(self) -> FloatArray:
        """(N, d) the clients' gradients at ``x*``."""
        n_clients = self.problem.n_clients
        points = np.tile(self.problem.x_star, (n_clients, 1))
        return np.asarray(self.problem.client_gradients(points, np.arange(n_clients)))


def _squared(vector: FloatArray) -> Any:
    return number((vector * vector).sum())


def _control_gap(view: SettingView) -> Any:
    return number((view.gradients_at_optimum**2).sum(axis=1).mean())


def _of_problem(name: str) -> Callable[[SettingView], Any]:
    return lambda view: getattr(view.problem, name)


def _of_algorithm(name: str) -> Callable[[SettingView], Any]:
    return lambda view: view.parameter(name)


NUMBERS: Mapping[str, tuple[str, Callable[[SettingView], Any]]] = {
    "L": ("smoothness of every client", _of_problem("L")),
    "mu": ("strong convexity of every client", _of_problem("mu")),
    "sigma": ("noise of a client's gradient", _of_problem("sigma")),
    "server_sigma": ("noise of the server's gradient", _of_problem("server_sigma")),
    "sigma_G": ("gradient dissimilarity", _of_problem("sigma_G")),
    "Gamma": ("max_k F_k(x*) - F_k*", _of_problem("Gamma")),
    "n_clients": ("clients", _of_problem("n_clients")),
    "squared_distance": ("||x_0 - x*||^2", lambda view: _squared(view.start)),
    "excess_loss": (
        "F(x_0) - F*",
        lambda view: number(view.problem.excess_loss(view.setting.x0)),
    ),
    "control_gap": ("1/N sum_i ||grad F_i(x*)||^2", _control_gap),
    "rounds": ("rounds", lambda view: view.setting.rounds),
    "local_steps": ("local steps in a round", _of_algorithm("local_steps")),
    "client_lr": ("step size of local SGD", _of_algorithm("client_lr")),
    "server_lr": ("factor on the aggregated update", _of_algorithm("server_lr")),
    "assist_lr": ("step size of the server's own step", _of_algorithm("assist_lr")),
    "q": ("probability of a clients' round", _of_algorithm("q")),
    "cutoff": ("cut-off of counts", _of_algorithm("cutoff")),
    "option": ("how SCAFFOLD renews its controls, 1 or 2", _of_algorithm("option")),
    "is_warm": (
        "1 if controls are made in a round of their own, else 0",
        lambda view: int(hasattr(view.setting.algorithm, "scaffold")),
    ),
    "participants": (
        "expected participants of a round",
        lambda view: mean_size(view.setting.participation),
    ),
    "least_availability": (
        "the least probability of a client to take part",
        lambda view: -largest(-view.setting.participation.marginals),
    ),
    "largest_availability": (
        "the largest probability of a client to take part",
        lambda view: largest(view.setting.participation.marginals),
    ),
    "distance_from_uniform": (
        "total variation between a round's participants and a uniform draw of as many",
        lambda view: distance_from_uniform(view.setting.participation),
    ),
    "has_memory": (
        "1 if who takes part depends on the past, else 0",
        lambda view: int(not view.setting.participation.independent),
    ),
}
"""What each name means, and how it is worked out."""

_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sqrt": root,
    "log": log,
    "Max": lambda *values: largest(list(values)),
    "Min": lambda *values: -largest([-value for value in values]),
}


@cached_by_content(64)
def view_of(setting: Setting) -> SettingView:
    """Return the setting's view; the last ones are kept, as symbols share what they are made of."""
    return SettingView(setting)


def value_in(formula: str, setting: Setting) -> Any:
    """Return the value of a formula in `NUMBERS` on a setting.

    Raises
    ------
    ValueError
        If the setting has no such number.

    Examples
    --------
    >>> from fltheory.theorems import get
    >>> value_in("sqrt(4*local_steps + 5)", get("sa-fl/5").regimes["q = 0"].setting)
    5.0
    """
    view = view_of(setting)
    names = {name: view[name] for name in names_in(formula)}
    # Names and functions are those of the two tables alone, as `check_formula` has seen.
    return eval(_compiled(formula), {"__builtins__": {}, **_FUNCTIONS}, names)


@lru_cache(maxsize=1024)
def _compiled(formula: str) -> CodeType:
    return compile(formula, "<number of a setting>", "eval")


@lru_cache(maxsize=1024)
def names_in(formula: str) -> tuple[str, ...]:
    """Return the names of numbers that a formula is made of.

    Raises
    ------
    ValueError
        If it is no formula, or has another name in it; the message says which is nearest.
    """
    try:
        tree = ast.parse(formula, mode="eval")
    except (SyntaxError, ValueError) as error:
        raise ValueError(
            f"number must be a formula, say 'sqrt(squared_distance)', got {formula!r}"
        ) from error
    used = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})
    for name in used:
        if name not in NUMBERS and name not in _FUNCTIONS:
            near = get_close_matches(name, (*NUMBERS, *_FUNCTIONS), n=1, cutoff=0.6)
            nearest = f" (nearest: {near[0]})" if near else ""
            raise ValueError(
                f"number must be made of the names in fltheory.numbers, got {name!r} in "
                f"{formula!r}{nearest}"
            )
    return tuple(name for name in used if name in NUMBERS)
