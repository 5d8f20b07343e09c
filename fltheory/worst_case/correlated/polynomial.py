"""Bounds for one large group of clients in bursts, whose cost does not depend on their number."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any, ClassVar

from fltheory import validation
from fltheory.decimals import as_fraction
from fltheory.validation import FloatArray
from fltheory.worst_case.checker import polynomial_checker
from fltheory.worst_case.checker.correlated_checker import MOST_CLIENTS
from fltheory.worst_case.checker.polynomial_checker import PolynomialProof
from fltheory.worst_case.correlated.bound import (
    MOST_STATES,
    CorrelatedBound,
    Request,
    RoundsCertificate,
    check_covered,
    claim_text,
    found_by,
    solutions,
    texts_of,
    units_of,
    value_text,
)
from fltheory.worst_case.correlated.polynomial_program import PIECES, PolynomialProgram
from fltheory.worst_case.correlated.program import CorrelatedSolution
from fltheory.worst_case.proof.proof_file import (
    ProofChecker,
    first_accepted,
    with_values_cancelled,
)
from fltheory.worst_case.rounds.client_class import ClientClass, exact
from fltheory.worst_case.rounds.one_round import AveragingRound


class PolynomialBound(CorrelatedBound):
    """A bound, as the solver found it, by a function cubic in the number of clients present."""


def needs_polynomials(a_round: AveragingRound, clients: ClientClass) -> bool:
    """Whether a round has one group, too large for coefficients of its own for every number."""
    return (
        a_round.chain is None
        and len(a_round.groups) == 1
        and a_round.groups[0].n_clients >= MOST_STATES
        and a_round.groups[0].availability < 1
        and a_round.averaging == "weights"
        and not clients.sigma
    )


def polynomial_bound(
    a_round: AveragingRound,
    client_class: ClientClass,
    *,
    rounds: int | None = None,
    distance: Any = 1,
) -> PolynomialBound:
    """Return the best bound on the mean of the distance by a function that is cubic in n.

    Parameters and errors are those of `best_correlated_bound`.

    Examples
    --------
    >>> from fltheory.algorithms import Unbiased
    >>> from fltheory.participation import MarkovOnOff
    >>> N = 1000
    >>> unbiased = Unbiased([1 / N] * N, client_lr=0.1, local_steps=1, availability=[0.5] * N)
    >>> a_round = AveragingRound.of(unbiased, MarkovOnOff([0.5] * N, 0.9))
    >>> round(polynomial_bound(a_round, ClientClass(1, "0.1")).floor, 4)
    0.01
    """
    check_covered(a_round, client_class, MOST_CLIENTS + 1)
    count = None if rounds is None else validation.whole_number("rounds", rounds, at_least=1)
    far = float(exact("distance", distance))
    request = Request(a_round, client_class, "distance", None, count, far)
    return found_by(PolynomialProgram, PolynomialBound, request)


def polynomial_certificate(bound: PolynomialBound, margin: float = 1e-6) -> PolynomialCertificate:
    """Return a proof in fractions of a bound slightly above the best one.

    Parameters and errors are those of `certificate`.
    """
    texts = texts_of(bound, margin, solutions(bound.request, PolynomialProgram), _text)
    return first_accepted(PolynomialCertificate, texts, margin)


def _text(request: Request, unit: Fraction, found: CorrelatedSolution, bits: int) -> str:
    """Return a certificate's JSON, with numbers rounded to ``bits`` binary places."""
    units, (group,) = dict(units_of(request, unit)), request.round.groups

    def dyadic(value: float) -> Fraction:
        return Fraction(round(as_fraction(value) * 2**bits), 2**bits)

    def written(value: float, name: str) -> str:
        return str(dyadic(value) * units[name])

    function = [value_text(row, 0.0, 1, written) for row in found.function]
    factor = group.target_weight * units["pair"]

    def pairs(terms: list[FloatArray]) -> list[list[list[str]]]:
        nothing = [Fraction(0)] * request.round.local_steps
        rounded = [[[dyadic(float(value)) for value in row] for row in rows] for rows in terms]
        matrices = [with_values_cancelled(rows, nothing) for rows in rounded]
        places = range(len(nothing) + 1)
        return [[[str(one[a][b] * factor) for one in matrices] for b in places] for a in places]

    document = {
        "kind": polynomial_checker.KIND,
        "version": polynomial_checker.VERSION,
        **claim_text(request, found.ends, written),
        "pieces": PIECES,
        "function": [{name: one[name] for name in ("form", "present", "all")} for one in function],
        "multipliers": [pairs(terms) for terms in found.multipliers],
    }
    return json.dumps(document, indent=1) + "\n"


class PolynomialCertificate(RoundsCertificate[PolynomialProof]):
    """A proof, as JSON, by a function that is cubic in the number of clients present.

    Attributes
    ----------
    text : str
    """

    checker: ClassVar[ProofChecker] = polynomial_checker
