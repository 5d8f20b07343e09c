"""The algorithms that the suite checks, with their rows in the table and how cases are drawn.

A new row in `fltheory.algorithms.table` is checked against all the general laws without further
work, if its hyper-parameters are among `OPTIONS`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from inspect import Parameter
from typing import Any, TypeAlias

import numpy as np

from fltheory.algorithms.local_sgd import LocalSgd
from fltheory.algorithms.shared.step_sizes import Constant
from fltheory.algorithms.table import ALGORITHMS, Listed
from fltheory.testing.conformance.case import Case
from fltheory.testing.conformance.options import (
    OPTIONS,
    Option,
    Shares,
    StepsPerClient,
    Whole,
)

Options: TypeAlias = Mapping[str, Any]
STEP_SIZES = ("client_lr", "local_steps", "server_lr")

# A proximal term does not overshoot up to this product of its strength and the step.
_STIFFEST = 1.3


def _single_steps(
    client_lr: float, local_steps: int, aggregation_weights: tuple[float, ...]
) -> Any:
    return LocalSgd(Constant(client_lr), local_steps, aggregation_weights)


@dataclass(frozen=True)
class Specification:
    """An algorithm that the suite checks.

    Attributes
    ----------
    name : str
    listed : Listed
        The algorithm's row in the table.
    divisor : str
        The divisor of the present clients' weights in the paper: "present" for their sum, "all" for
        N, "one" if they are not divided; empty if there are no such weights.
    memory : str
        The entry of the state that contains the memory of each client.
    remembers_all : bool
        Whether the memory represents all clients once they have appeared.
    chooses : bool
        Whether rounds depend on comparisons that rounding could change.
    weighting : bool
        Whether ``run`` has an option for weights by data size.
    server : bool
        Whether the last client represents the server's own data; a step on these is a round by
        itself.
    step_a_round : bool
        Whether a round is a single step, so that ``local_steps`` is the number of steps between
        averages.
    kinds : mapping
        The kinds of options whose names mean something different elsewhere.
    """

    name: str
    listed: Listed
    divisor: str = "present"
    memory: str = ""
    remembers_all: bool = False
    chooses: bool = False
    weighting: bool = False
    server: bool = False
    step_a_round: bool = False
    kinds: Mapping[str, Option] = field(default_factory=dict)

    @cached_property
    def by_size(self) -> bool:
        """Whether weights depend on data sizes by default."""
        return self.weighting or "client_weights" in self._parameters

    @cached_property
    def _parameters(self) -> Mapping[str, Parameter]:
        return self.listed.__signature__.parameters

    @cached_property
    def options(self) -> dict[str, Option]:
        """The arguments of ``run`` other than step sizes, by name.

        Raises
        ------
        ValueError
            If a hyper-parameter without a default is not in `OPTIONS`.
        """
        # The trace determines which branch a round takes, and clients have their data sizes.
        besides = (*STEP_SIZES, "client_weights", "q")
        found = {"weighting": OPTIONS["weighting"]} if self.weighting else {}
        for name, parameter in self._parameters.items():
            if name in OPTIONS and name not in besides:
                found[name] = self.kinds.get(name, OPTIONS[name])
            elif parameter.default is Parameter.empty and name not in besides:
                raise ValueError(
                    f"{name} of {self.name} must be an option that the suite knows: {list(OPTIONS)}"
                )
        return found

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The default values of options that are not given."""
        found = {n: p.default for n, p in self._parameters.items() if n in self.options}
        return {n: value for n, value in found.items() if value is not Parameter.empty}

    @cached_property
    def server_lr(self) -> bool:
        """Whether the algorithm has a server step size."""
        return "server_lr" in self._parameters

    @cached_property
    def sized_steps(self) -> bool:
        """Whether each client has its own number of local steps."""
        return "tuple" in str(self._parameters["local_steps"].annotation)

    @property
    def steps(self) -> Option:
        """The kind of ``local_steps``."""
        return StepsPerClient() if self.sized_steps else Whole()

    def optional(self, name: str) -> bool:
        """Whether an option may be left out, in which case it is estimated."""
        return name in self._parameters and self._parameters[name].default is None

    def draw(self, rng: np.random.Generator, n: int, fixed: Options) -> dict[str, Any]:
        """Return options for n clients."""
        # An oracle knows both or neither, so fixing one determines the other.
        both = [fixed[name] for name in ("availability", "correlation") if name in fixed]
        oracle = rng.random() < 0.5 if not both else both[-1] is not None
        found = {}
        for name, option in self.options.items():
            value = option.draw(rng, n)
            known = oracle if name != "known_minima" else rng.random() < 0.3
            found[name] = value if known or not self.optional(name) else None
        if "proximal" in found:
            found["proximal"] /= max(1.0, fixed.get("client_lr", 1.0))
        return found

    def largest_lr(self, fixed: Options) -> float:
        """Return the largest local step size at which steps are stable, given fixed options."""
        return _STIFFEST / fixed["proximal"] if fixed.get("proximal", 0) > 0 else math.inf

    def prepared(self, case: Case) -> Case:
        """Return a case in which no choice among clients is a tie, as papers leave ties open."""
        return without_ties(case) if "size" in self.options else case

    def _kinds(self, fixed: Options) -> list[tuple[str, Option]]:
        known = {**OPTIONS, **self.options, "local_steps": self.steps}
        return [(name, known[name]) for name in fixed]

    def checked(self, fixed: Options) -> dict[str, Any]:
        """Return a user's fixed options in the form for ``run``.

        Raises
        ------
        ValueError
            If an option is unknown, has a value of the wrong kind, or implies a different number of
            clients from the others.
        """
        known = [*self.options, *STEP_SIZES[: 2 + self.server_lr]]
        for name in fixed:
            if name not in known:
                raise ValueError(
                    f"options of {self.name} must be among {', '.join(known)}, got {name}"
                )
        found = {
            name: kind.checked(name, fixed[name], optional=self.optional(name))
            for name, kind in self._kinds(fixed)
        }
        counts = {name: kind.n_clients(found[name]) for name, kind in self._kinds(fixed)}
        said = {name: count for name, count in counts.items() if count is not None}
        if len(set(said.values())) > 1:
            listed = ", ".join(f"{name} of {count}" for name, count in said.items())
            raise ValueError(f"options must be for the same number of clients, got {listed}")
        largest = self.largest_lr(found)
        if found.get("client_lr", 0.0) > largest:
            raise ValueError(
                f"client_lr must be at most {largest:.6g} for local steps to be stable with the "
                f"other fixed arguments, got {found['client_lr']:.6g}"
            )
        return found

    def n_clients(self, fixed: Options) -> int | None:
        """Return the number of clients that fixed options require, or None if they require none."""
        for name, kind in self._kinds(fixed):
            if (count := kind.n_clients(fixed[name])) is not None:
                return count
        return None

    def fewest(self, fixed: Options) -> int:
        """Return the smallest possible number of clients."""
        return max((kind.fewest(fixed[name]) for name, kind in self._kinds(fixed)), default=1)

    def lasts(self, fixed: Options) -> float:
        """Return the length of absence from which fixed options make a difference."""
        return max((kind.lasts(fixed[name]) for name, kind in self._kinds(fixed)), default=0)


def without_ties(case: Case) -> Case:
    """Remove from rounds the clients for which F3AST's choice would be a tie.

    Rates start at the target weights and decay equally until a client is chosen. So clients that
    were never chosen are equally urgent, and without smoothing all clients are. The paper does not
    say which client is chosen first.
    """
    given, trace = case.options, case.trace.copy()
    alpha, size, beta = np.array(given["target_weights"]), given["size"], given["smoothing"]
    known, rate = given.get("availability"), alpha
    for row in trace:
        if known is not None:
            rate = (1 - beta) * np.array(known) + beta * row
        with np.errstate(divide="ignore"):
            urgency = alpha / rate
        foremost = sorted(np.flatnonzero(row), key=lambda k: -urgency[k])
        if len(foremost) > size:
            last = urgency[foremost[size - 1]]
            ahead = [k for k in foremost if urgency[k] > last and not _tie(urgency[k], last)]
            equal = [k for k in foremost if _tie(urgency[k], last)]
            if len(ahead) + len(equal) > size:
                row[equal[size - len(ahead) :]] = False
        if known is None:
            rate = (1 - beta) * rate + beta * np.isin(np.arange(alpha.size), foremost[:size])
    return case.with_trace(trace)


def _tie(one: float, other: float) -> bool:
    return one == other or abs(one - other) <= 1e-6 * abs(other)


# Facts that the table of algorithms does not contain; algorithms with default values have no entry.
_FACTS: Mapping[str, Mapping[str, Any]] = {
    "fedavg": {"weighting": True},
    "fedprox": {"weighting": True},
    "weighted-fedavg": {"divisor": "one"},
    "unbiased": {"divisor": "one"},
    "fedavg-is": {"divisor": "all"},
    "scaffold": {"memory": "c_i", "remembers_all": True},
    "fedvarp": {"memory": "y", "remembers_all": True},
    "cluster-fedvarp": {"memory": "y"},
    "mifa": {"divisor": "", "memory": "updates", "remembers_all": True},
    "fedar": {"divisor": "", "memory": "updates"},
    # Clients have their own models and weights by age. Stored models start at x0, so no slip of a
    # memory applies.
    "fedawe": {"divisor": ""},
    "fedau": {"divisor": "all"},
    "f3ast": {"divisor": "one", "chooses": True},
    "ca-fed": {"divisor": "one", "chooses": True},
    "safari": {"server": True},
    "local-sgd": {
        "divisor": "",
        "step_a_round": True,
        "kinds": {
            "aggregation_weights": Shares(
                "p, positive with sum 1, one per client", OPTIONS["target_weights"].draw
            )
        },
    },
}

SPECIFICATIONS: dict[str, Specification] = {
    name: Specification(name, line, **_FACTS.get(name, {}))
    for name, line in {
        **ALGORITHMS,
        "local-sgd": Listed(_single_steps, "local SGD", "Li et al., ICLR 2020"),
    }.items()
}
"""The algorithms that can be checked."""


def specification(name: str) -> Specification:
    """Return an algorithm's specification by its name, ignoring case.

    Raises
    ------
    ValueError
        If the name is unknown; the message lists the names that exist.
    """
    known = name.lower() if isinstance(name, str) else name
    if not isinstance(known, str) or known not in SPECIFICATIONS:
        raise ValueError(f"name must be one of {', '.join(SPECIFICATIONS)}, got {name!r}")
    return SPECIFICATIONS[known]


def conformance_algorithms() -> dict[str, dict[str, str]]:
    """Return the algorithms that can be checked, with the meanings of their options.

    Examples
    --------
    >>> conformance_algorithms()["mifa"]
    {'start': '"wait" or "zero": until all clients have appeared'}
    """
    return {
        name: {
            option: kind.says + "; estimated if omitted" * one.optional(option)
            for option, kind in one.options.items()
        }
        for name, one in SPECIFICATIONS.items()
    }
