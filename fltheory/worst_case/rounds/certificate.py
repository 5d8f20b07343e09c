"""Proofs in fractions of bounds for every client loss; only the checker decides their validity."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from fltheory.decimals import as_fraction, fraction_text
from fltheory.validation import FloatArray
from fltheory.worst_case.checker import one_round as checker
from fltheory.worst_case.checker.one_round import Box, Drawn, Proof
from fltheory.worst_case.proof.proof_file import (
    ProofChecker,
    ProofFile,
    class_text,
    first_accepted,
    heterogeneity_text,
    polynomial_text,
)
from fltheory.worst_case.proof.rocq_export import averaging_theorem, rocq_theorem
from fltheory.worst_case.rounds.bound import Bound
from fltheory.worst_case.rounds.client_class import exact
from fltheory.worst_case.rounds.measure import AnyClass, Claim, Given, Measure
from fltheory.worst_case.rounds.one_round import Played
from fltheory.worst_case.rounds.slack import GIVEN, Slack, slack_of

# Denominators of rounded multipliers, tried in this order. The first one that the checker accepts
# gives the shortest proof.
_BITS = (24, 32, 40, 52)
_DENOMINATORS, _DECIMALS = (100, 1_000, 10_000), (4, 5, 6, 7)
# Thresholds for the solver's least eigenvalue of the slack, which is accurate to about 1e-8. Within
# `_TIGHT`, a claim may be tight. If a claim fails by more than `_LARGEST_MISS`, rounding is not the
# reason.
_TIGHT = 1e-6
_LARGEST_MISS = -1e-3
_UNIT_MARGIN = 1e-9
_SYMBOLS = {
    "rate": "||x - x*||^2",
    "gap": "(F(x) - F*)",
    "decrease": "||grad F(x)||^2",
    "heterogeneity": "{level}^2",
    "noise": "sigma^2",
    "server_noise": "sigma_s^2",
}
_SUPPOSED = {
    "gradient": "E||grad F(x)||^2",
    "moved": "E||mean of the participants' sums of gradients||^2",
    "values": "E[mean of F_i(x) - F_i(x*) over those eligible]",
    "heterogeneity": "sigma_G^2",
}

if TYPE_CHECKING:
    from fltheory.worst_case.rounds.program import Multipliers

Rounding: TypeAlias = Callable[[float], Fraction]
"""How a solver's float becomes a fraction."""


@dataclass(frozen=True)
class Certificate(ProofFile[Proof]):
    """A proof, as JSON, of a bound for every client of a class.

    Attributes
    ----------
    text : str
        The certificate; all numbers are fractions.
    """

    checker: ClassVar[ProofChecker] = checker

    @property
    def floor(self) -> Fraction:
        """The limit of the squared distance after many rounds, divided by dissimilarity^2.

        It exists for a proof with a single step size and a rate below 1.
        """
        bound = self.proof.bound
        return bound["heterogeneity"][0] / (1 - bound["rate"][0])

    @property
    def lines(self) -> tuple[str, ...]:
        """The certificate's content: the claim, the class, the round and who takes part."""
        proof = self.proof
        level = "sigma_*" if proof.heterogeneity == "optimum" else "sigma_G"
        after, before = ("E F(x+)", "F(x)") if proof.of_descent else ("E||x+ - x*||^2", "")
        terms = {
            name: f"({polynomial_text(polynomial)}) {_SYMBOLS[name].format(level=level)}"
            for name, polynomial in proof.bound.items()
            if any(polynomial) and (name != "noise" or proof.noisy)
        }
        less = "".join(f" - {terms.pop(name)}" for name in ("gap", "decrease") if name in terms)
        rate = terms.pop("rate", before)
        claim = f"{after} <= {rate}{less}" + "".join(f" + {term}" for term in terms.values())
        drawn = isinstance(proof.taking_part, Drawn)
        bounded = heterogeneity_text(proof.heterogeneity)
        if not drawn and proof.heterogeneity == "optimum":
            bounded = "sum alpha_i ||grad F_i(x*)||^2 <= sigma_*^2"
        noise = "with noise" if proof.noisy else "with exact gradients"
        supposed = [f"{value} {_SUPPOSED[name]}" for name, value in proof.given.items() if value]
        if supposed:
            claim += f", where {' + '.join(supposed)} <= 0"
        return (
            claim,
            f"for all clients that are {class_text(proof.L, proof.mu)}, in any dimension, "
            f"{bounded}, {noise}" + ("" if drawn else ", x* of sum alpha_i F_i"),
            *_round_lines(proof),
        )

    def rocq_theorem(self) -> str:
        """Return the proof as a theorem for Rocq, which needs the library in the folder ``rocq``.

        Raises
        ------
        ValueError
            If the proof is for an interval of steps, assumes a hypothesis on the run, or is too
            large. If clients are present independently, also if there is noise or the proof is for
            a descent of F.
        """
        proof = self.proof
        drawn = isinstance(proof.taking_part, Drawn)
        return rocq_theorem(proof) if drawn else averaging_theorem(proof)

    def covers(self, *, n_clients: int | None = None, client_lr: Any = None) -> bool:
        """Whether the certificate covers a number of clients or a client step size.

        A certificate fixes the share of excluded clients and the ratio of the server's step to the
        clients' step.
        """
        proof = self.proof
        if n_clients is not None and not proof.taking_part.covers(n_clients):
            return False
        if client_lr is None:
            return True
        first, last = proof.client_lr
        return first <= exact("client_lr", client_lr, above=0) <= last


def _round_lines(proof: Proof) -> tuple[str, ...]:
    """Return the round and who takes part, in words."""
    first, last = proof.client_lr
    steps = f"eta_c = {first}" if first == last else f"every eta_c from {first} to {last}"
    who = proof.taking_part
    if isinstance(who, Drawn):
        clients = "every number of" if who.n_clients is None else f"up to {who.n_clients}"
        return (
            f"K = {proof.local_steps}, m = {who.participants} of {clients} clients, "
            f"{fraction_text(who.excluded_share)} of them excluded, {steps}, eta_s = "
            f"{proof.assist_ratio} eta_c, q = {fraction_text(proof.q)}",
        )
    weighted = who.averaging == "weights"
    sums = "weight times update" if weighted else "mean update of those present"
    return (
        f"K = {proof.local_steps}, {steps}, x+ = x + {proof.server_lr} times "
        f"{sums}, clients present independently of all else:",
        *(
            f"  {own.n_clients} with probability {fraction_text(own.availability)}, alpha = "
            f"{fraction_text(own.target_weight)}"
            + (f", weight {fraction_text(own.weight)}" if weighted else "")
            for own in who.groups
        ),
    )


def certificate(bound: Bound, margin: float = 1e-6) -> Certificate:
    """Return a proof in fractions of a bound slightly above the best one.

    Parameters
    ----------
    bound : Bound
    margin : float
        The relative amount by which the coefficients may exceed those of the bound. If no speed was
        given, ``1 - rate`` (or the decrease or gap) may also fall below its value in the bound by
        this amount. Coefficients that are zero up to the solver's precision become 1e-9 times the
        square of the sum of the steps.

    Raises
    ------
    ValueError
        If the margin is not above 0.
    ArithmeticError
        If no proof is found that the checker accepts.
    """
    share = 1 + exact("margin", margin, above=0)
    claim = raised(bound, share)
    return first_accepted(Certificate, _texts(bound.round, bound.client_class, claim), margin)


def raised(bound: Bound, share: Fraction) -> Claim:
    """Return a bound as a claim in fractions, with coefficients raised by a factor above one."""
    a_round, clients, measure = bound.round, bound.client_class, bound.measure
    speed = bound.given_speed
    if speed is None:
        speed = measure.raised(as_fraction(bound.speed), share)
    steps = a_round.local_steps * a_round.server_lr * a_round.total_weight * a_round.client_lr
    least = as_fraction(_UNIT_MARGIN) * steps**2 * clients.L**2 / measure.unit(clients)
    noise = max(as_fraction(bound.noise), measure.last_noise(a_round, clients)) * share
    return Claim(
        speed,
        max(as_fraction(bound.heterogeneity) * share, least),
        noise if clients.sigma > 0 else Fraction(0),
        measure.server_noise(a_round, clients),
        measure,
    )


def proved(a_round: Played, clients: AnyClass, claim: Claim) -> Certificate | None:
    """Return a proof of a claim that the checker accepts, or None if none is found."""
    return next(filter(None, map(Certificate.accepted, _texts(a_round, clients, claim))), None)


def _texts(a_round: Played, clients: AnyClass, claim: Claim) -> Iterator[str]:
    """Yield candidate certificates of a claim, the shortest first."""
    measure = claim.measure
    slack = slack_of(a_round, clients, measure, claim.given)
    scale = measure.unit(clients) / (clients.L * a_round.client_lr)
    last_noise = measure.last_noise(a_round, clients)
    if claim.heterogeneity < 0 or claim.noise < last_noise:
        return
    decrease = measure.decrease(claim.speed, a_round, clients)
    sums = (
        float(decrease),
        float(claim.heterogeneity * scale),
        float((claim.noise - last_noise) * scale),
    )
    from fltheory.worst_case.rounds.program import Program

    named = measure.coefficients(claim.speed) | claim.residual
    bound = {name: [value] for name, value in named.items()}
    steps = (a_round.client_lr, a_round.client_lr)
    values = Fraction(0) if measure.falls else decrease
    # Scaled coordinates are tried first and, if they do not help, the original ones.
    for scales in (sums, (1.0, 1.0, 1.0)):
        solution = Program(slack, slack.bases(*scales)).widest_slack(*sums)
        if solution is None or -solution.value < _LARGEST_MISS:
            continue
        # A tight claim has only one proof, and its numbers are often short.
        short = _SHORT if abs(solution.value) < _TIGHT else ()
        for rounding in (*map(of_bits, _BITS), *short):
            box = rounded_box(
                a_round,
                slack,
                solution.multipliers,
                rounding,
                steps,
                values=values,
                supposed=claim.given.values / clients.L if claim.given else Fraction(0),
            )
            yield certificate_text(a_round, clients, measure, bound, [box], claim.given)


def rounded_box(
    a_round: Played,
    slack: Slack,
    multipliers: Multipliers,
    rounding: Rounding,
    steps: tuple[Fraction, Fraction],
    *,
    values: Fraction = Fraction(0),
    supposed: Fraction = Fraction(0),
) -> Box:
    """Return multipliers as fractions, for an interval of step sizes.

    The coefficient of function values at x that must remain is ``values`` times a kind's share of
    F. For eligible clients, it is lower by ``supposed`` times the multiplier of the assumption
    about a run.
    """
    given = Fraction(0)
    pairs = {own.name: [[Fraction(0)] * len(own) for _ in range(len(own))] for own in slack.points}
    for (name, a, b), value in zip(slack.pairs, multipliers.pairs, strict=True):
        if name == GIVEN:
            given = rounding(max(float(value), 0.0))
        else:
            pairs[name][a][b] = rounding(max(float(value), 0.0))
    for first, kind in enumerate(a_round.kinds):
        _balance(pairs[kind.name], values * kind.share - given * supposed * (first == 0))
    return Box(
        steps,
        list(pairs.values()),
        _shares(multipliers.budgets, rounding),
        _shares(multipliers.noises, rounding),
        [rounding(float(value)) for value in multipliers.orthogonal],
        given,
    )


def of_bits(bits: int) -> Rounding:
    """Return a function that rounds a float to a fraction with ``bits`` binary places."""
    unit = Fraction(1, 2**bits)
    return lambda value: round(value / unit) * unit


def _of_denominator(most: int) -> Rounding:
    return lambda value: Fraction(value).limit_denominator(most)


def _of_decimals(count: int) -> Rounding:
    return lambda value: Fraction(round(value * 10**count), 10**count)


_SHORT = (*map(_of_denominator, _DENOMINATORS), *map(_of_decimals, _DECIMALS))


def _balance(weights: list[list[Fraction]], more: Fraction) -> None:
    """Raise weights until points' in- and outflow agree, except for ``more`` from the last to 0.

    Weights are only raised, since multipliers must not be negative.
    """
    size = len(weights)
    excess = [sum(weights[p]) - sum(row[p] for row in weights) for p in range(size)]
    excess[0] += more
    excess[-1] -= more
    for start in range(size):
        for end in range(size):
            moved = min(-excess[start], excess[end])
            if moved > 0:
                weights[start][end] += moved
                excess[start] += moved
                excess[end] -= moved


def _shares(values: FloatArray, rounding: Rounding) -> list[Fraction]:
    """Return values over their sum as fractions of sum one, or equal shares if all are zero."""
    positive = np.maximum(values, 0.0)
    total = float(positive.sum())
    parts = positive / total if total > 0 else np.full(len(values), 1 / max(len(values), 1))
    rounded = [rounding(float(part)) for part in parts]
    if rounded:
        # The largest share absorbs the rounding error.
        largest = max(range(len(rounded)), key=lambda index: rounded[index])
        rounded[largest] += 1 - sum(rounded)
    return rounded


def certificate_text(
    a_round: Played,
    clients: AnyClass,
    measure: Measure,
    bound: Mapping[str, Sequence[Fraction]],
    boxes: Sequence[Box],
    given: Given | None = None,
) -> str:
    """Return a certificate's JSON, in which a bound's coefficients are polynomials in client_lr."""
    document = {
        "kind": checker.KIND,
        "version": checker.VERSION,
        "claim": measure.claim,
        "round": {
            "taking_part": a_round.taking_part,
            "local_steps": a_round.local_steps,
            "q": a_round.q,
            "server_lr": a_round.server_lr,
            "assist_lr_over_client_lr": a_round.assist_lr / a_round.client_lr,
        },
        "class": {
            "L": clients.L,
            "mu": clients.mu,
            "heterogeneity": clients.heterogeneity,
            "noise": clients.sigma > 0,
        },
        "bound": {name: bound[name] for name in checker.COEFFICIENTS[measure.claim]},
        "given": given and given.coefficients,
        "boxes": [vars(box) for box in boxes],
    }
    # Fractions are written as text.
    return json.dumps(document, indent=1, default=str) + "\n"
