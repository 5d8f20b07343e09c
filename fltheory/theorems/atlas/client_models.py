"""Second moments of the clients' own models in local SGD, step by step.

The papers bound quantities of single clients (their gradients along the run, the distances between
their models), which cannot be read off the server's model. Let ``z_k = w_k - x*``, and let
``H_k (z_k - o_k)`` be the gradient of client k. Then a step is affine in
``z = (z_1, .., z_N, 1)``, and so is an average over drawn clients. So
``E z z'`` obeys a recursion, which is computed here independently of the engines. Numbers are
floats, or exact if the setting's numbers are exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from fltheory.algorithms import AveragedIterate, FedAWE, LocalSgd
from fltheory.content import cached_by_content
from fltheory.decimals import as_fraction
from fltheory.engines import Setting
from fltheory.engines.enclosure.enclosed import Work
from fltheory.engines.enclosure.exact_setting import exact_numbers, widened
from fltheory.evidence.enclosed_check import AFFORDABLE
from fltheory.exact_or_float import ROUNDINGS, is_exact, largest, number, root
from fltheory.participation import Bernoulli, VaryingBernoulli
from fltheory.participation.process import process_of
from fltheory.problems import QuadraticProblem
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


def local_sgd(setting: Setting) -> LocalSgd:
    """Return the local SGD of a setting, whose output may be an average over iterates.

    Raises
    ------
    ValueError
        If the algorithm is not local SGD, clients are not quadratic, target weights differ from
        aggregation weights, or clients are absent from steps.
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
            "participation must include every client in every round where sampled is 'steps', got "
            f"{setting.participation!r}"
        )
    return method


def first_average(setting: Setting) -> int:
    """Return the number of steps before the first average."""
    method = local_sgd(setting)
    return method.local_steps if method.first_average is None else method.first_average


def clients_in_the_plane(
    condition: float, spread: float, sigma: float, *, p: Any = None
) -> QuadraticProblem:
    """Return four clients in the plane, flat along alternating axes, with optima all around."""
    curvatures = [[1.0, 1 / condition], [1 / condition, 1.0]] * 2
    optima = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5], [0.0, -1.0]])
    return QuadraticProblem(
        [np.diag(one) for one in curvatures],
        spread * optima,
        sigma=sigma,
        target_weights=p,
    )


def check_affordable(start: Any, steps: int, n_clients: int) -> None:
    """Raise NotEnclosedError if computing all steps of all models in balls would cost too much."""
    if is_exact(start):
        Work(AFFORDABLE).foresee(steps * (n_clients * len(start)) ** 3)


@dataclass(frozen=True, eq=False)
class QuadraticModels(ReadOnlyArrays):
    """Models of quadratic clients, stacked in ``z``, whose last entry is 1.

    Attributes
    ----------
    setting : Setting
    """

    setting: Setting

    @cached_property
    def _hessians(self) -> Any:
        """The clients' Hessians, (N, d, d)."""
        problem: Any = self.setting.problem
        return problem.client_hessians

    @cached_property
    def _pulls(self) -> Any:
        """``H_k o_k``, (N, d): minus the gradients at x*."""
        problem: Any = self.setting.problem
        offsets = problem.optima - problem.x_star
        return np.matmul(self._hessians, offsets[:, :, None])[:, :, 0]

    @cached_property
    def _start(self) -> Any:
        """``z z'`` with all models at x_0, (N d + 1, N d + 1)."""
        start = self.setting.x0 - self.setting.problem.x_star
        z = np.concatenate([*[start] * len(self._hessians), start[:1] * 0 + 1])
        return np.outer(z, z)


class ClientModels(QuadraticModels):
    """The second moments ``E z z'`` of a setting's clients after t = 0 .. R steps."""

    @property
    def squared_sigmas(self) -> Any:
        """``sigma_k^2``, (N,)."""
        problem: Any = self.setting.problem
        return problem.client_sigmas**2

    @cached_property
    def weights(self) -> Any:
        """The weights p, (N,)."""
        return self.setting.problem.alpha

    @cached_property
    def _moments(self) -> list[Any]:
        """The moments that have been computed so far, after 0, 1, .. steps."""
        check_affordable(self.setting.x0, self.setting.rounds, len(self._hessians))
        return [self._start]

    def moment(self, step: int) -> Any:
        """``E z z'`` after a number of steps, (N d + 1, N d + 1)."""
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
        """Yield the weights with which models are averaged, with their probabilities."""
        if local_sgd(self.setting).sampled == "steps":
            yield 1, self.weights
            return
        exact = is_exact(self.weights)
        zero = self.weights[0] * 0
        for chance, counts in process_of(self.setting.participation).exact_outcomes():
            drawn = int(counts.sum())
            shares = [(zero + int(count)) / drawn for count in counts] if drawn else self.weights
            yield exact_numbers(chance).item() if exact else float(chance), np.array(shares)

    def rounding(self, steps: int) -> float:
        """Return a bound on the error of sums of second moments after up to this many steps."""
        if is_exact(self._start):
            return 0.0
        squares = (float(np.trace(self.moment(t)[:-1, :-1])) for t in range(steps + 1))
        return ROUNDINGS * (steps + 1) * len(self._start) * max(squares)

    def squared_gradients(self, t: int) -> Any:
        """``E||grad F_k(w_k, xi)||^2`` of the stochastic gradients after t steps, (N,)."""
        return self._squares(t) + self.squared_sigmas

    def _squares(self, t: int) -> Any:
        moment, size = self.moment(t), self.setting.problem.dim
        found = []
        for k, (hessian, pull) in enumerate(zip(self._hessians, self._pulls, strict=True)):
            here = slice(k * size, (k + 1) * size)
            second = hessian @ moment[here, here] @ hessian
            cross = (hessian @ moment[here, -1]) @ pull
            found.append(_not_negative(np.trace(second) - 2 * cross + pull @ pull))
        return np.array(found)

    def largest_gradient(self, first: int) -> Any:
        """Return G, the largest root of those squares after ``first`` .. R - 1 steps, or 0."""
        sizes = [self.squared_gradients(t) for t in range(first, self.setting.rounds)]
        return root(number(largest(np.concatenate(sizes)))) if sizes else 0

    def squared_distance(self, t: int) -> Any:
        """``E||sum_k p_k w_k - x*||^2`` after t steps."""
        return _not_negative(np.trace(self._of_means(t)))

    def excess_loss(self, t: int) -> Any:
        """``E F(sum_k p_k w_k) - F*`` after t steps."""
        problem: Any = self.setting.problem
        return _not_negative(np.trace(problem.mean_hessian @ self._of_means(t)) / 2)

    def _of_means(self, t: int) -> Any:
        size, p = self.setting.problem.dim, self.weights
        blocks = self.moment(t)[:-1, :-1].reshape(p.size, size, p.size, size)
        pairs = np.outer(p, p)[:, :, None, None]
        return (pairs * blocks.swapaxes(1, 2)).sum(axis=(0, 1))

    def spread(self, t: int) -> Any:
        """``sum_k p_k E||w_k - sum_j p_j w_j||^2`` after t steps."""
        squares = np.diagonal(self.moment(t))[:-1].reshape(self.weights.size, -1).sum(axis=1)
        return _not_negative(self.weights @ squares - self.squared_distance(t))


def _not_negative(value: Any) -> Any:
    """Return a mean square, or zero if floats round it to below zero."""
    return number(value) if is_exact(value) else max(float(value), 0.0)


@cached_by_content(16)
def client_models(setting: Setting) -> ClientModels:
    """Return a setting's moments; the last ones are cached, because several symbols use them."""
    return ClientModels(setting)


def weighted_noise(setting: Setting) -> Any:
    """``sum_k p_k^2 sigma_k^2``."""
    models = client_models(setting)
    return number((models.weights**2 * models.squared_sigmas).sum())


def gap_of_minima(setting: Setting) -> Any:
    """Li et al.'s Gamma, ``F* - sum_k p_k F_k*``."""
    problem: Any = setting.problem
    return number(problem.F_star - problem.alpha @ problem.client_minima)


# ------------------------------------------------------------ clients that wait
# Clients keep their own models while they wait: ``a_i = t - tau_i(t)`` counts from a client's last
# round. Given all the a_i, a round is affine in ``z = (x_1 - x*, .., x_m - x*, 1)``, and so is the
# auxiliary ``z_i = x_i - eta_l eta_g s (a_i - 1) grad F_i(x_i)`` of Definition 1. So the second
# moments, separately for each ``a = (a_1, .., a_m)``, obey a recursion, which is computed here
# independently of the engines. Numbers are floats, or exact if the setting's are.
#
# Long runs in floats use powers of one matrix, if every client has a round in which it is present
# with certainty, so that there are few values of a.

Absences = tuple[int, ...]
"""The number of rounds since each client's last round, which is at least one."""

_NEGLIGIBLE = 1e-20
"""The probability below which floats drop an absence, because it adds less than rounding."""
_ROUNDING = 1e-12
_STEP_BY_STEP = 64
"""The largest number of rounds that are computed one by one."""


def availability_rows(setting: Setting) -> list[list[Fraction]]:
    """Return the clients' probabilities in each round of a period.

    Raises
    ------
    ValueError
        If rounds or clients are not independent.
    """
    who = setting.participation
    if not isinstance(who, Bernoulli | VaryingBernoulli):
        raise ValueError(
            f"participation must be independent across clients and rounds, got {who!r}"
        )
    return [[as_fraction(p) for p in row] for row in np.atleast_2d(who.availability)]


def number_for(setting: Setting, value: Fraction) -> Any:
    """Return a fraction in the setting's type of numbers."""
    return exact_numbers(value).item() if is_exact(setting.x0) else float(value)


def fedawe_of(setting: Setting) -> FedAWE:
    """Return a setting's FedAWE.

    Raises
    ------
    ValueError
        If the algorithm is not FedAWE, clients are not quadratic, or target weights are unequal.
    """
    if not isinstance(setting.algorithm, FedAWE):
        raise ValueError(f"algorithm must be FedAWE, got {setting.algorithm!r}")
    problem: Any = setting.problem
    if not isinstance(problem, QuadraticProblem):
        raise ValueError(
            f"problem must be a QuadraticProblem for theorems on FedAWE, got {problem!r}"
        )
    if (problem.alpha != problem.alpha[0]).any():
        raise ValueError(f"target_weights must be equal, as in F of (1), got {problem.alpha}")
    return setting.algorithm


@dataclass(frozen=True)
class DescentTerms:
    """Both sides of Lemma 3 for one round, term by term; sums are over clients.

    Attributes
    ----------
    excess_after, excess : float or exact number
        ``E F(z-_{t+1}) - F*`` and ``F(z-_t) - F*``.
    squared_gradient : float or exact number
        ``||grad F(z-_t)||^2``.
    squared_waits, waited_gradients : float or exact number
        Sums of ``(t - tau_i)^2``, and of ``(t - tau_i)^2 ||grad F_i(x_i)||^2``.
    apart, spread : float or exact number
        Sums of ``||x_i - z_i||^2`` and of ``||z_i - z-||^2``.
    rounding : float
        A bound on the error of the losses.
    """

    excess_after: Any
    excess: Any
    squared_gradient: Any
    squared_waits: Any
    waited_gradients: Any
    apart: Any
    spread: Any
    rounding: float


class WaitingModels(QuadraticModels):
    """The second moments ``E z z' 1{a}`` of a setting's clients before each round t = 0 .. R."""

    @property
    def _mean_hessian(self) -> Any:
        problem: Any = self.setting.problem
        return problem.mean_hessian

    @cached_property
    def _chances(self) -> list[dict[tuple[bool, ...], Any]]:
        """The probability of each set of clients, for each round of a period."""
        count = len(self._hessians)
        found: list[dict[tuple[bool, ...], Any]] = []
        for row in availability_rows(self.setting):
            chances = {}
            for here in product((False, True), repeat=count):
                pairs = zip(row, here, strict=True)
                chance = math.prod((p if there else 1 - p for p, there in pairs), start=Fraction(1))
                if chance:
                    chances[here] = number_for(self.setting, chance)
            found.append(chances)
        return found

    @cached_property
    def _local(self) -> list[tuple[Any, Any, Any]]:
        """For each client, D, c and the noise, where ``x - x_s = D x - c`` after s local steps.

        The noise is given as the covariance of x_s.
        """
        method = fedawe_of(self.setting)
        problem: Any = self.setting.problem
        identity = np.eye(problem.dim, dtype=int)
        found = []
        for k, (hessian, pull) in enumerate(zip(self._hessians, self._pulls, strict=True)):
            step = identity - method.client_lr * hessian
            lr = method.client_lr
            per_step = lr * lr * problem.client_sigmas[k] ** 2 / problem.dim
            moved, shift, noise = identity, pull * 0, hessian * 0
            for _ in range(int(method.local_steps)):
                shift = step @ shift + lr * pull
                noise = step @ noise @ step.T + per_step * identity
                moved = step @ moved
            found.append((identity - moved, shift, noise))
        return found

    @cached_property
    def _rounds(self) -> dict[tuple[Absences, tuple[bool, ...]], tuple[Any, Any]]:
        return {}

    def _round(self, absences: Absences, here: tuple[bool, ...]) -> tuple[Any, Any]:
        """Return a round's linear map of z, (n, n), and the covariance that it adds."""
        found = self._rounds.get((absences, here))
        if found is None:
            found = self._rounds[absences, here] = self._read_round(absences, here)
        return found

    def _read_round(self, absences: Absences, here: tuple[bool, ...]) -> tuple[Any, Any]:
        size, count = self.setting.problem.dim, len(absences)
        members = [i for i in range(count) if here[i]]
        slope = self._start * 0 + np.eye(count * size + 1, dtype=int)
        added = self._start * 0
        if not members:
            return slope, added
        factor = fedawe_of(self.setting).server_lr
        share = number_for(self.setting, Fraction(1, len(members)))
        mean, spread = slope[:size] * 0, 0
        for i in members:
            away, shift, noise = self._local[i]
            echo = factor * absences[i]
            mean[:, i * size : (i + 1) * size] = share * (np.eye(size, dtype=int) - echo * away)
            mean[:, -1] = mean[:, -1] + share * echo * shift
            spread = spread + share * share * echo * echo * noise
        for i in members:
            slope[i * size : (i + 1) * size] = mean
            for j in members:
                added[i * size : (i + 1) * size, j * size : (j + 1) * size] = spread
        return slope, added

    def _following(
        self, absences: Absences, phase: int
    ) -> Iterator[tuple[Absences, Any, tuple[bool, ...]]]:
        """Yield the possible next absences, with their probabilities and the clients present."""
        for here, chance in self._chances[phase].items():
            pairs = zip(absences, here, strict=True)
            yield tuple(1 if there else away + 1 for away, there in pairs), chance, here

    @cached_property
    def _moments(self) -> list[dict[Absences, Any]]:
        return [{(1,) * len(self._hessians): self._start}]

    def moments(self, t: int) -> Mapping[Absences, Any]:
        """Return ``E z z' 1{a}`` before round t, for each a."""
        exact, size = is_exact(self._start), len(self._start)
        work = Work(AFFORDABLE)
        while len(self._moments) <= t:
            before = len(self._moments) - 1
            phase = before % len(self._chances)
            after: dict[Absences, Any] = {}
            if exact:
                work.spend(4 * len(self._moments[-1]) * len(self._chances[phase]) * size**3)
            for absences, moment in self._moments[-1].items():
                for then, chance, here in self._following(absences, phase):
                    slope, added = self._round(absences, here)
                    moved = chance * (slope @ moment @ slope.T + added * moment[-1, -1])
                    after[then] = after[then] + moved if then in after else moved
            if exact:
                after = {key: widened(value, before + 1) for key, value in after.items()}
            else:
                after = {key: one for key, one in after.items() if one[-1, -1] > _NEGLIGIBLE}
            self._moments.append(after)
        return self._moments[t]

    # ------------------------------------------------------------ quantities of the moments

    def _selected(self, client: int, *, hessian: bool = False) -> Any:
        size = self.setting.problem.dim
        found = self._start[:size] * 0
        place = slice(client * size, (client + 1) * size)
        if not hessian:
            found[:, place] = found[:, place] + np.eye(size, dtype=int)
            return found
        found[:, place] = self._hessians[client]
        found[:, -1] = -self._pulls[client]
        return found

    def _auxiliary_maps(self, absences: Absences) -> list[Any]:
        """Return the maps (d, n) from z to each client's ``z_i - x*``."""
        method = fedawe_of(self.setting)
        reach = method.client_lr * method.server_lr * int(method.local_steps)
        return [
            self._selected(i) - reach * (away - 1) * self._selected(i, hessian=True)
            for i, away in enumerate(absences)
        ]

    def _own_maps(self, absences: Absences) -> list[Any]:
        """Return the maps (d, n) from z to each client's model minus x*."""
        return [self._selected(i) for i in range(len(absences))]

    def _mean(self, maps: list[Any]) -> Any:
        """Return the plain mean over clients."""
        return number_for(self.setting, Fraction(1, len(maps))) * sum(maps)

    def one_round(self, t: int, absences: Absences) -> DescentTerms:
        """Return Lemma 3's terms for round t, given a, in expectation over everything else."""
        moment = self.moments(t)[absences]
        moment = moment / moment[-1, -1]
        hessian = self._mean_hessian

        def square(form: Any, of: Any = None) -> Any:
            return number((form @ (moment if of is None else of) @ form.T).trace())

        def excess(key: Absences, of: Any) -> Any:
            mean = self._mean(self._auxiliary_maps(key))
            return number((hessian @ mean @ of @ mean.T).trace() / 2)

        after = 0
        for then, chance, here in self._following(absences, t % len(self._chances)):
            slope, added = self._round(absences, here)
            after = after + chance * excess(then, slope @ moment @ slope.T + added)
        auxiliary, own = self._auxiliary_maps(absences), self._own_maps(absences)
        mean = self._mean(auxiliary)
        slopes = [self._selected(i, hessian=True) for i in range(len(absences))]
        pairs = list(zip(absences, slopes, strict=True))
        size = number(sum(square(one) for one in (*auxiliary, *own)) * self.setting.problem.L)
        lost = 0.0 if is_exact(self._start) else ROUNDINGS * (t + 1) * len(moment) * (size + after)
        return DescentTerms(
            excess_after=after,
            excess=excess(absences, moment),
            squared_gradient=square(hessian @ mean),
            squared_waits=number_for(self.setting, Fraction(sum(away**2 for away in absences))),
            waited_gradients=number(sum(away**2 * square(one) for away, one in pairs)),
            apart=number(sum(square(x - z) for x, z in zip(own, auxiliary, strict=True))),
            spread=number(sum(square(z - mean) for z in auxiliary)),
            rounding=lost,
        )

    def mean_squared_gradient(self, *, auxiliary: bool) -> tuple[Any, float]:
        """Return ``1/T sum_t E||grad F||^2`` at the mean of the z_i or x_i, and its rounding."""
        rounds = self.setting.rounds
        form = self._auxiliary_maps if auxiliary else self._own_maps

        def weight(absences: Absences) -> Any:
            gradient = self._mean_hessian @ self._mean(form(absences))
            return gradient.T @ gradient

        if rounds <= _STEP_BY_STEP:
            total = sum(
                (weight(key) * moment).sum()
                for t in range(rounds)
                for key, moment in self.moments(t).items()
            )
            mean = number(total) / rounds
            return mean, 0.0 if is_exact(self._start) else _ROUNDING * mean
        if is_exact(self._start):
            Work(AFFORDABLE).foresee(math.inf)
        mean = self._by_powers(weight) / rounds
        return mean, (_ROUNDING + 1e-15 * rounds) * mean

    def _by_powers(self, weight: Any) -> float:
        """Return the sum over rounds of ``E z' weight(a) z``, from powers of a period's map."""
        period, rounds = len(self._chances), self.setting.rounds
        first = (1,) * len(self._hessians)
        keys = self._closed(first)
        matrices, weights = [], []
        for phase in range(period):
            matrices.append(self._map(keys[phase], keys[(phase + 1) % period], phase))
            weights.append(np.concatenate([weight(key).ravel() for key in keys[phase]]))
        whole = _summing(matrices, weights)
        rest = _summing(
            [*matrices[: rounds % period]], weights[: rounds % period], size=len(weights[0])
        )
        start = np.zeros(len(weights[0]) + 1)
        cells = self._start.size
        place = keys[0].index(first) * cells
        start[place : place + cells] = self._start.ravel()
        after = np.linalg.matrix_power(whole, rounds // period) @ start
        return float((rest @ after)[-1])

    def _closed(self, first: Absences) -> list[list[Absences]]:
        """Return all absences that are possible in each round of a period.

        Raises
        ------
        ValueError
            Unless every client has a round of the period in which it is present with certainty.
        """
        period = len(self._chances)
        rows = availability_rows(self.setting)
        for client, chances in enumerate(zip(*rows, strict=True)):
            if max(chances) < 1:
                raise ValueError(
                    "availability must be 1 for every client in some round of the period if there "
                    f"are more than {_STEP_BY_STEP} rounds, got at most {float(max(chances)):g} "
                    f"for client {client}"
                )
        found: list[dict[Absences, None]] = [{} for _ in range(period)]
        waiting = [(first, 0)]
        while waiting:
            absences, phase = waiting.pop()
            if absences in found[phase]:
                continue
            found[phase][absences] = None
            waiting += [
                (then, (phase + 1) % period) for then, _, _ in self._following(absences, phase)
            ]
        return [list(keys) for keys in found]

    def _map(self, keys: list[Absences], following: list[Absences], phase: int) -> FloatArray:
        """Return a round as a matrix on all moments."""
        cells = self._start.size
        made = np.zeros((len(following) * cells, len(keys) * cells))
        for column, absences in enumerate(keys):
            for then, chance, here in self._following(absences, phase):
                slope, added = self._round(absences, here)
                block = np.kron(slope, slope)
                block[:, -1] += added.ravel()
                rows = slice(following.index(then) * cells, (following.index(then) + 1) * cells)
                made[rows, column * cells : (column + 1) * cells] += chance * block
        return made


def _summing(
    matrices: list[FloatArray], weights: list[FloatArray], size: int | None = None
) -> FloatArray:
    """Return the map of some rounds on moments and on the running sum of weighted moments."""
    width = len(weights[0]) if size is None else size
    whole = np.eye(width + 1)
    for matrix, weight in zip(matrices, weights, strict=True):
        step = np.zeros((len(matrix) + 1, matrix.shape[1] + 1))
        step[:-1, :-1] = matrix
        step[-1, :-1] = weight
        step[-1, -1] = 1
        whole = step @ whole
    return whole


@cached_by_content(16)
def waiting_models(setting: Setting) -> WaitingModels:
    """Return a setting's moments; the last ones are cached, because several symbols use them."""
    return WaitingModels(setting)
