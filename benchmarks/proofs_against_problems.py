"""How close random problems come to bounds proved for every loss; none may break one.

Ten certificates, for FedAvg and SAFARI with local steps, subsets, clients that never take part,
noise and both ways to bound heterogeneity, are tested on 1,000 random problems each. Half of these
are quadratic, with a Hessian per client or one for all, and the exact engine computes ||x - x*||^2
after a round; the others are piecewise quadratic, like the worst of their class, and this script
enumerates every set of participants and every path of two-valued noise.

    python benchmarks/proofs_against_problems.py [--count 1000] [--lowered]

With ``--lowered``, each coefficient of each certificate is also reduced by 20%: the violations then
show which reductions random problems would reveal.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from fltheory.algorithms import FedAvg, Safari
from fltheory.engines import Setting, exact
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.problems.piecewise_quadratic_problem import PiecewiseQuadraticProblem
from fltheory.worst_case import ClientClass, best_bound, certificate

Draw = np.random.Generator
Problem = QuadraticProblem | PiecewiseQuadraticProblem
ROUNDING = 1e-9
_COUNT, _SEED, _LOWERED = 1_000, 20_26, 0.8


@dataclass(frozen=True)
class Case:
    """A round and a class of clients."""

    algorithm: FedAvg | Safari
    participation: UniformSubset
    clients: ClientClass

    @property
    def excluded(self) -> list[int]:
        """The clients that never take part."""
        return sorted(self.participation.excluded)

    @property
    def eligible(self) -> list[int]:
        """The clients that can take part."""
        return [i for i in range(self.participation.n_clients) if i not in self.excluded]

    def bound(self) -> Mapping[str, float]:
        """Return the coefficients of a certificate that the checker has accepted."""
        made = certificate(best_bound(self.algorithm, self.participation, self.clients))
        made.verify()
        return {name: float(values[0]) for name, values in made.proof.bound.items()}


def _drawn(n: int, size: int, *excluded: int) -> UniformSubset:
    return UniformSubset(n, size, excluded=excluded)


_CONVEX, _TEN = ClientClass(1, "1/2"), ClientClass(1, "1/10")
_ANYWHERE = ClientClass(1, "1/10", "everywhere")
CASES = {
    "FedAvg, one step, everybody": Case(FedAvg(1.2, 1), _drawn(4, 4), _TEN),
    "FedAvg, K = 3, everybody": Case(FedAvg(0.2, 3), _drawn(4, 4), _TEN),
    "FedAvg, one step, 2 of 4": Case(FedAvg(0.5, 1), _drawn(4, 2), _CONVEX),
    "FedAvg, K = 3, 2 of 5": Case(FedAvg(0.2, 3), _drawn(5, 2), _TEN),
    "FedAvg, K = 2, server_lr 1.5, 2 of 4, 2 excluded": Case(
        FedAvg(0.2, 2, server_lr=1.5), _drawn(6, 2, 4, 5), ClientClass(2, "1/5")
    ),
    "SAFARI, K = 5, 2 of 4": Case(Safari(0.5, 0.1, 0.3, 5), _drawn(4, 2), _ANYWHERE),
    "SAFARI, K = 3, 2 of 4, 1 excluded": Case(Safari(0.25, 0.2, 0.4, 3), _drawn(5, 2, 4), _TEN),
    "SAFARI, K = 2, 1 of 3, 1 excluded": Case(Safari(0.5, 0.3, 0.5, 2), _drawn(4, 1, 3), _ANYWHERE),
    "FedAvg, one noisy step, 2 of 4": Case(
        FedAvg(0.3, 1), _drawn(4, 2), ClientClass(1, "1/10", sigma=1)
    ),
    "SAFARI, K = 3, noise of both, 2 of 4, 1 excluded": Case(
        Safari(0.5, 0.2, 0.3, 3),
        _drawn(5, 2, 4),
        ClientClass(1, "1/10", "everywhere", sigma=1, server_sigma=1),
    ),
}


def _curvatures(draw: Draw, case: Case, shape: tuple[int, ...]) -> np.ndarray:
    """Return curvatures of the class, half of them at its ends."""
    least, most = float(case.clients.mu), float(case.clients.L)
    ends = draw.choice([least, most], size=shape)
    return np.where(draw.random(shape) < 0.5, ends, draw.uniform(least, most, shape))


def quadratic(draw: Draw, case: Case) -> QuadraticProblem:
    """Return a quadratic problem of the class, with F minimal at zero."""
    n, dim = case.participation.n_clients, int(draw.integers(1, 3))
    curvatures = _curvatures(draw, case, (1 if draw.random() < 0.5 else n, dim))
    turns = np.linalg.qr(draw.standard_normal((n, dim, dim)))[0]
    turns[:] = turns[0] if len(curvatures) == 1 else turns
    hessians = np.einsum("nij,nj,nkj->nik", turns, np.broadcast_to(curvatures, (n, dim)), turns)
    tilts = draw.standard_normal((n, dim))
    tilts[case.excluded] += 3 * draw.standard_normal(dim)
    tilts -= tilts.mean(axis=0)
    optima = -np.linalg.solve(hessians, tilts[..., None])[..., 0]
    sigma, server_sigma = (float(v) for v in (case.clients.sigma, case.clients.server_sigma))
    return QuadraticProblem(
        0.5 * (hessians + hessians.swapaxes(-1, -2)),
        optima,
        sigma=sigma,
        server_sigma=server_sigma,
    )


def piecewise(draw: Draw, case: Case) -> PiecewiseQuadraticProblem:
    """Return a piecewise quadratic problem of the class, with F minimal at zero."""
    n, dim = case.participation.n_clients, int(draw.integers(1, 3))
    points = draw.standard_normal((n, int(draw.integers(2, 4)), dim))
    heights = draw.standard_normal(points.shape[:2]) * draw.choice([0.0, 0.3, 1.0])
    clients = case.clients
    return PiecewiseQuadraticProblem(points, heights, L=float(clients.L), mu=float(clients.mu))


def start(draw: Draw, problem: Problem) -> np.ndarray:
    """Return a start around x*, near or far."""
    far = 10 ** draw.uniform(-1.5, 1.5) * draw.standard_normal(problem.dim)
    return np.asarray(problem.x_star + far)


def by_the_engine(case: Case, problem: QuadraticProblem, x0: np.ndarray) -> float:
    """Return E||x+ - x*||^2 from the exact engine."""
    run = exact(Setting(case.algorithm, problem, case.participation, 1, x0))
    return float(run.squared_distance[1])


def by_enumeration(case: Case, problem: PiecewiseQuadraticProblem, x0: np.ndarray) -> float:
    """Return E||x+ - x*||^2 over all sets of participants and all noise, x* = 0.

    Noise has two opposite values, in a direction that depends on the step. The clients' noises are
    independent, so their variances add up over a set.
    """
    played = case.algorithm
    sigma, server_sigma = (float(v) for v in (case.clients.sigma, case.clients.server_sigma))
    q = played.q if isinstance(played, Safari) else 1.0
    reach = played.client_lr * (1.0 if isinstance(played, Safari) else played.server_lr)
    means, variances = {}, {}
    directions = np.eye(problem.dim)[np.arange(played.local_steps) % problem.dim]
    signs = np.array(list(product([-1, 1], repeat=played.local_steps if sigma else 0)))
    for client in case.eligible:
        local = np.tile(x0, (max(len(signs), 1), 1))
        moved = np.zeros_like(local)
        for k in range(played.local_steps):
            step = problem.client_gradients(local, np.full(len(local), client))
            if sigma:
                step = step + sigma * signs[:, [k]] * directions[k]
            moved += step
            local = local - played.client_lr * step
        means[client] = moved.mean(axis=0)
        variances[client] = ((moved - means[client]) ** 2).sum(axis=1).mean()
    sets = list(combinations(case.eligible, case.participation.size))
    by_clients = np.mean(
        [
            ((x0 - reach * np.mean([means[i] for i in some], axis=0)) ** 2).sum()
            + reach**2 * sum(variances[i] for i in some) / len(some) ** 2
            for some in sets
        ]
    )
    if q == 1:
        return float(by_clients)
    assert isinstance(played, Safari)
    by_server = ((x0 - played.assist_lr * problem.gradient(x0)) ** 2).sum()
    by_server += (played.assist_lr * server_sigma) ** 2
    return float(q * by_clients + (1 - q) * by_server)


def dissimilarity(case: Case, problem: Problem, x0: np.ndarray) -> float:
    """Return the squared dissimilarity of the problem at the points that a proof uses.

    For "everywhere", it is the largest mean square of a group at x0 or x*, a lower bound on
    sigma_G^2.
    """
    n = problem.n_clients

    def off(x: np.ndarray) -> np.ndarray:
        gradients = problem.client_gradients(np.tile(x, (n, 1)), np.arange(n))
        return np.asarray(((gradients - gradients.mean(axis=0)) ** 2).sum(axis=1))

    at_optimum = off(np.asarray(problem.x_star))
    if case.clients.heterogeneity == "optimum":
        return float(at_optimum.mean())
    groups = [group for group in (case.eligible, case.excluded) if group]
    return float(max(found[group].mean() for found in (at_optimum, off(x0)) for group in groups))


@dataclass(frozen=True)
class Tried:
    """The largest share of a bound that random problems reached, and the violations."""

    quadratic: float
    piecewise: float
    violations: int


def against_problems(case: Case, bound: Mapping[str, float], count: int, seed: int) -> Tried:
    """Compare a bound with random problems, half of them quadratic."""
    draw = np.random.default_rng(seed)
    parts: list[list[float]] = [[], []]
    for index in range(count):
        problem: Problem
        if index % 2:
            problem = piecewise(draw, case)
            x0 = start(draw, problem)
            after = by_enumeration(case, problem, x0)
        else:
            problem = quadratic(draw, case)
            x0 = start(draw, problem)
            after = by_the_engine(case, problem, x0)
        allowed = (
            bound["rate"] * float(((x0 - problem.x_star) ** 2).sum())
            + bound["heterogeneity"] * dissimilarity(case, problem, x0)
            + bound["noise"] * float(case.clients.sigma) ** 2
            + bound["server_noise"] * float(case.clients.server_sigma) ** 2
        )
        parts[index % 2].append(after / allowed)
    found = np.array([*parts[0], *parts[1]])
    return Tried(max(parts[0]), max(parts[1]), int((found > 1 + ROUNDING).sum()))


def lowered(bound: Mapping[str, float], name: str) -> Mapping[str, float]:
    """Return a bound with a coefficient that is 20% too small."""
    return {**bound, name: _LOWERED * bound[name]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=_COUNT, help="problems for each certificate")
    parser.add_argument("--seed", type=int, default=_SEED)
    parser.add_argument("--lowered", action="store_true", help="coefficients 20%% too small")
    given = parser.parse_args()
    began, violations = time.perf_counter(), 0
    for name, case in CASES.items():
        bound = case.bound()
        tried = against_problems(case, bound, given.count, given.seed)
        violations += tried.violations
        print(
            f"{name}: {tried.violations} violations, largest part of the bound "
            f"{tried.quadratic:.4f} (quadratic), {tried.piecewise:.4f} (piecewise quadratic)"
        )
        for coefficient in bound if given.lowered else ():
            if bound[coefficient] > 0:
                less = lowered(bound, coefficient)
                found = against_problems(case, less, given.count, given.seed).violations
                print(f"  {coefficient} lowered by 20%: {found} violations")
    took = time.perf_counter() - began
    print(
        f"{violations} violations in {len(CASES)} x {given.count} problems, {took:.0f} s (target 0)"
    )


if __name__ == "__main__":
    main()
