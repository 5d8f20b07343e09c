"""Proofs in fractions of bounds for every client loss: made here, believed by the checker alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fltheory.decimals import as_fraction, fraction_text
from fltheory.validation import FloatArray
from fltheory.worst_case.proof import proof_checker
from fltheory.worst_case.proof.proof_checker import Box, Proof, ProofError, check_proof, parsed
from fltheory.worst_case.proof.proof_file import (
    ProofFile,
    class_text,
    heterogeneity_text,
    polynomial_text,
)
from fltheory.worst_case.proof.rocq_export import rocq_theorem
from fltheory.worst_case.rounds.bound import Bound
from fltheory.worst_case.rounds.client_class import exact
from fltheory.worst_case.rounds.measure import DISTANCE, AnyClaim, AnyClass, Claim, Measure
from fltheory.worst_case.rounds.one_round import OneRound
from fltheory.worst_case.rounds.slack import Slack, slack_of

_BITS = (24, 32, 40, 52)
_DENOMINATORS, _DECIMALS = (100, 1_000, 10_000), (4, 5, 6, 7)
_TIGHT = 1e-6
_LARGEST_MISS = -1e-3
_UNIT_MARGIN = 1e-9
_SYMBOLS = {
    "rate": "||x - x*||^2",
    "decrease": "||grad F(x)||^2",
    "heterogeneity": "{level}^2",
    "noise": "sigma^2",
    "server_noise": "sigma_s^2",
}


if TYPE_CHECKING:
    from fltheory.worst_case.rounds.program import Multipliers

Rounding: TypeAlias = Callable[[float], Fraction]
"""How a solver's float becomes a fraction."""


@dataclass(frozen=True)
class Certificate(ProofFile):
    """A proof of a bound for every client of a class, as JSON.

    Attributes
    ----------
    text : str
        The certificate; all numbers are fractions.
    """

    kind = proof_checker.KIND
    most_characters = proof_checker.MOST_CHARACTERS
    check = staticmethod(check_proof)

    @property
    def proof(self) -> Proof:
        """What it says, read again from its text."""
        return parsed(self.text)

    @property
    def lines(self) -> tuple[str, ...]:
        """What it shows: the claim, the class and the round."""
        proof = self.proof
        level = "sigma_*" if proof.heterogeneity == "optimum" else "sigma_G"
        first, last = proof.client_lr
        steps = f"eta_c = {first}" if first == last else f"every eta_c from {first} to {last}"
        after, before = ("E F(x+)", "F(x) - ") if proof.of_descent else ("E||x+ - x*||^2", "")
        terms = before + " + ".join(
            f"({polynomial_text(polynomial)}) {_SYMBOLS[name].format(level=level)}"
            for name, polynomial in proof.bound.items()
            if any(polynomial) and (name != "noise" or proof.noisy)
        )
        clients = "every number of" if proof.n_clients is None else f"up to {proof.n_clients}"
        return (
            f"{after} <= {terms}",
            f"for all clients that are {class_text(proof.L, proof.mu)}, in any dimension, "
            f"{heterogeneity_text(proof.heterogeneity)}"
            + (", with noise" if proof.noisy else ", with exact gradients"),
            f"K = {proof.local_steps}, m = {proof.participants} of {clients} clients, "
            f"{fraction_text(proof.excluded_share)} of them excluded, {steps}, eta_s = "
            f"{proof.assist_ratio} eta_c, q = {fraction_text(proof.q)}",
        )

    def rocq_theorem(self) -> str:
        """Return it as a theorem that Rocq checks, beside the library in the folder ``rocq``.

        Raises
        ------
        ValueError
            For a descent of F, an interval of steps, noise of clients' gradients, or what is too
            large.
        """
        return rocq_theorem(self.proof)

    def covers(self, *, n_clients: int | None = None, client_lr: Any = None) -> bool:
        """Whether it holds for a number of clients, or a step size of theirs.

        The share of excluded clients is the certificate's, and so is the ratio of the server's
        step to the clients'.
        """
        proof = self.proof
        if n_clients is not None and not proof.covers(n_clients):
            return False
        if client_lr is None:
            return True
        first, last = proof.client_lr
        return first <= exact("client_lr", client_lr, above=0) <= last


def certificate(bound: Bound, margin: float = 1e-6) -> Certificate:
    """Return a proof in fractions of a bound, a little above the best.

    Parameters
    ----------
    bound : Bound
    margin : float
        By which share the coefficients may be above the bound's, and ``1 - rate`` below where no
        rate was given. What is zero up to the solver's precision becomes 1e-9 of the square of
        the steps' sum.

    Raises
    ------
    ValueError
        If the margin is not above 0.
    ArithmeticError
        If no proof is found that the checker accepts.
    """
    return certified(bound, margin, raised)


def certified(
    bound: Any, margin: float, raise_by: Callable[[Any, Fraction], AnyClaim]
) -> Certificate:
    """Return a proof of a bound whose coefficients are raised by a margin."""
    share = 1 + exact("margin", margin, above=0)
    found = proved(bound.round, bound.client_class, raise_by(bound, share))
    if found is None:
        raise ArithmeticError(f"no proof was found at a margin of {margin:g}: try a larger one")
    return found


def raised(bound: Bound, share: Fraction) -> Claim:
    """Return a bound's coefficients times a number above one, in fractions."""
    rate = bound.given_rate
    if rate is None:
        away = as_fraction(bound.rate) - 1
        rate = 1 + away * (share if away > 0 else 1 / share)
    return Claim(rate, *raised_residual(bound, share, DISTANCE))


def raised_residual(
    bound: Any, share: Fraction, measure: Measure
) -> tuple[Fraction, Fraction, Fraction]:
    """Return a residual's coefficients times a number above one, in fractions."""
    a_round, clients = bound.round, bound.client_class
    steps = a_round.local_steps * a_round.server_lr * a_round.client_lr
    least = as_fraction(_UNIT_MARGIN) * steps**2 * clients.L**2 / measure.unit(clients)
    noise = max(as_fraction(bound.noise), measure.last_noise(a_round, clients)) * share
    return (
        max(as_fraction(bound.heterogeneity) * share, least),
        noise if clients.sigma > 0 else Fraction(0),
        measure.server_noise(a_round, clients),
    )


def proved(a_round: OneRound, clients: AnyClass, claim: AnyClaim) -> Certificate | None:
    """Return a proof of a claim that the checker accepts, None if none is found."""
    measure = claim.measure
    slack = slack_of(a_round, clients, measure)
    scale = measure.unit(clients) / (clients.L * a_round.client_lr)
    last_noise = measure.last_noise(a_round, clients)
    if claim.heterogeneity < 0 or (clients.sigma > 0 and claim.noise < last_noise):
        return None
    sums = (
        float(measure.decrease(claim.speed, a_round, clients)),
        float(claim.heterogeneity * scale),
        float((claim.noise - last_noise) * scale),
    )
    from fltheory.worst_case.rounds.program import Program

    bound = {name: [value] for name, value in vars(claim).items()}
    steps = (a_round.client_lr, a_round.client_lr)
    # In coordinates of like size, and for what those do not help in the plain ones.
    for scales in (sums, (1.0, 1.0, 1.0)):
        solution = Program(slack, slack.bases(*scales)).widest_slack(*sums)
        if solution is None or -solution.value < _LARGEST_MISS:
            continue
        # A claim that is tight has no proof but one, whose numbers are often short.
        short = _SHORT if abs(solution.value) < _TIGHT else ()
        for rounding in (*map(of_bits, _BITS), *short):
            box = rounded_box(slack, solution.multipliers, rounding, steps)
            made = accepted(certificate_text(a_round, clients, measure, bound, [box]))
            if made is not None:
                return made
    return None


def accepted(text: str) -> Certificate | None:
    """Return a certificate if the checker accepts it."""
    made = Certificate(text)
    try:
        made.verify()
    except ProofError:
        return None
    return made


def rounded_box(
    slack: Slack,
    multipliers: Multipliers,
    rounding: Rounding,
    steps: tuple[Fraction, Fraction],
) -> Box:
    """Return multipliers as fractions, for step sizes from one to another."""
    sizes = {group.name: len(group.blocks[0][0]) for group in slack.groups}
    pairs = {
        group: [[Fraction(0)] * size for _ in range(size)]
        for group, size in sizes.items()
        if size > 1
    }
    for (group, a, b), value in zip(slack.pairs, multipliers.pairs, strict=True):
        pairs[group][a][b] = rounding(max(float(value), 0.0))
    for weights in pairs.values():
        _balance(weights)
    return Box(
        steps,
        pairs,
        _shares(multipliers.budgets, rounding),
        _shares(multipliers.noises, rounding),
        [rounding(float(value)) for value in multipliers.orthogonal],
    )


def of_bits(bits: int) -> Rounding:
    """Return what makes a float a fraction of so many bits after the point."""
    unit = Fraction(1, 2**bits)
    return lambda value: round(value / unit) * unit


def _of_denominator(most: int) -> Rounding:
    return lambda value: Fraction(value).limit_denominator(most)


def _of_decimals(count: int) -> Rounding:
    return lambda value: Fraction(round(value * 10**count), 10**count)


_SHORT = (*map(_of_denominator, _DENOMINATORS), *map(_of_decimals, _DECIMALS))


def _balance(weights: list[list[Fraction]]) -> None:
    """Add to weights until as much leaves every point as comes to it."""
    size = len(weights)
    excess = [sum(weights[p]) - sum(row[p] for row in weights) for p in range(size)]
    for start in range(size):
        for end in range(size):
            moved = min(-excess[start], excess[end])
            if moved > 0:
                weights[start][end] += moved
                excess[start] += moved
                excess[end] -= moved


def _shares(values: FloatArray, rounding: Rounding) -> list[Fraction]:
    """Return values over their sum as fractions that sum to one; equal ones if all are zero."""
    positive = np.maximum(values, 0.0)
    total = float(positive.sum())
    parts = positive / total if total > 0 else np.full(len(values), 1 / max(len(values), 1))
    rounded = [rounding(float(part)) for part in parts]
    if rounded:
        # What rounding took comes from the largest, or goes to it.
        largest = max(range(len(rounded)), key=lambda index: rounded[index])
        rounded[largest] += 1 - sum(rounded)
    return rounded


def certificate_text(
    a_round: OneRound,
    clients: AnyClass,
    measure: Measure,
    bound: Mapping[str, Sequence[Fraction]],
    boxes: Sequence[Box],
) -> str:
    """Return a certificate's JSON; a bound's coefficients are polynomials in client_lr."""
    document = {
        "kind": proof_checker.KIND,
        "version": proof_checker.VERSION,
        "claim": measure.claim,
        "round": {
            "participants": a_round.participants,
            "local_steps": a_round.local_steps,
            "n_clients": "every" if a_round.n_clients is None else a_round.n_clients,
            "excluded_share": str(a_round.excluded_share),
            "q": str(a_round.q),
            "server_lr": str(a_round.server_lr),
            "assist_lr_over_client_lr": str(a_round.assist_lr / a_round.client_lr),
        },
        "class": {
            "L": str(clients.L),
            "mu": str(clients.mu),
            "heterogeneity": clients.heterogeneity,
            "noise": clients.sigma > 0,
        },
        "bound": {
            name: [str(value) for value in bound[name]]
            for name in (measure.speed, *proof_checker.RESIDUAL)
        },
        "boxes": [
            {
                "client_lr": [str(end) for end in box.client_lr],
                "pairs": {
                    group: [[str(value) for value in row] for row in rows]
                    for group, rows in box.pairs.items()
                },
                **{
                    name: [str(value) for value in getattr(box, name)]
                    for name in ("budgets", "noises", "orthogonal")
                },
            }
            for box in boxes
        ],
    }
    return json.dumps(document, indent=1) + "\n"
