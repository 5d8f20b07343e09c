"""Certificates by functions that see gradients, a second time: every set and every next set.

Fractions and elimination of the tests' own; no moments, no symmetry. For few clients.
"""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import permutations, product
from typing import Any

from tests.worst_case.correlated.enumerated_proof import (
    Enumerated,
    Matrix,
    Row,
    add,
    semidefinite,
)

Losses = dict[tuple[int, int], Fraction]
"""What multiplies each client's loss at each of its points."""


def is_proved(text: str) -> bool:
    """Whether every inequality of a certificate holds."""
    document = json.loads(text, parse_float=None)
    of_cells = [cells for name in ("multipliers", "lower") for cells in document[name]]
    weights = [rows for cells in [*of_cells, document["first"]] for rows in cells]
    if any(Fraction(value) < 0 for rows in weights for row in rows for value in row):
        return False
    proof = _Proof(document, looks=2)
    places = range(len(proof.sets))
    return (
        semidefinite(proof.start_slack())
        and all(semidefinite(proof.end_slack(S)) for S in places)
        and all(semidefinite(proof.round_slack(S)) for S in places)
    )


def _minus(left: Row, right: Row, factor: Fraction = Fraction(1)) -> Row:
    return [a - factor * b for a, b in zip(left, right, strict=True)]


class _Proof(Enumerated):
    def value(
        self, number: int, x: Row, seen: list[list[Row]], factor: Fraction, to: Matrix
    ) -> Losses:
        """Add W to a form, and return what multiplies losses, by client and point."""
        own, S = self.document["function"][self.place(number)], self.sets[number]
        n, K = len(self.groups), self.K
        V = [x] + [[Fraction(0)] * self.size for _ in range(n * (K + 3) - 1)]
        losses: Losses = {}
        for i, (c, there) in enumerate(zip(self.of, S, strict=True)):
            alpha = self.alpha[i]
            along = [(1 + c * K + k, seen[i][k]) for k in range(K)] if there else []
            along += [] if there else [(1 + n * K + c, seen[i][0])]
            along += [(1 + n * K + n + c, self.g[i])] if there else []
            along += [(1 + n * K + 2 * n + c, self.g[i])] if c < n - 1 else []
            for place, v in along:
                V[place] = _minus(V[place], v, -alpha)
            kind = "present" if there else "absent"
            mine = [*seen[i][: K if there else 1], self.g[i]]
            for p, q in product(range(len(mine)), repeat=2):
                add(to, factor * alpha * Fraction(own[kind][c][p][q]), mine[p], mine[q])
            of_losses = own[f"{kind}_losses"][c]
            for k, loss in enumerate(of_losses if there else [of_losses]):
                losses[i, k] = factor * alpha * Fraction(loss)
        for p, q in product(range(len(V)), repeat=2):
            add(to, factor * Fraction(own["form"][p][q]), V[p], V[q])
        return losses

    def with_conditions(
        self,
        i: int,
        ways: list[tuple[Row, list[Row]]],
        rows: Any,
        losses: list[Fraction],
        to: Matrix,
    ) -> None:
        """Add a client's conditions of the points along ways, made up for its losses."""
        points, gradients = [], []
        for x, along in ways:
            for v in along:
                points.append(x)
                gradients.append(v)
                x = _minus(x, [a + b for a, b in zip(v, self.g[i], strict=True)], self.eta)
        nothing = [Fraction(0)] * self.size
        points, gradients = [*points, nothing], [*gradients, nothing]
        weights = [[Fraction(value) for value in row] for row in rows]
        last = len(weights) - 1
        assert last == len(losses) == len(points) - 1
        for p, loss in enumerate(losses):
            left = loss - sum(weights[p]) + sum(row[p] for row in weights)
            weights[p][last] += max(left, Fraction(0))
            weights[last][p] -= min(left, Fraction(0))
        for a, b in permutations(range(last + 1), 2):
            apart, turned = _minus(points[a], points[b]), _minus(gradients[a], gradients[b])
            self.condition(weights[a][b], apart, turned, gradients[b], to)

    def round_slack(self, S: int) -> Matrix:
        slack, K, there = self.zeros(), self.K, self.sets[S]
        still = not any(there)
        now = [own[:K] for own in self.delta]
        later = [
            [*(now[i][:1] if still else own[K : K + 1]), *own[K + 1 :]]
            for i, own in enumerate(self.delta)
        ]
        losses = [[Fraction(0)] * (2 * K) for _ in there]
        for (i, k), value in self.value(S, self.z, now, self.bound["rate"], slack).items():
            losses[i][k] += value
        after = self.after(S)
        for following in range(len(self.sets)):
            chance = self.chance(S, following)
            for (i, k), value in self.value(following, after, later, -chance, slack).items():
                losses[i][K + k] += value
        self.add_h(self.bound["heterogeneity"], slack)
        if self.kind == "1/T":
            add(slack, Fraction(-1), self.z, self.z)
        for own, alpha in zip(losses, self.alpha, strict=True):
            own[0] -= alpha if self.kind == "E F" else 0
        for i, present in enumerate(there):
            rows = self.document["multipliers"][self.place(S)][self.cell(S, i)]
            points = K if present else 1
            ways = [(self.z, now[i][:points]), (after, later[i])]
            own = losses[i][:points] + losses[i][K:]
            if still:
                # x+ is x: one point.
                ways, own = ways[1:], [own[0] + own[1], *own[2:]]
            self.with_conditions(i, ways, rows, own, slack)
        return slack

    def end_slack(self, S: int) -> Matrix:
        slack, K = self.zeros(), self.K
        found = self.value(S, self.z, [own[:K] for own in self.delta], Fraction(1), slack)
        self.add_h(Fraction(self.document["below"]), slack)
        if self.kind == "E||":
            add(slack, Fraction(-1), self.z, self.z)
        for i, present in enumerate(self.sets[S]):
            points = K if present else 1
            rows = self.document["lower"][self.place(S)][self.cell(S, i)]
            losses = [found[i, k] for k in range(points)]
            self.with_conditions(i, [(self.z, self.delta[i][:points])], rows, losses, slack)
        return slack

    def start_slack(self) -> Matrix:
        slack, K = self.zeros(), self.K
        losses = [[Fraction(0)] * K for _ in self.of]
        now = [own[:K] for own in self.delta]
        for S in range(len(self.sets)):
            for (i, k), value in self.value(S, self.z, now, -self.chance(None, S), slack).items():
                losses[i][k] += value
        add(slack, self.bound["start"], self.z, self.z)
        once = self.bound["start_heterogeneity"] - Fraction(self.document["below"])
        self.add_h(once, slack)
        for i, c in enumerate(self.of):
            rows = self.document["first"][c]
            self.with_conditions(i, [(self.z, now[i])], rows, losses[i], slack)
        return slack
