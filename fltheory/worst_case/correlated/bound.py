"""The best bound on weighted averaging for clients that come and go in bursts, and its proof.

It holds for every L-smooth, mu-strongly convex client, every dimension and every number of rounds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Any, ClassVar, Literal, Self, TypeAlias, TypeVar

import numpy as np

from fltheory import validation
from fltheory.decimals import as_fraction, fraction_text
from fltheory.validation import FloatArray
from fltheory.worst_case.checker import correlated_checker
from fltheory.worst_case.checker.correlated_checker import CorrelatedProof, CorrelatedRounds
from fltheory.worst_case.correlated.program import (
    CorrelatedSolution,
    OnOffProgram,
    cells_of,
    states_of,
)
from fltheory.worst_case.proof.proof_file import (
    ProofChecker,
    ProofFile,
    class_text,
    first_accepted,
    with_values_cancelled,
)
from fltheory.worst_case.proof.rocq_export import bursts_theorem
from fltheory.worst_case.rounds.client_class import ClientClass, exact
from fltheory.worst_case.rounds.one_round import AveragingRound, ParticipantChain

Measured: TypeAlias = Literal["distance", "loss"]

# Units of gradients at x*, tried in this order. The solver stalls when its numbers are far from 1.
UNITS = (1, 8, Fraction(1, 8), 128)
BITS = (44, 60)
# The cost of the start relative to the floor, which is small so that the smallest start is found
# among equal floors; and the relative margin of the start in a proof.
_TIE = 1e-7
_ROOM = 1e-3
_FIRST = ("start", "once", "noise_once")
MOST_STATES = 400
# Beyond this value the solver may fail even if there is a floor.
_NEARLY_ONE = 0.99


@dataclass(frozen=True)
class Request:
    """The specification of a bound.

    Attributes
    ----------
    round : AveragingRound
    client_class : ClientClass
    measure : {"distance", "loss"}
    rate : Fraction or None
        None for the mean over rounds.
    rounds : int or None
        Number of rounds after which the bound is minimised, or None to minimise the floor.
    distance : float
        The distance ``||x_0 - x*||``, for ``rounds``.
    """

    round: AveragingRound
    client_class: ClientClass
    measure: Measured
    rate: Fraction | None
    rounds: int | None
    distance: float


@dataclass(frozen=True)
class CorrelatedBound:
    """A bound for all rounds and every client loss, as the solver found it.

    Over rounds ``t < T``, the mean of ``E||x_t - x*||^2`` ("distance"), or ``E F - F*`` at the mean
    model ("loss"), is at most ``(start ||x_0 - x*||^2 + start_heterogeneity h + start_noise
    sigma^2)/T + heterogeneity h + noise sigma^2`` with ``h = sum alpha_i ||grad F_i(x*)||^2``. With
    a rate, ``E||x_t - x*||^2 <= rate^t (start ...) + (1 - rate^t)/(1 - rate) (heterogeneity h +
    noise sigma^2)``.

    Attributes
    ----------
    start, start_heterogeneity, start_noise : float
    heterogeneity, noise : float
    request : Request
        The bound that was requested.
    solved : Solved
        The solver's result.
    """

    start: float
    start_heterogeneity: float
    start_noise: float
    heterogeneity: float
    noise: float
    request: Request
    solved: Solved

    @classmethod
    def of(cls, request: Request, solved: Solved) -> Self:
        """Return the bound of a program's solution, in units of the class."""
        units, ends = dict(units_of(request, solved.unit)), solved.solution.ends
        g = float(units["g"])
        return cls(
            start=ends["start"] * float(units["z"]),
            start_heterogeneity=ends["once"] * g,
            start_noise=ends["noise_once"] * g,
            heterogeneity=ends["floor"] * g,
            noise=ends["noise"] * g,
            request=request,
            solved=solved,
        )

    @property
    def round(self) -> AveragingRound:
        """The round."""
        return self.request.round

    @property
    def client_class(self) -> ClientClass:
        """The class of clients."""
        return self.request.client_class

    @property
    def rate(self) -> Fraction | None:
        """The rate as given, or None for the mean over rounds."""
        return self.request.rate

    @property
    def residual(self) -> float:
        """The term added in every round, for the class's dissimilarity and noise."""
        squares = float(self.client_class.dissimilarity**2), float(self.client_class.sigma**2)
        return self.heterogeneity * squares[0] + self.noise * squares[1]

    @property
    def floor(self) -> float:
        """The limit of the bound after infinitely many rounds."""
        return self.residual / (1.0 if self.rate is None else 1 - float(self.rate))

    def after(self, rounds: int, distance: float) -> float:
        """Bound the measured quantity after ``rounds`` rounds, from ``distance = ||x_0 - x*||``."""
        rounds = validation.whole_number("rounds", rounds, at_least=1)
        first = self.start * validation.nonnegative("distance", distance) ** 2
        first += self.start_heterogeneity * float(self.client_class.dissimilarity**2)
        first += self.start_noise * float(self.client_class.sigma**2)
        if self.rate is None:
            return first / rounds + self.residual
        power = float(self.rate) ** rounds
        return power * first + self.residual * (1 - power) / (1 - float(self.rate))


B = TypeVar("B", bound=CorrelatedBound)


@dataclass(frozen=True)
class Solved:
    """A program's solution and its units, from which a proof is made.

    Attributes
    ----------
    program : OnOffProgram
    unit : Fraction
        Unit of the gradients at x*, divided by L.
    solution : CorrelatedSolution
    """

    program: OnOffProgram
    unit: Fraction
    solution: CorrelatedSolution


def best_correlated_bound(
    a_round: AveragingRound,
    client_class: ClientClass,
    *,
    measure: Measured = "distance",
    rate: Any = None,
    rounds: int | None = None,
    distance: Any = 1,
) -> CorrelatedBound:
    """Return the best bound on weighted averaging with clients that come and go in bursts.

    The semidefinite program has a function for every number of participants in the previous round.
    The chain starts from its stationary distribution.

    Parameters
    ----------
    a_round : AveragingRound
    client_class : ClientClass
        A class with heterogeneity at the optimum and mu above 0.
    measure : {"distance", "loss"}
        The quantity averaged over rounds, ``||x - x*||^2``, or F at the mean model minus F*.
    rate : number, optional
        The rate of a bound on every round's ``E||x_t - x*||^2``. By default, means are bounded.
    rounds : int, optional
        Minimise the bound after this number of rounds from ``distance = ||x_0 - x*||``. By default,
        the floor is minimised.
    distance : number

    Raises
    ------
    ValueError
        If the class or the clients are not covered; the message says what is missing.
    ArithmeticError
        If no bound is found, for example because steps are too large.

    Examples
    --------
    >>> from fltheory.algorithms import Unbiased
    >>> from fltheory.participation import MarkovOnOff
    >>> process = MarkovOnOff([0.5] * 4, 0.9)
    >>> unbiased = Unbiased([0.25] * 4, client_lr=0.1, local_steps=1, availability=[0.5] * 4)
    >>> a_round = AveragingRound.of(unbiased, process)
    >>> round(best_correlated_bound(a_round, ClientClass(1, "0.1")).floor, 3)
    2.605
    """
    check_covered(a_round, client_class)
    validation.one_of("measure", measure, ("distance", "loss"))
    given = None if rate is None else exact("rate", rate)
    if given is not None and given >= 1:
        raise ValueError(f"rate must be below 1, got {given}")
    if given is not None and measure == "loss":
        raise ValueError(
            "measure must be 'distance' if a rate is given: F is bounded only at means of models"
        )
    if given is not None and rounds is not None:
        raise ValueError(
            "rounds must not be given together with a rate, whose bound holds for every round"
        )
    count = None if rounds is None else validation.whole_number("rounds", rounds, at_least=1)
    request = Request(
        a_round, client_class, measure, given, count, float(exact("distance", distance))
    )
    return found_by(OnOffProgram, CorrelatedBound, request)


def found_by(program_of: type[OnOffProgram], kind: type[B], request: Request) -> B:
    """Return the bound of a program's first solution.

    Raises
    ------
    ArithmeticError
        If there is none.
    """
    for solved in solutions(request, program_of):
        return kind.of(request, solved)
    a_round, given = request.round, request.rate
    missing = "try a smaller step"
    if given is not None:
        missing = "try a rate nearer 1, or another step"
    elif max(a_round.correlations) > _NEARLY_ONE:
        missing = "try a smaller step, or correlation further from 1"
    what = "floor" if given is None else f"bound at a rate of {float(given):.6g}"
    raise ArithmeticError(
        f"no finite {what} was found at K = {a_round.local_steps}, client_lr = "
        f"{float(a_round.client_lr):.6g}: {missing}"
    )


def best_step(
    a_round: AveragingRound,
    client_class: ClientClass,
    *,
    rounds: int,
    distance: Any,
    local_steps: Sequence[int] = (1,),
    measure: Measured = "distance",
) -> CorrelatedBound:
    """Return the bound at the step and K that minimise the proved bound after ``rounds`` rounds.

    The step is searched on a logarithmic scale, to three digits. The returned bound can be proved,
    but only a local search suggests that no other step is better.

    Parameters
    ----------
    a_round : AveragingRound
        Its own step and K are not used.
    client_class : ClientClass
    rounds : int
    distance : number
        ``||x_0 - x*||``.
    local_steps : sequence of int
        The numbers of local steps that are tried.
    measure : {"distance", "loss"}

    Raises
    ------
    ArithmeticError
        If no step has a bound.
    """
    from scipy.optimize import minimize_scalar

    found: list[tuple[float, CorrelatedBound]] = []
    for K in local_steps:

        def after(log_step: float, K: int = K) -> float:
            step = Fraction(f"{math.exp(log_step):.3g}")
            played = replace(a_round, client_lr=step, local_steps=K)
            try:
                bound = best_correlated_bound(
                    played, client_class, measure=measure, rounds=rounds, distance=distance
                )
            except ArithmeticError:
                return math.inf
            value = bound.after(rounds, float(distance))
            found.append((value, bound))
            return value

        largest = math.log(2 / (K * client_class.L))
        # The search starts from a grid, because steps without a finite floor give no slope.
        grid = np.linspace(largest - math.log(2000), largest, 9)
        middle = int(np.argmin([after(float(point)) for point in grid]))
        ends = grid[max(middle - 1, 0)], grid[min(middle + 1, 8)]
        minimize_scalar(after, bounds=ends, method="bounded", options={"xatol": 0.02})
    if not found:
        raise ArithmeticError("no step was found that has a finite bound")
    return min(found, key=lambda one: one[0])[1]


def check_covered(
    a_round: AveragingRound, clients: ClientClass, most_states: int = MOST_STATES
) -> None:
    """Refuse a class or clients that proofs do not cover, saying what is missing."""
    if clients.mu == 0:
        raise ValueError(
            "mu must be above 0 where clients are correlated in time: without strong convexity "
            "the distance to x* has no finite floor"
        )
    if clients.heterogeneity != "optimum":
        raise ValueError(
            "client_class must have heterogeneity 'optimum' where clients are correlated in time: "
            "the correction sees only clients' gradients at x*"
        )
    if clients.server_sigma:
        raise ValueError(
            "client_class must have server_sigma = 0: these rounds have no server step"
        )
    if sum(own.n_clients for own in a_round.groups) == 1:
        raise ValueError(
            "participation must have at least two clients, got 1: a single client's gradient at x* "
            "is zero, so that its coefficient has no smallest value"
        )
    if a_round.local_steps > correlated_checker.MOST_STEPS:
        raise ValueError(
            f"local_steps must be at most {correlated_checker.MOST_STEPS}, which is what the "
            f"checker of proofs takes, got {a_round.local_steps}"
        )
    states = math.prod(own.n_clients + 1 for own in a_round.groups)
    if a_round.chain is None and states > most_states:
        raise ValueError(
            f"participation must have at most {most_states} states (numbers of clients present in "
            f"each group of identical clients), got {states}"
        )


def guess_of(a_round: AveragingRound, clients: ClientClass) -> float:
    """Estimate the floor, with L = 1, from the rule for small steps.

    The floor stops growing where bursts last longer than the model's memory of ``1/(step mu)``
    rounds.
    """
    step = float(clients.L * a_round.client_lr * a_round.server_lr) * a_round.local_steps
    ratio = float(clients.L / clients.mu)
    spread = 0.0
    for own, nu in zip(a_round.groups, a_round.correlations, strict=True):
        p = float(own.availability)
        share = own.n_clients * float(own.target_weight) ** 2
        spread += share * (1 - p) / p * min((1 + nu) / (1 - nu), 2 * ratio / step)
    return max(step * spread / 2 * ratio, 1e-9)


def solutions(
    request: Request,
    program_of: type[OnOffProgram] = OnOffProgram,
    factors: Sequence[int | Fraction] = UNITS,
) -> Iterator[Solved]:
    """Yield nearly optimal solutions, in one unit after another."""
    a_round, clients, rounds = request.round, request.client_class, request.rounds
    step, mu = float(clients.L * a_round.client_lr), float(clients.mu / clients.L)
    h = float(clients.dissimilarity / clients.L) ** 2
    sigma = float(clients.sigma / clients.L) ** 2
    guess = guess_of(a_round, clients)
    for factor in factors:
        unit = Fraction(2) ** round(-math.log2(guess) / 2) * factor
        program = program_of(
            a_round,
            mu,
            step,
            request.measure,
            None if request.rate is None else float(request.rate),
            sigma > 0,
            float(unit),
        )
        share = h / (h + sigma)
        first = (_TIE, _TIE, _TIE)
        if rounds is not None:
            far = request.distance**2 * float(unit) ** 2 / (h + sigma)
            first = (far / rounds, share / rounds, (1 - share) / rounds)
        costs = {"floor": share, "noise": 1 - share}
        found = program.solve(costs | dict(zip(_FIRST, first, strict=True)))
        if found is not None:
            yield Solved(program, unit, found)


def units_of(request: Request, unit: Fraction) -> Iterator[tuple[str, Fraction]]:
    """Yield the factors from a program's numbers to the certificate's units.

    There is one factor each for coefficients of ``||z||^2``, of products of z and gradients, of
    squared gradients, and for multipliers.
    """
    a_round, clients = request.round, request.client_class
    scale = 2 * clients.L * a_round.client_lr * a_round.local_steps * a_round.server_lr
    if a_round.averaging == "weights":
        scale *= sum(own.n_clients * own.weight * own.availability for own in a_round.groups)
    theta, whole = Fraction(1), Fraction(1)
    if request.rate is None:
        theta = scale * (clients.mu / clients.L if request.measure == "distance" else 1)
        whole = clients.L if request.measure == "loss" else Fraction(1)
    yield "z", whole / theta
    yield "zg", whole / theta / unit / clients.L
    yield "g", whole / theta / unit**2 / clients.L**2
    yield "pair", whole * scale / theta / clients.L
    yield "noise", whole * scale / theta / unit**2 / clients.L**2


def correlated_certificate(bound: CorrelatedBound, margin: float = 1e-6) -> CorrelatedCertificate:
    """Return a proof in fractions of a bound slightly above the best one.

    Parameters and errors are those of `certificate`.
    """
    texts = texts_of(bound, margin, solutions(bound.request), proof_text)
    return first_accepted(CorrelatedCertificate, texts, margin)


def texts_of(
    bound: CorrelatedBound,
    margin: float,
    others: Iterator[Solved],
    text_of: Callable[[Request, Fraction, Any, int], str],
) -> Iterator[str]:
    """Yield candidate certificates, first from the bound's own solution and then from others."""
    share = 1 + float(exact("margin", margin, above=0))
    for solved in chain([bound.solved], others):
        widest = _widest(bound, solved, share)
        for bits in BITS if widest is not None else ():
            yield text_of(bound.request, solved.unit, widest, bits)


def _widest(bound: CorrelatedBound, solved: Solved, share: float) -> CorrelatedSolution | None:
    """Return the solution with the largest slack, slightly above the best bound."""
    # Units differ between programs, so in each program the claim is a multiple of the bound's floor
    # there.
    ratio = float(solved.unit / bound.solved.unit) ** 2
    ends = bound.solved.solution.ends
    fixed = {name: share * ratio * ends[name] for name in ("floor", "noise")}
    room = share if bound.request.rounds else 1 + _ROOM
    # Coefficients that are nearly zero also need a margin.
    fixed |= {name: room * solved.solution.ends[name] + 1e-9 for name in _FIRST}
    return solved.program.solve(None, fixed)


def proof_text(request: Request, unit: Fraction, found: CorrelatedSolution, bits: int) -> str:
    """Return a certificate's JSON, with numbers rounded to ``bits`` binary places."""
    a_round, clients = request.round, request.client_class
    units = dict(units_of(request, unit))
    # Without a rate, the remaining function values may be F(x) - F*.
    wanted = Fraction(request.rate is None and request.measure == "loss")

    def dyadic(value: float) -> Fraction:
        return Fraction(round(as_fraction(value) * 2**bits), 2**bits)

    def written(value: float, name: str) -> str:
        return str(dyadic(value) * units[name])

    alphas = [own.target_weight for own in a_round.groups]
    cells = [list(cells_of(a_round, state)) for state in states_of(a_round)]
    noisy = clients.sigma > 0
    document = {
        "kind": correlated_checker.KIND,
        "version": correlated_checker.VERSION,
        **claim_text(request, found.ends, written),
        "noise_below": written(found.ends["noise_below"], "g") if noisy else "0",
        "function": [
            value_text(row, constant if noisy else 0.0, len(alphas), written)
            for row, constant in zip(found.function, found.constants, strict=True)
        ],
        "multipliers": [
            [
                _balanced(rows, dyadic, alphas[cell.group] * units["pair"], wanted)
                for rows, cell in zip(own, here, strict=True)
            ]
            for own, here in zip(found.multipliers, cells, strict=True)
        ],
        "noises": [
            [
                [
                    str(alphas[cell.group] * dyadic(max(value, 0.0)) * units["noise"])
                    for value in row
                ]
                for row, cell in zip(own, here, strict=True)
            ]
            for own, here in zip(found.noises, cells, strict=True)
        ],
        "orthogonal": [
            [
                [str(alphas[cell.group] * dyadic(value) * units["noise"]) for value in row]
                for row, cell in zip(own, here, strict=True)
            ]
            for own, here in zip(found.orthogonal, cells, strict=True)
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def claim_text(
    request: Request, ends: Mapping[str, float], written: Callable[[float, str], str]
) -> Mapping[str, Any]:
    """Return a certificate's claim, with the rounds and clients that it is about."""
    a_round, clients = request.round, request.client_class
    noisy = clients.sigma > 0
    bound = {"rate": "1" if request.rate is None else str(request.rate)}
    bound |= {"start": written(ends["start"], "z")}
    names = {"start_heterogeneity": "once", "heterogeneity": "floor"}
    bound |= {name: written(ends[end], "g") for name, end in names.items()}
    names = {"start_noise": "noise_once", "noise": "noise"}
    bound |= {name: written(ends[end], "g") if noisy else "0" for name, end in names.items()}
    return {
        "claim": correlated_checker.CLAIMS[request.measure if request.rate is None else "rate"],
        "round": {
            "averaging": a_round.averaging,
            "local_steps": a_round.local_steps,
            "client_lr": str(a_round.client_lr),
            "server_lr": str(a_round.server_lr),
            "chain": None if a_round.chain is None else _chain_text(a_round.chain),
            "groups": [
                {
                    "n_clients": own.n_clients,
                    "availability": str(own.availability),
                    "correlation": str(own.correlation),
                    "target_weight": str(own.target_weight),
                    "weight": str(own.weight),
                }
                for own in a_round.groups
            ],
        },
        "class": {"L": str(clients.L), "mu": str(clients.mu), "noise": noisy},
        "bound": bound,
        "below": written(ends["below"], "g"),
    }


def _chain_text(chain: ParticipantChain) -> Mapping[str, Any]:
    return {
        "masks": chain.masks,
        "transition": [[str(p) for p in row] for row in chain.transition],
        "law": [str(p) for p in chain.law],
    }


def value_text(row: FloatArray, constant: float, n_groups: int, written: Any) -> dict[str, Any]:
    """Return W in one state for the certificate, from coefficients in the program's order."""
    size = 2 * n_groups
    form = [["0"] * size for _ in range(size)]
    places = [(i, j) for i in range(size) for j in range(i, size)]
    for (i, j), value in zip(places, row, strict=False):
        kind = "z" if i == j == 0 else "zg" if i == 0 else "g"
        form[i][j] = form[j][i] = written(float(value), kind)
    rest = [written(float(value), "g") for value in row[len(places) :]]
    return {
        "form": form,
        "present": rest[:n_groups],
        "all": rest[n_groups:],
        "constant": written(float(constant), "g"),
    }


def _balanced(rows: FloatArray, dyadic: Any, factor: Fraction, wanted: Fraction) -> list[list[str]]:
    """Return multipliers after raising those for x* until function values cancel."""
    weights = [[dyadic(max(float(value), 0.0)) for value in row] for row in rows]
    weights[-1] = [Fraction(0)] * len(weights)
    values = [-wanted, *[Fraction(0)] * (len(weights) - 2)]
    return [[str(v * factor) for v in row] for row in with_values_cancelled(weights, values)]


R = TypeVar("R", bound=CorrelatedRounds)


class RoundsCertificate(ProofFile[R]):
    """A proof of a bound for clients that come and go in bursts, using any kind of function."""

    @property
    def floor(self) -> Fraction:
        """The bound's limit after many rounds, divided by ``sum alpha_i ||grad F_i(x*)||^2``."""
        proof = self.proof
        over = 1 - proof.bound["rate"] if proof.measure == "rate" else 1
        return proof.bound["heterogeneity"] / over

    def mean_after(
        self, rounds: int, square: Fraction, dissimilarity: Fraction, noise: Fraction
    ) -> Fraction:
        """Bound the mean over ``rounds`` rounds, given the squared initial distance."""
        bound = self.proof.bound
        first = bound["start"] * square + bound["start_heterogeneity"] * dissimilarity
        first += bound["start_noise"] * noise
        return first / rounds + bound["heterogeneity"] * dissimilarity + bound["noise"] * noise

    @property
    def lines(self) -> tuple[str, ...]:
        """The certificate's content: the claim, the class, the round and who is present."""
        proof = self.proof
        bound = {name: f"{float(value):.6g}" for name, value in proof.bound.items()}
        noise = (f" + {bound['start_noise']} sigma^2", f" + {bound['noise']} sigma^2")
        if not proof.noisy:
            noise = ("", "")
        first = f"({bound['start']} ||x_0 - x*||^2 + {bound['start_heterogeneity']} h{noise[0]})"
        each = f"{bound['heterogeneity']} h{noise[1]}"
        left = "1/T sum_(t<T) E||x_t - x*||^2 <= "
        right = f"{first}/T + {each} for every T"
        if proof.measure == "loss":
            left = "E F(mean of x_0 .. x_(T-1)) - F* <= "
        if proof.measure == "rate":
            left, rate = "E||x_t - x*||^2 <= ", bound["rate"]
            right = f"{rate}^t {first} + (1 - {rate}^t)/(1 - {rate}) ({each}) for every t"
        return (
            left + right + ", h = sum alpha_i ||grad F_i(x*)||^2",
            *who_lines(proof, f"eta_c = {proof.client_lr}"),
        )


class CorrelatedCertificate(RoundsCertificate[CorrelatedProof]):
    """A proof, as JSON, that uses a function of the model and of who was present.

    Attributes
    ----------
    text : str
    """

    checker: ClassVar[ProofChecker] = correlated_checker

    def rocq_theorem(self) -> str:
        """Return the proof as a theorem for Rocq, which needs the library in the folder ``rocq``.

        Raises
        ------
        ValueError
            If there are several groups of clients, a chain, noise, or too many clients or steps.
        """
        return bursts_theorem(self.proof)


def who_lines(proof: CorrelatedRounds, steps: str) -> Iterator[str]:
    """Yield the class, the round and who is present, in words."""
    weighted = proof.averaging == "weights"
    sums = "weight times update" if weighted else "mean update of those present"
    gradients = "E||noise||^2 <= sigma^2 in every gradient" if proof.noisy else "exact gradients"
    yield (
        f"for all clients that are {class_text(proof.L, proof.mu)}, in any dimension, with "
        f"{gradients}, x* of F = sum alpha_i F_i"
    )
    yield (
        f"K = {proof.local_steps}, {steps}, x+ = x + {proof.server_lr} times {sums}; "
        f"{_WHO[proof.chain is not None]}, stationary at first:"
    )
    if proof.chain is not None:
        for p, mask in zip(proof.chain.law, proof.chain.masks, strict=True):
            yield f"  {fraction_text(p)} of rounds: {_members(mask)}"
    for own in proof.groups:
        weight = f", weight {fraction_text(own.weight)}" if weighted else ""
        correlation = f"correlation {fraction_text(own.correlation)}, "
        yield (
            f"  {own.n_clients} with availability {fraction_text(own.availability)}, "
            f"{'' if proof.chain is not None else correlation}"
            f"alpha = {fraction_text(own.target_weight)}{weight}"
        )


_WHO = {
    False: "clients come and go independently of each other",
    True: "participants by a chain",
}


def _members(mask: Sequence[bool]) -> str:
    there = [str(index) for index, one in enumerate(mask) if one]
    return f"clients {', '.join(there)}" if there else "nobody"
