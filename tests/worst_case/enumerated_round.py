"""A certificate of one round a second time: all vectors of all clients, every set of participants.

Fractions and elimination of the tests' own; no symmetry, no moments. Of few clients without noise
that are drawn, at one step size; lengths in units with L = 1.
"""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

from tests.worst_case.correlated.enumerated_proof import Matrix, Row, add, semidefinite


def is_proved(text: str) -> bool:
    """Whether a certificate's inequality holds, by its multipliers."""
    return _Round(json.loads(text, parse_float=None)).holds()


def _mean(vectors: list[Row]) -> Row:
    return [sum(column, Fraction(0)) / len(vectors) for column in zip(*vectors, strict=True)]


def _plus(left: Row, right: Row, factor: Fraction) -> Row:
    return [a + factor * b for a, b in zip(left, right, strict=True)]


class _Round:
    def __init__(self, document: dict[str, Any]) -> None:
        F, played, who = Fraction, document["round"], document["round"]["taking_part"]
        self.descent = document["claim"].startswith("E F(x+)")
        (self.box,) = document["boxes"]
        step, last = map(F, self.box["client_lr"])
        assert step == last
        self.L, self.mu = F(document["class"]["L"]), F(document["class"]["mu"])
        assert not document["class"]["noise"]
        self.everywhere = document["class"]["heterogeneity"] == "everywhere"
        self.e, self.K = self.L * step, played["local_steps"]
        self.q, self.server = F(played["q"]), F(played["server_lr"])
        self.assist = F(played["assist_lr_over_client_lr"]) * self.e
        self.bound = {
            name: sum(F(c) * step**i for i, c in enumerate(values))
            for name, values in document["bound"].items()
        }
        self.least_server_noise = (1 - self.q) * (self.assist / self.L) ** 2
        self.least_server_noise *= self.L / 2 if self.descent else 1
        self.given = {name: F(v) * F(self.box["given"]) for name, v in
                      (document["given"] or {}).items()}  # fmt: skip
        N = who["n_clients"]
        excluded = F(who["excluded_share"]) * N
        assert excluded.denominator == 1
        self.N, self.n, self.m = N, N - int(excluded), who["participants"]
        self._name_vectors()

    def _name_vectors(self) -> None:
        n, N, K, at = self.n, self.N, self.K, not self.descent
        self.size = at + n * K + (N - n) + at * (N - 1)
        names = iter(range(self.size))

        def new() -> Row:
            place = next(names)
            return [Fraction(int(i == place)) for i in range(self.size)]

        self.nothing = [Fraction(0)] * self.size
        self.x = new() if at else self.nothing
        self.g = [[new() for _ in range(K if i < n else 1)] for i in range(N)]
        # Gradients at x* add up to zero.
        self.at = [new() for _ in range(at * (N - 1))]
        if at:
            total = self.nothing
            for v in self.at:
                total = _plus(total, v, Fraction(-1))
            self.at.append(total)
        self.gradient = _mean([own[0] for own in self.g])

    def holds(self) -> bool:
        """Whether multipliers are none below zero, values cancel, and a sum of squares is left."""
        rows = [row for pairs in self.box["pairs"] for row in pairs]
        budgets = [Fraction(v) for v in self.box["budgets"]]
        weights = [Fraction(v) for row in rows for v in row] + budgets
        weights.append(Fraction(self.box["given"]))
        if min(weights) < 0 or self.bound["server_noise"] < self.least_server_noise:
            return False
        if self.bound["noise"] < 0 or not self._values_cancel():
            return False
        slack = [[Fraction(0)] * self.size for _ in range(self.size)]
        self._add_claim(slack)
        self._add_given(slack)
        self._add_conditions(slack)
        return self._add_budget(slack, budgets) and semidefinite(slack)

    def _members(self, i: int) -> tuple[Any, int]:
        group = int(i >= self.n)
        return self.box["pairs"][group], self.N - self.n if group else self.n

    def _values_cancel(self) -> bool:
        for i in range(self.N):
            rows, members = self._members(i)
            rows = [[Fraction(v) for v in row] for row in rows]
            flows = [
                (sum(row[p] for row in rows) - sum(rows[p])) / members for p in range(len(rows))
            ]
            if not self.descent:
                wanted = self.bound["gap"] * self.L / self.e / self.N
                if i < self.n:
                    wanted -= self.given.get("values", Fraction(0)) / self.L / self.n
                flows[0] -= wanted
                flows[-1] += wanted
            if any(flows):
                return False
        return True

    def _moves(self) -> list[tuple[Fraction, Row]]:
        """Return how the model may move in a round, with probabilities."""
        sets = list(combinations(range(self.n), self.m))
        found = [(1 - self.q, _plus(self.nothing, self.gradient, -self.assist))]
        for chosen in sets:
            move = self.nothing
            for i in chosen:
                for v in self.g[i]:
                    move = _plus(move, v, -self.server * self.e / self.m)
            found.append((self.q / len(sets), move))
        return found

    def _add_claim(self, to: Matrix) -> None:
        """Add what is claimed, less what it bounds, over e."""
        e = self.e
        if self.descent:
            add(to, -self.bound["decrease"] * self.L / e, self.gradient, self.gradient)
            for chance, move in self._moves():
                add(to, -chance / e, self.gradient, move)
                add(to, -chance / e / 2, move, move)
            return
        add(to, self.bound["rate"] / e, self.x, self.x)
        for chance, move in self._moves():
            after = _plus(self.x, move, Fraction(1))
            add(to, -chance / e, after, after)

    def _add_given(self, to: Matrix) -> None:
        if not self.given:
            return
        add(to, self.given["gradient"], self.gradient, self.gradient)
        sets = list(combinations(range(self.n), self.m))
        for chosen in sets:
            moved = self.nothing
            for i in chosen:
                for v in self.g[i]:
                    moved = _plus(moved, v, Fraction(1, self.m))
            add(to, self.given["moved"] / len(sets), moved, moved)

    def _add_budget(self, to: Matrix, parts: list[Fraction]) -> bool:
        """Add squares that the class bounds; whether no more is taken of it than is claimed."""
        total = self.bound["heterogeneity"] * (self.L if self.descent else self.L**2) / self.e
        total += self.given.get("heterogeneity", Fraction(0))
        if total < 0 or sum(parts) > 1:
            return False
        left = iter(parts)
        groups = [range(self.n), range(self.n, self.N)]
        if not self.everywhere:
            groups, kinds = [range(self.N)], [self.at]
        else:
            off = [_plus(own[0], self.gradient, Fraction(-1)) for own in self.g]
            kinds = [off] if self.descent else [self.at, off]
        for members in groups:
            for vectors in kinds if len(members) else ():
                part = next(left)
                for i in members:
                    add(to, total * part / len(members), vectors[i], vectors[i])
        return True

    def _add_conditions(self, to: Matrix) -> None:
        mu = self.mu / self.L
        for i in range(self.N):
            rows, members = self._members(i)
            points, gradients = [self.x], list(self.g[i])
            for v in self.g[i][:-1]:
                points.append(_plus(points[-1], v, -self.e))
            if not self.descent:
                points.append(self.nothing)
                gradients.append(self.at[i])
            for a, b in permutations(range(len(points)), 2):
                w = Fraction(rows[a][b]) / members
                x = _plus(points[a], points[b], Fraction(-1))
                v = _plus(gradients[a], gradients[b], Fraction(-1))
                add(to, w, gradients[b], x)
                add(to, w / (2 * (1 - mu)), v, v)
                add(to, w * mu / (2 * (1 - mu)), x, x)
                add(to, -w * mu / (1 - mu), v, x)
