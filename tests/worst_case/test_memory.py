"""Memory as forms: the algorithms' own code, and a program that keeps all clients apart."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, permutations
from math import comb

import cvxpy as cp
import numpy as np
import pytest

from fltheory.algorithms import FedAvg, FedVarp, Mifa, Scaffold
from fltheory.algorithms.contract import CLIENTS, Algorithm
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.participation import Bernoulli, MarkovOnOff, UniformSubset
from fltheory.participation.base import Participation
from fltheory.problems import QuadraticProblem
from fltheory.worst_case import ClientClass
from fltheory.worst_case.memory import LyapunovProgram, MemoryForms, MemoryRound, lyapunov_bound_of
from tests.drawn import a_tenth

CLIENTS_OF = ClientClass(1, "0.1")
METHODS: dict[str, tuple[Algorithm, Participation, str]] = {
    "FedVARP": (FedVarp(0.4, 1, server_lr=0.75), UniformSubset(4, 2), "y"),
    "SAGA": (FedVarp(0.25, 1), UniformSubset(4, 1), "y"),
    "SCAFFOLD, option 1": (Scaffold(0.3, 1, option=1), UniformSubset(4, 3), "c_i"),
    "SCAFFOLD, option 2": (Scaffold(0.3, 1, server_lr=1.5), UniformSubset(4, 2), "c_i"),
    "MIFA, drawn": (Mifa(0.4, 1, start="zero"), UniformSubset(4, 2), "updates"),
    "MIFA, independent": (Mifa(0.4, 1, start="zero"), Bernoulli([0.3] * 4), "updates"),
    "MIFA, waiting": (Mifa(0.4, 1, server_lr=0.5), UniformSubset(4, 1), "updates"),
}


class Run:
    """Quadratic clients whose optimum is the origin, at a random model and memory."""

    def __init__(self, name: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.algorithm, self.participation, self.memory = METHODS[name]
        turns = [np.linalg.qr(rng.normal(size=(2, 2)))[0] for _ in range(4)]
        self.hessians = np.array([q @ np.diag(rng.uniform(0.1, 1, 2)) @ q.T for q in turns])
        tilts = rng.normal(size=(4, 2))
        self.tilts = tilts - tilts.mean(axis=0)  # gradients at the origin
        optima = -np.linalg.solve(self.hessians, self.tilts[:, :, None])[:, :, 0]
        self.clients = SteppedClients(QuadraticProblem(self.hessians, optima), Silence())
        self.x, self.phi = rng.normal(size=2), rng.normal(size=(4, 2))

    def gradients(self, points: np.ndarray) -> np.ndarray:
        """Gradients of clients at points of their own, less those at the origin."""
        return np.einsum("iab,ib->ia", self.hessians, points)

    def heights(self, points: np.ndarray) -> np.ndarray:
        """Losses less their tangents at the origin."""
        return 0.5 * np.einsum("ia,ia->i", points, self.gradients(points))

    def forms_at(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        here = np.tile(self.x, (4, 1))
        vectors = np.stack([self.gradients(self.phi), self.phi, self.gradients(here)], axis=1)
        return self.x, vectors, np.stack([self.heights(self.phi), self.heights(here)], axis=1)

    def value(self, name: str, place: tuple[int, int], x: np.ndarray, memory: np.ndarray) -> float:
        """A part of V for the state that the algorithm has: memory is of gradients."""
        w = memory - self.tilts
        phi = np.linalg.solve(self.hessians, w[:, :, None])[:, :, 0]
        heights = self.heights(phi if name == "memory_value" else np.tile(x, (4, 1))).mean()
        if name == "means":
            means = [x, w.mean(axis=0), phi.mean(axis=0)]
            i, j = place
            return float(means[i] @ means[j]) * (1 if i == j else 2)
        if name == "differences":
            rows = [w - w.mean(axis=0), phi - phi.mean(axis=0)]
            i, j = place
            return float((rows[i] * rows[j]).sum() / 4) * (1 if i == j else 2)
        return float(heights)

    def after(self, name: str, place: tuple[int, int]) -> float:
        """The mean of a part of V after a round of the algorithm's own code."""
        outcomes = list(self.participation.outcomes())
        who = np.array([mask for _, mask in outcomes])
        copies = len(outcomes)
        state = dict(self.algorithm.init(np.tile(self.x, (copies, 1)), 4))
        state[self.memory] = np.tile(self.gradients(self.phi) + self.tilts, (copies, 1, 1))
        if "appeared" in state:
            state["appeared"] = np.ones((copies, 4))
        new = self.algorithm.round(state, self.clients, who, CLIENTS)
        return sum(
            chance * self.value(name, place, x, memory)
            for (chance, _), x, memory in zip(outcomes, new["x"], new[self.memory], strict=True)
        )


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("seed", range(3))
def test_a_round_of_forms_is_a_round_of_the_algorithms_code(name: str, seed: int) -> None:
    run = Run(name, seed)
    forms = MemoryForms(MemoryRound.of(run.algorithm, run.participation), CLIENTS_OF)
    memory = run.gradients(run.phi) + run.tilts
    for item in forms.coordinates():
        now = run.value(item.name, item.place, run.x, memory)
        assert item.now.at(*run.forms_at()) == pytest.approx(now, abs=1e-12)
        after = item.after.at(*run.forms_at())
        if item.name == "model_value":
            # An upper bound, by the descent lemma.
            assert run.after(item.name, item.place) <= after + 1e-12
        else:
            assert run.after(item.name, item.place) == pytest.approx(after, abs=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_the_first_value_is_that_of_the_state_at_first(name: str) -> None:
    """Memory of zero is the gradient at the client's own minimiser; else it is that at x_0."""
    run = Run(name, 7)
    waits = name == "MIFA, waiting"
    run.phi = (
        np.tile(run.x, (4, 1))
        if waits
        else -np.linalg.solve(run.hessians, run.tilts[:, :, None])[:, :, 0]
    )
    memory = run.gradients(run.phi) + run.tilts
    assert waits or np.abs(memory).max() < 1e-12
    forms = MemoryForms(MemoryRound.of(run.algorithm, run.participation), CLIENTS_OF)
    for item in forms.coordinates():
        value = run.value(item.name, item.place, run.x, memory)
        assert item.first.at(*run.forms_at()) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_no_condition_is_broken_by_clients_of_the_class(name: str) -> None:
    for seed in range(5):
        run = Run(name, seed)
        forms = MemoryForms(MemoryRound.of(run.algorithm, run.participation), CLIENTS_OF)
        for condition in forms.conditions():
            assert condition.at(*run.forms_at()) <= 1e-12


def test_conditions_are_broken_by_clients_that_are_too_steep() -> None:
    run = Run("SAGA", 0)
    run.hessians *= 3
    forms = MemoryForms(MemoryRound.of(run.algorithm, run.participation), CLIENTS_OF)
    assert max(condition.at(*run.forms_at()) for condition in forms.conditions()) > 0.01


# ------------------------------------------------------------ all clients apart, all sets


def _sets(a_round: MemoryRound) -> Iterator[tuple[float, np.ndarray]]:
    """Yield every set of participants that may be drawn, (N, 1), with its probability."""
    n, p = a_round.n_clients, float(a_round.probability)
    sizes = [a_round.participants] if a_round.participants else range(n + 1)
    for size in sizes:
        for chosen in combinations(range(n), size):
            chance = 1 / comb(n, size) if a_round.participants else p**size * (1 - p) ** (n - size)
            yield chance, np.isin(np.arange(n), chosen)[:, None]


def _full_rate(a_round: MemoryRound, mu: float, function: dict[str, np.ndarray]) -> float:
    """Return the largest E V+ where V = 1: every client's vectors, and every set of participants.

    With F(x+) at most what the descent lemma says. The tests' own: no means, no variance.
    """
    n, step, surprise = a_round.n_clients, float(a_round.step), float(a_round.surprise)
    unit = np.eye(1 + 3 * n)
    x, (w, phi, u) = unit[0], (unit[1 + k :: 3] for k in range(3))
    gram = cp.Variable((1 + 3 * n, 1 + 3 * n), PSD=True)
    heights = cp.Variable((n, 2))  # at phi_i, and at x

    def product(a: np.ndarray, b: np.ndarray) -> cp.Expression:
        return cp.sum(cp.multiply((np.outer(a, b) + np.outer(b, a)) / 2, gram))

    def value(model: np.ndarray, ws: np.ndarray, phis: np.ndarray) -> cp.Expression:
        means = [model, ws.mean(axis=0), phis.mean(axis=0)]
        total = sum(
            function["means"][i, j] * product(means[i], means[j])
            for i in range(3)
            for j in range(3)
        )
        apart = [ws - means[1], phis - means[2]]
        return total + sum(
            function["differences"][i, j] * product(apart[i][k], apart[j][k]) / n
            for i in range(2)
            for j in range(2)
            for k in range(n)
        )

    c, d = float(function["memory_value"]), float(function["model_value"])
    now = value(x, w, phi) + (c * cp.sum(heights[:, 0]) + d * cp.sum(heights[:, 1])) / n
    after = cp.Constant(0)
    for chance, inside in _sets(a_round):
        move = -step * (w.mean(axis=0) + surprise * ((u - w) * inside).sum(axis=0))
        new = value(x + move, np.where(inside, u, w), np.where(inside, x, phi))
        kept = sum(heights[k, int(inside[k, 0])] for k in range(n))
        descent = product(u.mean(axis=0), move) + product(move, move) / 2
        below = cp.sum(heights[:, 1]) / n + descent
        after = after + chance * (new + c * kept / n + d * below)
    constraints = [now == 1]
    for k in range(n):
        points = [(phi[k], w[k], heights[k, 0]), (x, u[k], heights[k, 1]), (0 * x, 0 * x, 0.0)]
        for (x_a, g_a, f_a), (x_b, g_b, f_b) in permutations(points, 2):
            steeper, off = g_a - g_b, x_a - x_b
            curved = product(steeper, steeper) + mu * product(off, off)
            curved = curved - 2 * mu * product(steeper, off)
            constraints.append(f_b - f_a + product(g_b, off) + curved / (2 * (1 - mu)) <= 0)
    program = cp.Problem(cp.Maximize(after), constraints)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(program.value)


def _reduced_rate(forms: MemoryForms, coefficients: np.ndarray) -> float:
    """Return the least rate for a given function, by the forms that are tested."""
    rate, multipliers = cp.Variable(), cp.Variable(6, nonneg=True)
    items = list(zip(coefficients, forms.coordinates(), strict=True))
    constraints = []
    for part in ("means", "differences", "values"):
        now = sum(c * getattr(item.now, part) for c, item in items)
        after = sum(c * getattr(item.after, part) for c, item in items)
        total = rate * now - after
        for k, condition in enumerate(forms.conditions()):
            total = total + multipliers[k] * getattr(condition, part)
        constraints.append(total == 0 if part == "values" else total >> 0)
    program = cp.Problem(cp.Minimize(rate), constraints)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(program.value)


ROUNDS = {
    "SAGA of 3": MemoryRound(3, 1, Fraction(1, 3), Fraction(1), Fraction(1, 3), "zero"),
    "FedVARP, 2 of 3": MemoryRound(3, 2, Fraction(2, 3), Fraction(1, 2), Fraction(1, 2), "zero"),
    "SAGA of 2": MemoryRound(2, 1, Fraction(1, 2), Fraction(1), Fraction(1, 2), "zero"),
    "MIFA, 1 of 3": MemoryRound(3, 1, Fraction(1, 3), Fraction(1, 3), Fraction(1, 3), "zero"),
    "MIFA, 3 by themselves": MemoryRound(
        3, 0, Fraction(2, 5), Fraction(1, 3), Fraction(1, 2), "zero"
    ),
    "MIFA, 2 of 4": MemoryRound(4, 2, Fraction(1, 2), Fraction(1, 4), Fraction(1, 3), "zero"),
}


@pytest.mark.parametrize("name", a_tenth(ROUNDS, of=2))
def test_the_reduced_program_has_the_full_ones_rate(name: str) -> None:
    a_round, clients = ROUNDS[name], ClientClass(1, "0.2")
    program = LyapunovProgram(a_round, clients)
    least = program.least_rate()
    assert least is not None
    solution = program.solution(1 - (1 - least) * 0.9)
    assert solution is not None
    means, differences = np.zeros((3, 3)), np.zeros((2, 2))
    function = {"means": means, "differences": differences}
    for coefficient, item in zip(solution.function, program.forms.coordinates(), strict=True):
        if item.name in function:
            i, j = item.place
            function[item.name][i, j] = function[item.name][j, i] = coefficient
    function["memory_value"], function["model_value"] = solution.function[-2:]
    reduced = _reduced_rate(program.forms, solution.function)
    assert reduced == pytest.approx(_full_rate(a_round, 0.2, function), abs=1e-6)
    assert reduced <= 1 - (1 - least) * 0.9 + 1e-6


# ------------------------------------------------------------ what a round is


def test_rounds_are_read_off_algorithms() -> None:
    saga = MemoryRound.of(FedVarp(0.3, 1, server_lr=0.5), UniformSubset(10, 1))
    assert saga == MemoryRound(10, 1, Fraction(1, 10), Fraction(1), Fraction(3, 20), "zero")
    assert saga.together == 0
    waits = MemoryRound.of(Mifa(0.3, 1), Bernoulli([0.25] * 5))
    assert waits == MemoryRound(5, 0, Fraction(1, 4), Fraction(1, 5), Fraction(3, 10), "gradients")
    assert waits.together == Fraction(1, 16)
    assert MemoryRound.of(Scaffold(0.3, 1), UniformSubset(6, 4)).together == Fraction(2, 5)


@pytest.mark.parametrize(
    ("algorithm", "participation", "message"),
    [
        (FedAvg(0.1, 1), UniformSubset(2, 1), "must be FedVarp, Scaffold or Mifa, got FedAvg"),
        (FedVarp(0.1, 2), UniformSubset(2, 1), "local_steps must be 1, got 2"),
        (
            FedVarp(0.1, 1),
            UniformSubset(3, 1, excluded=(0,)),
            "must exclude nobody, got 1 excluded clients: their memory is never renewed",
        ),
        (FedVarp(0.1, 1), MarkovOnOff([0.5, 0.5], 0.5), "its rounds depend on the past"),
        (Mifa(0.1, 1), MarkovOnOff([0.5, 0.5], 0.5), "its rounds depend on the past"),
        (FedVarp(0.1, 1), Bernoulli([0.5, 0.5]), "for FedVarp, got Bernoulli: the weights"),
        (Mifa(0.1, 1), Bernoulli([0.5, 0.25]), "one probability for all clients, got 0.25 to 0.5"),
    ],
)
def test_what_is_not_covered_is_refused_with_the_reason(
    algorithm: Algorithm, participation: Participation, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        MemoryRound.of(algorithm, participation)


@pytest.mark.parametrize(
    ("clients", "options", "message"),
    [
        (ClientClass(1, "0.1", sigma=1), {}, "client_class must be without noise"),
        (ClientClass(1, "0.1", server_sigma=1), {}, "client_class must be without noise"),
        (ClientClass(1, 0), {}, "mu must be above 0"),
        (CLIENTS_OF, {"rate": 1}, "rate must be below 1, got 1"),
        (CLIENTS_OF, {"rate": "fast"}, "rate must be a fraction"),
        (CLIENTS_OF, {"rate": float("nan")}, "rate must be a fraction"),
        (CLIENTS_OF, {"margin": 0}, "margin must be above 0"),
    ],
)
def test_bad_input_is_one_line(
    clients: ClientClass, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        lyapunov_bound_of(MemoryRound.of(FedVarp(0.1, 1), UniformSubset(3, 1)), clients, **options)
