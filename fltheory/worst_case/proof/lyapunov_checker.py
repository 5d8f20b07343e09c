"""An independent checker of Lyapunov functions: fractions and the standard library only.

With `checker_tools.py` beside it this file is a program of its own: ``python lyapunov_checker.py
FILE``. A certificate holds a method, a class of clients, a function V of its state, multipliers of
three inequalities, and the claim that they prove. The method is

    x+ = x - step (1/N sum_i y_i + surprise sum_{i in S} (g_i - y_i)),  y_i+ = g_i for i in S

with ``g_i = grad F_i(x)`` and S drawn afresh in every round; ``y_i = grad F_i(phi_i)``, where
phi_i is the model when client i was last in S. With ``x* = 0``, ``w_i = y_i - grad F_i(x*)``,
``u_i = g_i - grad F_i(x*)`` and ``h_i(v) = F_i(v) - F_i(x*) - <grad F_i(x*), v>``,

    V = (x, mean w, mean phi)' P (x, mean w, mean phi) + mean of what clients differ in,
        (w_i, phi_i)' Q (w_i, phi_i) + memory_value mean h_i(phi_i) + model_value (F(x) - F(x*))

Shown is ``V >= ||x||^2``, ``E V+ <= rate V``, and a bound on V at the start. All sums over clients
are taken as they stand, over clients and over pairs of them, by what happens to one and to two:
the modelling works with means and variances. Then clients are exchanged: a form that does not
change by that has no negative value if its mean block and its block of differences have none.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from fltheory.worst_case.proof import checker_tools as tools
else:
    import checker_tools as tools

Fractions = tools.Fractions
FractionRows = tools.FractionRows
ProofError = tools.ProofError

KIND, VERSION = "Lyapunov function for every client loss", 1
FIELDS = "kind version claim method class bound function multipliers"
MOST_CHARACTERS = 30_000  # of a file
CLAIM = (
    "E||x_R - x*||^2 <= rate^R (start ||x_0 - x*||^2 + heterogeneity dissimilarity^2), "
    "dissimilarity^2 >= 1/N sum_i ||grad F_i(x*)||^2"
)
COEFFICIENTS = ("rate", "start", "heterogeneity")
INEQUALITIES = ("positive", "decrease", "begin")
SAMPLINGS, STARTS = ("drawn", "independent"), ("zero", "gradients")
MEMORY, MODEL, OPTIMUM = range(3)
X, W, PHI, U = (tuple(Fraction(int(place == one)) for place in range(4)) for one in range(4))
NOTHING = (Fraction(0),) * 4

Combination = tuple[Fraction, ...]
"""Coefficients of x, and of one client's w, phi and u."""


@dataclass(frozen=True)
class LyapunovProof:
    """A certificate as it was read: nothing of it is believed yet.

    Attributes
    ----------
    n_clients : int
    sampling : str
        "drawn": ``participants`` clients, uniformly; "independent": each by ``probability``.
    participants : int
    probability : Fraction
    surprise, step : Fraction
    start : str
        What memory holds at first: "zero", or the "gradients" at x_0.
    L, mu : Fraction
    bound : mapping of str to Fraction
        The claim's coefficients.
    means, differences : matrices of Fraction
        P and Q.
    memory_value, model_value : Fraction
    multipliers : mapping of str to matrix
        Of each inequality: entry (a, b) belongs to the condition of points a and b: the memory's,
        the model and x*.
    """

    n_clients: int
    sampling: str
    participants: int
    probability: Fraction
    surprise: Fraction
    step: Fraction
    start: str
    L: Fraction
    mu: Fraction
    bound: Mapping[str, Fraction]
    means: FractionRows
    differences: FractionRows
    memory_value: Fraction
    model_value: Fraction
    multipliers: Mapping[str, FractionRows]

    @property
    def together(self) -> Fraction:
        """The probability that two clients are present."""
        if self.sampling == "independent":
            return self.probability**2
        pool = self.n_clients
        return Fraction(self.participants * (self.participants - 1), max(pool * (pool - 1), 1))


# ---------------------------------------------------------------- reading what a stranger wrote


def parsed(text: str) -> LyapunovProof:
    """Read a certificate.

    Raises
    ------
    ProofError
        Naming the field that is missing, is not what it must be, or is out of range.
    """
    top = tools.document_of(text, FIELDS, MOST_CHARACTERS, kind=KIND, version=VERSION, claim=CLAIM)
    proof = _proof(top)
    _check_ranges(proof)
    return proof


def _proof(top: Mapping[str, Any]) -> LyapunovProof:
    names = "n_clients sampling participants probability surprise step start"
    method = tools.fields_of("method", top["method"], names)
    clients = tools.fields_of("class", top["class"], "L mu")
    bound = tools.fields_of("bound", top["bound"], " ".join(COEFFICIENTS))
    function = tools.fields_of(
        "function", top["function"], "means differences memory_value model_value"
    )
    multipliers = tools.fields_of("multipliers", top["multipliers"], " ".join(INEQUALITIES))

    def number(place: str, fields: Mapping[str, Any]) -> Fraction:
        return tools.fraction(place, fields[place.split(".")[1]])

    return LyapunovProof(
        n_clients=tools.whole("method.n_clients", method["n_clients"]),
        sampling=method["sampling"],
        participants=tools.whole("method.participants", method["participants"]),
        probability=number("method.probability", method),
        surprise=number("method.surprise", method),
        step=number("method.step", method),
        start=method["start"],
        L=number("class.L", clients),
        mu=number("class.mu", clients),
        bound={name: number(f"bound.{name}", bound) for name in COEFFICIENTS},
        means=_square("function.means", function["means"], 3),
        differences=_square("function.differences", function["differences"], 2),
        memory_value=number("function.memory_value", function),
        model_value=number("function.model_value", function),
        multipliers={
            name: _square(f"multipliers.{name}", multipliers[name], 3) for name in INEQUALITIES
        },
    )


def _square(place: str, found: Any, size: int) -> FractionRows:
    rows: FractionRows = tools.list_of(place, found, tools.row)
    if len(rows) != size or any(len(row) != size for row in rows):
        raise ProofError(f"{place}: must be {size} rows of {size} numbers")
    return rows


def _check_ranges(proof: LyapunovProof) -> None:
    if proof.n_clients < 1:
        raise ProofError("method.n_clients: out of range")
    drawn = proof.sampling == "drawn"
    ranges = {
        "method.sampling": proof.sampling in SAMPLINGS,
        "method.participants": 1 <= proof.participants <= proof.n_clients
        if drawn
        else proof.participants == 0,
        "method.probability": proof.probability == Fraction(proof.participants, proof.n_clients)
        if drawn
        else 0 < proof.probability <= 1,
        "method.surprise": proof.surprise >= 0,
        "method.step": proof.step > 0,
        "method.start": proof.start in STARTS,
        "class.L": proof.L > 0,
        "class.mu": 0 < proof.mu < proof.L,
        "bound.rate": 0 <= proof.bound["rate"] < 1,
        "bound.heterogeneity": proof.bound["heterogeneity"] >= 0,
        # Of F(x+) there is an upper bound only.
        "function.model_value": proof.model_value >= 0,
    }
    for place, holds in ranges.items():
        if not holds:
            raise ProofError(f"{place}: out of range")
    _check_matrices(proof)


def _check_matrices(proof: LyapunovProof) -> None:
    for name in ("means", "differences"):
        rows = getattr(proof, name)
        if any(rows[i][j] != rows[j][i] for i in range(len(rows)) for j in range(i)):
            raise ProofError(f"function.{name}: must be symmetric")
    for name, rows in proof.multipliers.items():
        if any(value < 0 for row in rows for value in row):
            raise ProofError(f"multipliers.{name}: must not be negative")


# ---------------------------------------------------------------- sums over clients and pairs


@dataclass
class Form:
    """A form in x and the clients' vectors v_i = (w_i, phi_i, u_i), the same for every client.

    ``model ||x||^2 + 2 sum_i <x, along v_i> + sum_i v_i' own v_i + sum_{i != j} v_i' pair v_j``,
    plus means of function values: of the memory's points, and of the model.
    """

    n_clients: int
    model: Fraction = Fraction(0)
    along: Fractions = field(default_factory=lambda: [Fraction(0)] * 3)
    own: FractionRows = field(default_factory=lambda: [[Fraction(0)] * 3 for _ in range(3)])
    pair: FractionRows = field(default_factory=lambda: [[Fraction(0)] * 3 for _ in range(3)])
    values: Fractions = field(default_factory=lambda: [Fraction(0)] * 3)

    def add_with_model(self, weight: Fraction, vector: Combination) -> None:
        """Add ``weight sum_i <x, vector_i>``."""
        self.model += weight * self.n_clients * vector[0]
        for index in range(3):
            self.along[index] += weight * vector[index + 1] / 2

    def add_clients(self, weight: Fraction, left: Combination, right: Combination) -> None:
        """Add ``weight sum_i <left_i, right_i>``."""
        self.model += weight * self.n_clients * left[0] * right[0]
        self._add(self.own, weight, Fraction(1), left, right)

    def add_pairs(self, weight: Fraction, left: Combination, right: Combination) -> None:
        """Add ``weight sum_{i != j} <left_i, right_j>``."""
        others = Fraction(self.n_clients - 1)
        self.model += weight * self.n_clients * others * left[0] * right[0]
        self._add(self.pair, weight, others, left, right)

    def _add(
        self,
        rows: FractionRows,
        weight: Fraction,
        times: Fraction,
        left: Combination,
        right: Combination,
    ) -> None:
        for i in range(3):
            mixed = left[0] * right[i + 1] + right[0] * left[i + 1]
            self.along[i] += weight * times * mixed / 2
            for j in range(3):
                both = left[i + 1] * right[j + 1] + left[j + 1] * right[i + 1]
                rows[i][j] += weight * both / 2

    def less(self, other: Form, factor: Fraction) -> Form:
        """Return ``factor`` times this form less another."""

        def rows(mine: FractionRows, theirs: FractionRows) -> FractionRows:
            return [_less(factor, a, b) for a, b in zip(mine, theirs, strict=True)]

        return Form(
            self.n_clients,
            factor * self.model - other.model,
            _less(factor, self.along, other.along),
            rows(self.own, other.own),
            rows(self.pair, other.pair),
            _less(factor, self.values, other.values),
        )

    def means(self) -> FractionRows:
        """Return the block of x and the means of w, phi and u: all clients' vectors are equal."""
        n = self.n_clients
        rows = [[self.model, *(n * value for value in self.along)]]
        for i in range(3):
            inner = [n * self.own[i][j] + n * (n - 1) * self.pair[i][j] for j in range(3)]
            rows.append([n * self.along[i], *inner])
        return rows

    def differences(self) -> FractionRows:
        """Return the block of vectors that add up to zero."""
        return [[self.own[i][j] - self.pair[i][j] for j in range(3)] for i in range(3)]


def _less(factor: Fraction, mine: Fractions, theirs: Fractions) -> Fractions:
    return [factor * a - b for a, b in zip(mine, theirs, strict=True)]


@dataclass(frozen=True)
class Fate:
    """What a round does to a client: its part of the model's step, its new w and phi.

    ``point`` is the one of which the memory holds the gradient afterwards.
    """

    moves: Combination
    w: Combination
    phi: Combination
    point: int


def _mixed(*terms: tuple[Fraction, Combination]) -> Combination:
    return tuple(
        sum((factor * vector[place] for factor, vector in terms), Fraction(0)) for place in range(4)
    )


KEPT = Fate(NOTHING, W, PHI, MEMORY)
RENEWED = Fate(NOTHING, U, X, MODEL)


def _fates(proof: LyapunovProof) -> tuple[Fate, Fate]:
    """Return what becomes of a client that is absent, and of one that is present."""
    memory = (-proof.step / proof.n_clients, W)
    reach = proof.step * proof.surprise
    absent = _mixed(memory)
    present = _mixed(memory, (-reach, U), (reach, W))
    return Fate(absent, W, PHI, MEMORY), Fate(present, U, X, MODEL)


def value_after(proof: LyapunovProof, law: _Law) -> Form:
    """Return E V after what the law says; an upper bound where F(x) is part of V."""
    n, form = Fraction(proof.n_clients), Form(proof.n_clients)
    P, Q, L = proof.means, proof.differences, proof.L
    form.model += P[0][0]
    form.values[MODEL] += proof.model_value
    for chance, fate in law.of_one:
        mixed = _mixed((P[0][1], fate.w), (P[0][2], fate.phi))
        form.add_with_model(2 * chance * P[0][0], fate.moves)
        form.add_with_model(2 * chance / n, mixed)
        form.add_clients(2 * chance / n, fate.moves, mixed)
        # F(x+) <= F(x) + <grad F(x), x+ - x> + L/2 ||x+ - x||^2.
        square = P[0][0] + proof.model_value * L / 2
        form.add_clients(chance * square, fate.moves, fate.moves)
        form.add_clients(chance * proof.model_value / n, U, fate.moves)
        form.values[fate.point] += chance * proof.memory_value
        kept = (fate.w, fate.phi)
        for a in range(2):
            for b in range(2):
                weight = Q[a][b] / n + (P[a + 1][b + 1] - Q[a][b]) / n**2
                form.add_clients(chance * weight, kept[a], kept[b])
    for chance, one, other in law.of_two:
        mixed = _mixed((P[0][1], one.w), (P[0][2], one.phi))
        square = P[0][0] + proof.model_value * L / 2
        form.add_pairs(chance * square, one.moves, other.moves)
        form.add_pairs(2 * chance / n, mixed, other.moves)
        form.add_pairs(chance * proof.model_value / n, U, other.moves)
        ones, others = (one.w, one.phi), (other.w, other.phi)
        for a in range(2):
            for b in range(2):
                weight = (P[a + 1][b + 1] - Q[a][b]) / n**2
                form.add_pairs(chance * weight, ones[a], others[b])
    return form


@dataclass(frozen=True)
class _Law:
    """Probabilities of one client's fate, and of two clients'."""

    of_one: Sequence[tuple[Fraction, Fate]]
    of_two: Sequence[tuple[Fraction, Fate, Fate]]


def certain(fate: Fate) -> _Law:
    """Return the law of a fate that all clients share."""
    one = Fraction(1)
    return _Law([(one, fate)], [(one, fate, fate)])


def a_round(proof: LyapunovProof) -> _Law:
    """Return the law of a round."""
    absent, present = _fates(proof)
    one, two = proof.probability, proof.together
    return _Law(
        [(one, present), (1 - one, absent)],
        [
            (two, present, present),
            (one - two, present, absent),
            (one - two, absent, present),
            (1 - 2 * one + two, absent, absent),
        ],
    )


def add_conditions(form: Form, proof: LyapunovProof, name: str) -> None:
    """Add multipliers times what is at most zero for every function of the class.

    ``f_b - f_a + <g_b, x_a - x_b> + ||g||^2/(2L) + mu/(2(1 - mu/L)) ||x - g/L||^2`` with x and g
    the differences of points and gradients (Taylor, Hendrickx and Glineur 2017, Theorem 4).
    """
    L, mu, n = proof.L, proof.mu, proof.n_clients
    points, gradients = (PHI, X, NOTHING), (W, U, NOTHING)
    minus = Fraction(-1)
    for a, row in enumerate(proof.multipliers[name]):
        for b, multiplier in enumerate(row):
            weight = multiplier / n
            x = _mixed((Fraction(1), points[a]), (minus, points[b]))
            g = _mixed((Fraction(1), gradients[a]), (minus, gradients[b]))
            off = _mixed((Fraction(1), x), (-1 / L, g))
            form.add_clients(weight, gradients[b], x)
            form.add_clients(weight / (2 * L), g, g)
            form.add_clients(weight * mu / (2 * (1 - mu / L)), off, off)
            form.values[b] += multiplier
            form.values[a] -= multiplier


# ---------------------------------------------------------------- what must be shown


def slacks(proof: LyapunovProof) -> dict[str, Form]:
    """Return what must have no negative value, a form an inequality."""
    now, n = value_after(proof, certain(KEPT)), Fraction(proof.n_clients)
    distance = Form(proof.n_clients, Fraction(1))
    begin = Form(proof.n_clients, proof.bound["start"])
    first = RENEWED
    if proof.start == "zero":
        # Memory is zero, the gradient where the client's own loss is smallest.
        first = KEPT
        begin.add_clients(proof.bound["heterogeneity"] / n, W, W)
    forms = {
        "positive": now.less(distance, Fraction(1)),
        "decrease": now.less(value_after(proof, a_round(proof)), proof.bound["rate"]),
        "begin": begin.less(value_after(proof, certain(first)), Fraction(1)),
    }
    for name, form in forms.items():
        add_conditions(form, proof, name)
    return forms


def check_proof(proof: LyapunovProof) -> None:
    """Check that a certificate proves its claim.

    Raises
    ------
    ProofError
        Naming the first thing that fails.
    """
    for name, form in slacks(proof).items():
        for point, place in ((MEMORY, "the memory's points"), (MODEL, "the model")):
            if form.values[point] != 0:
                raise ProofError(f"{name}: the function values of {place} do not cancel")
        means = form.means()
        if name == "begin" and proof.start == "zero":
            # The mean of w is minus that of the gradients at x*, which is zero.
            means = [[row[i] for i in (0, 2, 3)] for row in (means[0], means[2], means[3])]
        if not tools.is_positive_semidefinite(means):
            raise ProofError(f"{name}: the block of means has a negative eigenvalue")
        # A single client has no differences.
        if proof.n_clients > 1 and not tools.is_positive_semidefinite(form.differences()):
            raise ProofError(f"{name}: the block of differences has a negative eigenvalue")


def _checked(text: str) -> str:
    """Check a certificate's text and return its claim."""
    check_proof(parsed(text))
    return CLAIM


if __name__ == "__main__":
    sys.exit(tools.run(sys.argv[1:], "lyapunov_checker.py", _checked))
