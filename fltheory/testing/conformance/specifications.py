"""What each algorithm's paper asks to be told, and how the suite chooses it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from fltheory.testing.conformance.cases.case import Case
from fltheory.testing.conformance.cases.options import OPTIONS, Option, StepsPerClient, Whole
from fltheory.testing.conformance.likely_causes import (
    averaging,
    ca_fed,
    f3ast,
    fedau,
    inverse_availability,
    memory,
    scaffold,
)
from fltheory.testing.conformance.likely_causes.rounds import Paper
from fltheory.validation import FloatArray

Options: TypeAlias = Mapping[str, Any]
STEP_SIZES = ("client_lr", "local_steps", "server_lr")
Draw: TypeAlias = Callable[[np.random.Generator, int, Options], Options]

_NUDGE = 1e-8
_ORDERS = 2


def _nothing(rng: np.random.Generator, n: int, fixed: Options) -> Options:
    return {}


def _as_it_is(case: Case) -> Case:
    return case


def _any_step(fixed: Options) -> float:
    return math.inf


def _moved(case: Case) -> Iterator[tuple[Case, FloatArray]]:
    """Yield the case with numbers that differ a little, and what clients' estimates differ by.

    Clients that tie come in one order, in the opposite one, and in some others.
    """
    n, rng = case.n_clients, np.random.default_rng(case.n_clients)
    ascending = np.arange(n)
    orders = [(ascending, ascending), (ascending, -ascending)]
    orders += [(rng.permutation(n), rng.permutation(n)) for _ in range(_ORDERS)]
    for order in orders:
        for sign in (1, -1):
            nudges = sign * _NUDGE * (1 + np.array(order) / n)
            options = dict(case.options or {})
            for name in ("target_weights", "availability"):
                if isinstance(options.get(name), tuple):
                    options[name] = tuple(np.array(options[name]) * (1 + nudges[0]))
            if "prior" in options:
                first, second = options["prior"]
                options["prior"] = (first * (1 + sign * _NUDGE), second)
            if "threshold" in options:
                # Where all that is compared is exactly 0, nothing else tells a tie.
                options["threshold"] = options["threshold"] + sign * _NUDGE
            yield replace(case, x0=case.x0 * (1 + sign * _NUDGE), options=options), nudges


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
    at_the_limit : mapping, optional
        Options with which the limit of its mean model under random participation is known
        exactly, where others have the same limit; None where it is not known.
    tuple_steps : bool
        Whether each client has its own number of local steps.
    largest_lr : callable
        The largest local step size at which steps are stable, given what is fixed.
    prepared : callable
        A case in which no choice is a tie, which papers leave open.
    chooses : bool
        Whether rounds depend on comparisons, which rounding could turn.
    """

    name: str
    paper: Paper
    draw: Draw = _nothing
    options: Mapping[str, str] = field(default_factory=dict)
    by_size: bool = False
    memory: bool = False
    at_the_limit: Options | None = field(default_factory=dict)
    tuple_steps: bool = False
    largest_lr: Callable[[Options], float] = _any_step
    prepared: Callable[[Case], Case] = _as_it_is
    chooses: bool = False

    @property
    def steps(self) -> Option:
        """What ``local_steps`` may be."""
        return StepsPerClient() if self.tuple_steps else Whole()

    def steady(self, case: Case) -> bool:
        """Whether numbers that differ a little lead to models that do.

        If not, a choice is a tie or nearly one there, which rounding turns, or an order that the
        paper leaves open.
        """
        if not self.chooses:
            return True
        models = self.paper.models(case)
        size = float(np.abs(models).max()) + case.scale
        far = (
            np.abs(self.paper.models(moved, nudges=nudges) - models).max()
            for moved, nudges in _moved(case)
        )
        return all(one <= 1e3 * _NUDGE * size for one in far)

    def _kinds(self, fixed: Options) -> list[tuple[str, Option]]:
        return [(name, self.steps if name == "local_steps" else OPTIONS[name]) for name in fixed]

    def checked(self, fixed: Options) -> dict[str, Any]:
        """Return what a user fixes, as ``run`` is to have it.

        Raises
        ------
        ValueError
            For an unknown option, what is nothing of its kind, or options that are about
            different numbers of clients.
        """
        known = (*self.options, *STEP_SIZES)
        for name in fixed:
            if name not in known:
                raise ValueError(
                    f"options of {self.name} must be among {', '.join(known)}, got {name}"
                )
        found = {name: kind.checked(name, fixed[name]) for name, kind in self._kinds(fixed)}
        counts = {name: kind.n_clients(found[name]) for name, kind in self._kinds(fixed)}
        said = {name: count for name, count in counts.items() if count is not None}
        if len(set(said.values())) > 1:
            listed = ", ".join(f"{name} of {count}" for name, count in said.items())
            raise ValueError(f"options must be about as many clients, got {listed}")
        largest = self.largest_lr(found)
        if found.get("client_lr", 0.0) > largest:
            raise ValueError(
                f"client_lr must be at most {largest:.6g}, where local steps with what else is "
                f"fixed are stable, got {found['client_lr']:.6g}"
            )
        return found

    def n_clients(self, fixed: Options) -> int | None:
        """Return how many clients there must be, None where what is fixed says nothing of it."""
        for name, kind in self._kinds(fixed):
            if (count := kind.n_clients(fixed[name])) is not None:
                return count
        return None

    def fewest(self, fixed: Options) -> int:
        """Return how many clients there must be at least."""
        return max((kind.fewest(fixed[name]) for name, kind in self._kinds(fixed)), default=1)

    def lasts(self, fixed: Options) -> float:
        """Return how long an absence must be for what is fixed to make a difference."""
        return max((kind.lasts(fixed[name]) for name, kind in self._kinds(fixed)), default=0)


def _shares(rng: np.random.Generator, n: int) -> tuple[float, ...]:
    """Return target weights that no two clients have alike."""
    raw = rng.uniform(0.5, 1.5, n) + np.arange(n) / n
    return tuple((raw / raw.sum()).tolist())


def _chances(rng: np.random.Generator, n: int) -> tuple[float, ...]:
    return tuple(rng.uniform(0.3, 0.95, n).tolist())


def _weighting(rng: np.random.Generator, n: int, fixed: Options) -> Options:
    return {"weighting": "n_samples" if rng.random() < 0.7 else "uniform"}


def _fedprox(rng: np.random.Generator, n: int, fixed: Options) -> Options:
    strength = float(rng.uniform(0.2, 1.0)) / max(1.0, fixed.get("client_lr", 1.0))
    return {"proximal": strength, **_weighting(rng, n, fixed)}


def _scaffold(rng: np.random.Generator, n: int, fixed: Options) -> Options:
    return {"option": int(rng.integers(1, 3))}


def _mifa(rng: np.random.Generator, n: int, fixed: Options) -> Options:
    return {"start": "wait" if rng.random() < 0.4 else "zero"}


def _fedau(rng: np.random.Generator, n: int, fixed: Options) -> Options:
    return {"cutoff": int(rng.integers(2, 5))}


def _fedar(rng: np.random.Generator, n: int, fixed: Options) -> Options:
    growth = float(rng.uniform(0.1, 0.4))
    largest = 1 + float(rng.choice([1.5, 2.5])) * growth
    return {"growth": growth, "largest": largest, "cutoff": int(rng.choice([1, 2, 3, 4, 30]))}


def _fedavg_is(rng: np.random.Generator, n: int, fixed: Options) -> Options:
    return {"availability": _chances(rng, n)}


def _adafed(rng: np.random.Generator, n: int, fixed: Options) -> Options:
    return {"target_weights": _shares(rng, n), "availability": _chances(rng, n)}


def _f3ast(rng: np.random.Generator, n: int, fixed: Options) -> Options:
    return {
        "target_weights": _shares(rng, n),
        "size": max(1, n // 2),
        "smoothing": float(rng.uniform(0.1, 0.5)),
        "availability": _chances(rng, n) if rng.random() < 0.5 else None,
    }


def _ca_fed(rng: np.random.Generator, n: int, fixed: Options) -> Options:
    oracle = rng.random() < 0.5
    for name in ("availability", "correlation"):
        # Both are known or neither: what is fixed of one is said of the other.
        oracle = fixed[name] is not None if name in fixed else oracle
    return {
        "target_weights": _shares(rng, n),
        "loss_smoothing": float(rng.uniform(0.2, 0.8)),
        "threshold": float(rng.choice([0.0, 0.1])),
        "kappa_bar": float(rng.uniform(0.2, 2.0)),
        "availability": _chances(rng, n) if oracle else None,
        "correlation": tuple(rng.uniform(-0.3, 0.9, n).tolist()) if oracle else None,
        # An oracle's minima need not be the clients' own, which are all 0.
        "known_minima": tuple((-rng.random(n)).tolist()) if rng.random() < 0.3 else None,
        "prior": (float(rng.uniform(0.5, 4)), float(rng.uniform(0.5, 4))),
    }


def _without_ties(case: Case) -> Case:
    """Leave out of rounds those whom F3AST might choose or not, as others are as urgent.

    Rates begin at the target weights and decay alike until a client is chosen, so that among
    those never chosen all are as urgent, and so are all where nothing is smoothed; which goes
    first is nowhere said.
    """
    given, trace = case.options or {}, case.trace.copy()
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


def _contracting(fixed: Options) -> float:
    """Return the largest step for which a proximal term pulls without overshooting."""
    return _STIFFEST / fixed["proximal"] if fixed.get("proximal", 0) > 0 else math.inf


_STIFFEST = 1.3

_TARGETS = "alpha, positive with sum 1, one a client"
_AVAILABILITY = "the probability that a client is present, one a client"
_WEIGHTING = '"n_samples" (by default) or "uniform"'

SPECIFICATIONS: dict[str, Specification] = {
    one.name: one
    for one in (
        Specification(
            "fedavg",
            averaging.PAPERS["fedavg"],
            _weighting,
            {"weighting": _WEIGHTING},
            by_size=True,
        ),
        Specification(
            "fedprox",
            averaging.PAPERS["fedprox"],
            _fedprox,
            {"proximal": "mu of the proximal term", "weighting": _WEIGHTING},
            by_size=True,
            largest_lr=_contracting,
        ),
        Specification("fednova", averaging.PAPERS["fednova"], by_size=True, tuple_steps=True),
        Specification(
            "scaffold",
            scaffold.PAPERS["scaffold"],
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
            # Once all have appeared, both are the same.
            at_the_limit={"start": "zero"},
        ),
        Specification(
            "fedau",
            fedau.PAPERS["fedau"],
            _fedau,
            {"cutoff": "K, the longest interval"},
            at_the_limit=None,
        ),
        Specification(
            "fedar",
            memory.PAPERS["fedar"],
            _fedar,
            {
                "growth": "psi(tau) = min(1 + growth tau, largest)",
                "largest": "the largest psi",
                "cutoff": "tau_max, the largest age that counts",
            },
            memory=True,
            at_the_limit=None,
        ),
        Specification(
            "fedavg-is",
            inverse_availability.PAPERS["fedavg-is"],
            _fedavg_is,
            {"availability": _AVAILABILITY},
        ),
        Specification(
            "f3ast",
            f3ast.PAPERS["f3ast"],
            _f3ast,
            {
                "target_weights": _TARGETS,
                "size": "m, how many clients may train in a round",
                "smoothing": "beta of the rates",
                "availability": f"{_AVAILABILITY}; rates are learned where it is left out",
            },
            at_the_limit=None,
            prepared=_without_ties,
            chooses=True,
        ),
        Specification(
            "adafed",
            inverse_availability.PAPERS["adafed"],
            _adafed,
            {"target_weights": _TARGETS, "availability": _AVAILABILITY},
        ),
        Specification(
            "ca-fed",
            ca_fed.PAPERS["ca-fed"],
            _ca_fed,
            {
                "target_weights": _TARGETS,
                "loss_smoothing": "beta, the share of a new report",
                "threshold": "tau, how much an exclusion must lower epsilon",
                "kappa_bar": "its square weighs the bias in epsilon",
                "availability": f"{_AVAILABILITY}; estimated where it is left out",
                "correlation": "lambda, one a client; left out with availability",
                "known_minima": "F_k^*, one a client; estimated where it is left out",
                "prior": "(n, m) of the estimates",
            },
            at_the_limit=None,
            chooses=True,
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
    if not isinstance(known, str) or known not in SPECIFICATIONS:
        raise ValueError(f"name must be one of {', '.join(SPECIFICATIONS)}, got {name!r}")
    return SPECIFICATIONS[known]


def conformance_algorithms() -> dict[str, dict[str, str]]:
    """Return the algorithms that can be checked, and what each option of theirs is.

    Examples
    --------
    >>> conformance_algorithms()["mifa"]
    {'start': '"wait" or "zero": until all clients have appeared'}
    """
    return {name: dict(one.options) for name, one in SPECIFICATIONS.items()}
