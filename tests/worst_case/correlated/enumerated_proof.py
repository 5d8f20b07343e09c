"""A certificate's inequalities a second time: every set, every next set, no moments, no symmetry.

Fractions and elimination of the tests' own. For few clients, without noise.
"""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import permutations, product
from typing import Any

Row = list[Fraction]
Matrix = list[Row]


def is_proved(text: str) -> bool:
    """Whether every inequality of a certificate holds."""
    document = json.loads(text, parse_float=None)
    proof = _Proof(document)
    places = range(len(proof.sets))
    return (
        all(proof.values_cancel(S) for S in places)
        and all(semidefinite(proof.round_slack(S)) for S in places)
        and all(semidefinite(proof.end_slack(S)) for S in places)
        and semidefinite(proof.start_slack())
    )


class Enumerated:
    """A certificate's rounds, and vectors of all clients: each's at K points, or ``looks`` K."""

    def __init__(self, document: dict[str, Any], looks: int = 1) -> None:
        F = Fraction
        played, self.document = document["round"], document
        self.groups = played["groups"]
        self.of = [c for c, own in enumerate(self.groups) for _ in range(own["n_clients"])]
        self.n, self.K = len(self.of), played["local_steps"]
        self.eta, self.server = F(played["client_lr"]), F(played["server_lr"])
        self.present = played["averaging"] == "present"
        self.L, self.mu = F(document["class"]["L"]), F(document["class"]["mu"])
        self.bound = {name: F(value) for name, value in document["bound"].items()}
        self.alpha = [F(self.groups[c]["target_weight"]) for c in self.of]
        each = looks * self.K
        self.size = 1 + self.n * each + self.n - 1
        self.z = self.unit(0)
        self.delta = [[self.unit(1 + i * each + k) for k in range(each)] for i in range(self.n)]
        self.g = [self.unit(1 + self.n * each + i) for i in range(self.n - 1)]
        last = [F(0)] * self.size
        for a, v in zip(self.alpha, self.g, strict=False):
            last = [x - a * y / self.alpha[-1] for x, y in zip(last, v, strict=True)]
        self.g.append(last)
        self.kind = document["claim"][:3]
        numbers = product(*(range(own["n_clients"] + 1) for own in self.groups))
        self.states = {state: place for place, state in enumerate(numbers)}
        self.chain = played["chain"]
        every = product((False, True), repeat=self.n)
        self.sets = list(every) if self.chain is None else [*map(tuple, self.chain["masks"])]

    def unit(self, place: int) -> list[Fraction]:
        return [Fraction(int(i == place)) for i in range(self.size)]

    def place(self, number: int) -> int:
        """Return which of the certificate's states a set is in."""
        if self.chain is not None:
            return number
        S = self.sets[number]
        counts = [0] * len(self.groups)
        for c, there in zip(self.of, S, strict=True):
            counts[c] += there
        return self.states[tuple(counts)]

    def chance(self, number: int | None, then: int) -> Fraction:
        """Return the probability of a set after another, or at first."""
        if self.chain is not None:
            law = self.chain["law"] if number is None else self.chain["transition"][number]
            return Fraction(law[then])
        total = Fraction(1)
        for i, there in enumerate(self.sets[then]):
            own = self.groups[self.of[i]]
            p, nu = Fraction(own["availability"]), Fraction(own["correlation"])
            if number is not None:
                p = (1 - nu) * p + nu * self.sets[number][i]
            total *= p if there else 1 - p
        return total

    def after(self, then: int) -> list[Fraction]:
        """Return x+ where a set takes part."""
        x, following = list(self.z), self.sets[then]
        for i, there in enumerate(following):
            if there:
                own = Fraction(self.groups[self.of[i]]["weight"])
                w = self.server * (Fraction(1, sum(following)) if self.present else own)
                for v in self.delta[i][: self.K]:
                    x = [
                        a - self.eta * w * (b + c) for a, b, c in zip(x, v, self.g[i], strict=True)
                    ]
        return x

    def cell(self, number: int, i: int) -> int:
        """Return which of a state's cells with members a client is in, present ones first."""
        cells, S = 0, self.sets[number]
        for c in range(len(self.groups)):
            for there in (True, False):
                members = [j for j in range(self.n) if self.of[j] == c and S[j] == there]
                if i in members:
                    return cells
                cells += bool(members)
        raise AssertionError

    def add_h(self, factor: Fraction, to: Matrix) -> None:
        """Add a multiple of h."""
        for a, v in zip(self.alpha, self.g, strict=True):
            add(to, factor * a, v, v)

    def zeros(self) -> Matrix:
        """Return the form that is zero."""
        return [[Fraction(0)] * self.size for _ in range(self.size)]

    def condition(self, w: Fraction, x: Row, v: Row, g: Row, to: Matrix) -> None:
        """Add a condition of two points: how far apart, by which gradients, and the second's."""
        ratio = self.mu / self.L
        add(to, w, g, x)
        add(to, w / (2 * (1 - ratio)) / self.L, v, v)
        add(to, w / (2 * (1 - ratio)) * self.mu, x, x)
        add(to, -w / (1 - ratio) * ratio, v, x)


class _Proof(Enumerated):
    def value(self, number: int, x: list[Fraction], factor: Fraction, to: Matrix) -> None:
        own, S = self.document["function"][self.place(number)], self.sets[number]
        C = len(self.groups)
        u = [[Fraction(0)] * self.size for _ in range(C)]
        U = [[Fraction(0)] * self.size for _ in range(C)]
        for i, (c, there) in enumerate(zip(self.of, S, strict=True)):
            for j, value in enumerate(self.g[i]):
                u[c][j] += self.alpha[i] * value * there
                U[c][j] += self.alpha[i] * value
            weight = Fraction(own["all"][c]) + there * Fraction(own["present"][c])
            add(to, factor * weight * self.alpha[i], self.g[i], self.g[i])
        vectors = [x, *u, *U[:-1]]
        for p, q in product(range(2 * C), repeat=2):
            add(to, factor * Fraction(own["form"][p][q]), vectors[p], vectors[q])

    def multipliers(self, number: int, i: int) -> Matrix:
        rows = self.document["multipliers"][self.place(number)][self.cell(number, i)]
        return [[Fraction(value) for value in row] for row in rows]

    def values_cancel(self, S: int) -> bool:
        for i in range(self.n):
            rows = self.multipliers(S, i)
            if any(value < 0 for row in rows for value in row):
                return False
            for point in range(self.K):
                flow = sum(row[point] for row in rows) - sum(rows[point])
                if flow != (self.alpha[i] if self.kind == "E F" and point == 0 else 0):
                    return False
        return True

    def round_slack(self, S: int) -> Matrix:
        slack = self.zeros()
        self.value(S, self.z, self.bound["rate"], slack)
        for following in range(len(self.sets)):
            chance = self.chance(S, following)
            if chance:
                self.value(following, self.after(following), -chance, slack)
        self.add_h(self.bound["heterogeneity"], slack)
        if self.kind == "1/T":
            add(slack, Fraction(-1), self.z, self.z)
        for i in range(self.n):
            points, gradients = [self.z], [*self.delta[i], [Fraction(0)] * self.size]
            for k in range(self.K - 1):
                points.append(
                    [
                        a - self.eta * (b + c)
                        for a, b, c in zip(points[-1], self.delta[i][k], self.g[i], strict=True)
                    ]
                )
            points.append([Fraction(0)] * self.size)
            rows = self.multipliers(S, i)
            for a, b in permutations(range(self.K + 1), 2):
                x = [p - q for p, q in zip(points[a], points[b], strict=True)]
                v = [p - q for p, q in zip(gradients[a], gradients[b], strict=True)]
                self.condition(rows[a][b], x, v, gradients[b], slack)
        return slack

    def end_slack(self, S: int) -> Matrix:
        slack = self.zeros()
        self.value(S, self.z, Fraction(1), slack)
        self.add_h(Fraction(self.document["below"]), slack)
        if self.kind == "E||":
            add(slack, Fraction(-1), self.z, self.z)
        return slack

    def start_slack(self) -> Matrix:
        slack = self.zeros()
        for S in range(len(self.sets)):
            self.value(S, self.z, -self.chance(None, S), slack)
        add(slack, self.bound["start"], self.z, self.z)
        once = self.bound["start_heterogeneity"] - Fraction(self.document["below"])
        self.add_h(once, slack)
        return slack


def phases_are_proved(text: str) -> bool:
    """Whether every inequality of a certificate in phases holds, and what they add up to."""
    document = json.loads(text, parse_float=None)
    phases, bound = document["phases"], document["bound"]
    measured = sum(phase["rounds"] for phase in phases if phase["measured"])
    proofs = [_Phase(phase) for phase in phases]
    square = "0" if measured else "1"
    functions = [own.document["function"] for own in proofs]
    functions.append([_square_of(value, square) for value in functions[-1]])
    for own, following in zip(proofs, functions[1:], strict=True):
        other = _Proof({**own.document, "function": following})
        places = range(len(own.sets))
        if not all(own.values_cancel(S) for S in places):
            return False
        after = other if own.rounds == 1 else own
        if not all(semidefinite(own.slack_before(after, S)) for S in places):
            return False
        if own.rounds > 1 and not all(semidefinite(own.slack_at_end(other, S)) for S in places):
            return False
    first = _Proof({**proofs[0].document, "below": "0"})
    start, h = first.bound["start"], first.bound["start_heterogeneity"]
    for own in proofs:
        for _ in range(own.rounds):
            start = own.bound["rate"] * start
            h = own.bound["rate"] * h + own.bound["heterogeneity"]
        h += Fraction(own.document["below"])
    share = Fraction(1, measured or 1)
    said = Fraction(bound["start"]) >= share * start, Fraction(bound["heterogeneity"]) >= share * h
    return semidefinite(first.start_slack()) and all(said)


def _square_of(value: dict[str, Any], square: str) -> dict[str, Any]:
    form = [["0" for _ in row] for row in value["form"]]
    form[0][0] = square
    return {"form": form, "present": ["0"] * len(form), "all": ["0"] * len(form)}


class _Phase(_Proof):
    def __init__(self, phase: dict[str, Any]) -> None:
        proof = phase["proof"]
        super().__init__({**proof, "bound": {**proof["bound"], "rate": phase["rate"]}})
        self.rounds = phase["rounds"]
        self.kind = "1/T" if phase["measured"] else "nothing"

    def slack_before(self, other: _Proof, S: int) -> Matrix:
        """Return a round's slack, where the function after it is another one's."""
        slack = self.round_slack(S)
        for following in range(len(self.sets)):
            chance, x = self.chance(S, following), self.after(following)
            self.value(following, x, chance, slack)
            other.value(following, x, -chance, slack)
        return slack

    def slack_at_end(self, other: _Proof, S: int) -> Matrix:
        slack = self.zeros()
        self.value(S, self.z, Fraction(1), slack)
        other.value(S, self.z, Fraction(-1), slack)
        self.add_h(Fraction(self.document["below"]), slack)
        return slack


def add(to: Matrix, factor: Fraction, left: Row, right: Row) -> None:
    """Add the symmetric part of a product."""
    if not factor:
        return
    others = [(j, b) for j, b in enumerate(right) if b]
    for i, a in enumerate(left):
        half = factor * a / 2
        for j, b in others if a else ():
            to[i][j] += half * b
            to[j][i] += half * b


def semidefinite(matrix: Matrix) -> bool:
    """Whether no eigenvalue is negative: Schur complements, a row at a time."""
    rows = [list(row) for row in matrix]
    while rows:
        pivot = rows[0][0]
        if pivot < 0 or (pivot == 0 and any(rows[0])):
            return False
        if pivot == 0:
            rows = [row[1:] for row in rows[1:]]
            continue
        first, *others = rows
        factors = [row[0] / pivot for row in others]
        rows = [
            [a - factor * b for a, b in zip(row[1:], first[1:], strict=True)] if factor else row[1:]
            for row, factor in zip(others, factors, strict=True)
        ]
    return True
