"""Slow, independent second derivations that the tests compare the package with.

Nothing here shares code or coordinates with the package: models are kept in raw coordinates
(not as offsets from x*), local SGD is run step by step, participant sets are enumerated,
and numbers are ``fractions.Fraction`` (exact) or ``mpmath.mpf`` (many digits).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import mpmath
import numpy as np

from fltheory.algorithms import FedAvg, Safari
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem

Number = Callable[[Any], Any]


def many_digits(value: Any) -> mpmath.mpf:
    """Convert exactly; a Fraction is divided out at the working precision."""
    if isinstance(value, Fraction):
        return mpmath.mpf(value.numerator) / mpmath.mpf(value.denominator)
    return mpmath.mpf(value)


def convert(array: Any, number: Number) -> np.ndarray:
    """Return an object array whose entries are ``number(entry)``."""
    return np.vectorize(number, otypes=[object])(np.asarray(array))


def solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve by Gauss-Jordan elimination over any field."""
    n = len(right)
    table = np.concatenate([matrix, right.reshape(n, 1)], axis=1)
    for column in range(n):
        pivot = max(range(column, n), key=lambda row: abs(table[row, column]))
        table[[column, pivot]] = table[[pivot, column]]
        table[column] = table[column] / table[column, column]
        for row in range(n):
            if row != column:
                table[row] = table[row] - table[row, column] * table[column]
    return table[:, -1]


@dataclass(frozen=True)
class Affine:
    """A map ``x -> slope x + offset`` plus noise of a covariance, with its probability."""

    probability: Any
    slope: np.ndarray
    offset: np.ndarray
    noise: np.ndarray


class RawQuadratics:
    """A `QuadraticProblem` in raw coordinates over another field of numbers."""

    def __init__(self, problem: QuadraticProblem, number: Number) -> None:
        self.number = number
        shape = (problem.n_clients, problem.dim, problem.dim)
        self.hessians = convert(np.broadcast_to(problem.hessians, shape), number)
        self.optima = convert(problem.optima, number)
        self.n_clients, self.dim = problem.optima.shape
        if problem.target_weights is None:
            self.alpha = np.array([number(Fraction(1, self.n_clients))] * self.n_clients)
        else:
            self.alpha = convert(problem.target_weights, number)
        self.variance = number(problem.sigma) ** 2 / self.dim
        self.server_variance = number(problem.server_sigma) ** 2 / self.dim
        self.identity = convert(np.eye(self.dim), number)
        self.mean_hessian = sum(a * h for a, h in zip(self.alpha, self.hessians, strict=True))
        self.x_star = solve(
            self.mean_hessian,
            sum(
                a * (h @ c) for a, h, c in zip(self.alpha, self.hessians, self.optima, strict=True)
            ),
        )

    def local_sgd(self, client: int, steps: int, lr: float) -> Affine:
        """Return the affine map of ``steps`` noisy gradient steps of a client."""
        step = self.number(lr)
        hessian, optimum = self.hessians[client], self.optima[client]
        shrink = self.identity - step * hessian
        slope, offset, noise = self.identity, 0 * optimum, 0 * self.identity
        for _ in range(steps):
            slope = shrink @ slope
            offset = shrink @ offset + step * (hessian @ optimum)
            noise = shrink @ noise @ shrink.T + step**2 * self.variance * self.identity
        return Affine(1, slope, offset, noise)

    def local_gradients(self, client: int, steps: int, lr: float) -> Affine:
        """Return the affine map to the sum of exact gradients, tracking (model, sum) together."""
        step, dim = self.number(lr), self.dim
        hessian, pull = self.hessians[client], self.hessians[client] @ self.optima[client]
        zero = 0 * self.identity
        advance = np.block([[self.identity - step * hessian, zero], [hessian, self.identity]])
        push = np.concatenate([step * pull, -pull])
        kick = np.block([[step**2 * self.variance * self.identity, zero], [zero, zero]])
        slope = np.concatenate([self.identity, zero])
        offset, noise = 0 * push, 0 * kick
        for _ in range(steps):
            slope, offset = advance @ slope, advance @ offset + push
            noise = advance @ noise @ advance.T + kick
        return Affine(1, slope[dim:], offset[dim:], noise[dim:, dim:])

    def server_step(self, lr: float, probability: Any) -> Affine:
        step = self.number(lr)
        return Affine(
            probability,
            self.identity - step * self.mean_hessian,
            step * (self.mean_hessian @ self.x_star),
            step**2 * self.server_variance * self.identity,
        )

    def errors(self, second: np.ndarray, first: np.ndarray) -> dict[str, Any]:
        """Return the three expected errors at moments ``(vec M, m)``."""
        star = self.x_star
        moment = second.reshape(self.dim, self.dim)
        centred = moment - np.outer(first, star) - np.outer(star, first) + np.outer(star, star)
        curvature = self.mean_hessian
        return {
            "squared_distance": np.trace(centred),
            "squared_gradient": np.trace(curvature @ curvature @ centred),
            "excess_loss": np.trace(curvature @ centred) / 2,
        }


def participant_sets(participation: UniformSubset) -> list[tuple[int, ...]]:
    eligible = sorted(set(range(participation.n_clients)) - set(participation.excluded))
    return list(combinations(eligible, participation.size))


def rounds_of(
    algorithm: FedAvg | Safari, raw: RawQuadratics, sets: list[tuple[int, ...]]
) -> Iterator[Affine]:
    """Yield the affine maps of every equally likely participant set, and of a server step."""
    q = algorithm.q if isinstance(algorithm, Safari) else 1
    server_lr = raw.number(getattr(algorithm, "server_lr", 1))
    locals_ = [
        raw.local_sgd(i, algorithm.local_steps, algorithm.client_lr) for i in range(raw.n_clients)
    ]
    for members in sets:
        share = server_lr / len(members)
        slope = raw.identity + share * sum(locals_[i].slope - raw.identity for i in members)
        offset = share * sum(locals_[i].offset for i in members)
        noise = share**2 * sum(locals_[i].noise for i in members)
        yield Affine(raw.number(q) / len(sets), slope, offset, noise)
    if q < 1:
        yield raw.server_step(algorithm.assist_lr, 1 - raw.number(q))


@dataclass(frozen=True)
class RawMoments:
    """The recursion of ``m = E x`` and ``M = E x x'`` as a linear map on ``(vec M, m)``."""

    raw: RawQuadratics
    second: np.ndarray
    cross: np.ndarray
    inflow: np.ndarray
    slope: np.ndarray
    offset: np.ndarray

    @classmethod
    def of(
        cls,
        algorithm: FedAvg | Safari,
        problem: QuadraticProblem,
        participation: UniformSubset,
        number: Number,
    ) -> RawMoments:
        raw = RawQuadratics(problem, number)
        laws = list(rounds_of(algorithm, raw, participant_sets(participation)))
        return cls(
            raw,
            second=sum(law.probability * np.kron(law.slope, law.slope) for law in laws),
            cross=sum(
                law.probability
                * (
                    np.kron(law.slope, law.offset[:, None])
                    + np.kron(law.offset[:, None], law.slope)
                )
                for law in laws
            ),
            inflow=sum(
                law.probability * (np.outer(law.offset, law.offset) + law.noise).ravel()
                for law in laws
            ),
            slope=sum(law.probability * law.slope for law in laws),
            offset=sum(law.probability * law.offset for law in laws),
        )

    def trajectory(self, x0: Any, rounds: int) -> dict[str, list[Any]]:
        """Return the expected errors of every round."""
        history = [self.raw.errors(second, first) for second, first in self.moments(x0, rounds)]
        return {name: [errors[name] for errors in history] for name in history[0]}

    def moments(self, x0: Any, rounds: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield ``(vec M, m)`` of every round."""
        first = convert(x0, self.raw.number)
        second = np.outer(first, first).ravel()
        for _ in range(rounds + 1):
            yield second, first
            second = self.second @ second + self.cross @ first + self.inflow
            first = self.slope @ first + self.offset

    def limit(self) -> dict[str, Any]:
        """Return the expected errors at the fixed point of the recursion."""
        raw = self.raw
        first = solve(raw.identity - self.slope, self.offset)
        identity = convert(np.eye(raw.dim**2), raw.number)
        second = solve(identity - self.second, self.cross @ first + self.inflow)
        return self.raw.errors(second, first)


def participant_excess_loss(
    raw: RawQuadratics, sets: list[tuple[int, ...]], second: np.ndarray, first: np.ndarray
) -> Any:
    """``E 1/m sum_{i in S} [F_i(x) - F_i(x*)]`` over equally likely sets."""
    moment, total = second.reshape(raw.dim, raw.dim), raw.number(0)
    for members in sets:
        for i in members:
            hessian, optimum = raw.hessians[i], raw.optima[i]
            gap = raw.x_star - optimum
            here = np.trace(hessian @ moment) - 2 * optimum @ hessian @ first
            here = here + optimum @ hessian @ optimum
            total = total + (here - gap @ hessian @ gap) / (2 * len(members) * len(sets))
    return total


def participant_gradient_sum(
    gradients: list[Affine], sets: list[tuple[int, ...]], second: np.ndarray, first: np.ndarray
) -> Any:
    """``E ||1/m sum_{i in S} (clients' gradient sums)||^2`` over equally likely sets."""
    dim, total = first.size, 0
    moment = second.reshape(dim, dim)
    for members in sets:
        slope = sum(gradients[i].slope for i in members) / len(members)
        offset = sum(gradients[i].offset for i in members) / len(members)
        noise = sum(gradients[i].noise for i in members) / len(members) ** 2
        size = np.trace(slope @ moment @ slope.T) + 2 * offset @ slope @ first
        total = total + (size + offset @ offset + np.trace(noise)) / len(sets)
    return total


def random_problem(
    seed: int,
    n_clients: int,
    dim: int,
    *,
    shared: bool = False,
    sigma: float = 0.5,
    server_sigma: float = 0.25,
    curvatures: tuple[float, float] = (0.3, 1.5),
) -> QuadraticProblem:
    """Return clients with random rotated Hessians of curvatures in a given range."""
    rng = np.random.default_rng(seed)
    count = 1 if shared else n_clients
    low, high = np.log(curvatures)
    bases = np.linalg.qr(rng.standard_normal((count, dim, dim)))[0]
    spectra = np.exp(rng.uniform(low, high, (count, dim)))
    hessians = np.einsum("iab,ib,icb->iac", bases, spectra, bases)
    hessians = 0.5 * (hessians + np.swapaxes(hessians, 1, 2))
    return QuadraticProblem(
        hessians[0] if shared else hessians,
        rng.standard_normal((n_clients, dim)),
        sigma=sigma,
        server_sigma=server_sigma,
    )
