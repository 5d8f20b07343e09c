"""The checker of Lyapunov functions of methods with memory, in fractions.

A certificate holds a method, a class of clients, a function V of its state, multipliers of
three inequalities, and the claim that they prove. The method is

    x+ = x - step (1/N sum_i y_i + surprise sum_{i in S} (g_i - y_i)),  y_i+ = g_i for i in S

with ``g_i = grad F_i(x)`` and S drawn anew in every round; ``y_i = grad F_i(phi_i)``, where
phi_i is the model when client i was last in S. With ``x* = 0``, ``w_i = y_i - grad F_i(x*)``,
``u_i = g_i - grad F_i(x*)`` and ``h_i(v) = F_i(v) - F_i(x*) - <grad F_i(x*), v>``,

    V = (x, mean w, mean phi)' P (x, mean w, mean phi) + mean, over deviations from the means, of
        (w_i, phi_i)' Q (w_i, phi_i) + memory_value mean h_i(phi_i) + model_value (F(x) - F(x*))

The checker shows ``V >= ||x||^2``, ``E V+ <= rate V``, and a bound on V at the start. For a sum of
gaps, it shows ``V >= 0`` and ``E V+ <= rate V - gap (F(x) - F(x*))`` instead. It sums the effect of
a round over single clients and over pairs of clients, while the modelling code works with means and
variances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from fltheory.worst_case.checker import kernel
else:
    import kernel

FractionRows = kernel.FractionRows
ProofError = kernel.ProofError
Vector = kernel.Vector

KIND, VERSION = "Lyapunov function for every client loss", 3
FIELDS = "kind version claim method class bound function multipliers"
MOST_CHARACTERS = 30_000  # of a file
CLAIM = (
    "E||x_R - x*||^2 <= rate^R (start ||x_0 - x*||^2 + heterogeneity dissimilarity^2), "
    "dissimilarity^2 >= 1/N sum_i ||grad F_i(x*)||^2"
)
GAP_CLAIM = (
    "gap sum_(r<R) rate^(R-1-r) E[F(x_r) - F*] <= rate^R (start ||x_0 - x*||^2 + heterogeneity "
    "dissimilarity^2), dissimilarity^2 >= 1/N sum_i ||grad F_i(x*)||^2"
)
COEFFICIENTS = ("rate", "gap", "start", "heterogeneity")
INEQUALITIES = ("positive", "decrease", "begin")
SAMPLINGS, STARTS = ("drawn", "independent"), ("zero", "gradients")
MEMORY, MODEL, OPTIMUM = range(3)


@dataclass(frozen=True)
class LyapunovProof:
    """A certificate as it was read; nothing in it has been checked yet.

    Attributes
    ----------
    n_clients : int
    sampling : str
        "drawn" means that ``participants`` clients are drawn uniformly, "independent" that each
        client is present with ``probability``.
    participants : int
    probability : Fraction
    surprise, step : Fraction
    start : str
        The initial memory, which is "zero" or the "gradients" at x_0.
    L, mu : Fraction
    bound : mapping of str to Fraction
        The claim's coefficients.
    means, differences : matrices of Fraction
        P and Q.
    memory_value, model_value : Fraction
    multipliers : mapping of str to matrix
        One matrix per inequality; entry (a, b) belongs to the condition of points a and b, among
        the memory's point, the model and x*.
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
    def claim(self) -> str:
        """The claim, in text."""
        return GAP_CLAIM if self.bound["gap"] else CLAIM

    @property
    def together(self) -> Fraction:
        """The probability that two given clients are both present."""
        if self.sampling == "independent":
            return self.probability**2
        pool = self.n_clients
        return Fraction(self.participants * (self.participants - 1), max(pool * (pool - 1), 1))


# ---------------------------------------------------------------- reading an untrusted file


def parsed(text: str) -> LyapunovProof:
    """Read a certificate.

    Raises
    ------
    ProofError
        If a field, which the message names, is missing, invalid or out of range.
    """
    top = kernel.document_of(text, FIELDS, MOST_CHARACTERS, kind=KIND, version=VERSION)
    proof = _proof(top)
    if top["claim"] != proof.claim:
        raise ProofError(f"claim: must be {proof.claim!r} for this gap")
    _check_ranges(proof)
    return proof


def _proof(top: Mapping[str, Any]) -> LyapunovProof:
    names = "n_clients sampling participants probability surprise step start"
    method = kernel.fields_of("method", top["method"], names)
    clients = kernel.fields_of("class", top["class"], "L mu")
    bound = kernel.fields_of("bound", top["bound"], " ".join(COEFFICIENTS))
    function = kernel.fields_of(
        "function", top["function"], "means differences memory_value model_value"
    )
    multipliers = kernel.fields_of("multipliers", top["multipliers"], " ".join(INEQUALITIES))

    def number(place: str, fields: Mapping[str, Any]) -> Fraction:
        return kernel.fraction(place, fields[place.split(".")[1]])

    return LyapunovProof(
        n_clients=kernel.whole("method.n_clients", method["n_clients"]),
        sampling=method["sampling"],
        participants=kernel.whole("method.participants", method["participants"]),
        probability=number("method.probability", method),
        surprise=number("method.surprise", method),
        step=number("method.step", method),
        start=method["start"],
        L=number("class.L", clients),
        mu=number("class.mu", clients),
        bound={name: number(f"bound.{name}", bound) for name in COEFFICIENTS},
        means=kernel.symmetric_of("function.means", function["means"], 3),
        differences=kernel.symmetric_of("function.differences", function["differences"], 2),
        memory_value=number("function.memory_value", function),
        model_value=number("function.model_value", function),
        multipliers={
            name: kernel.weights_of(f"multipliers.{name}", multipliers[name], 3)
            for name in INEQUALITIES
        },
    )


def _check_ranges(proof: LyapunovProof) -> None:
    if proof.n_clients < 1:
        raise ProofError("method.n_clients: out of range")
    drawn = proof.sampling == "drawn"
    kernel.in_range(
        {
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
            "bound.gap": proof.bound["gap"] >= 0,
            "bound.rate": 0 <= proof.bound["rate"] < 1
            or (proof.bound["rate"] == 1 and proof.bound["gap"] > 0),
            "bound.heterogeneity": proof.bound["heterogeneity"] >= 0,
            # Only an upper bound on F(x+) is known.
            "function.model_value": proof.model_value >= 0,
        }
    )


# ---------------------------------------------------------------- the method, played


@dataclass(frozen=True)
class Fate:
    """What a round does with a client: its part of the model's step, and its new w and phi.

    ``point`` is the point whose gradient the memory holds afterwards.
    """

    moves: Vector
    w: Vector
    phi: Vector
    point: int


@dataclass(frozen=True)
class FateLaw:
    """The distribution of the fates of one client, and of two clients jointly."""

    of_one: Sequence[tuple[Fraction, Fate]]
    of_two: Sequence[tuple[Fraction, Fate, Fate]]


class Method:
    """The method's vectors, in units with L = 1; gradients and function values are divided by L.

    Parameters
    ----------
    proof : LyapunovProof
    """

    def __init__(self, proof: LyapunovProof) -> None:
        self.proof = proof
        group = kernel.Group("clients", proof.n_clients, vectors=3, points=3)
        self.clients = kernel.Coordinates(1, [group])
        self.x, self.nothing = self.clients.shared(0), self.clients.nothing
        self.w, self.phi, self.u = (self.clients.own(0, index) for index in range(3))

    def certain(self, *, renewed: bool) -> FateLaw:
        """Return the distribution in which all clients' memories are kept, or all are renewed."""
        fate = Fate(self.nothing, self.w, self.phi, MEMORY)
        if renewed:
            fate = Fate(self.nothing, self.u, self.x, MODEL)
        return FateLaw([(Fraction(1), fate)], [(Fraction(1), fate, fate)])

    def a_round(self) -> FateLaw:
        """Return the distribution of fates in a round."""
        proof = self.proof
        step = proof.step * proof.L
        memory = (-step / proof.n_clients) * self.w
        absent = Fate(memory, self.w, self.phi, MEMORY)
        surprise = (-step * proof.surprise) * (self.u - self.w)
        present = Fate(memory + surprise, self.u, self.x, MODEL)
        one, two = proof.probability, proof.together
        return FateLaw(
            [(one, present), (1 - one, absent)],
            [
                (two, present, present),
                (one - two, present, absent),
                (one - two, absent, present),
                (1 - 2 * one + two, absent, absent),
            ],
        )

    def add_function(self, form: kernel.SymmetricForm, factor: Fraction, law: FateLaw) -> None:
        """Add ``factor E V`` after a round with these fates, or an upper bound if V contains F(x).

        The upper bound is ``F(x+) <= F(x) + <grad F(x), x+ - x> + L/2 ||x+ - x||^2``.
        """
        proof, n = self.proof, Fraction(self.proof.n_clients)
        P, Q, x = self._scaled(proof.means, 1), self._scaled(proof.differences, 0), self.x
        memory, model = proof.memory_value * proof.L, proof.model_value * proof.L
        square = P[0][0] + model / 2
        form.add(factor * P[0][0], x, x)
        self.add_value(form, factor * model, MODEL)
        for chance, fate in law.of_one:
            weight = factor * chance
            kept = (fate.w, fate.phi)
            mixed = P[0][1] * fate.w + P[0][2] * fate.phi
            form.add_each(2 * weight * n * P[0][0], 0, x, fate.moves)
            form.add_each(2 * weight, 0, x, mixed)
            form.add_each(2 * weight, 0, fate.moves, mixed)
            form.add_each(weight * n * square, 0, fate.moves, fate.moves)
            form.add_each(weight * model, 0, self.u, fate.moves)
            self.add_value(form, weight * memory, fate.point)
            for a in range(2):
                for b in range(2):
                    own = Q[a][b] + (P[a + 1][b + 1] - Q[a][b]) / n
                    form.add_each(weight * own, 0, kept[a], kept[b])
        if n == 1:
            return
        for chance, one, other in law.of_two:
            weight = factor * chance * (n - 1)
            ones, others = (one.w, one.phi), (other.w, other.phi)
            mixed = P[0][1] * one.w + P[0][2] * one.phi
            form.add_two(weight * n * square, 0, 0, one.moves, other.moves)
            form.add_two(2 * weight, 0, 0, mixed, other.moves)
            form.add_two(weight * model, 0, 0, self.u, other.moves)
            for a in range(2):
                for b in range(2):
                    pair = (P[a + 1][b + 1] - Q[a][b]) / n
                    form.add_two(weight * pair, 0, 0, ones[a], others[b])

    def _scaled(self, rows: FractionRows, w: int) -> FractionRows:
        """Return a matrix of V, rescaled for gradients divided by L (the coordinate ``w``)."""
        L = self.proof.L
        size = range(len(rows))
        return [[L ** ((i == w) + (j == w)) * rows[i][j] for j in size] for i in size]

    def add_value(self, form: kernel.SymmetricForm, weight: Fraction, point: int) -> None:
        """Add ``weight`` times the clients' mean of ``h_i`` at a point, which is zero at x*."""
        form.add_value(weight, 0, point)
        form.add_value(-weight, 0, OPTIMUM)


# ---------------------------------------------------------------- what must be shown


def slacks(proof: LyapunovProof) -> dict[str, tuple[kernel.SymmetricForm, list[Vector]]]:
    """Return, for each inequality, a form that must not be negative and the means that are zero."""
    played = Method(proof)
    one, x = Fraction(1), played.x
    kept, renewed = played.certain(renewed=False), played.certain(renewed=True)
    forms = {name: kernel.SymmetricForm(played.clients) for name in INEQUALITIES}
    played.add_function(forms["positive"], one, kept)
    gap = proof.bound["gap"]
    if gap == 0:
        forms["positive"].add(-one, x, x)
    played.add_function(forms["decrease"], proof.bound["rate"], kept)
    played.add_function(forms["decrease"], -one, played.a_round())
    played.add_value(forms["decrease"], -gap * proof.L, MODEL)
    first, zero = renewed, []
    if proof.start == "zero":
        # A memory of zero is the gradient at the minimiser of the client's own loss, so w_i is
        # minus the gradient at x*, and the mean of all w_i is zero.
        first, zero = kept, [played.clients.mean(0, 0)]
        level = proof.bound["heterogeneity"] * proof.L**2
        forms["begin"].add_each(level, 0, played.w, played.w)
    forms["begin"].add(proof.bound["start"], x, x)
    played.add_function(forms["begin"], -one, first)
    points, gradients = [played.phi, x, played.nothing], [played.w, played.u, played.nothing]
    for name, form in forms.items():
        weights = [[proof.L * weight for weight in row] for row in proof.multipliers[name]]
        form.add_conditions(0, weights, points, gradients, proof.mu / proof.L)
    return {name: (form, zero if name == "begin" else []) for name, form in forms.items()}


def check_proof(proof: LyapunovProof) -> None:
    """Check that a certificate proves its claim.

    Raises
    ------
    ProofError
        If a check fails. The message names the first one that does.
    """
    for name, (form, zero) in slacks(proof).items():
        form.check(name, zero)


def checked(text: str) -> str:
    """Check a certificate's text and return its claim."""
    proof = parsed(text)
    check_proof(proof)
    return proof.claim
