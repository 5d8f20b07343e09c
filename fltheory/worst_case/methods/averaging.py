"""Weighted averaging over independently available clients: bounds for every client loss.

CA-Fed's setting without memory, its baseline Unbiased, and FedAvg over those present. What is left
after infinitely many rounds, the *floor*, has a part that more rounds of smaller steps remove,
and the bias of weights that are not in proportion to target weights over availability.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fltheory.decimals import as_fraction, fraction_text
from fltheory.validation import FloatArray
from fltheory.worst_case.methods.averaging_round import AveragingRound
from fltheory.worst_case.methods.averaging_slack import averaging_slack
from fltheory.worst_case.proof import averaging_checker
from fltheory.worst_case.proof.averaging_checker import AveragingProof, check_averaging
from fltheory.worst_case.proof.proof_file import (
    ProofFile,
    class_text,
    heterogeneity_text,
    polynomial_text,
)
from fltheory.worst_case.rounds.bound import Solver
from fltheory.worst_case.rounds.certificate import of_bits, rounded_box
from fltheory.worst_case.rounds.client_class import ClientClass, exact
from fltheory.worst_case.rounds.measure import DISTANCE

_BITS = (24, 32, 40, 52)
_LARGEST_MISS = -1e-3
_LEAST = Fraction(1, 10**9)


@dataclass(frozen=True)
class AveragingBound:
    """``E||x+ - x*||^2 <= rate ||x - x*||^2 + heterogeneity dissimilarity^2``, for all clients.

    As the solver found it; `certificate` makes a proof of it.

    Attributes
    ----------
    round : AveragingRound
    client_class : ClientClass
    rate, heterogeneity : float
    given_rate : Fraction or None
        The rate that was asked for.
    """

    round: AveragingRound
    client_class: ClientClass
    rate: float
    heterogeneity: float
    given_rate: Fraction | None = None

    @property
    def residual(self) -> float:
        """What is added in every round."""
        return self.heterogeneity * float(self.client_class.dissimilarity**2)

    @property
    def floor(self) -> float:
        """What is left after infinitely many rounds; infinite unless the rate is below 1."""
        return self.residual / (1 - self.rate) if self.rate < 1 else float("inf")


def best_averaging_bound(
    a_round: AveragingRound, client_class: ClientClass, *, rate: Any = None
) -> AveragingBound:
    """Return the best bound on a round of weighted averaging for all clients of a class.

    As `best_bound`: a semidefinite program whose size depends on the number of groups and of
    local steps. Dissimilarity at the optimum is ``sum_i alpha_i ||grad F_i(x*)||^2``, of the
    objective ``F = sum alpha_i F_i``.

    Parameters
    ----------
    a_round : AveragingRound
    client_class : ClientClass
        Without noise.
    rate : number, optional
        The rate at which the residual is to be least; by default that of the least floor.

    Raises
    ------
    ValueError
        For a class with noise, or groups that are too many.
    ArithmeticError
        If no bound is found, as at a rate below the least one.

    Examples
    --------
    Everybody always there: gradient descent, whose rate is ``max(|1 - eta L|, |1 - eta mu|)^2``.

    >>> from fltheory.algorithms import FedAvg
    >>> from fltheory.participation import Bernoulli
    >>> alone = AveragingRound.of(FedAvg(0.5, 1), Bernoulli([1.0, 1.0]))
    >>> round(best_averaging_bound(alone, ClientClass(1, "0.1")).rate, 6)
    0.9025
    """
    given = None if rate is None else exact("rate", rate)
    found = _solver(a_round, client_class).best(given)
    return AveragingBound(a_round, client_class, found.speed, found.heterogeneity, given)


def _solver(a_round: AveragingRound, clients: ClientClass) -> Solver:
    if clients.sigma or clients.server_sigma:
        raise ValueError(
            "client_class must be without noise for weighted averaging, got "
            f"sigma = {clients.sigma}, server_sigma = {clients.server_sigma}"
        )
    slack = averaging_slack(a_round, clients)
    return Solver(_Scale(a_round), clients, DISTANCE, slack)


@dataclass(frozen=True)
class _Scale:
    """What a solver asks of a round: its steps; there is no server's step and no noise."""

    played: AveragingRound
    q: Fraction = Fraction(1)
    assist_lr: Fraction = Fraction(0)
    participants: int = 1

    @property
    def client_lr(self) -> Fraction:
        """Step of local SGD."""
        return self.played.client_lr

    @property
    def local_steps(self) -> int:
        """K."""
        return self.played.local_steps

    @property
    def tells_clients_apart(self) -> bool:
        """Whether it matters to a round how clients differ: as a rule it does."""
        return True

    @property
    def server_lr(self) -> Fraction:
        """The factor on the sum of all updates."""
        total = self.played.total_weight if self.played.averaging == "weights" else 1
        return self.played.server_lr * total


@dataclass(frozen=True)
class AveragingCertificate(ProofFile):
    """A proof of a bound on weighted averaging, as JSON.

    Attributes
    ----------
    text : str
    """

    kind = averaging_checker.KIND
    most_characters = averaging_checker.MOST_CHARACTERS
    check = staticmethod(check_averaging)

    @property
    def proof(self) -> AveragingProof:
        """What it says, read again from its text."""
        return averaging_checker.parsed(self.text)

    @property
    def lines(self) -> tuple[str, ...]:
        """What it shows: the claim, the class, the round and who is present."""
        proof = self.proof
        optimum = proof.heterogeneity == "optimum"
        level = "sigma_*" if optimum else "sigma_G"
        clients = (
            "sum alpha_i ||grad F_i(x*)||^2 <= sigma_*^2" if optimum else heterogeneity_text("")
        )
        weighted = proof.averaging == "weights"
        sums = "weight times update" if weighted else "mean update of those present"
        lines = [
            f"E||x+ - x*||^2 <= ({polynomial_text([proof.rate])}) ||x - x*||^2 + "
            f"({polynomial_text([proof.heterogeneity_coefficient])}) {level}^2",
            f"for all clients that are {class_text(proof.L, proof.mu)}, in any dimension, "
            f"{clients}, with exact gradients, x* of sum alpha_i F_i",
            f"K = {proof.local_steps}, eta_c = {proof.client_lr}, x+ = x + {proof.server_lr} times "
            f"{sums}, clients present independently of all else:",
        ]
        for own in proof.groups:
            weight = f", weight {fraction_text(own.weight)}" if weighted else ""
            lines.append(
                f"  {own.n_clients} with probability {fraction_text(own.availability)}, alpha = "
                f"{fraction_text(own.target_weight)}{weight}"
            )
        return tuple(lines)

    @property
    def floor(self) -> Fraction:
        """What is left after infinitely many rounds, over the squared dissimilarity."""
        proof = self.proof
        return proof.heterogeneity_coefficient / (1 - proof.rate)


def averaging_certificate(bound: AveragingBound, margin: float = 1e-6) -> AveragingCertificate:
    """Return a proof in fractions of a bound, a little above the best.

    Parameters and errors are those of `certificate`.
    """
    share = 1 + exact("margin", margin, above=0)
    rate = bound.given_rate
    if rate is None:
        away = as_fraction(bound.rate) - 1
        rate = 1 + away * (share if away > 0 else 1 / share)
    scale = _Scale(bound.round)
    steps = scale.local_steps * scale.server_lr * scale.client_lr
    claimed = max(as_fraction(bound.heterogeneity) * share, _LEAST * steps**2)
    found = averaging_proved(bound.round, bound.client_class, rate, claimed)
    if found is None:
        raise ArithmeticError(f"no proof was found at a margin of {margin:g}: try a larger one")
    return found


def averaging_proved(
    a_round: AveragingRound, clients: ClientClass, rate: Fraction, heterogeneity: Fraction
) -> AveragingCertificate | None:
    """Return a proof of a claim that the checker accepts, None if none is found."""
    if heterogeneity < 0:
        return None
    slack = averaging_slack(a_round, clients)
    e = clients.L * a_round.client_lr
    sums = (float((1 - rate) / e), float(heterogeneity * clients.L**2 / e), 0.0)
    from fltheory.worst_case.rounds.program import Program

    for scales in (sums, (1.0, 1.0, 1.0)):
        solution = Program(slack, slack.bases(*scales)).widest_slack(*sums)
        if solution is None or -solution.value < _LARGEST_MISS:
            continue
        for bits in _BITS:
            steps = (a_round.client_lr, a_round.client_lr)
            box = rounded_box(slack, solution.multipliers, of_bits(bits), steps)
            made = AveragingCertificate(_text(a_round, clients, rate, heterogeneity, box))
            try:
                made.verify()
            except averaging_checker.ProofError:
                continue
            return made
    return None


def _text(
    a_round: AveragingRound,
    clients: ClientClass,
    rate: Fraction,
    heterogeneity: Fraction,
    box: Any,
) -> str:
    document: Mapping[str, Any] = {
        "kind": averaging_checker.KIND,
        "version": averaging_checker.VERSION,
        "claim": averaging_checker.CLAIM,
        "round": {
            "averaging": a_round.averaging,
            "local_steps": a_round.local_steps,
            "client_lr": str(a_round.client_lr),
            "server_lr": str(a_round.server_lr),
            "groups": [
                {
                    "n_clients": own.n_clients,
                    "availability": str(own.availability),
                    "target_weight": str(own.target_weight),
                    "weight": str(own.weight),
                }
                for own in a_round.groups
            ],
        },
        "class": {
            "L": str(clients.L),
            "mu": str(clients.mu),
            "heterogeneity": clients.heterogeneity,
        },
        "bound": {"rate": str(rate), "heterogeneity": str(heterogeneity)},
        "pairs": [
            [[str(value) for value in row] for row in box.pairs[str(index)]]
            for index in range(len(a_round.groups))
        ],
        "budgets": [str(value) for value in box.budgets],
    }
    return json.dumps(document, indent=1) + "\n"


def least_floor_weights(a_round: AveragingRound, client_class: ClientClass) -> AveragingBound:
    """Return the bound of the weights, one a group, that have the least floor that was found.

    Among weights of the same sum over all clients as the round's. The floor is proved for what is
    returned; that no other weights have a smaller one is a local search's finding, from the
    round's own weights and from those in proportion to target over availability.

    Parameters
    ----------
    a_round : AveragingRound
    client_class : ClientClass

    Raises
    ------
    ValueError
        As by `best_averaging_bound`, or for a mean over those present.
    ArithmeticError
        If no bound is found.
    """
    from scipy.optimize import minimize

    if a_round.averaging != "weights":
        raise ValueError("a_round must be of weights to have some of the same sum, got a mean")
    counts = np.array([own.n_clients for own in a_round.groups], dtype=np.float64)
    total = float(a_round.total_weight)

    def at(logs: FloatArray) -> AveragingRound:
        shares = np.exp(logs - logs.max())
        shares *= total / float(counts @ shares)
        return a_round.weighted([Fraction(share).limit_denominator(10**9) for share in shares])

    def log_floor(logs: FloatArray) -> float:
        # Nothing is found far out, where the rate is nearly one.
        try:
            floor = best_averaging_bound(at(logs), client_class).floor
        except ArithmeticError:
            return float("inf")
        return float(np.log(max(floor, 1e-300)))

    def moved_floor(moved: FloatArray, start: FloatArray) -> float:
        return log_floor(start + np.append(moved, 0.0))

    unbiased = [float(own.target_weight / own.availability) for own in a_round.groups]
    least = 1e-3 * total / float(counts.sum())
    given = [max(float(own.weight), least) for own in a_round.groups]
    starts = [np.log(np.array(weights)) for weights in (unbiased, given)]
    if np.allclose(starts[0] - starts[0][-1], starts[1] - starts[1][-1]):
        starts.pop()
    tried = list(starts)
    for start in starts if len(counts) > 1 else []:
        end = minimize(
            moved_floor,
            np.zeros(len(counts) - 1),
            args=(start,),
            method="Nelder-Mead",
            options={"xatol": 1e-4, "fatol": 1e-6, "maxfev": 80 * len(counts)},
        )
        tried.append(start + np.append(end.x, 0.0))
    return best_averaging_bound(at(min(tried, key=log_floor)), client_class)
