"""Second moments of the clients' own models in local SGD, step by step.

The papers bound what single clients do (their gradients along the run, how far their models are
apart), which no trajectory of the server's model has. With ``z_k = w_k - x*`` and
``H_k (z_k - o_k)`` the gradient of client k, a step is affine in ``z = (z_1, .., z_N, 1)``, and so
is an average over drawn clients: ``E z z'`` follows from itself. This is a plain recursion of its
own, apart from the engines; numbers are floats, or exact where the setting's are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fltheory.algorithms import AveragedIterate, LocalSgd
from fltheory.content import cached_by_content
from fltheory.engines import Setting
from fltheory.engines.enclosure.enclosed import Work
from fltheory.engines.enclosure.exact_setting import exact_numbers
from fltheory.evidence.enclosed_check import AFFORDABLE
from fltheory.exact_or_float import is_exact, largest, number, root
from fltheory.participation.process import process_of
from fltheory.problems import QuadraticProblem
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_FRACTIONS_KEPT = 6
"""Steps after which fractions become balls: their digits grow with every step."""


def local_sgd(setting: Setting) -> LocalSgd:
    """Return the local SGD of a setting, averaged over its models or not.

    Raises
    ------
    ValueError
        For another algorithm, other clients than quadratic ones, target weights that are not its
        aggregation weights, or clients that are absent from steps.
    """
    algorithm, problem = setting.algorithm, setting.problem
    method = algorithm.algorithm if isinstance(algorithm, AveragedIterate) else algorithm
    if not isinstance(method, LocalSgd):
        raise ValueError(f"algorithm must be LocalSgd for theorems on it, got {algorithm!r}")
    if not isinstance(problem, QuadraticProblem):
        raise ValueError(
            f"problem must be a QuadraticProblem for theorems on LocalSgd, got {problem!r}"
        )
    weights = np.asarray(method.aggregation_weights, dtype=np.float64)
    if not np.array_equal(weights, problem.alpha.astype(np.float64)):
        raise ValueError(
            "aggregation_weights must be the problem's target weights, which define F, "
            f"got {method.aggregation_weights}"
        )
    everybody = setting.participation.fixed_size == problem.n_clients
    if method.sampled == "steps" and not everybody:
        raise ValueError(
            f"participation must be everybody where those present step, got "
            f"{setting.participation!r}"
        )
    return method


def widened(moment: Any, step: int) -> Any:
    """Return fractions as balls after the first steps; floats as they are."""
    if not is_exact(moment) or step <= _FRACTIONS_KEPT:
        return moment
    return np.vectorize(lambda value: value.widened(), otypes=[object])(moment)


def check_affordable(start: Any, steps: int, n_clients: int) -> None:
    """Raise NotEnclosedError where so many steps of all models in balls cost too much."""
    if is_exact(start):
        Work(AFFORDABLE).foresee(steps * (n_clients * len(start)) ** 3)


@dataclass(frozen=True, eq=False)
class ClientModels(ReadOnlyArrays):
    """The second moments of a setting's clients, ``E z z'``, after t steps, t = 0 .. R.

    Attributes
    ----------
    setting : Setting
    """

    setting: Setting

    @cached_property
    def _hessians(self) -> Any:
        """(N, d, d)."""
        problem: Any = self.setting.problem
        shape = problem.n_clients, problem.dim, problem.dim
        return np.broadcast_to(problem.hessians, shape)

    @cached_property
    def _pulls(self) -> Any:
        """(N, d) ``H_k o_k``: minus the gradient at x*."""
        problem: Any = self.setting.problem
        offsets = problem.optima - problem.x_star
        return np.matmul(self._hessians, offsets[:, :, None])[:, :, 0]

    @property
    def squared_sigmas(self) -> Any:
        """(N,) ``sigma_k^2``."""
        problem: Any = self.setting.problem
        return problem.client_sigmas**2

    @cached_property
    def weights(self) -> Any:
        """(N,) p."""
        return self.setting.problem.alpha

    @cached_property
    def _moments(self) -> list[Any]:
        """Those after 0, 1, .. steps, as far as they have been asked for."""
        start = self.setting.x0 - self.setting.problem.x_star
        check_affordable(start, self.setting.rounds, len(self._hessians))
        one = start[:1] * 0 + 1
        z = np.concatenate([*[start] * len(self._hessians), one])
        return [np.outer(z, z)]

    def moment(self, step: int) -> Any:
        """``E z z'`` after so many steps, (N d + 1, N d + 1)."""
        method = local_sgd(self.setting)
        for t in range(len(self._moments), step + 1):
            after = self._stepped(self._moments[-1], method.step_sizes.at(t))
            if method.averages_after(t):
                after = self._averaged(after)
            self._moments.append(widened(after, t))
        return self._moments[step]

    def _stepped(self, moment: Any, lr: Any) -> Any:
        size = self.setting.problem.dim
        slope = moment * 0
        slope[-1, -1] = slope[-1, -1] + 1
        for k, (hessian, pull) in enumerate(zip(self._hessians, self._pulls, strict=True)):
            here = slice(k * size, (k + 1) * size)
            slope[here, here] = np.eye(size, dtype=int) - lr * hessian
            slope[here, -1] = lr * pull
        after = slope @ moment @ slope.T
        noise = lr * lr * np.repeat(self.squared_sigmas, size) / size
        places = np.arange(len(moment) - 1)
        after[places, places] = after[places, places] + noise
        return after

    def _averaged(self, moment: Any) -> Any:
        size, count = self.setting.problem.dim, len(self._hessians)
        total = moment * 0
        for chance, weights in self._draws():
            slope = moment * 0
            slope[-1, -1] = slope[-1, -1] + 1
            for k in range(count):
                for j in range(count):
                    block = slice(k * size, (k + 1) * size), slice(j * size, (j + 1) * size)
                    slope[block] = np.eye(size, dtype=int) * weights[j]
            total = total + chance * (slope @ moment @ slope.T)
        return total

    def _draws(self) -> Iterator[tuple[Any, Any]]:
        """Return what models are averaged with, and how probably."""
        if local_sgd(self.setting).sampled == "steps":
            yield 1, self.weights
            return
        exact = is_exact(self.weights)
        zero = self.weights[0] * 0
        for chance, counts in process_of(self.setting.participation).exact_outcomes():
            drawn = int(counts.sum())
            shares = [(zero + int(count)) / drawn for count in counts] if drawn else self.weights
            yield exact_numbers(chance).item() if exact else float(chance), np.array(shares)

    def squared_gradients(self, t: int) -> Any:
        """(N,) ``E||grad F_k(w_k, xi)||^2`` of the stochastic gradients after t steps."""
        return self._squares(t) + self.squared_sigmas

    def _squares(self, t: int) -> Any:
        moment, size = self.moment(t), self.setting.problem.dim
        found = []
        for k, (hessian, pull) in enumerate(zip(self._hessians, self._pulls, strict=True)):
            here = slice(k * size, (k + 1) * size)
            second = hessian @ moment[here, here] @ hessian
            cross = (hessian @ moment[here, -1]) @ pull
            found.append(np.trace(second) - 2 * cross + pull @ pull)
        return np.array(found)

    def largest_gradient(self, first: int) -> Any:
        """Root of the largest of those after ``first`` .. R - 1 steps: G; 0 if there are none."""
        sizes = [self.squared_gradients(t) for t in range(first, self.setting.rounds)]
        return root(number(largest(np.concatenate(sizes)))) if sizes else 0

    def squared_distance(self, t: int) -> Any:
        """``E||sum_k p_k w_k - x*||^2`` after t steps."""
        return number(np.trace(self._of_means(t)))

    def excess_loss(self, t: int) -> Any:
        """``E F(sum_k p_k w_k) - F*`` after t steps."""
        problem: Any = self.setting.problem
        return number(np.trace(problem.mean_hessian @ self._of_means(t)) / 2)

    def _of_means(self, t: int) -> Any:
        size, p = self.setting.problem.dim, self.weights
        blocks = self.moment(t)[:-1, :-1].reshape(p.size, size, p.size, size)
        pairs = np.outer(p, p)[:, :, None, None]
        return (pairs * blocks.swapaxes(1, 2)).sum(axis=(0, 1))

    def spread(self, t: int) -> Any:
        """``sum_k p_k E||w_k - sum_j p_j w_j||^2`` after t steps."""
        squares = np.diagonal(self.moment(t))[:-1].reshape(self.weights.size, -1).sum(axis=1)
        return number(self.weights @ squares - self.squared_distance(t))


@cached_by_content(16)
def client_models(setting: Setting) -> ClientModels:
    """Return a setting's moments; the last ones are kept, as symbols share them."""
    return ClientModels(setting)


def weighted_noise(setting: Setting) -> Any:
    """``sum_k p_k^2 sigma_k^2``."""
    models = client_models(setting)
    return number((models.weights**2 * models.squared_sigmas).sum())


def gap_of_minima(setting: Setting) -> Any:
    """``F* - sum_k p_k F_k*``: Gamma of Li et al.; quadratic clients have ``F_k* = 0``."""
    problem: Any = setting.problem
    return number(problem.F_star - problem.alpha @ problem.client_minima)


def gradients_at_optimum(setting: Setting) -> Any:
    """``1/M sum_m ||grad f_m(x*)||^2``."""
    problem: Any = setting.problem
    gradients: FloatArray = problem.gradients_at_optimum
    return number((gradients * gradients).sum(axis=1).mean())
