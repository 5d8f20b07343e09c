"""An independent checker for one large group of clients that come and go in bursts.

With `kernel.py` and `correlated_checker.py` beside it, this file is a program of its own: ``python
polynomial_checker.py FILE``. The claim and the inequalities are those of `correlated_checker.py`,
for the mean of the distance, weights and exact gradients. W and the multipliers are given as
polynomials in n, the number of clients present in the previous round, with the terms ``1, n/N,
n(n-1)/N^2, n(n-1)(n-2)/N^3``.

Means of these terms over the next number n' are factorial moments: polynomials in n of the same
degree. Sums over a cell multiply them by its size, sums over pairs by ``n(n-1)``, ``n(N-n)`` or
``(N-n)(N-n-1)``, and means of g are ``-(N-n) v`` over those present and ``n v`` over the others. So
all blocks are polynomials in n of degree 7 or less, known from their values at nine whole n, which
the plain checker's own sums give. A polynomial with positive semidefinite Bernstein coefficients on
a range is positive semidefinite there. States 0 and N have fewer cells, and are checked by
themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from math import comb, perm
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from fltheory.worst_case.checker import correlated_checker as plain
    from fltheory.worst_case.checker import kernel
else:
    import correlated_checker as plain
    import kernel

Fractions = kernel.Fractions
FractionRows = kernel.FractionRows
ProofError = kernel.ProofError

KIND, VERSION = "correlated rounds of one large group for every client loss", 1
MOST_CHARACTERS = plain.MOST_CHARACTERS
TERMS, DEGREE, MOST_PIECES = 4, 8, 64


@dataclass(frozen=True)
class PolynomialProof(plain.CorrelatedRounds):
    """A certificate as it was read; nothing in it has been checked yet.

    Attributes
    ----------
    pieces : int
        Number of pieces of every range of n.
    terms : list of Value
        W's coefficient of each term.
    of_pairs : list of matrices of Fractions
        Multipliers of those present and of those absent: for each pair of points its coefficients.
    """

    pieces: int
    terms: Sequence[plain.Value]
    of_pairs: Sequence[Sequence[Sequence[Fractions]]]


@dataclass(frozen=True)
class ProofAt(plain.CorrelatedProof):
    """A certificate at one n."""

    number: int

    @cached_property
    def states(self) -> list[plain.State]:
        """The only state."""
        return [(self.number,)]


def parsed(text: str) -> PolynomialProof:
    """Read a certificate.

    Raises
    ------
    ProofError
        If a field, which the message names, is missing, invalid or out of range.
    """
    names = "kind version claim round class bound below pieces function multipliers"
    top = kernel.document_of(text, names, MOST_CHARACTERS, version=VERSION, kind=KIND)
    rounds = plain.rounds_of(top, plain.MOST_CLIENTS + 1)
    size = rounds.local_steps + 1

    def term(place: str, found: Any) -> plain.Value:
        one = kernel.fields_of(place, found, "form present all")
        return plain.Value(
            kernel.symmetric_of(f"{place}.form", one["form"], 2),
            kernel.numbers_of(f"{place}.present", one["present"], 1),
            kernel.numbers_of(f"{place}.all", one["all"], 1),
            Fraction(0),
        )

    def pair(place: str, found: Any) -> Fractions:
        return kernel.numbers_of(place, found, TERMS)

    def rows(place: str, found: Any) -> list[list[Fractions]]:
        return kernel.list_of(place, found, lambda p, f: kernel.list_of(p, f, pair))

    proof = PolynomialProof(
        **vars(rounds),
        pieces=kernel.whole("pieces", top["pieces"]),
        terms=kernel.list_of("function", top["function"], term),
        of_pairs=kernel.list_of("multipliers", top["multipliers"], rows),
    )
    kernel.in_range(
        {
            "claim": proof.measure == "distance",
            "round.averaging": proof.averaging == "weights",
            "class.noise": not proof.noisy,
            "round.chain": proof.chain is None,
            "round.groups": len(proof.groups) == 1
            and proof.groups[0].availability < 1
            and proof.groups[0].n_clients >= DEGREE + 4,
            "pieces": 1 <= proof.pieces <= MOST_PIECES,
            "function": len(proof.terms) == TERMS,
            "multipliers": [[len(row) for row in own] for own in proof.of_pairs]
            == [[size] * size] * 2,
        }
    )
    return proof


class Moments(plain.Next):
    """Means of each term at the next number n', restricted to tagged clients being present."""

    def __init__(self, proof: plain.CorrelatedRounds, place: int | None) -> None:
        super().__init__(proof, place)
        (self._own,) = proof.groups
        self.denominator = self._wholes[0] ** (TERMS + 1) * self._own.n_clients ** (TERMS - 1)

    def chances(self, tags: Sequence[tuple[int, bool]]) -> list[int]:
        """Return the means times `denominator`.

        With m clients tagged, ``n' = m + X + Y``. Falling powers obey the binomial theorem, and
        those of X, the number present of k clients, have means ``k(k-1).. p^r``.
        """
        own, m = self._own, len(tags)
        stay, stays, comes = 0, own.stays, own.comes
        if self._state is None:
            comes = own.availability
        else:
            stay = self._state[0] - sum(present for _, present in tags)
        come = own.n_clients - m - stay
        both = Fraction(1)
        for _, present in tags:
            both *= stays if present else comes
        others = [
            sum(
                comb(r, j) * perm(stay, j) * stays**j * perm(come, r - j) * comes ** (r - j)
                for j in range(r + 1)
            )
            for r in range(TERMS)
        ]
        return [
            int(
                self.denominator
                * both
                * sum(comb(r, k) * perm(m, r - k) * others[k] for k in range(r + 1))
                / own.n_clients**r
            )
            for r in range(TERMS)
        ]


class CheckerAt(plain.Checker):
    """The inequalities at one n.

    Parameters
    ----------
    proof : PolynomialProof
    n : int
    """

    def __init__(self, proof: PolynomialProof, n: int) -> None:
        self._terms, N = proof.terms, proof.groups[0].n_clients
        scale = [Fraction(perm(n, r), N**r) for r in range(TERMS)]

        def at(numbers: Sequence[Fraction]) -> Fraction:
            return sum((s * v for s, v in zip(scale, numbers, strict=True)), Fraction(0))

        value = plain.Value(
            [[at([one.form[i][j] for one in self._terms]) for j in range(2)] for i in range(2)],
            [at([one.present[0] for one in self._terms])],
            [at([one.all[0] for one in self._terms])],
            Fraction(0),
        )
        there = [number > 0 for number in (n, N - n)]
        multipliers = [
            [[at(pair) for pair in row] for row in own]
            for own, some in zip(proof.of_pairs, there, strict=True)
            if some
        ]
        rounds = {one.name: getattr(proof, one.name) for one in fields(plain.CorrelatedRounds)}
        made = ProofAt(
            **rounds,
            noise_below=Fraction(0),
            function=[value],
            multipliers=[multipliers],
            noises=[],
            orthogonal=[],
            number=n,
        )
        super().__init__(made)

    def law(self, place: int | None) -> Moments:
        """Return the means of terms after the state; None for the stationary law."""
        return Moments(self.proof, place)

    def _parts(self, moves: bool) -> list[plain.Parts]:
        """Return the parts of W that each term multiplies."""
        reach = self.proof.reach((1,)) if moves else None
        return [plain.Parts(self.proof, value, reach) for value in self._terms]

    def blocks(self) -> dict[str, FractionRows]:
        """Return the blocks of both inequalities, polynomials in n, for n from 2 to N - 2."""
        (n,) = self.proof.states[0]
        found = {}
        for name, sums in (("round", self.round_slack(0)), ("lower bound", self.end_slack(0))):
            sums.form.check_values(name)
            for part, block in sums.blocks().items():
                if part == "means":
                    # The last coordinate, the mean of g over those absent, becomes n v.
                    block[-1] = [n * value for value in block[-1]]
                    for row in block:
                        row[-1] *= n
                found[f"{name}, {part}"] = block
        return found


class PolynomialChecker:
    """A certificate's inequalities for all n.

    Parameters
    ----------
    proof : PolynomialProof
    """

    def __init__(self, proof: PolynomialProof) -> None:
        self.proof = proof
        self.count = proof.groups[0].n_clients
        self.nodes = [2 + k * (self.count - 4) // DEGREE for k in range(DEGREE + 1)]

    @cached_property
    def at_nodes(self) -> list[dict[str, FractionRows]]:
        """The blocks at the nodes."""
        return [CheckerAt(self.proof, n).blocks() for n in self.nodes]

    def pieces(self, low: int, high: int) -> Iterator[FractionRows]:
        """Yield each piece's matrix from values at the nodes to Bernstein coefficients."""
        width = Fraction(high - low, self.proof.pieces)
        for k in range(self.proof.pieces):
            yield to_bernstein(low + k * width, low + (k + 1) * width, self.nodes)

    def range_of(self, name: str) -> tuple[int, int]:
        """Return the least and largest n with the cells that a block needs."""
        N = self.count
        if "differences" not in name:
            return 1, N - 1
        return (2, N) if "present" in name else (0, N - 2)

    def check(self) -> None:
        """Check every number of clients present, and the start.

        Raises
        ------
        ProofError
            If an inequality is not proved. The message names the first one.
        """
        self._check_multipliers()
        for n in (0, self.count):
            alone = CheckerAt(self.proof, n)
            alone.check_round(0)
            alone.check_end(0)
        alone.start_slack().check("start")
        for name in self.at_nodes[0]:
            values = [own[name] for own in self.at_nodes]
            size = range(len(values[0]))
            for factors in (row for rows in self.pieces(*self.range_of(name)) for row in rows):
                taken = [[_mixed(factors, [v[i][j] for v in values]) for j in size] for i in size]
                kernel.check_blocks("some n", {name: taken})

    def _check_multipliers(self) -> None:
        """Check that multipliers are nonnegative at all n."""
        scales = [[Fraction(perm(n, r), self.count**r) for r in range(TERMS)] for n in self.nodes]
        pairs = [pair for own in self.proof.of_pairs for row in own for pair in row]
        every = [row for rows in self.pieces(0, self.count) for row in rows]
        for pair in pairs:
            values = [_mixed(scale, pair) for scale in scales]
            if any(_mixed(factors, values) < 0 for factors in every):
                raise ProofError("multipliers: must not be negative at any n")


def to_bernstein(low: Fraction, high: Fraction, nodes: Sequence[int]) -> FractionRows:
    """Return the matrix from a polynomial's values at nodes to its Bernstein coefficients.

    In ``n = low (1 - x) + high x``, a polynomial is a sum of ``x^j (1-x)^(d-j)`` times binomial
    coefficients times these. Products of linear factors give Lagrange's polynomials.

    Examples
    --------
    >>> [[str(v) for v in row] for row in to_bernstein(Fraction(0), Fraction(1), [0, 1, 2])][1]
    ['1/4', '1', '-1/4']
    """
    columns, nothing = [], Fraction(0)
    for node in nodes:
        products = [Fraction(1)]
        for other in nodes:
            if other != node:
                left, right = (Fraction(end - other) / (node - other) for end in (low, high))
                products = [
                    left * a + right * b
                    for a, b in zip([*products, nothing], [nothing, *products], strict=True)
                ]
        columns.append(products)
    degree = len(nodes) - 1
    return [[column[j] / comb(degree, j) for column in columns] for j in range(degree + 1)]


def _mixed(factors: Sequence[Fraction], values: Sequence[Fraction]) -> Fraction:
    return sum((f * v for f, v in zip(factors, values, strict=True) if v), Fraction(0))


def checked(text: str) -> str:
    """Check a certificate's text and return its claim."""
    proof = parsed(text)
    PolynomialChecker(proof).check()
    return kernel.with_numbers(plain.CLAIMS[proof.measure], proof.bound)


if __name__ == "__main__":
    sys.exit(kernel.run(sys.argv[1:], "polynomial_checker.py", checked))
