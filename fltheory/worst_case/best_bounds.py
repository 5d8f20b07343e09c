"""The best bound on an algorithm's rounds that can be proved for a class of clients, and its proof.

What can be proved depends on the kind of round. It may be a round of FedAvg or SAFARI with
participants drawn uniformly, weighted averaging over the clients present, or a method with memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.algorithms import FedVarp, Mifa, Scaffold
from fltheory.algorithms.contract import Algorithm, Schedule, in_round
from fltheory.argument_kinds import checks_kinds
from fltheory.files.read_file import existing_file
from fltheory.participation import FiniteChain
from fltheory.participation.base import Participation
from fltheory.participation.process import process_of
from fltheory.worst_case.correlated.bound import (
    CorrelatedBound,
    CorrelatedCertificate,
    best_correlated_bound,
    correlated_certificate,
)
from fltheory.worst_case.correlated.phases import (
    PhasedBound,
    PhasesCertificate,
    phases_certificate,
    scheduled_bound,
)
from fltheory.worst_case.correlated.polynomial import (
    PolynomialBound,
    PolynomialCertificate,
    needs_polynomials,
    polynomial_bound,
    polynomial_certificate,
)
from fltheory.worst_case.correlated.rich import (
    RichBound,
    RichCertificate,
    rich_certificate,
    richer_bound,
)
from fltheory.worst_case.memory import (
    LyapunovBound,
    LyapunovCertificate,
    MemoryRound,
    lyapunov_bound_of,
)
from fltheory.worst_case.proof.proof_file import ProofFile
from fltheory.worst_case.rounds.best_settings import least_floor_weights
from fltheory.worst_case.rounds.bound import Bound, best_bound_of
from fltheory.worst_case.rounds.certificate import Certificate
from fltheory.worst_case.rounds.certificate import certificate as round_certificate
from fltheory.worst_case.rounds.client_class import ClientClass, exact
from fltheory.worst_case.rounds.measure import DESCENT, DISTANCE, AnyClass, Gap, Measure
from fltheory.worst_case.rounds.one_round import AveragingRound, OneRound

Measured: TypeAlias = Literal["distance", "gap", "descent", "loss", "last"]
AnyBound: TypeAlias = Bound | CorrelatedBound | LyapunovBound | PhasedBound


@checks_kinds
def best_bound(
    algorithm: Algorithm | Schedule,
    participation: Participation,
    client_class: AnyClass,
    *,
    rate: Any = None,
    decrease: Any = None,
    gap: Any = None,
    measure: Measured | None = None,
    target_weights: ArrayLike | None = None,
    best_weights: bool = False,
    every_n_clients: bool = False,
    rounds: int | None = None,
    start_distance: Any = None,
    rich: bool = False,
) -> AnyBound:
    """Return the best bound that a solver finds for all clients of a class.

    It solves semidefinite programs whose size does not depend on the number of clients: performance
    estimation (Drori and Teboulle 2014; Taylor, Hendrickx and Glineur 2017) for local steps with
    partial participation. `certificate` turns the result into a proof.

    - FedAvg or SAFARI with `UniformSubset`: ``E||x+ - x*||^2 <= rate ||x - x*||^2 + residual``,
      which bounds any number of rounds by iteration. For heterogeneity at the optimum without
      noise, this is the supremum over the class; otherwise it may be larger. For a `SmoothClass`,
      in which clients need not be convex,
      ``E F(x+) <= F(x) - decrease ||grad F(x)||^2 + residual``. For the gap,
      ``E||x+ - x*||^2 <= rate ||x - x*||^2 - gap (F(x) - F*) + residual``, which bounds the mean of
      ``E F(x_r) - F*`` over rounds with weights ``rate^-r``.
    - FedAvg, Unbiased or WeightedFedAvg with `Bernoulli`: the same, with independently available
      clients. Dissimilarity at the optimum is ``sum_i alpha_i ||grad F_i(x*)||^2``, for the
      objective ``F = sum alpha_i F_i``.
    - FedAvg, Unbiased or WeightedFedAvg with `MarkovOnOff`, clients that come and go in bursts: the
      mean over rounds ``t < T`` of ``E||x_t - x*||^2`` is at most
      ``(start ||x_0 - x*||^2 + ...)/T + floor``, for every T. If a rate is given,
      ``E||x_t - x*||^2`` itself is bounded. The class must have mu above 0. The measure "loss"
      bounds ``E F`` at the mean model instead. A small `FiniteChain` of sets is covered in the same
      way. With a schedule of steps, the mean of ``E||x_t - x*||^2`` over the given ``rounds`` is
      bounded. The measure "last" bounds ``E||x_T - x*||^2`` after these rounds, with or without a
      schedule.
    - FedVarp, Scaffold or Mifa with one local step (FedVarp with one client per round is SAGA): ``E
      ||x_R - x*||^2 <= rate^R (start D_0^2 + heterogeneity sigma_*^2)`` by a Lyapunov function. The
      class must be without noise, with mu above 0.

    Parameters
    ----------
    algorithm : Algorithm
        Its step sizes are taken as fractions.
    participation : UniformSubset, Bernoulli, MarkovOnOff or FiniteChain
    client_class : ClientClass or SmoothClass
    rate : number, optional
        The rate at which the residual is minimised. By default, the rate with the smallest floor,
        ``residual / (1 - rate)``; if floors are equal, the smallest rate. For a method with memory,
        the default is the smallest rate; for the gap of F, it is 1.
    decrease : number, optional
        The decrease at which the residual is minimised, for the descent of F. By default, the
        decrease with the smallest floor, ``residual / decrease`` (if floors are equal, the largest
        decrease).
    gap : number, optional
        The gap at which the residual is minimised, for the gap of F.
    measure : {"distance", "gap", "descent", "loss", "last"}, optional
        The bounded quantity. By default, this is the descent of F for a `SmoothClass`, and the
        distance otherwise.
    target_weights : array, (N,), optional
        alpha, for weighted averaging. By default, the algorithm's own target weights if it has any,
        otherwise equal weights.
    best_weights : bool
        Whether to search for the weights with the smallest floor, or with the smallest bound after
        ``rounds``. Identical clients get the same weight, and the sum of all weights does not
        change. The bound can be proved for the weights returned, but only a local search suggests
        that no other weights are better.
    every_n_clients : bool
        Bound the round for every number of clients that is at least the number of participants,
        with the same share of them excluded.
    rounds : int, optional
        For clients that come and go, minimise the bound after this many rounds from
        ``start_distance`` instead of the floor.
    start_distance : number, optional
        The distance ``||x_0 - x*||`` for ``rounds``.
    rich : bool
        For clients that come and go and have exact gradients, let the Lyapunov function also depend
        on gradients and losses at the model. The program is larger, and the bound is never worse.

    Returns
    -------
    Bound, CorrelatedBound, LyapunovBound or PhasedBound
        The bound, with its coefficients, its ``floor`` and ``after(rounds, ...)``. A `PhasedBound`,
        which covers rounds that differ, is for a fixed number of rounds and has no floor. A
        `LyapunovBound` has the outcome UNDECIDED if no Lyapunov function is found that the checker
        accepts.

    Raises
    ------
    ValueError
        If the algorithm, the participation or a number is not covered.
    ArithmeticError
        If no bound is found, for example at a rate below the smallest possible one.

    Examples -------- For gradient descent, the rate is ``max(|1 - eta L|, |1 - eta mu|)^2``. For
    clients that need not be convex, F decreases by ``eta (1 - L eta / 2)`` times the squared
    gradient.

    >>> from fltheory.algorithms import FedAvg
    >>> from fltheory.participation import Bernoulli, UniformSubset
    >>> from fltheory.worst_case import ClientClass, SmoothClass
    >>> alone, convex = FedAvg(client_lr=0.5, local_steps=1), ClientClass(1, "0.1")
    >>> round(best_bound(alone, UniformSubset(3, 3), convex).rate, 9)
    0.9025
    >>> round(best_bound(alone, Bernoulli([1.0, 1.0]), convex).rate, 6)
    0.9025
    >>> round(best_bound(alone, UniformSubset(3, 3), SmoothClass(1)).decrease, 9)
    0.375

    For SAGA at the step 1/(3L) and ten clients with mu = L/10, its authors prove a rate of 0.975.

    >>> saga = FedVarp(client_lr=1.0, local_steps=1, server_lr=0.25)
    >>> found = best_bound(saga, UniformSubset(10, 1), convex)
    >>> found.outcome.name, float(found.rate) < 0.975
    ('PROVED', True)

    For gradient descent on convex clients, the gap is at least ``2 eta (1 - L eta / 2)``, with no
    floor.

    >>> found = best_bound(alone, UniformSubset(3, 3), ClientClass(1, 0), measure="gap")
    >>> round(found.speed, 6)
    1.0
    """
    if (rounds is None) != (start_distance is None):
        raise ValueError("rounds and start_distance must both be given or both be left out")
    given = {"rate": rate, "gap": gap, "decrease": decrease}
    numbers = {name: exact(name, v) for name, v in given.items() if v is not None}
    measured = _measured(measure, client_class, numbers)
    if isinstance(algorithm, FedVarp | Scaffold | Mifa):
        if measured is not DISTANCE:
            raise ValueError(
                "client_class must be a ClientClass for a method with memory, where the bound is "
                f"on the distance to x*, not on a {measured.speed} of F; got {client_class!r}"
            )
        a_memory = MemoryRound.of(algorithm, participation)
        return lyapunov_bound_of(a_memory, _convex(client_class), rate)
    chained = isinstance(participation, FiniteChain)
    if chained or process_of(participation).client_chains is not None:

        def in_number(index: int) -> AveragingRound:
            return AveragingRound.of(in_round(algorithm, index), participation, target_weights)

        differ = measure == "last" or hasattr(algorithm, "at")
        bound_of = _of_schedule if differ else _of_averaging
        horizon = (rounds, start_distance, rich)
        return bound_of(in_number, client_class, numbers, measured, measure, best_weights, horizon)
    if measure in ("loss", "last") or rounds is not None or rich:
        raise ValueError(
            "participation must be Bernoulli or MarkovOnOff for measure='loss' or 'last', rounds "
            f"or rich, got {type(participation).__name__}"
        )
    a_round = OneRound.of(algorithm, participation)
    if every_n_clients:
        a_round = a_round.for_every_n_clients()
    return best_bound_of(a_round, client_class, numbers.get(measured.speed), measured)


def _measured(
    measure: Measured | None, clients: AnyClass, numbers: Mapping[str, Fraction]
) -> Measure:
    """Return the measure to bound, and refuse numbers that belong to a different measure."""
    if measure is None:
        smooth = clients.mu < 0 or "decrease" in numbers
        measure = "descent" if smooth else "gap" if "gap" in numbers else "distance"
    validation.one_of("measure", measure, get_args(Measured))
    allowed = {"gap": ["rate", "gap"], "descent": ["decrease"]}
    for name in numbers:
        if name not in allowed.get(measure, ["rate"]):
            raise ValueError(f"{name} must not be given for a bound on the {measure}")
    if measure == "gap":
        return Gap(numbers.get("rate", Fraction(1)))
    return DESCENT if measure == "descent" else DISTANCE


def _of_schedule(
    in_number: Callable[[int], AveragingRound],
    clients: AnyClass,
    numbers: Mapping[str, Fraction],
    measured: Measure,
    measure: Measured | None,
    best_weights: bool,
    horizon: tuple[int | None, Any, bool],
) -> PhasedBound:
    """Bound a run of a given length in which steps may change."""
    rounds, distance, rich = horizon
    if measure == "loss" or measured is not DISTANCE or numbers or best_weights or rich:
        raise ValueError(
            "for steps that change or for the last model, measure must be 'distance' or 'last', "
            "and rate, best_weights and rich must be left out"
        )
    if rounds is None:
        raise ValueError(
            "rounds and start_distance must be given for steps that change or for the last model"
        )
    count = validation.whole_number("rounds", rounds, at_least=1)
    played = [in_number(index) for index in range(1, count + 1)]
    return scheduled_bound(played, _convex(clients), distance, measure == "last")


def _of_averaging(
    in_number: Callable[[int], AveragingRound],
    clients: AnyClass,
    numbers: Mapping[str, Fraction],
    measured: Measure,
    measure: Measured | None,
    best_weights: bool,
    horizon: tuple[int | None, Any, bool],
) -> Bound | CorrelatedBound:
    """Bound a single round if rounds are independent, otherwise means over rounds."""
    (rounds, distance, rich), a_round = horizon, in_number(1)
    if not a_round.is_correlated and measure != "loss" and rounds is None and not rich:
        if best_weights:
            a_round = least_floor_weights(a_round, _convex(clients))
        return best_bound_of(a_round, clients, numbers.get(measured.speed), measured)
    if measured is not DISTANCE:
        raise ValueError(
            f"measure must be 'distance' or 'loss' where clients are correlated in time, got "
            f"a {measured.speed} of F"
        )

    def bound_of(played: AveragingRound) -> CorrelatedBound:
        start = 1 if distance is None else distance
        plain = measure != "loss" and not numbers and not rich
        if plain and needs_polynomials(played, _convex(clients)):
            return polynomial_bound(played, _convex(clients), rounds=rounds, distance=start)
        found = best_correlated_bound(
            played,
            _convex(clients),
            measure="loss" if measure == "loss" else "distance",
            rate=numbers.get("rate"),
            rounds=rounds,
            distance=start,
        )
        return richer_bound(found) if rich else found

    def value(played: AveragingRound) -> float:
        found = bound_of(played)
        return found.floor if rounds is None else found.after(rounds, float(distance))

    if best_weights:
        a_round = least_floor_weights(a_round, _convex(clients), value)
    return bound_of(a_round)


def _convex(clients: AnyClass) -> ClientClass:
    """Return the class as a class of convex clients, which a bound on the distance to x* needs."""
    DISTANCE.check(clients)
    assert isinstance(clients, ClientClass)
    return clients


@checks_kinds
def certificate(bound: AnyBound, margin: float = 1e-6) -> ProofFile[Any]:
    """Return a proof in fractions of a bound slightly above one that `best_bound` found.

    Parameters
    ----------
    bound : Bound, CorrelatedBound, PhasedBound or LyapunovBound
        A `LyapunovBound` either already has its proof or has none.
    margin : float
        The relative amount by which the coefficients may exceed those of the bound. If no rate or
        decrease was given, ``1 - rate`` or the decrease may also fall below its value in the bound
        by this amount. Coefficients that are zero up to the solver's precision become 1e-9 times
        the square of the sum of the steps.

    Raises
    ------
    ValueError
        If the margin is not above 0.
    ArithmeticError
        If no proof is found that the checker accepts.

    Examples
    --------
    >>> from fltheory.algorithms import FedAvg
    >>> from fltheory.participation import UniformSubset
    >>> from fltheory.worst_case import ClientClass
    >>> bound = best_bound(FedAvg(0.5, 1), UniformSubset(3, 3), ClientClass(1, "0.1"))
    >>> proof = certificate(bound)
    >>> proof.verify()
    >>> proof.lines[0]
    'E||x+ - x*||^2 <= (0.9025) ||x - x*||^2 + (2.5e-10) sigma_*^2'
    """
    return _PROVERS[type(bound)](bound, margin)


def _proof_of_memory(bound: LyapunovBound, margin: float) -> ProofFile[Any]:
    if bound.certificate is None:
        raise ArithmeticError(f"no proof was found: {bound.tried}")
    return bound.certificate


_PROVERS: Mapping[type, Callable[[Any, float], ProofFile[Any]]] = {
    Bound: round_certificate,
    CorrelatedBound: correlated_certificate,
    PolynomialBound: polynomial_certificate,
    RichBound: rich_certificate,
    LyapunovBound: _proof_of_memory,
    PhasedBound: phases_certificate,
}


# ------------------------------------------------------------ proofs from files

KINDS: Mapping[str, type[ProofFile[Any]]] = {
    one.checker.KIND: one
    for one in (
        Certificate,
        CorrelatedCertificate,
        PolynomialCertificate,
        RichCertificate,
        PhasesCertificate,
        LyapunovCertificate,
    )
}
_FORMER = ("bound on weighted averaging for every client loss",)
"""Kinds that are part of another one now."""


def read_proof(path: Path | str) -> ProofFile[Any] | None:
    """Return the proof in a file, not yet checked, or None if the file contains something else.

    The file says which kind of proof it is.

    Raises
    ------
    ValueError
        If a field of the proof is invalid, or the proof has an earlier format.

    Examples
    --------
    >>> read_proof("nowhere.json") is None
    True
    """
    path = validation.path("path", path)
    most = max(one.checker.MOST_CHARACTERS for one in KINDS.values())
    try:
        text = existing_file("proof must be a file", path, most_bytes=most).read_bytes().decode()
    except (OSError, ValueError):
        return None
    try:
        document = json.loads(text)
    except (RecursionError, ValueError):
        return None
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind in _FORMER:
        raise ValueError(
            f"kind: {kind!r} is an earlier format, now part of {Certificate.checker.KIND!r}: make "
            "the proof again"
        )
    if not isinstance(kind, str) or kind not in KINDS:
        return None
    found = KINDS[kind](text)
    # Report an invalid field now.
    found.lines  # noqa: B018
    return found
