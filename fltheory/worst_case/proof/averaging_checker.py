"""An independent checker of bounds on weighted averaging: fractions and the standard library only.

With `checker_tools.py` beside it this file is a program of its own: ``python averaging_checker.py
FILE``. Clients are there independently of one another, in groups of equal availability, target
weight and aggregation weight. Client i, if there, moves the model by its weight times what K local
steps moved it; or the model becomes the mean of those there, and stays where nobody is. Shown is

    E||x+ - x*||^2 <= rate ||x - x*||^2 + heterogeneity dissimilarity^2

for the minimiser x* of ``F = sum_i alpha_i F_i``. Sums over clients are taken as they stand, over
clients and over pairs of two, by what happens to one and to two: the modelling works with means
and variances. Averages over those present go over all numbers that each group may send. Then
clients of a group are exchanged: a form that does not change by that has no negative value if its
block of means and its blocks of differences have none.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from fltheory.worst_case.proof import checker_tools as tools
else:
    import checker_tools as tools

Fractions = tools.Fractions
FractionRows = tools.FractionRows
ProofError = tools.ProofError

KIND, VERSION = "bound on weighted averaging for every client loss", 1
FIELDS = "kind version claim round class bound pairs budgets"
MOST_CHARACTERS = 2_000_000  # of a file
MOST_ROWS = 100  # of the block of means
MOST_NUMBERS = 20_000  # of clients that may be there, group by group, where a mean is taken
MOST_PRESENT = 200  # clients of a mean, whose availability is taken to that power
LARGEST_DENOMINATOR = 10**20  # of such an availability
CLAIM = "E||x+ - x*||^2 <= rate ||x - x*||^2 + heterogeneity dissimilarity^2"
AVERAGING = ("weights", "present")


@dataclass(frozen=True)
class Group:
    """Clients that are alike, as they were read.

    Attributes
    ----------
    n_clients : int
    availability, target_weight, weight : Fraction
    """

    n_clients: int
    availability: Fraction
    target_weight: Fraction
    weight: Fraction


@dataclass(frozen=True)
class AveragingProof:
    """A certificate as it was read: nothing of it is believed yet.

    Attributes
    ----------
    averaging : str
        "weights", or "present": the mean over those there.
    local_steps : int
    client_lr, server_lr : Fraction
    groups : list of Group
    L, mu : Fraction
    heterogeneity : str
        "optimum": ``sum_i alpha_i ||grad F_i(x*)||^2 <= dissimilarity^2``; "everywhere":
        ``||grad F_i(x) - grad F(x)|| <= dissimilarity`` for every client and x.
    rate, heterogeneity_coefficient : Fraction
        The claim's coefficients.
    pairs : list of matrices
        Multipliers over e, of each group: entry (a, b) belongs to the condition of points a and b.
    budgets : list of Fraction
        The parts of the claimed coefficient that each bound on heterogeneity gets.
    """

    averaging: str
    local_steps: int
    client_lr: Fraction
    server_lr: Fraction
    groups: list[Group]
    L: Fraction
    mu: Fraction
    heterogeneity: str
    rate: Fraction
    heterogeneity_coefficient: Fraction
    pairs: list[FractionRows]
    budgets: Fractions


# ---------------------------------------------------------------- reading what a stranger wrote


def parsed(text: str) -> AveragingProof:
    """Read a certificate.

    Raises
    ------
    ProofError
        Naming the field that is missing, is not what it must be, or is out of range.
    """
    top = tools.document_of(text, FIELDS, MOST_CHARACTERS, kind=KIND, version=VERSION, claim=CLAIM)
    proof = _proof(top)
    _check_ranges(proof)
    _check_multipliers(proof)
    return proof


def _proof(top: Mapping[str, Any]) -> AveragingProof:
    names = "averaging local_steps client_lr server_lr groups"
    played = tools.fields_of("round", top["round"], names)
    clients = tools.fields_of("class", top["class"], "L mu heterogeneity")
    bound = tools.fields_of("bound", top["bound"], "rate heterogeneity")
    number = tools.fraction
    return AveragingProof(
        averaging=played["averaging"],
        local_steps=tools.whole("round.local_steps", played["local_steps"]),
        client_lr=number("round.client_lr", played["client_lr"]),
        server_lr=number("round.server_lr", played["server_lr"]),
        groups=tools.list_of("round.groups", played["groups"], _group),
        L=number("class.L", clients["L"]),
        mu=number("class.mu", clients["mu"]),
        heterogeneity=clients["heterogeneity"],
        rate=number("bound.rate", bound["rate"]),
        heterogeneity_coefficient=number("bound.heterogeneity", bound["heterogeneity"]),
        pairs=tools.list_of("pairs", top["pairs"], _rows),
        budgets=tools.list_of("budgets", top["budgets"], number),
    )


def _group(place: str, found: Any) -> Group:
    names = "n_clients availability target_weight weight"
    fields = tools.fields_of(place, found, names)
    numbers = {name: tools.fraction(f"{place}.{name}", fields[name]) for name in names.split()[1:]}
    return Group(tools.whole(f"{place}.n_clients", fields["n_clients"]), **numbers)


def _rows(place: str, found: Any) -> FractionRows:
    return tools.list_of(place, found, tools.row)


def _check_ranges(proof: AveragingProof) -> None:
    groups = proof.groups
    ranges = {
        "round.averaging": proof.averaging in AVERAGING,
        "round.local_steps": 1 <= proof.local_steps <= MOST_ROWS,
        "round.client_lr": proof.client_lr > 0,
        "round.server_lr": proof.server_lr > 0,
        "round.groups": len(groups) >= 1
        and len(groups) * (proof.local_steps + 1) <= MOST_ROWS
        and all(own.n_clients >= 1 for own in groups),
        "round.groups.availability": all(0 < own.availability <= 1 for own in groups),
        "round.groups.weight": all(own.weight >= 0 for own in groups)
        and (proof.averaging == "weights" or all(own.weight == 1 for own in groups)),
        "round.groups.target_weight": all(own.target_weight > 0 for own in groups)
        and sum(own.n_clients * own.target_weight for own in groups) == 1,
        "class.L": proof.L > 0,
        "class.mu": 0 <= proof.mu < proof.L,
        "class.heterogeneity": proof.heterogeneity in ("optimum", "everywhere"),
        "bound.heterogeneity": proof.heterogeneity_coefficient >= 0,
    }
    for place, holds in ranges.items():
        if not holds:
            raise ProofError(f"{place}: out of range")
    if proof.averaging == "present":
        _check_work(groups)


def _check_work(groups: Sequence[Group]) -> None:
    """Check that the law of who is there can be gone over, for a mean of those present."""
    if sum(own.n_clients for own in groups) > MOST_PRESENT:
        raise ProofError(f"round.groups: must have at most {MOST_PRESENT} clients for a mean")
    if math.prod(own.n_clients + 1 for own in groups) > MOST_NUMBERS:
        raise ProofError(f"round.groups: must have at most {MOST_NUMBERS} numbers present")
    if any(own.availability.denominator > LARGEST_DENOMINATOR for own in groups):
        raise ProofError("round.groups.availability: must have fewer digits for a mean")


def _check_multipliers(proof: AveragingProof) -> None:
    if len(proof.pairs) != len(proof.groups):
        raise ProofError(f"pairs: must be {len(proof.groups)} matrices")
    for index, weights in enumerate(proof.pairs):
        tools.check_graph(weights, proof.local_steps + 1, f"pairs[{index}]")
    count = 1 if proof.heterogeneity == "optimum" else 2 * len(proof.groups)
    if len(proof.budgets) != count:
        raise ProofError(f"budgets: must be {count} numbers")
    if min(proof.budgets) < 0 or sum(proof.budgets) > 1:
        raise ProofError("budgets: must not be negative, nor more than one in all")


# ---------------------------------------------------------------- what must be shown


def check_averaging(proof: AveragingProof) -> None:
    """Check that a certificate proves its claim.

    Raises
    ------
    ProofError
        Naming the first thing that fails.
    """
    for name, block in blocks(proof).items():
        if not tools.is_positive_semidefinite(block):
            raise ProofError(f"the slack of {name} has a negative eigenvalue")


def blocks(proof: AveragingProof) -> dict[str, FractionRows]:
    """Return the blocks of the slack over e, of lengths in units with L = 1."""
    steps, groups = proof.local_steps, proof.groups
    e = proof.L * proof.client_lr
    budget = proof.heterogeneity_coefficient * proof.L**2 / e
    found = {"means": _means(proof, e, budget)}
    one, two = chances(proof)[1:]
    reach = proof.server_lr**2 * e
    size = steps + 1
    for c, own in enumerate(groups):
        if own.n_clients == 1:
            continue
        # Over pairs of two different clients the differences from the mean add up to minus each
        # one's square.
        weight = own.n_clients * (one[c] - two[c][c])
        seen = [_unit(size, k) for k in range(size)]
        slack = tools.squares(size, [(-reach * weight, _total(seen[:-1], size))])
        _add_conditions(slack, proof, e, c, _run(e, _nothing(size), seen[:-1]), seen)
        for part, point in _budgets(proof, c):
            _add_square(slack, budget * part, seen[point])
        found[f"differences of group {c}"] = slack
    return found


def _means(proof: AveragingProof, e: Fraction, budget: Fraction) -> FractionRows:
    """Return the block of what all clients of a group have: x, g_0 .. g_{K-1} and g_*."""
    steps, groups = proof.local_steps, proof.groups
    kinds = len(groups)
    size = kinds * (steps + 1)
    shares = [own.n_clients * own.target_weight for own in groups]
    x = _unit(size, 0)
    along = [[_unit(size, 1 + c * steps + k) for k in range(steps)] for c in range(kinds)]
    at_optimum = [_unit(size, 1 + kinds * steps + c) for c in range(kinds - 1)]
    rest = [tools.scaled(-shares[c] / shares[-1], at_optimum[c]) for c in range(kinds - 1)]
    at_optimum.append(_total(rest, size))
    gradient = _total([tools.scaled(s, own[0]) for s, own in zip(shares, along, strict=True)], size)
    slack = tools.squares(size, [((proof.rate - 1) / e, x)])
    moved = [_total(own, size) for own in along]
    mean, one, two = chances(proof)
    for c, own in enumerate(groups):
        # 2 server_lr <x, W_i D_i>, of every client.
        towards = proof.server_lr * own.n_clients * mean[c]
        _add_product(slack, towards, x, moved[c])
        _add_product(slack, towards, moved[c], x)
        for d, other in enumerate(groups):
            pairs = own.n_clients * (other.n_clients - (c == d)) * two[c][d]
            ones = own.n_clients * one[c] if c == d else 0
            _add_product(slack, -(proof.server_lr**2) * e * (pairs + ones), moved[c], moved[d])
    for c in range(kinds):
        gradients = [*along[c], at_optimum[c]]
        _add_conditions(slack, proof, e, c, _run(e, x, along[c]), gradients)
        for part, point in _budgets(proof, c):
            centre = gradient if point == 0 else _nothing(size)
            off = tools.added(gradients[point], tools.scaled(Fraction(-1), centre))
            _add_square(slack, budget * part, off)
    return slack


def _budgets(proof: AveragingProof, c: int) -> list[tuple[Fraction, int]]:
    """Return what a group's bounds on heterogeneity weigh, and at which point they are."""
    own = proof.groups[c]
    if proof.heterogeneity == "optimum":
        return [(proof.budgets[0] * own.n_clients * own.target_weight, -1)]
    return [(proof.budgets[2 * c], -1), (proof.budgets[2 * c + 1], 0)]


def chances(proof: AveragingProof) -> tuple[Fractions, Fractions, FractionRows]:
    """Return ``E W_i``, ``E W_i^2`` and ``E W_i W_j`` of clients i and j of groups.

    Where a group has one client, no two of it are asked for.
    """
    groups = proof.groups
    if proof.averaging == "weights":
        mean = [own.availability * own.weight for own in groups]
        one = [own.availability * own.weight**2 for own in groups]
        return mean, one, [[left * right for right in mean] for left in mean]
    zeros = [Fraction(0)] * len(groups)
    mean, one, two = zeros[:], zeros[:], [zeros[:] for _ in groups]
    for numbers in product(*(range(own.n_clients + 1) for own in groups)):
        there = sum(numbers)
        if there == 0:
            continue
        chance = math.prod(
            (
                math.comb(own.n_clients, k)
                * own.availability**k
                * (1 - own.availability) ** (own.n_clients - k)
                for own, k in zip(groups, numbers, strict=True)
            ),
            start=Fraction(1),
        )
        for c, own in enumerate(groups):
            is_there = chance * Fraction(numbers[c], own.n_clients)
            mean[c] += is_there / there
            one[c] += is_there / there**2
            for d, other in enumerate(groups):
                left = other.n_clients - (c == d)
                if left:
                    both = is_there * Fraction(numbers[d] - (c == d), left)
                    two[c][d] += both / there**2
    return mean, one, two


def _run(e: Fraction, start: Fractions, along: Sequence[Fractions]) -> list[Fractions]:
    """Return the points of K local steps before each of them, and x* = 0."""
    points = [start]
    for seen in along[:-1]:
        points.append(tools.added(points[-1], tools.scaled(-e, seen)))
    return [*points, _nothing(len(start))]


def _add_conditions(
    slack: FractionRows,
    proof: AveragingProof,
    e: Fraction,
    c: int,
    points: list[Fractions],
    gradients: list[Fractions],
) -> None:
    """Add ``w_ab A_ab`` of every two points of a group, one after the other."""
    mu = proof.mu / proof.L
    scale = 1 / (2 * (1 - mu))
    for a, row in enumerate(proof.pairs[c]):
        for b, weight in enumerate(row):
            if not weight:
                continue
            apart = _less(points[a], points[b])
            steeper = _less(gradients[a], gradients[b])
            _add_product(slack, weight / 2, gradients[b], apart)
            _add_product(slack, weight / 2, apart, gradients[b])
            _add_square(slack, weight * scale, steeper)
            _add_square(slack, weight * scale * mu, apart)
            _add_product(slack, -weight * scale * mu, steeper, apart)
            _add_product(slack, -weight * scale * mu, apart, steeper)


# ---------------------------------------------------------------- lists of fractions


def _unit(size: int, index: int) -> Fractions:
    return [Fraction(int(place == index)) for place in range(size)]


def _nothing(size: int) -> Fractions:
    return [Fraction(0)] * size


def _total(vectors: Sequence[Fractions], size: int) -> Fractions:
    return tools.added(_nothing(size), *vectors)


def _less(left: Fractions, right: Fractions) -> Fractions:
    return [a - b for a, b in zip(left, right, strict=True)]


def _add_square(slack: FractionRows, weight: Fraction, vector: Fractions) -> None:
    _add_product(slack, weight, vector, vector)


def _add_product(slack: FractionRows, weight: Fraction, left: Fractions, right: Fractions) -> None:
    """Add ``weight left right'``."""
    for i, value in enumerate(left):
        if value:
            for j, other in enumerate(right):
                if other:
                    slack[i][j] += weight * value * other


def _checked(text: str) -> str:
    """Check a certificate's text and return its claim."""
    check_averaging(parsed(text))
    return CLAIM


if __name__ == "__main__":
    sys.exit(tools.run(sys.argv[1:], "averaging_checker.py", _checked))
