"""An independent checker for clients in bursts, for functions that also depend on gradients.

With `kernel.py` and `correlated_checker.py` in the same folder, this file is a separate program:
``python rich_checker.py FILE``. Rounds, clients and claims are those of `correlated_checker` with
exact gradients, but the function is different. It depends on x and on S, the set of clients that
take part in the coming round:

    W_S = V' form V
          + sum_{i in S} alpha_i (d_i' present d_i + sum_k present_losses_k phi_i(x_{i,k}))
          + sum_{i not in S} alpha_i (e_i' absent e_i + absent_loss phi_i(x))
    V = (z, a_{1,0}..a_{1,K-1}, .., a_{C,K-1}, b_1..b_C, u_1..u_C, U_1..U_{C-1})

with ``d_i = (delta_{i,0}, .., delta_{i,K-1}, g_i)`` of the local gradients in the coming round,
``e_i = (delta_{i,0}, g_i)``, ``phi_i = F_i - F_i(x*) - <g_i, . - x*>``; ``a_{c,k}`` is the sum of
``alpha_i delta_{i,k}`` over the clients of group c in S, ``b_c`` is the sum of
``alpha_i delta_{i,0}`` over the other clients of c, and ``u_c`` and ``U_c`` are the sums of
``alpha_i g_i`` over the clients of c in S and over all of c. The checker shows

    rate W_S(x) - E[W_{S'}(x+) | S] - measured + heterogeneity h >= 0

where S determines x+, and S' is the set after S, ``W_S(x) >= -below h`` (or ``>= ||z||^2``), and a
bound on E W_S(x_0). A client's loss is evaluated at the points of its local steps from x, at those
that it would reach from x+, and at x*. Each inequality has its own multipliers. Remaining function
values are cancelled by conditions between a point and x*, which are not in the file. They are
multiples of ``phi >= ||delta||^2/(2 L) + ..``, or of its counterpart.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
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

KIND, VERSION = "correlated rounds by gradients, for every client loss", 1
FIELDS = "kind version claim round class bound below function multipliers lower first"
MOST_CHARACTERS = 8_000_000


@dataclass(frozen=True)
class RichValue:
    """W in one state: its form and each group's coefficients for clients in S and not in S."""

    form: FractionRows
    present: Sequence[FractionRows]
    absent: Sequence[FractionRows]
    present_losses: FractionRows
    absent_losses: Fractions


@dataclass(frozen=True)
class RichProof(plain.CorrelatedRounds):
    """A certificate as it was read; nothing in it has been checked yet.

    Attributes
    ----------
    function : list of RichValue
        One value per state, in the order of `states`.
    multipliers, lower : lists of lists of matrices
        One matrix per state and cell, for a round and for the lower bound. Entry (a, b) belongs to
        the condition of points a and b; x* is the last point.
    first : list of matrices
        One matrix per group, at the start.
    """

    function: Sequence[RichValue]
    multipliers: Sequence[Sequence[FractionRows]]
    lower: Sequence[Sequence[FractionRows]]
    first: Sequence[FractionRows]

    def points(self, cell: plain.Cell) -> int:
        """Return the number of points at which W contains the losses of a cell's clients."""
        return self.local_steps if cell[1] else 1


def parsed(text: str) -> RichProof:
    """Read a certificate.

    Raises
    ------
    ProofError
        If a field, which the message names, is missing, invalid or out of range.
    """
    top = kernel.document_of(text, FIELDS, MOST_CHARACTERS, version=VERSION, kind=KIND)
    rounds = plain.rounds_of(top)
    kernel.in_range({"class.noise (gradients must be exact)": not rounds.noisy})
    n, K = len(rounds.groups), rounds.local_steps

    def of_groups(place: str, found: Any, of: Any) -> list[Any]:
        rows = kernel.list_of(place, found, of)
        if len(rows) != n:
            raise ProofError(f"{place}: must have one entry per group")
        return rows

    def value(place: str, found: Any) -> RichValue:
        one = kernel.fields_of(place, found, "form present absent present_losses absent_losses")
        return RichValue(
            kernel.symmetric_of(f"{place}.form", one["form"], n * (K + 3)),
            of_groups(
                f"{place}.present", one["present"], lambda p, f: kernel.symmetric_of(p, f, K + 1)
            ),
            of_groups(f"{place}.absent", one["absent"], lambda p, f: kernel.symmetric_of(p, f, 2)),
            of_groups(
                f"{place}.present_losses",
                one["present_losses"],
                lambda p, f: kernel.numbers_of(p, f, K),
            ),
            kernel.numbers_of(f"{place}.absent_losses", one["absent_losses"], n),
        )

    def weights(place: str, found: Any) -> FractionRows:
        size = len(found) if isinstance(found, list) else 0
        return kernel.weights_of(place, found, size)

    proof = RichProof(
        **vars(rounds),
        function=kernel.list_of("function", top["function"], value),
        multipliers=plain.of_cells("multipliers", top["multipliers"], weights),
        lower=plain.of_cells("lower", top["lower"], weights),
        first=of_groups("first", top["first"], weights),
    )
    _check_sizes(proof)
    return proof


def _check_sizes(proof: RichProof) -> None:
    K, cells = proof.local_steps, [proof.cells(state) for state in proof.states]
    seen = [[proof.points(cell) + 1 for cell in own] for own in cells]

    def sizes(found: Sequence[Sequence[FractionRows]]) -> list[list[int]]:
        return [[len(rows) for rows in own] for own in found]

    kernel.in_range(
        {
            "function": len(proof.function) == len(cells),
            "multipliers": sizes(proof.multipliers)
            == [
                [n + K - (not any(state)) for n in own]
                for own, state in zip(seen, proof.states, strict=True)
            ],
            "lower": sizes(proof.lower) == seen,
            "first": sizes([proof.first]) == [[K + 1] * len(proof.groups)],
        }
    )


class RichSums(plain.Sums):
    """Sums over clients and pairs of clients, of vectors now or after a round.

    Each client has its own vectors ``(delta_0.., delta+_0.., g)``.

    Parameters
    ----------
    proof : RichProof
    cells : sequence of (int, bool, int)
    points : sequence of int
        Number of points now, for the clients of each cell.
    later : int
        Number of points after the round. If nobody is present, the first of these is x itself.
    """

    def __init__(
        self, proof: RichProof, cells: Sequence[plain.Cell], points: Sequence[int], later: int
    ) -> None:
        super().__init__(proof, cells)
        self.points, self.later, self._first = points, later, [0] * len(cells)
        self.still = later > 0 and not any(present for _, present, _ in cells)
        self._g = [now + later - self.still for now in points]
        self._clients = kernel.Coordinates(
            1,
            [
                kernel.Group(plain.name_of(cell), cell[2], own + 1, own + 1)
                for cell, own in zip(cells, self._g, strict=True)
            ],
        )
        self.form = kernel.SymmetricForm(self._clients)
        self.z = self._clients.shared(0)
        self._local_steps = proof.local_steps

    def after(self, z: kernel.Vector) -> RichSums:
        """Return the same sums, with z and the clients' vectors after the round."""
        found = copy.copy(self)
        found.z, found._first = z, [now - self.still for now in self.points]
        return found

    def _place(self, k: int, index: int) -> int:
        """Return the place of entry ``index`` of ``(delta_0, .., delta_{K-1}, g)``."""
        return self._g[k] if index == self._local_steps else self._first[k] + index

    def vector(self, k: int, index: int) -> kernel.Vector:
        """Return one of the vectors that W contains for a client of a cell."""
        return self._clients.own(k, self._place(k, index))

    def mean(self, k: int, index: int) -> kernel.Vector:
        """Return the mean of one of these vectors over a cell."""
        return self._clients.mean(k, self._place(k, index))

    def add_losses(self, k: int, factors: Fractions) -> None:
        """Add ``sum_i sum_p factors_p phi_i(x_p)`` over a cell and its points."""
        for point, factor in enumerate(factors):
            if factor:
                self.form.add_value(self.cells[k][2] * factor, k, self._first[k] + point)

    @property
    def nothing(self) -> kernel.Vector:
        """The vector of zeros."""
        return self._clients.nothing


class RichChecker(plain.Checker):
    """A certificate's inequalities, derived from its numbers and checked.

    Parameters
    ----------
    proof : RichProof
    """

    proof: RichProof  # type: ignore[assignment]

    def __init__(self, proof: RichProof) -> None:
        super().__init__(proof)  # type: ignore[arg-type]

    @cached_property
    def _before(self) -> plain.Columns:
        return _Columns([_Parts(self.proof, value) for value in self.proof.function])

    @cached_property
    def _after(self) -> plain.Columns:
        return self._before

    def _now(self, place: int) -> plain.Parts:
        return _Parts(self.proof, self.proof.function[place])

    def _add_alone(
        self, sums: plain.Sums, k: int, columns: plain.Columns, one: plain.Mean, nobody: plain.Mean
    ) -> None:
        assert isinstance(sums, RichSums)
        c, size = sums.cells[k][0], self.size
        sums.add_own(
            k,
            [
                [
                    one(columns["own", c, 1, i, j]) + nobody(columns["own", c, 0, i, j])
                    for j in range(size)
                ]
                for i in range(size)
            ],
        )
        pairs = [(columns["loss", c, 1, p], columns["loss", c, 0, p]) for p in range(size - 1)]
        sums.add_losses(k, [one(asked) + nobody(certain) for asked, certain in pairs])

    def _add_alone_now(
        self, sums: plain.Sums, k: int, factor: Fraction, parts: plain.Parts
    ) -> None:
        assert isinstance(sums, RichSums)
        assert isinstance(parts, _Parts)
        c, present, _ = sums.cells[k]
        for asked in (1, 0) if present else (0,):
            sums.add_own(k, [[factor * v for v in row] for row in parts.own(c, asked)])
            sums.add_losses(k, [factor * v for v in parts.losses(c, asked)])

    # ------------------------------------------------------------ the inequalities

    def check_round(self, place: int) -> None:
        """Check, using its multipliers, that the inequality of a round holds in a state."""
        proof, state = self.proof, self.proof.states[place]
        cells = proof.cells(state)
        sums = RichSums(proof, cells, [proof.points(cell) for cell in cells], proof.local_steps)
        self.add_now(sums, proof.bound["rate"], place)
        after = sums.z
        for k, (c, present, members) in enumerate(cells):
            if present:
                updates = sums.nothing
                for j in range(proof.local_steps):
                    updates = updates + sums.mean(k, j) + sums.mean(k, proof.local_steps)
                after = after - proof.reach(state)[c] * members * updates
        self.add_expected(sums.after(after), Fraction(-1), plain.Next(proof, place), moves=True)
        sums.add_h(proof.bound["heterogeneity"])
        if proof.measure == "distance":
            sums.add_square(Fraction(-1))
        if proof.measure == "loss":
            for k, (c, _, _) in enumerate(cells):
                sums.add_losses(k, [-self.alpha[c]])
        self._decide(f"state {state}", sums, after, proof.multipliers[place])

    def check_end(self, place: int) -> None:
        """Check that W is bounded from below in a state."""
        proof, state = self.proof, self.proof.states[place]
        cells = proof.cells(state)
        sums = RichSums(proof, cells, [proof.points(cell) for cell in cells], 0)
        self.add_now(sums, Fraction(1), place)
        sums.add_h(proof.below)
        if proof.measure == "rate":
            sums.add_square(Fraction(-1))
        self._decide(f"state {state}, lower bound", sums, sums.z, proof.lower[place])

    def check_start(self) -> None:
        """Check that the stationary mean of W is at most the claimed initial bound."""
        proof = self.proof
        cells = [(c, False, own.n_clients) for c, own in enumerate(proof.groups)]
        sums = RichSums(proof, cells, [proof.local_steps] * len(cells), 0)
        self.add_expected(sums, Fraction(-1), plain.Next(proof, None), moves=False)
        sums.add_square(proof.bound["start"])
        sums.add_h(proof.bound["start_heterogeneity"] - proof.below)
        self._decide("start", sums, sums.z, proof.first)

    def _decide(
        self, place: str, sums: RichSums, after: kernel.Vector, multipliers: Sequence[FractionRows]
    ) -> None:
        """Add conditions with multipliers, including those that cancel losses, and decide."""
        L, mu, eta = self.proof.L, self.proof.mu, self.proof.client_lr
        later = sums.after(after)
        for k, (_, _, members) in enumerate(sums.cells):
            # Losses are divided by L, so that they are 1-smooth. Given are points, and gradients
            # minus g; x* comes last.
            points: list[kernel.Vector] = []
            gradients: list[kernel.Vector] = []
            for seen, count in ((sums, sums.points[k] - sums.still), (later, sums.later)):
                x = seen.z
                for j in range(count):
                    points.append(x)
                    gradients.append(1 / L * seen.vector(k, j))
                    x = x - eta * (seen.vector(k, j) + seen.vector(k, self.size - 1))
            points.append(sums.nothing)
            gradients.append(sums.nothing)
            weights = [[members * w for w in row] for row in multipliers[k]]
            values, last = sums.form.values[k], len(points) - 1
            for p in range(last):
                # The condition (p, x*) cancels an excess of phi_p, and (x*, p) a deficit.
                net = values[p] + sum(row[p] for row in weights) - sum(weights[p])
                weights[p][last] += max(net, Fraction(0))
                weights[last][p] += max(-net, Fraction(0))
            # All function values so far are of F, but conditions are of F over L.
            sums.form.add_conditions(
                k, [[L * w for w in row] for row in weights], points, gradients, mu / L
            )
            sums.form.values[k] = [Fraction(0)] * len(points)
        sums.check(place)


class _Parts(plain.Parts):
    """The coefficients of W in one state, with ``v_i = (delta_0, .., delta_{K-1}, g)``."""

    def __init__(self, proof: RichProof, value: RichValue) -> None:
        self.rich, self._form = value, value.form
        n, K = len(proof.groups), proof.local_steps
        self._alpha = [own.target_weight for own in proof.groups]
        self._vectors = []
        for c, alpha in enumerate(self._alpha):
            rows = n * (K + 3)
            asked = [[Fraction(0)] * (K + 1) for _ in range(rows)]
            certain = [[Fraction(0)] * (K + 1) for _ in range(rows)]
            for k in range(K):
                asked[1 + c * K + k][k] = alpha
            certain[1 + n * K + c][0], asked[1 + n * K + c][0] = alpha, -alpha
            asked[1 + n * K + n + c][K] = alpha
            if c < n - 1:
                certain[1 + n * K + 2 * n + c][K] = alpha
            self._vectors.append((certain, asked))

    def own(self, c: int, asked: int) -> FractionRows:
        """Return a single client's own coefficients, always (0) or if it is in S (1)."""
        K, alpha, (absent, present) = self.steps, self._alpha[c], self._of(c)
        found = [[Fraction(0)] * (K + 1) for _ in range(K + 1)]
        for i, row in ((0, absent[0]), (K, absent[1])):
            found[i][0], found[i][K] = row
        if not asked:
            return [[alpha * v for v in row] for row in found]
        return [
            [alpha * (p - a) for p, a in zip(there, away, strict=True)]
            for there, away in zip(present, found, strict=True)
        ]

    @property
    def steps(self) -> int:
        """The number of local steps."""
        return len(self._vectors[0][0][0]) - 1

    def _of(self, c: int) -> tuple[FractionRows, FractionRows]:
        return self.rich.absent[c], self.rich.present[c]

    def losses(self, c: int, asked: int) -> Fractions:
        """Return the coefficients of a client's losses, always (0) or if it is in S (1)."""
        alpha, away = self._alpha[c], [self.rich.absent_losses[c]]
        away += [Fraction(0)] * (self.steps - 1)
        if not asked:
            return [alpha * value for value in away]
        there = self.rich.present_losses[c]
        return [alpha * (p - a) for p, a in zip(there, away, strict=True)]


class _Columns(plain.Columns):
    """The numbers of `Columns` and single clients' own coefficients."""

    def _fill(self, key: Any) -> None:
        parts: Any = self._parts
        if key[0] == "own":
            _, c, asked, *_ = key
            matrices = [part.own(c, asked) for part in parts]
            for i, row in enumerate(matrices[0]):
                for j in range(len(row)):
                    self._found["own", c, asked, i, j] = plain.whole_of(
                        [matrix[i][j] for matrix in matrices]
                    )
        elif key[0] == "loss":
            _, c, asked, _ = key
            rows = [part.losses(c, asked) for part in parts]
            for p, column in enumerate(zip(*rows, strict=True)):
                self._found["loss", c, asked, p] = plain.whole_of(list(column))
        else:
            super()._fill(key)


def checked(text: str) -> str:
    """Check a certificate's text and return its claim."""
    proof = parsed(text)
    RichChecker(proof).check()
    return kernel.with_numbers(plain.CLAIMS[proof.measure], proof.bound)


if __name__ == "__main__":
    sys.exit(kernel.run(sys.argv[1:], "rich_checker.py", checked))
