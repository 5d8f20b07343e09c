"""A bound where clients come in bursts by a function that sees gradients, and its proof.

Claims are those of `bound`; the function is that of `rich_program`. Of the two functions' bounds
the better one is returned.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

from fltheory.decimals import as_fraction
from fltheory.validation import FloatArray
from fltheory.worst_case.checker import rich_checker
from fltheory.worst_case.checker.rich_checker import RichProof, check_rich
from fltheory.worst_case.correlated.bound import (
    CorrelatedBound,
    CorrelatedCertificate,
    Request,
    claim_text,
    first_proof,
    solutions,
    units_of,
)
from fltheory.worst_case.correlated.program import cells_of, states_of
from fltheory.worst_case.correlated.rich_program import RichProgram, RichSolution, unknowns_of
from fltheory.worst_case.proof.proof_file import ProofFile
from fltheory.worst_case.rounds.averaging_round import AveragingRound

# Units of gradients at x*: where they are small beside z, the solver is at its most precise.
_UNITS = (8, 32, 1)
_MOST_UNKNOWNS = 3_000

_Written: TypeAlias = Callable[[float, Fraction], str]


class RichBound(CorrelatedBound):
    """A bound by a function that sees gradients, as the solver found it."""


def richer_bound(plain: CorrelatedBound) -> CorrelatedBound:
    """Return the bound by a function that sees gradients, or the given one where that is better.

    Parameters
    ----------
    plain : CorrelatedBound

    Raises
    ------
    ValueError
        For clients with noise, or too many states.

    Examples
    --------
    >>> from fltheory.algorithms import Unbiased
    >>> from fltheory.participation import MarkovOnOff
    >>> from fltheory.worst_case.correlated.bound import best_correlated_bound
    >>> from fltheory.worst_case.rounds.averaging_round import AveragingRound
    >>> from fltheory.worst_case.rounds.client_class import ClientClass
    >>> unbiased = Unbiased([0.5] * 2, client_lr=0.1, local_steps=1, availability=[0.5] * 2)
    >>> a_round = AveragingRound.of(unbiased, MarkovOnOff([0.5] * 2, 0.9))
    >>> plain = best_correlated_bound(a_round, ClientClass(1, "0.1"))
    >>> richer_bound(plain).floor < 0.9 * plain.floor
    True
    """
    request = plain.request
    if request.client_class.sigma:
        raise ValueError(
            "client_class must have sigma = 0 for a function that sees gradients: noise would make "
            f"what it sees random, got {float(request.client_class.sigma):g}"
        )
    unknowns = unknowns_of(request.round)
    if unknowns > _MOST_UNKNOWNS:
        raise ValueError(
            f"a function that sees gradients must have at most {_MOST_UNKNOWNS} coefficients and "
            f"multipliers, got {unknowns}: fewer clients, groups or local steps have fewer"
        )
    for solved in solutions(request, RichProgram, _UNITS):
        return min(plain, RichBound.of(request, solved), key=_value)
    return plain


def _value(bound: CorrelatedBound) -> float:
    asked = bound.request
    return bound.floor if asked.rounds is None else bound.after(asked.rounds, asked.distance)


def rich_certificate(bound: RichBound, margin: float = 1e-6) -> RichCertificate:
    """Return a proof in fractions of a bound, a little above the best.

    Parameters and errors are those of `certificate`.
    """
    others = solutions(bound.request, RichProgram, _UNITS)
    return first_proof(bound, margin, others, _text, RichCertificate)


def _text(request: Request, unit: Fraction, found: RichSolution, bits: int) -> str:
    """Return a certificate's JSON, numbers rounded to so many bits after the point."""
    clients, units = request.client_class, dict(units_of(request, unit))
    # What a form is multiplied by: of z, of gradients less those at x*, of gradients at x*.
    sizes = {"z": Fraction(1), "delta": 1 / clients.L, "g": 1 / clients.L / unit}

    def written(value: float, factor: Fraction) -> str:
        return str(Fraction(round(as_fraction(value) * 2**bits), 2**bits) * factor)

    def weights(rows: FloatArray, factor: Fraction) -> list[list[str]]:
        # The checker works out the conditions of each point and x*.
        return [[written(max(float(v), 0.0), factor) for v in row] for row in rows]

    alphas = [own.target_weight for own in request.round.groups]
    cells = [list(cells_of(request.round, state)) for state in states_of(request.round)]
    of_ends = units["z"] / clients.L

    def of_cells(found: list[list[FloatArray]], factor: Fraction) -> list[Any]:
        return [
            [
                weights(rows, alphas[cell.group] * factor)
                for rows, cell in zip(own, here, strict=True)
            ]
            for own, here in zip(found, cells, strict=True)
        ]

    document = {
        "kind": rich_checker.KIND,
        "version": rich_checker.VERSION,
        **claim_text(request, found.ends, lambda value, name: written(value, units[name])),
        "function": [
            _function(row, request.round, units["z"], sizes, written) for row in found.function
        ],
        "multipliers": of_cells(found.multipliers, units["pair"]),
        "lower": of_cells(found.lower, of_ends),
        "first": [
            weights(rows, alpha * of_ends) for rows, alpha in zip(found.first, alphas, strict=True)
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def _function(
    row: FloatArray,
    a_round: AveragingRound,
    unit: Fraction,
    sizes: Mapping[str, Fraction],
    written: _Written,
) -> Mapping[str, Any]:
    """Return W in one state, its coefficients in the order of `rich_program`."""
    C, K = len(a_round.groups), a_round.local_steps
    values = iter(row.tolist())

    def matrix(kinds: list[str]) -> list[list[str]]:
        rows = [["0"] * len(kinds) for _ in kinds]
        for i, one in enumerate(kinds):
            for j in range(i, len(kinds)):
                rows[i][j] = rows[j][i] = written(next(values), unit * sizes[one] * sizes[kinds[j]])
        return rows

    def losses(count: int) -> list[str]:
        return [written(next(values), unit * sizes["delta"]) for _ in range(count)]

    form = matrix(["z"] + ["delta"] * (C * (K + 1)) + ["g"] * (2 * C - 1))
    own = [
        (matrix(["delta"] * K + ["g"]), losses(K), matrix(["delta", "g"]), losses(1))
        for _ in range(C)
    ]
    return {
        "form": form,
        "present": [one[0] for one in own],
        "absent": [one[2] for one in own],
        "present_losses": [one[1] for one in own],
        "absent_losses": [one[3][0] for one in own],
    }


class RichCertificate(CorrelatedCertificate):
    """A proof by a function that sees gradients, as JSON.

    Attributes
    ----------
    text : str
    """

    kind = rich_checker.KIND
    most_characters = rich_checker.MOST_CHARACTERS
    check: ClassVar[staticmethod[[Any], None]] = staticmethod(check_rich)
    # Rocq's library knows the plain function alone.
    rocq_theorem = ProofFile.rocq_theorem

    @property
    def proof(self) -> RichProof:  # type: ignore[override]
        """What it says, read again from its text."""
        return rich_checker.parsed(self.text)
