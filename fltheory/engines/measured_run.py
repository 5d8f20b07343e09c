"""Measurements of theorems' quantities and constants on runs with real data.

The noise and dissimilarity of a `MultinomialProblem` have no closed form, so each is bracketed. The
lower end is the largest value at the models before each round, which is a lower bound on the
supremum over any set that contains these models. The upper end is valid everywhere, or on the
smallest ball around x* that contains these models.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fltheory import validation
from fltheory.engines.trajectory import Trajectory
from fltheory.problems import MultinomialProblem
from fltheory.problems.regression.multinomial_losses import ClientSums
from fltheory.problems.regression.multinomial_problem import curvature_at, curvature_bound
from fltheory.validation import ClientIndices, FloatArray


@dataclass(frozen=True)
class Bracket:
    """Lower and upper bound on the supremum of a quantity over the ball that the runs visit."""

    low: float
    high: float

    @classmethod
    def of(cls, seen: float, bound: float) -> Self:
        """Return the bracket of an observed value and a bound, ordered even after rounding."""
        return cls(min(seen, bound), max(seen, bound))


@dataclass(frozen=True)
class BatchSampling:
    """How stochastic gradients are drawn.

    Parameters
    ----------
    batch_size : int
        B.
    replacement : bool
        Whether samples are drawn with replacement; otherwise, the samples of a batch are distinct.
    """

    batch_size: int
    replacement: bool

    def variance(self, of_one: FloatArray, sizes: NDArray[np.intp]) -> FloatArray:
        """Return the variance of a full batch's mean, given the variance of one random sample."""
        return self._of_batch(of_one, sizes, np.minimum(self.batch_size, sizes))

    def largest_variance(self, of_one: FloatArray, sizes: NDArray[np.intp]) -> FloatArray:
        """Return the variance of the smallest batch's mean; a pass may end with a small batch."""
        rest = sizes % self.batch_size
        return self._of_batch(of_one, sizes, np.where(rest > 0, rest, self.batch_size))

    def _of_batch(
        self, of_one: FloatArray, sizes: NDArray[np.intp], batch: NDArray[np.intp]
    ) -> FloatArray:
        if self.replacement:
            return of_one / self.batch_size
        return of_one / batch * (sizes - batch) / np.maximum(sizes - 1, 1)


@dataclass(frozen=True, eq=False)
class Server:
    """The server's own samples, as a problem with one client, and their sampling.

    ``is_unbiased`` means that these are the samples of all clients, with the weights of F.
    """

    data: MultinomialProblem
    sampling: BatchSampling
    is_unbiased: bool


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """Means over independent runs from one model, and constants on the models they visit.

    Attributes
    ----------
    trajectory : Trajectory
        It has ``standard_error``, and the observable ``participant_excess_loss``. The expectation
        of the latter over the participants of a round is exact.
    radius : float
        The largest distance from x* of any model before a round.
    smoothness : Bracket
        Largest smoothness of any client on the ball of that radius; the lower end is the largest
        curvature at x* and at the start.
    sigma, dissimilarity : Bracket
        Gradient noise and dissimilarity sigma_G, each the largest over clients.
    server_sigma : Bracket
        ``E||g - grad F||^2 <= server_sigma^2``, which includes the bias; zero without a server.
    server_bias : float
        The largest ``||E g - grad F||`` at a visited model.
    """

    trajectory: Trajectory
    radius: float
    smoothness: Bracket
    sigma: Bracket
    dissimilarity: Bracket
    server_sigma: Bracket
    server_bias: float


def measure_run(
    problem: MultinomialProblem,
    models: Iterable[FloatArray],
    *,
    inclusion: FloatArray,
    sampling: BatchSampling,
    server: Server | None = None,
) -> MeasuredRun:
    """Measure constants and errors at the models of runs before each round.

    Parameters
    ----------
    problem : MultinomialProblem
        Its target weights define F.
    models : iterable of arrays (replicas, dim)
        Models of independent runs at the start and after each round; only one array is held in
        memory at a time.
    inclusion : array, (N,)
        Each client's probability of taking part in a round, independent of the models.
    sampling : BatchSampling
        Sampling of the clients' gradients.
    server : Server, optional

    Raises
    ------
    ValueError
        If there are fewer than two runs or no models, or the shapes of the arrays do not match.
    """
    share = validation.real_array("inclusion", inclusion, shape="(N,)")
    if share.shape != (problem.n_clients,) or share.sum() <= 0:
        raise ValueError(
            f"inclusion must be {problem.n_clients} probabilities, not all 0, got {share}"
        )
    at_optimum = problem.client_sums(problem.x_star[None])
    seen = _Measuring(problem, share / share.sum(), at_optimum.losses[0], sampling, server)
    start: FloatArray | None = None
    for x in models:
        seen.add(_checked_models(x, problem.dim))
        start = x[0] if start is None else start
    if start is None:
        raise ValueError("models must hold at least one round, got none")
    server_high = 0.0
    if server is not None:
        server_high = math.hypot(
            _noise_bound(server.data, server.sampling),
            0.0 if server.is_unbiased else _bias_bound(problem, server.data),
        )
    return MeasuredRun(
        seen.trajectory(),
        seen.radius,
        Bracket.of(
            max(curvature_at(problem, point) for point in (problem.x_star, start)),
            curvature_bound(problem, problem.x_star, seen.radius),
        ),
        Bracket.of(seen.sigma, _noise_bound(problem, sampling)),
        Bracket.of(seen.sigma_G, dissimilarity_bound(problem, at_optimum, seen.radius)),
        Bracket.of(seen.server_sigma, server_high),
        seen.server_bias,
    )


_FIELDS = ("squared_distance", "squared_gradient", "excess_loss", "participant_excess_loss")


class _Measuring:
    """Accumulated measurements."""

    def __init__(
        self,
        problem: MultinomialProblem,
        share: FloatArray,
        best_losses: FloatArray,
        sampling: BatchSampling,
        server: Server | None,
    ) -> None:
        self._problem = problem
        self._share, self._best_losses = share, best_losses
        self._sampling, self._server = sampling, server
        self.means: list[FloatArray] = []
        self.errors: list[FloatArray] = []
        self.radius = self.sigma = self.sigma_G = self.server_sigma = self.server_bias = 0.0
        self._replicas = 0

    def add(self, x: FloatArray) -> None:
        """Add the measurements at the models of one round."""
        sums = self._problem.client_sums(x)
        gradient = np.einsum("i,kia->ka", self._problem.alpha, sums.gradients)
        squares = np.square(x - self._problem.x_star).sum(axis=1)
        excess = sums.losses - self._best_losses
        values = np.stack(
            [
                squares,
                np.square(gradient).sum(axis=1),
                excess @ self._problem.alpha,
                excess @ self._share,
            ]
        )
        self._replicas = len(x)
        self.means.append(values.mean(axis=1))
        self.errors.append(values.std(axis=1, ddof=1) / math.sqrt(len(x)))
        self.radius = max(self.radius, math.sqrt(squares.max()))
        self._note_constants(x, sums, gradient)

    def trajectory(self) -> Trajectory:
        """Return means and standard errors of every round."""
        means, errors = np.array(self.means).T, np.array(self.errors).T
        return Trajectory.of(
            dict(zip(_FIELDS, means, strict=True)),
            standard_error=dict(zip(_FIELDS, errors, strict=True)),
            replicas=self._replicas,
        )

    def _note_constants(self, x: FloatArray, sums: ClientSums, gradient: FloatArray) -> None:
        noise = self._sampling.variance(sums.variances, self._problem.sizes)
        self.sigma = max(self.sigma, math.sqrt(noise.max()))
        apart = np.linalg.norm(sums.gradients - gradient[:, None], axis=2)
        self.sigma_G = max(self.sigma_G, float(apart.max()))
        if self._server is not None:
            bias, of_one = self._of_server(self._server, x, sums, gradient, apart)
            variance = self._server.sampling.variance(of_one, self._server.data.sizes)
            self.server_bias = max(self.server_bias, float(bias.max()))
            self.server_sigma = max(self.server_sigma, math.sqrt((variance + bias**2).max()))

    def _of_server(
        self,
        server: Server,
        x: FloatArray,
        sums: ClientSums,
        gradient: FloatArray,
        apart: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the server's bias and the variance of one of its samples, (replicas,)."""
        if server.is_unbiased:
            # This uses the variances within and between clients, without another pass over the
            # data.
            return np.zeros(len(x)), (sums.variances + apart**2) @ self._problem.alpha
        own = server.data.client_sums(x)
        return np.linalg.norm(own.gradients[:, 0] - gradient, axis=1), own.variances[:, 0]


def dissimilarity_bound(
    problem: MultinomialProblem, at_optimum: ClientSums, radius: float
) -> float:
    """Bound ``||grad F_i - grad F||`` over all clients and a ball around x*.

    The penalty cancels. The data contribute ``mean_j r_j (a_j, 1)'`` to ``grad F_i``, with
    ``||r_j|| <= sqrt(2)``, so the norm is at most ``2 sqrt(L_i - ridge)`` everywhere. On the ball,
    it changes by at most ``L_i - ridge`` per unit of length, and the data's part of ``grad F``
    changes by at most the clients' mean of this. Both Hessians are positive, so their difference is
    bounded by the larger one.

    Parameters
    ----------
    problem : MultinomialProblem
    at_optimum : ClientSums
        Sums at x*.
    radius : float
    """
    curvature = problem.smoothness - problem.ridge
    # The gradient of F is zero at x*.
    apart = np.linalg.norm(at_optimum.gradients[0], axis=1)
    on_ball = apart + radius * np.maximum(curvature, problem.alpha @ curvature)
    size = 2 * np.sqrt(curvature)
    everywhere = (1 - 2 * problem.alpha) * size + problem.alpha @ size
    return float(np.minimum(on_ball, everywhere).max())


def _noise_bound(problem: MultinomialProblem, sampling: BatchSampling) -> float:
    """Bound the noise everywhere: a sample's gradient has norm at most sqrt(2) ||(a, 1)||."""
    squares = [2 * float(np.trace(problem.gram(client))) for client in range(problem.n_clients)]
    return math.sqrt(sampling.largest_variance(np.array(squares), problem.sizes).max())


def _bias_bound(problem: MultinomialProblem, server: MultinomialProblem) -> float:
    """Bound ``||grad F_server - grad F||`` everywhere."""
    clients = 2 * np.sqrt(problem.smoothness - problem.ridge)
    return float(2 * math.sqrt(server.L - server.ridge) + problem.alpha @ clients)


def _checked_models(x: FloatArray, dim: int) -> FloatArray:
    models = validation.real_array("models", x, shape=f"(replicas, {dim})")
    if models.ndim != 2 or models.shape[1] != dim or len(models) < 2:
        raise ValueError(
            f"models must have shape (replicas, {dim}) with at least 2 replicas, got {models.shape}"
        )
    return models


@dataclass(frozen=True, eq=False)
class MeasuredProblem:
    """A `MultinomialProblem` with the constants that theorems need, given by the caller.

    All other attributes are those of ``data``.

    Attributes
    ----------
    data : MultinomialProblem
    L : float
        A smoothness constant for every client, at least that of the data.
    sigma, server_sigma, dissimilarity : float
        Measured constants; ``dissimilarity`` is sigma_G.
    """

    data: MultinomialProblem
    L: float
    sigma: float
    server_sigma: float
    dissimilarity: float

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "data":
            raise AttributeError(name)
        return getattr(self.data, name)

    @property
    def sigma_G(self) -> float:
        """Gradient dissimilarity."""
        return self.dissimilarity

    def excess_loss(self, x: FloatArray) -> FloatArray:
        """Return ``F(x) - F*`` at points (..., d)."""
        return np.asarray(self.data.loss(x) - self.data.F_star)

    def client_gradients(self, x: FloatArray, clients: ClientIndices) -> FloatArray:
        """Return ``grad F_i(x_t)`` with ``i = clients[t]``, for points (T, d)."""
        return self.data.client_sums(x).gradients[np.arange(len(x)), clients]
