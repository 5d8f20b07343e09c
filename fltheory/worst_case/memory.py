"""Rates of methods with memory, proved for every client loss by Lyapunov functions.

A method that remembers clients' gradients need not bring the model closer to x* in every round, but
a function V of the model and the memory may still decrease. A semidefinite program finds V. The
functions tried are quadratic in the model, the memory and the points where its gradients were
taken, plus function values. These functions do not change when clients are exchanged, so the
program's size does not depend on the number of clients. At a given rate, the problem is linear in
the function's coefficients and the multipliers of interpolation conditions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from fltheory import validation
from fltheory.algorithms import FedVarp, Mifa, Scaffold
from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.decimals import as_fraction, fraction_text
from fltheory.participation.base import Participation
from fltheory.participation.process import process_of
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray
from fltheory.worst_case.checker import memory as checker
from fltheory.worst_case.checker.memory import INEQUALITIES, LyapunovProof
from fltheory.worst_case.proof.proof_file import (
    ClassOutcome,
    ProofChecker,
    ProofFile,
    class_text,
    heterogeneity_text,
    text_from_above,
    with_values_cancelled,
)
from fltheory.worst_case.proof.rocq_export import memory_theorem
from fltheory.worst_case.rounds.client_class import ClientClass, exact
from fltheory.worst_case.rounds.slack import condition

# ------------------------------------------------------------ a round in forms Definitions: With K
# = 1, FedVARP, SCAFFOLD, MIFA and SAGA (FedVARP with one client per round) are x+ = x - step (1/N
# sum_i y_i + surprise sum_{i in S} (g_i - y_i)), y_i+ = g_i for i in S with ``g_i = grad F_i(x)``;
# ``surprise`` is 1/m, and 1/N for MIFA. The memory ``y_i`` is the gradient of F_i at a point phi_i,
# which is the model when i was last in S. If ``y_i = 0`` initially, phi_i is first the minimiser of
# F_i. Lengths are in units with L = 1 and ``x* = 0``. The memory minus ``grad F_i(x*)`` is w_i, and
# the gradient at the model minus ``grad F_i(x*)`` is u_i; the mean of ``grad F_i(x*)`` is zero. A
# form that is invariant under exchange of clients has - a *mean* block of
# ``(x, mean w, mean phi, mean u)``; - a block of *differences* from those means, of
# ``(w, phi, u)``, as the clients' mean; - coefficients of the means of ``F_i(phi_i)`` and of
# ``F_i(x)``, minus the tangent at x*. The sum of ``v_i`` over S has a variance of ``N (p - p_2)``
# times the mean square of differences, plus ``N (p - p_2) + N^2 (p_2 - p^2)`` times the square of
# the mean. Here p is the probability that a client is in S, and p_2 the probability that two given
# clients are.

Start: TypeAlias = Literal["zero", "gradients"]

PAIRS = tuple(permutations(range(3), 2))
"""Ordered pairs of a client's points: the memory's, the model and x*."""


@dataclass(frozen=True)
class MemoryRound:
    """One round of a method with memory and K = 1, in fractions.

    Attributes
    ----------
    n_clients : int
        N.
    participants : int
        m, or 0 if clients are present independently.
    probability : Fraction
        The probability that a client is present.
    surprise : Fraction
        The factor on each participant's deviation from its memory.
    step : Fraction
        client_lr times server_lr.
    start : {"zero", "gradients"}
        The initial memory, which is zero or the gradients at x_0.
    """

    n_clients: int
    participants: int
    probability: Fraction
    surprise: Fraction
    step: Fraction
    start: Start

    @classmethod
    def of(cls, algorithm: Algorithm | Schedule, participation: Participation) -> MemoryRound:
        """Return the round of an algorithm with its participation.

        Raises
        ------
        ValueError
            If the method or the participation is not covered (the message says why), or if a step
            is not a fraction.
        """
        if not isinstance(algorithm, FedVarp | Scaffold | Mifa):
            raise ValueError(
                f"algorithm must be FedVarp, Scaffold or Mifa, got {type(algorithm).__name__}: its "
                "memory is not just each client's last gradient"
            )
        if algorithm.local_steps != 1:
            raise ValueError(
                f"local_steps must be 1, got {algorithm.local_steps}: with more, the memory is not "
                "a gradient at a single point"
            )
        n_clients, participants, probability = _sampling(algorithm, participation)
        mifa = isinstance(algorithm, Mifa)
        waits = isinstance(algorithm, Mifa) and algorithm.start == "wait"
        step = exact("client_lr", algorithm.client_lr, above=0)
        return cls(
            n_clients=n_clients,
            participants=participants,
            probability=probability,
            surprise=Fraction(1, n_clients if mifa else participants),
            step=step * exact("server_lr", algorithm.server_lr, above=0),
            start="gradients" if waits else "zero",
        )

    @property
    def together(self) -> Fraction:
        """The probability that two given clients are both present."""
        if self.participants == 0:
            return self.probability**2
        return self.probability * Fraction(self.participants - 1, max(self.n_clients - 1, 1))


def _sampling(
    algorithm: FedVarp | Scaffold | Mifa, participation: Participation
) -> tuple[int, int, Fraction]:
    """Return N, m or 0, and the probability that a client is present."""
    process = process_of(participation)
    if process.uniform_draw is not None:
        size, excluded = process.uniform_draw
        if excluded:
            raise ValueError(
                f"participation must exclude nobody, got {len(excluded)} excluded "
                "clients: their memory is never renewed"
            )
        return participation.n_clients, size, Fraction(size, participation.n_clients)
    name = type(participation).__name__
    if not participation.independent:
        raise ValueError(
            f"participation must be UniformSubset or Bernoulli, got {name}: its rounds depend on "
            "the past, and one inequality must hold for every round"
        )
    if process.client_chains is None:
        raise ValueError(
            f"participation must be UniformSubset or Bernoulli, got {name}: clients must be "
            "interchangeable, drawn uniformly or present independently"
        )
    if not isinstance(algorithm, Mifa):
        raise ValueError(
            f"participation must be UniformSubset for {type(algorithm).__name__}, got {name}: "
            "the weights of those present would be random"
        )
    chances = set(participation.marginals.tolist())
    if len(chances) > 1:
        raise ValueError(
            "participation must have one probability for all clients, got "
            f"{min(chances):g} to {max(chances):g}: clients must be interchangeable"
        )
    return participation.n_clients, 0, as_fraction(chances.pop())


def checked_class(clients: ClientClass) -> ClientClass:
    """Return the class if proofs for methods with memory cover it.

    Raises
    ------
    ValueError
        If the class has noise, or is not strongly convex.
    """
    if clients.sigma > 0 or clients.server_sigma > 0:
        raise ValueError(
            "client_class must be without noise: the memory would store it and would no longer "
            "be a gradient"
        )
    if clients.mu == 0:
        raise ValueError(
            "mu must be above 0: without strong convexity no rate is below 1, and a memory of zero "
            "need not be a gradient of the client"
        )
    return clients


@dataclass(frozen=True, eq=False)
class SharedForm(ReadOnlyArrays):
    """A quadratic form that is invariant under exchange of clients, with function values.

    Attributes
    ----------
    means : array, (4, 4)
        The form in ``(x, mean w, mean phi, mean u)``.
    differences : array, (3, 3)
        The form in ``(w, phi, u)`` minus their means, averaged over clients.
    values : array, (2,)
        Coefficients of the clients' mean function values at the memory's points and at the model.
    """

    means: FloatArray
    differences: FloatArray
    values: FloatArray

    def __add__(self, other: SharedForm) -> SharedForm:
        """Return the sum."""
        return SharedForm(
            self.means + other.means,
            self.differences + other.differences,
            self.values + other.values,
        )

    def __mul__(self, factor: float) -> SharedForm:
        """Return a multiple."""
        return SharedForm(factor * self.means, factor * self.differences, factor * self.values)

    def at(self, model: FloatArray, vectors: FloatArray, values: FloatArray) -> float:
        """Evaluate the form at ``x`` (d,), clients' ``(w, phi, u)`` (N, 3, d) and values (N, 2)."""
        mean = vectors.mean(axis=0)
        apart = vectors - mean
        all_means = np.vstack([model, mean])
        spread = np.einsum("iad,ibd->ab", apart, apart) / len(vectors)
        products = float(np.sum(self.means * (all_means @ all_means.T)))
        return products + float(
            np.sum(self.differences * spread) + self.values @ values.mean(axis=0)
        )


def form(
    means: FloatArray | None = None,
    differences: FloatArray | None = None,
    values: tuple[float, float] = (0.0, 0.0),
) -> SharedForm:
    """Return a form with these parts; parts that are left out are zero."""
    return SharedForm(
        np.zeros((4, 4)) if means is None else means,
        np.zeros((3, 3)) if differences is None else differences,
        np.array(values),
    )


@dataclass(frozen=True, eq=False)
class Coordinate(ReadOnlyArrays):
    """One coefficient of a Lyapunov function, with its form now, after a round and initially.

    Attributes
    ----------
    name : str
        "means", "differences", "memory_value" or "model_value".
    place : (int, int)
        Row and column, for "means" and "differences".
    now, after, first : SharedForm
        ``after`` is the mean over S or, for the model's value, an upper bound on it. ``first`` is
        for the initial memory, which is zero or the gradients at the model.
    """

    name: str
    place: tuple[int, int]
    now: SharedForm
    after: SharedForm
    first: SharedForm


class MemoryForms(ReadOnlyArrays):
    """The forms of a round, for a class of clients.

    Parameters
    ----------
    a_round : MemoryRound
    clients : ClientClass
    """

    def __init__(self, a_round: MemoryRound, clients: ClientClass) -> None:
        self.round = a_round
        self.mu = float(clients.mu / clients.L)
        n, p, two = a_round.n_clients, a_round.probability, a_round.together
        self._p = float(p)
        self._spread = float(n * (p - two))
        self._mean_spread = float(n * (p - two) + n**2 * (two - p * p))
        step, surprise = float(a_round.step * clients.L), float(a_round.surprise)
        x, w, phi, u = np.eye(4)
        dw, dphi, du = np.eye(3)
        # The means after a round if the sum over S equals its mean, and the effect of the sum's
        # deviation.
        reach = step * surprise
        self._mean_step = -step * w - float(step * n * a_round.surprise * p) * (u - w)
        self._moved = np.array(
            [x + self._mean_step, w + self._p * (u - w), phi + self._p * (x - phi)]
        )
        self._jumps = np.array([-reach * (u - w), (u - w) / n, (x - phi) / n])
        self._apart = np.array([-reach * (du - dw), (du - dw) / n, -dphi / n])
        self._kept = np.array([w, phi]), np.array([dw, dphi])
        self._renewed = np.array([u, x]), np.array([du, np.zeros(3)])
        self._points = [
            ((phi, w), (dphi, dw)),
            ((x, u), (0 * du, du)),
            ((0 * x,) * 2, (0 * du,) * 2),
        ]

    @property
    def distance(self) -> SharedForm:
        """``||x||^2``."""
        return form(_corner(4))

    @property
    def dissimilarity(self) -> SharedForm:
        """The mean of ``||grad F_i(x*)||^2`` for zero memory, when the w_i have mean zero."""
        return form(differences=_corner(3))

    @property
    def first_means(self) -> FloatArray:
        """A basis of the means that can be nonzero initially."""
        return np.eye(4)[:, [0, 2, 3]] if self.round.start == "zero" else np.eye(4)[:, [0, 3]]

    @property
    def first_differences(self) -> FloatArray:
        """A basis of the differences that can be nonzero initially."""
        return np.eye(3) if self.round.start == "zero" else np.eye(3)[:, [2]]

    def coordinates(self) -> list[Coordinate]:
        """Return the coefficients of V: of means, of differences, and of function values."""
        found = [self._of_means(i, j) for i in range(3) for j in range(i, 3)]
        found += [self._of_differences(i, j) for i in range(2) for j in range(i, 2)]
        return [*found, self._memory_value(), self._model_value()]

    def conditions(self) -> list[SharedForm]:
        """Return the clients' mean interpolation condition for each of `PAIRS`."""
        return [self._condition(a, b) for a, b in PAIRS]

    def _of_means(self, i: int, j: int) -> Coordinate:
        kept = np.eye(4)[:3]
        renewed = np.vstack([np.eye(4)[0], self._renewed[0]])
        return Coordinate(
            "means",
            (i, j),
            form(_mixed(kept, i, j)),
            form(
                _mixed(self._moved, i, j) + self._mean_spread * _mixed(self._jumps, i, j),
                self._spread * _mixed(self._apart, i, j),
            ),
            form(_mixed(kept if self.round.start == "zero" else renewed, i, j)),
        )

    def _of_differences(self, i: int, j: int) -> Coordinate:
        """Return a coefficient of the clients' mean square minus the square of their mean."""
        (kept, kept_apart), (renewed, renewed_apart) = self._kept, self._renewed
        now = form(differences=_mixed(kept_apart, i, j))
        after = form(
            (1 - self._p) * _mixed(kept, i, j)
            + self._p * _mixed(renewed, i, j)
            - _mixed(self._moved[1:], i, j)
            - self._mean_spread * _mixed(self._jumps[1:], i, j),
            (1 - self._p) * _mixed(kept_apart, i, j)
            + self._p * _mixed(renewed_apart, i, j)
            - self._spread * _mixed(self._apart[1:], i, j),
        )
        at_model = form(differences=_mixed(renewed_apart, i, j))
        first = now if self.round.start == "zero" else at_model
        return Coordinate("differences", (i, j), now, after, first)

    def _memory_value(self) -> Coordinate:
        first = (1.0, 0.0) if self.round.start == "zero" else (0.0, 1.0)
        return Coordinate(
            "memory_value",
            (0, 0),
            form(values=(1.0, 0.0)),
            form(values=(1 - self._p, self._p)),
            form(values=first),
        )

    def _model_value(self) -> Coordinate:
        """Return F(x)'s coefficient, as F(x+) <= F(x) + <grad F(x), x+ - x> + ||x+ - x||^2/2."""
        u, jump, apart = np.eye(4)[3], self._jumps[0], self._apart[0]
        now = form(values=(0.0, 1.0))
        moved = np.vstack([u, self._mean_step])
        squares = np.outer(moved[1], moved[1]) + self._mean_spread * np.outer(jump, jump)
        after = form(
            _mixed(moved, 0, 1) / 2 + squares / 2, self._spread * np.outer(apart, apart) / 2
        )
        return Coordinate("model_value", (0, 0), now, now + after, now)

    def _condition(self, a: int, b: int) -> SharedForm:
        blocks = []
        for block in range(2):
            (x_a, g_a), (x_b, g_b) = self._points[a][block], self._points[b][block]
            blocks.append(condition(x_a - x_b, g_a, g_b, self.mu))
        values = [float(b == point) - float(a == point) for point in range(2)]
        return SharedForm(blocks[0], blocks[1], np.array(values))


def _corner(size: int) -> FloatArray:
    unit = np.eye(size)[0]
    return np.outer(unit, unit)


def _mixed(rows: FloatArray, i: int, j: int) -> FloatArray:
    """Return the form ``2 <row_i, row_j>``, or ``<row_i, row_i>`` if i = j."""
    both = np.outer(rows[i], rows[j])
    return both if i == j else both + both.T


# ------------------------------------------------------------ Lyapunov functions

_SLOWEST = 1e-7  # smallest 1 - rate that is searched for
_STEPS = 24
_BITS = (32, 44, 56, 72)
# Margin above the smallest initial bounds, so that no matrix is nearly singular.
_ROOM = 0.01
# If no certificate is found at a rate, 1 - rate is reduced by these factors, and then bisected.
_BACKWARDS = (1.001, 1.01, 1.1, 2.0, 10.0)
_HALVINGS = 5


@dataclass(frozen=True)
class LyapunovCertificate(ProofFile[LyapunovProof]):
    """A proof, as JSON, of a rate for every client of a class.

    Attributes
    ----------
    text : str
        The certificate; all numbers are fractions.
    """

    checker: ClassVar[ProofChecker] = checker

    @property
    def lines(self) -> tuple[str, ...]:
        """The certificate's content, i.e. the bound for all rounds, the class and the method."""
        proof = self.proof
        bound = {name: text_from_above(value) for name, value in proof.bound.items()}
        drawn = f"{proof.participants} of {proof.n_clients} clients drawn uniformly"
        alone = (
            f"{proof.n_clients} clients present with probability "
            f"{fraction_text(proof.probability)} each"
        )
        first = {
            "zero": "y_i = 0 at first",
            "gradients": "y_i = grad F_i(x_0) at first, R counted from there",
        }
        level = "" if proof.start == "gradients" else f" + {bound['heterogeneity']} sigma_*^2"
        left, rate = "E||x_R - x*||^2", bound["rate"]
        if proof.bound["gap"]:
            left = f"{bound['gap']} sum_(r<R) {rate}^(R-1-r) E[F(x_r) - F*]"
        return (
            f"{left} <= {rate}^R ({bound['start']} ||x_0 - x*||^2{level})",
            f"for all clients that are {class_text(proof.L, proof.mu)}, in any dimension, "
            f"{heterogeneity_text('optimum')}, with exact gradients",
            "x+ = x - step (mean of all y_i + surprise sum over those present of (grad F_i(x) - "
            "y_i)), their y_i+ = grad F_i(x)",
            f"{drawn if proof.sampling == 'drawn' else alone}, step = {fraction_text(proof.step)}, "
            f"surprise = {fraction_text(proof.surprise)}, {first[proof.start]}",
        )

    def rocq_theorem(self) -> str:
        """Return the proof as a theorem for Rocq, which needs the library in the folder ``rocq``.

        Raises
        ------
        ValueError
            If there is only one client, or if there are too many.
        """
        return memory_theorem(self.proof)


@dataclass(frozen=True)
class LyapunovBound:
    """The bound found for a method with memory.

    Attributes
    ----------
    round : MemoryRound
    client_class : ClientClass
    outcome : ClassOutcome
        PROVED, or UNDECIDED if no function was found. The latter refutes nothing.
    certificate : LyapunovCertificate or None
    least_rate : float or None
        The smallest rate at which the solver found a function, without proof, or None if it found
        none.
    tried : str
        The kinds of function that were tried.
    """

    round: MemoryRound
    client_class: ClientClass
    outcome: ClassOutcome
    certificate: LyapunovCertificate | None
    least_rate: float | None
    tried: str

    @property
    def rate(self) -> Fraction | None:
        """The proved rate: ``E V+ <= rate V``."""
        return self._coefficient("rate")

    @property
    def start(self) -> Fraction | None:
        """The coefficient of ``||x_0 - x*||^2`` in a bound on V at the start."""
        return self._coefficient("start")

    @property
    def heterogeneity(self) -> Fraction | None:
        """The coefficient of the mean of ``||grad F_i(x*)||^2`` in a bound on V at the start."""
        return self._coefficient("heterogeneity")

    def _coefficient(self, name: str) -> Fraction | None:
        return None if self.certificate is None else self.certificate.proof.bound[name]

    def after(self, rounds: int, distance: float) -> float:
        """Return the proved bound on ``E||x_R - x*||^2``, which is infinite if nothing is proved.

        Parameters
        ----------
        rounds : int
            R. If MIFA waits for all clients, R is counted from the round in which the last client
            appears.
        distance : float
            ``||x_0 - x*||``.
        """
        rounds = validation.whole_number("rounds", rounds, at_least=0)
        squared = validation.nonnegative("distance", distance) ** 2
        if self.certificate is None:
            return math.inf
        bound = self.certificate.proof.bound
        rate, start, heterogeneity = (
            float(bound[name]) for name in ("rate", "start", "heterogeneity")
        )
        level = float(self.client_class.dissimilarity**2)
        return rate**rounds * (start * squared + heterogeneity * level)


def lyapunov_bound_of(
    a_round: MemoryRound, clients: ClientClass, rate: Any = None, margin: Any = 1e-4
) -> LyapunovBound:
    """Return the best rate found for a method, or UNDECIDED if the checker accepts no function.

    Parameters
    ----------
    a_round : MemoryRound
    clients : ClientClass
        A class without noise and with mu above 0. Both kinds of heterogeneity bound gradients at
        x*.
    rate : number, optional
        The rate to prove. By default, this is the smallest rate for which a function is found.
    margin : number
        Relative amount by which 1 - rate may be smaller than the largest value found.
    """
    given = None if rate is None else exact("rate", rate)
    if given is not None and given >= 1:
        raise ValueError(f"rate must be below 1, got {rate!r}")
    share = exact("margin", margin, above=0)
    program = LyapunovProgram(a_round, checked_class(clients))
    least = None if given is not None else program.least_rate()
    tried = "functions quadratic in the model, the memory and its points, plus function values"
    if given is not None:
        tried, made = f"{tried}; at a rate of {float(given):.6g}", proved_rate(program, given)
    else:
        tried = f"{tried}; for 1 - rate from {program.slowest[-1]:.3g} on"
        made = None if least is None else _least_proved(program, least, share)
    outcome = ClassOutcome.UNDECIDED if made is None else ClassOutcome.PROVED
    return LyapunovBound(a_round, clients, outcome, made, least, tried)


def proved_gap(
    a_round: MemoryRound, clients: ClientClass, rate: Any, squared: float
) -> LyapunovCertificate | None:
    """Return a proof of a bound on a weighted sum of ``E F(x_r) - F*``, or None if not found.

    Parameters
    ----------
    a_round : MemoryRound
    clients : ClientClass
        A class without noise and with mu above 0.
    rate : number
        A rate of at most 1. The weight of round r of R is ``rate^(R-1-r)``.
    squared : float
        The value of ``||x_0 - x*||^2`` for which the bound is minimised, together with the class's
        dissimilarity.
    """
    program = LyapunovProgram(a_round, checked_class(clients), gap=a_round.step)
    level = float(clients.dissimilarity**2 / clients.L**2)
    return proved_rate(program, exact("rate", rate), (squared, level))


def _least_proved(
    program: LyapunovProgram, least: float, margin: Fraction
) -> LyapunovCertificate | None:
    """Return the certificate of a rate close to the smallest that the solver found.

    Where functions are nearly singular, the solver accepts rates that are impossible. So only the
    checker's verdict counts, and larger rates are tried until the checker accepts one.
    """

    def at(away: float) -> LyapunovCertificate | None:
        return proved_rate(program, 1 - Fraction(f"{away:.6g}"))

    failed = 1 - least
    for factor in (1 + float(margin), *_BACKWARDS):
        away = (1 - least) / factor
        made = at(away)
        if made is not None:
            break
        failed = away
    else:
        return None
    # If the first attempt gives a proof, it is as close to the solver's rate as requested.
    for _ in range(_HALVINGS if failed != 1 - least else 0):
        middle = math.sqrt(away * failed)
        better = at(middle)
        if better is None:
            failed = middle
        else:
            away, made = middle, better
    return made


@dataclass(frozen=True, eq=False)
class LyapunovSolution(ReadOnlyArrays):
    """Coefficients of a function and multipliers, as the solver returned them.

    Attributes
    ----------
    function : array, (11,)
        Coefficients of `MemoryForms.coordinates`.
    multipliers : array, (3, 6)
        The multipliers of each inequality, for `PAIRS`.
    start, heterogeneity : float
        Bounds on V initially, in units with L = 1.
    """

    function: FloatArray
    multipliers: FloatArray
    start: float
    heterogeneity: float


class LyapunovProgram(ReadOnlyArrays):
    """The three inequalities as a program whose unknowns are coefficients and multipliers.

    Parameters
    ----------
    a_round : MemoryRound
    clients : ClientClass
    gap : Fraction
        The multiple of ``F(x) - F*`` by which V also decreases in every round.
    """

    def __init__(
        self, a_round: MemoryRound, clients: ClientClass, gap: Fraction = Fraction(0)
    ) -> None:
        self.round, self.clients, self.gap = a_round, clients, gap
        self.forms = MemoryForms(a_round, clients)
        self._coordinates = self.forms.coordinates()
        self._conditions = self.forms.conditions()

    @property
    def slowest(self) -> tuple[float, float]:
        """Initial values of 1 - rate, which are a tenth of the slower of two processes, and less.

        The processes are the model's contraction by mu times the step, and the renewal of memory.
        """
        natural = min(float(self.clients.mu * self.round.step), float(self.round.probability))
        return natural / 10, min(natural / 1000, _SLOWEST)

    def least_rate(self) -> float | None:
        """Return the smallest rate at which a function is found, or None if there is none."""
        slow = next((away for away in self.slowest if self.solution(1 - away) is not None), None)
        if slow is None:
            return None
        fast = 1.0
        for _ in range(_STEPS):
            middle = math.sqrt(slow * fast)
            found = self.solution(1 - middle) is not None
            slow, fast = (middle, fast) if found else (slow, middle)
        return 1 - slow

    def solution(
        self, rate: float, prices: tuple[float, float] | None = None
    ) -> LyapunovSolution | None:
        """Return the function with the smallest initial bound at a rate, or None if there is none.

        Parameters
        ----------
        rate : float
        prices : pair of float, optional
            Costs of ``start`` and ``heterogeneity``. By default, both count about equally.
        """
        costs = np.zeros(len(self._scales))
        costs[-2:] = 1.0 if prices is None else np.array(prices) * self._scales[-2:] / max(prices)
        return self._solved(rate, costs)

    def inner_solution(
        self, rate: float, start: float, heterogeneity: float
    ) -> LyapunovSolution | None:
        """Return the function within the initial bounds that maximises the least eigenvalue."""
        costs = np.append(np.zeros(len(self._scales)), -1.0)
        return self._solved(rate, costs, np.array([start, heterogeneity]))

    def _solved(
        self, rate: float, costs: FloatArray, ends: FloatArray | None = None
    ) -> LyapunovSolution | None:
        """Solve for the unknowns and, if ``ends`` are given, for all blocks' least eigenvalue."""
        # SciPy takes a while to import, and reading a certificate does not need it.
        from fltheory.worst_case.semidefinite import Block, optimum

        scales = self._scales
        size, count = len(scales), len(self._coordinates)
        unit = np.eye(size, len(costs))
        rows, offsets = unit[count - 1 :], np.zeros(size - count + 1)
        if ends is not None:
            rows = np.concatenate([rows, -unit[size - 2 :]])
            offsets = np.append(offsets, ends / scales[size - 2 :])
        zero, sums, blocks = list[FloatArray](), list[float](), list[Block]()
        for name in INEQUALITIES:
            columns, constant = self._columns(name, rate), self._constant(name)
            values = np.array([column.values for column in columns]).T * scales
            units = np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-300)
            zero += [*((values / units) @ unit)]
            sums += [*(-constant.values / units[:, 0])]
            for block, basis in self._blocks(name):
                entries = np.array([basis.T @ getattr(column, block) @ basis for column in columns])
                fixed = basis.T @ getattr(constant, block) @ basis
                # These are coordinates in which all entries have similar sizes.
                entries = entries * scales[:, None, None]
                sizes = np.abs(entries).sum(axis=0) + np.abs(fixed)
                own = np.sqrt(np.maximum(np.diag(sizes), 1e-300))
                like = np.outer(own, own)
                least = [-np.eye(len(own))] * (len(costs) - size)
                blocks.append((np.array([*(entries / like), *least]), fixed / like))
        found = optimum(
            costs,
            equal=(np.array(zero), np.array(sums)),
            nonnegative=(rows, offsets),
            blocks=blocks,
        )
        if found is None:
            return None
        unknown = scales * found.unknowns[:size]
        return LyapunovSolution(
            unknown[:count],
            self._used * unknown[count:-2].reshape(3, len(PAIRS)),
            float(unknown[-2]),
            float(unknown[-1]),
        )

    @property
    def heterogeneity_scale(self) -> float:
        """The expected size of the initial bound on V, relative to squared gradients at x*."""
        return float((self.clients.L * self.round.step) ** 2 / self.round.probability)

    @property
    def _scales(self) -> FloatArray:
        """Expected sizes of the unknowns, so that the solver works with numbers close to 1."""
        e = float(self.clients.L * self.round.step)
        memory = e / float(self.round.probability)
        of_means = np.sqrt([1.0, memory**2, memory])
        of_differences = np.sqrt([e * memory, memory])
        function = {
            "means": np.outer(of_means, of_means),
            "differences": np.outer(of_differences, of_differences),
            "memory_value": np.full((1, 1), memory),
            "model_value": np.full((1, 1), memory),
        }
        multipliers = np.repeat([memory, e, memory], len(PAIRS))
        own = [function[item.name][item.place] for item in self._coordinates]
        return np.array([*own, *multipliers, 1.0, self.heterogeneity_scale])

    def _columns(self, name: str, rate: float) -> list[SharedForm]:
        """Return the form that each unknown adds to an inequality."""
        nothing = form()
        multipliers = [
            [
                item * float(one == name and used)
                for item, used in zip(self._conditions, row, strict=True)
            ]
            for one, row in zip(INEQUALITIES, self._used, strict=True)
        ]
        ends = [nothing, nothing]
        if name == "begin":
            ends = [self.forms.distance, self.forms.dissimilarity]
            if self.round.start == "gradients":
                ends[1] = nothing
        return [
            *(self._target(name, item, rate) for item in self._coordinates),
            *(item for row in multipliers for item in row),
            *ends,
        ]

    @property
    def _used(self) -> FloatArray:
        """The conditions of each inequality; the initial memory may be the gradients at x_0."""
        used = np.ones((len(INEQUALITIES), len(PAIRS)))
        if self.round.start == "gradients":
            used[-1] = [0 not in pair for pair in PAIRS]
        return used

    def _target(self, name: str, item: Coordinate, rate: float) -> SharedForm:
        if name == "positive":
            return item.now
        if name == "decrease":
            return item.now * rate + item.after * -1.0
        return item.first * -1.0

    def _constant(self, name: str) -> SharedForm:
        if self.gap:
            lost = -float(self.gap * self.clients.L) if name == "decrease" else 0.0
            return form(values=(0.0, lost))
        return self.forms.distance * -1.0 if name == "positive" else form()

    def _blocks(self, name: str) -> Iterator[tuple[str, FloatArray]]:
        first = name == "begin"
        yield "means", self.forms.first_means if first else np.eye(4)
        if self.round.n_clients > 1:
            yield "differences", self.forms.first_differences if first else np.eye(3)


def proved_rate(
    program: LyapunovProgram, rate: Fraction, prices: tuple[float, float] | None = None
) -> LyapunovCertificate | None:
    """Return a certificate of a rate that the checker accepts, or None if none is found."""
    best = program.solution(float(rate), prices)
    if best is None:
        return None
    ends = (1 + _ROOM) * np.array([best.start, best.heterogeneity])
    start, heterogeneity = (
        Fraction(f"{value:.4g}")
        for value in ends + np.array([0.0, _ROOM * program.heterogeneity_scale])
    )
    inner = program.inner_solution(float(rate), float(start), float(heterogeneity))
    if inner is None:
        return None
    texts = (_certificate_text(program, inner, rate, start, heterogeneity, bits) for bits in _BITS)
    return next(filter(None, map(LyapunovCertificate.accepted, texts)), None)


def _certificate_text(
    program: LyapunovProgram,
    solution: LyapunovSolution,
    rate: Fraction,
    start: Fraction,
    heterogeneity: Fraction,
    bits: int,
) -> str:
    """Return a certificate's JSON, with numbers rounded to ``bits`` binary places."""
    a_round, clients = program.round, program.clients
    unit = Fraction(1, 2**bits)
    rounded = [round(float(value) / unit) * unit for value in solution.function]
    means, differences = ([[Fraction(0)] * size for _ in range(size)] for size in (3, 2))
    for item, value in zip(program.forms.coordinates(), rounded, strict=True):
        i, j = item.place
        if item.name == "means":
            means[i][j] = means[j][i] = value / clients.L ** ((i == 1) + (j == 1))
        elif item.name == "differences":
            differences[i][j] = differences[j][i] = value / clients.L ** ((i == 0) + (j == 0))
    memory_value, model_value = rounded[-2], max(rounded[-1], Fraction(0))
    document = {
        "kind": checker.KIND,
        "version": checker.VERSION,
        "claim": checker.GAP_CLAIM if program.gap else checker.CLAIM,
        "method": {
            "n_clients": a_round.n_clients,
            "sampling": "drawn" if a_round.participants else "independent",
            "participants": a_round.participants,
            "probability": str(a_round.probability),
            "surprise": str(a_round.surprise),
            "step": str(a_round.step),
            "start": a_round.start,
        },
        "class": {"L": str(clients.L), "mu": str(clients.mu)},
        "bound": {
            "rate": str(rate),
            "gap": str(program.gap),
            "start": str(start),
            "heterogeneity": str(
                heterogeneity / clients.L**2 if a_round.start == "zero" else Fraction(0)
            ),
        },
        "function": {
            "means": _as_text(means),
            "differences": _as_text(differences),
            "memory_value": str(memory_value / clients.L),
            "model_value": str(model_value / clients.L),
        },
        "multipliers": {
            name: _as_text(_balanced(row, unit, values, clients.L))
            for name, row, values in zip(
                INEQUALITIES,
                solution.multipliers,
                _values(a_round, rate, memory_value, model_value, program.gap * clients.L),
                strict=True,
            )
        },
    }
    return json.dumps(document, indent=1) + "\n"


def _as_text(rows: list[list[Fraction]]) -> list[list[str]]:
    return [[str(value) for value in row] for row in rows]


def _values(
    a_round: MemoryRound, rate: Fraction, memory: Fraction, model: Fraction, gap: Fraction
) -> list[tuple[Fraction, Fraction]]:
    """Return the coefficients of function values that multipliers have to cancel."""
    p = a_round.probability
    first = (memory, model) if a_round.start == "zero" else (Fraction(0), memory + model)
    return [
        (memory, model),
        ((rate - 1 + p) * memory, (rate - 1) * model - p * memory - gap),
        (-first[0], -first[1]),
    ]


def _balanced(
    row: FloatArray, unit: Fraction, values: tuple[Fraction, Fraction], L: Fraction
) -> list[list[Fraction]]:
    """Return multipliers as a matrix, after raising them until function values cancel exactly."""
    weights = [[Fraction(0)] * 3 for _ in range(3)]
    for (a, b), value in zip(PAIRS, row, strict=True):
        weights[a][b] = round(max(float(value), 0.0) / unit) * unit
    return [[value / L for value in line] for line in with_values_cancelled(weights, values)]
