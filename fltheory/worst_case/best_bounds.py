"""The best bound on an algorithm's rounds that can be proved for a class of clients, and its proof.

What can be proved depends on the kind of a round: one of FedAvg or SAFARI with participants drawn
uniformly, weighted averaging over those who are there, or a method with memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, get_args

from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.algorithms import FedVarp, Mifa, Scaffold
from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.argument_kinds import checks_kinds
from fltheory.participation.base import Participation
from fltheory.participation.process import process_of
from fltheory.worst_case.correlated.bound import (
    CorrelatedBound,
    best_correlated_bound,
    correlated_certificate,
)
from fltheory.worst_case.methods.averaging import (
    AveragingBound,
    averaging_certificate,
    best_averaging_bound,
    least_floor_weights,
)
from fltheory.worst_case.methods.averaging_round import AveragingRound
from fltheory.worst_case.methods.lyapunov import LyapunovBound, lyapunov_bound_of
from fltheory.worst_case.methods.memory import MemoryRound
from fltheory.worst_case.proof.proof_file import ProofFile
from fltheory.worst_case.rounds.bound import Bound, best_bound_of
from fltheory.worst_case.rounds.certificate import certificate as round_certificate
from fltheory.worst_case.rounds.client_class import ClientClass, exact
from fltheory.worst_case.rounds.descent import DescentBound, best_descent_of, descent_certificate
from fltheory.worst_case.rounds.measure import DISTANCE, AnyClass
from fltheory.worst_case.rounds.one_round import OneRound

Measured: TypeAlias = Literal["distance", "descent", "loss"]
AnyBound: TypeAlias = Bound | DescentBound | AveragingBound | CorrelatedBound | LyapunovBound


@checks_kinds
def best_bound(
    algorithm: Algorithm | Schedule,
    participation: Participation,
    client_class: AnyClass,
    *,
    rate: Any = None,
    decrease: Any = None,
    measure: Measured | None = None,
    target_weights: ArrayLike | None = None,
    best_weights: bool = False,
    every_n_clients: bool = False,
    rounds: int | None = None,
    start_distance: Any = None,
) -> AnyBound:
    """Return the best bound that holds for all clients of a class, as a solver finds it.

    By semidefinite programs whose size does not depend on the number of clients: performance
    estimation (Drori and Teboulle 2014; Taylor, Hendrickx and Glineur 2017) for local steps with
    partial participation. `certificate` makes a proof of what is found.

    - FedAvg or SAFARI with `UniformSubset`: ``E||x+ - x*||^2 <= rate ||x - x*||^2 + residual``, and
      so for all R by iteration. For heterogeneity at the optimum without noise it is the supremum
      over all problems of the class; elsewhere it may be above that. For a `SmoothClass`, whose
      clients need not be convex, ``E F(x+) <= F(x) - decrease ||grad F(x)||^2 + residual``.
    - FedAvg, Unbiased or WeightedFedAvg with `Bernoulli`: the same on the distance, where clients
      are there independently. Dissimilarity at the optimum is ``sum_i alpha_i ||grad
      F_i(x*)||^2``, of the objective ``F = sum alpha_i F_i``. The class must be without noise.
    - FedAvg, Unbiased or WeightedFedAvg with `MarkovOnOff`, clients that come and go in bursts: the
      mean over rounds ``t < T`` of ``E||x_t - x*||^2`` is at most ``(start ||x_0 - x*||^2 + ...)/T
      + floor``, for every T; with a rate, ``E||x_t - x*||^2`` itself. The class must have mu above
      0. The measure "loss" bounds ``E F`` of the mean model instead.
    - FedVarp, Scaffold or Mifa with one local step (FedVarp with one client a round is SAGA): ``E
      ||x_R - x*||^2 <= rate^R (start D_0^2 + heterogeneity sigma_*^2)`` by a Lyapunov function. The
      class must be without noise, with mu above 0.

    Parameters
    ----------
    algorithm : Algorithm
        Its step sizes are taken as fractions.
    participation : UniformSubset, Bernoulli or MarkovOnOff
    client_class : ClientClass or SmoothClass
    rate : number, optional
        The rate at which the residual is to be least. By default the rate of the least floor,
        ``residual / (1 - rate)``, among equal floors the least; of a method with memory the least.
    decrease : number, optional
        The same for the descent of F: by default that of the least floor, ``residual / decrease``,
        among equal floors the largest.
    measure : {"distance", "descent", "loss"}, optional
        What is bounded; by default the descent of F for a `SmoothClass`, else the distance.
    target_weights : array, (N,), optional
        alpha, for weighted averaging; equal by default, or those that the algorithm has itself.
    best_weights : bool
        Weighted averaging with the weights, one for clients that are alike, of the least floor that
        is found, among those of the algorithm's sum. The floor is proved for what is returned; that
        no other weights have a smaller one is a local search's finding.
    every_n_clients : bool
        Bound the round for every number of clients from the participants' on, at this share of
        excluded ones.
    rounds : int, optional
        For clients that come and go: the bound after so many rounds from ``start_distance`` is to
        be the least, not the floor.
    start_distance : number, optional
        ``||x_0 - x*||`` for ``rounds``.

    Returns
    -------
    Bound, DescentBound, AveragingBound, CorrelatedBound or LyapunovBound
        With its coefficients, ``floor``, and ``after(rounds, ...)``. A `LyapunovBound` has
        the outcome UNDECIDED where no function is found that the checker accepts.

    Raises
    ------
    ValueError
        For algorithms, participation and numbers that are not covered.
    ArithmeticError
        If no bound is found, as at a rate below the least one.

    Examples
    --------
    Gradient descent: the rate is ``max(|1 - eta L|, |1 - eta mu|)^2``, and clients that need not be
    convex decrease F by ``eta (1 - L eta / 2)`` times the squared gradient.

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

    SAGA at the step 1/(3L), for ten clients with mu = L/10. Its authors' rate is 0.975.

    >>> saga = FedVarp(client_lr=1.0, local_steps=1, server_lr=0.25)
    >>> found = best_bound(saga, UniformSubset(10, 1), convex)
    >>> found.outcome.name, float(found.rate) < 0.975
    ('PROVED', True)
    """
    if measure is None:
        measure = "distance" if client_class.mu >= 0 and decrease is None else "descent"
    speed = _speed(measure, rate, decrease)
    if (rounds is None) != (start_distance is None):
        raise ValueError("rounds and start_distance must be given together, or neither")
    remembers = isinstance(algorithm, FedVarp | Scaffold | Mifa)
    alone = process_of(participation).client_chains is not None
    if measure == "descent" and (remembers or alone):
        raise ValueError(
            "client_class must be a ClientClass for a method with memory or weighted averaging, of "
            f"which the distance to x* is bounded, not the descent of F; got {client_class!r}"
        )
    if remembers:
        return lyapunov_bound_of(
            MemoryRound.of(algorithm, participation), _convex(client_class), speed
        )
    if alone:
        return _of_averaging(
            AveragingRound.of(algorithm, participation, target_weights),
            _convex(client_class),
            speed,
            best_weights,
            measure,
            (rounds, start_distance),
        )
    if measure == "loss" or rounds is not None:
        raise ValueError(
            "participation must be Bernoulli or MarkovOnOff for measure='loss' or rounds, got "
            f"{type(participation).__name__}"
        )
    a_round = OneRound.of(algorithm, participation)
    if every_n_clients:
        a_round = a_round.for_every_n_clients()
    return _of_one_round(a_round, client_class, measure, speed)


def _speed(measure: Measured, rate: Any, decrease: Any) -> Any:
    """Return the rate or the decrease that was given, whichever the measure has."""
    validation.one_of("measure", measure, get_args(Measured))
    other, given, speed = "decrease", decrease, rate
    if measure == "descent":
        other, given, speed = "rate", rate, decrease
    if given is not None:
        raise ValueError(f"{other} must not be given for a bound on the {measure}")
    return speed


def _of_averaging(
    a_round: AveragingRound,
    clients: ClientClass,
    rate: Any,
    best_weights: bool,
    measure: Measured,
    horizon: tuple[int | None, Any],
) -> AveragingBound | CorrelatedBound:
    """Bound a single round where rounds are independent, else means over rounds."""
    rounds, distance = horizon
    if not a_round.is_correlated and measure == "distance" and rounds is None:
        if best_weights:
            a_round = least_floor_weights(a_round, clients).round
        return best_averaging_bound(a_round, clients, rate=rate)
    if best_weights:
        raise ValueError(
            "best_weights must be left out where means over rounds are bounded: weights are not "
            "searched for there"
        )
    return best_correlated_bound(
        a_round,
        clients,
        measure="loss" if measure == "loss" else "distance",
        rate=rate,
        rounds=rounds,
        distance=1 if distance is None else distance,
    )


def _of_one_round(
    a_round: OneRound, clients: AnyClass, measure: Measured, speed: Any
) -> Bound | DescentBound:
    of_descent = measure == "descent"
    given = None if speed is None else exact("decrease" if of_descent else "rate", speed)
    if of_descent:
        return best_descent_of(a_round, clients, given)
    return best_bound_of(a_round, _convex(clients), given)


def _convex(clients: AnyClass) -> ClientClass:
    """Return a class of convex clients, which a bound on the distance to x* is for."""
    DISTANCE.check(clients)
    assert isinstance(clients, ClientClass)
    return clients


@checks_kinds
def certificate(bound: AnyBound, margin: float = 1e-6) -> ProofFile:
    """Return a proof in fractions of a bound that `best_bound` found, a little above it.

    Parameters
    ----------
    bound : Bound, DescentBound, AveragingBound, CorrelatedBound or LyapunovBound
        The last has its proof already, or none.
    margin : float
        By which share the coefficients may be above the bound's, and ``1 - rate`` below, or the
        decrease, where none was given. What is zero up to the solver's precision becomes 1e-9 of
        the square of the steps' sum.

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


def _proof_of_memory(bound: LyapunovBound, margin: float) -> ProofFile:
    if bound.certificate is None:
        raise ArithmeticError(f"no proof was found: {bound.tried}")
    return bound.certificate


_PROVERS: Mapping[type, Callable[[Any, float], ProofFile]] = {
    Bound: round_certificate,
    DescentBound: descent_certificate,
    AveragingBound: averaging_certificate,
    CorrelatedBound: correlated_certificate,
    LyapunovBound: _proof_of_memory,
}
