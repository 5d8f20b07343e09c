"""FedAvg as single SGD steps, each with its own step size: Li et al. (ICLR 2020), equations (3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from array_api_compat import array_namespace, device

from fltheory import validation
from fltheory.algorithms.contract import Algorithm, Array, Clients, State
from fltheory.algorithms.shared.averaging import (
    after_own_steps,
    blank,
    participant_average,
    weighted_sum,
)
from fltheory.algorithms.shared.client_constants import check_one_each, held_on_backend
from fltheory.algorithms.shared.step_sizes import StepSizes, checked_step_sizes
from fltheory.read_only import read_only
from fltheory.validation import FloatArray

_SUM_TOLERANCE = 1e-9
Sampled = Literal["steps", "average"]
SAMPLED = get_args(Sampled)


@dataclass(frozen=True)
class LocalSgd:
    """Local SGD whose *rounds are single steps*, so that every client has its own model.

    In step t = 1, 2, ... each client present does ``w^k <- w^k - eta_t grad F_k(w^k)``; after every
    E-th step all models become their weighted mean. The model ``x`` is that mean, ``sum_k p_k
    w^k``, after every step. So the step size may decay within a round, and errors are those after
    each step. With a constant step size and everybody present, the model after n E steps is
    `WeightedFedAvg`'s after n rounds.

    By default, a client steps only if it takes part in that step. With ``sampled="average"``
    participants are drawn for the average, as in Li et al.'s Assumptions 5 and 6. Every client then
    makes every step, and after every E-th step all models become the mean of those drawn; a client
    drawn twice counts twice. If nobody is drawn, they become ``sum_k p_k w^k``.

    Parameters
    ----------
    step_sizes : StepSizes
        eta_1, eta_2, ..., one for each SGD step.
    local_steps : int
        E, the SGD steps between two averages.
    aggregation_weights : tuple of float, (N,)
        p, positive, summing to one.
    sampled : {"steps", "average"}
        Whether participants are drawn to make the step or to enter the average.
    first_average : int, optional
        The step after which models are first averaged, E by default; they are then averaged after
        every E steps.

    Raises
    ------
    ValueError
        If the weights are not positive or do not sum to one, or another argument is out of range.
        ``init`` raises it if there are not as many weights as clients.

    Examples
    --------
    >>> from fltheory.algorithms import Harmonic
    >>> from fltheory.engines import Setting, exact
    >>> from fltheory.participation import UniformSubset
    >>> from fltheory.problems import QuadraticProblem
    >>> clients = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    >>> method = LocalSgd(Harmonic(0.5), local_steps=2, aggregation_weights=(0.5, 0.5))
    >>> run = exact(Setting(method, clients, UniformSubset(2, 2), 2, [1.0]))
    >>> run.squared_distance.round(12).tolist()
    [1.0, 0.25, 0.140625]
    """

    step_sizes: StepSizes
    local_steps: int
    aggregation_weights: tuple[float, ...]
    sampled: Sampled = "steps"
    first_average: int | None = None

    def __post_init__(self) -> None:
        weights = validation.array_of("aggregation_weights", self.aggregation_weights, "N")
        if weights.min() <= 0 or abs(weights.sum() - 1) > _SUM_TOLERANCE:
            raise ValueError(
                "aggregation_weights must be positive and sum to one, got "
                f"{tuple(weights.tolist())}"
            )
        object.__setattr__(self, "aggregation_weights", tuple(weights.tolist()))
        validation.whole_number("local_steps", self.local_steps, at_least=1)
        checked_step_sizes("step_sizes", self.step_sizes)
        validation.one_of("sampled", self.sampled, SAMPLED)
        if self.first_average is not None:
            validation.whole_number("first_average", self.first_average, at_least=1)

    @property
    def counts_draws(self) -> bool:
        """Whether a client that is drawn twice may count twice."""
        return self.sampled == "average"

    def averages_after(self, step: int) -> bool:
        """Whether all models become their mean after a step; the first is step 1."""
        first = self.local_steps if self.first_average is None else self.first_average
        return step >= first and (step - first) % self.local_steps == 0

    def at(self, round_index: int) -> Algorithm:
        """Return one SGD step; the first is step 1."""
        return _SgdStep(
            self.step_sizes.at(round_index),
            self.averages_after(round_index),
            self.aggregation_weights,
            self.sampled == "average",
        )


@dataclass(frozen=True)
class _SgdStep(Algorithm):
    """One SGD step of all clients or of the participants, followed by an average if one is due."""

    client_lr: float
    averages: bool
    aggregation_weights: tuple[float, ...]
    everybody_steps: bool

    def init(self, x0: Array, n_clients: int) -> State:
        check_one_each("aggregation_weights", self.aggregation_weights, n_clients)
        return {"x": x0, "apart": blank(x0, n_clients - 1, x0.shape[1])}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        x = state["x"]
        xp = array_namespace(x)
        mixing = held_on_backend(_mixing_of(self.aggregation_weights), x, x.dtype)
        local = xp.matmul(mixing, xp.concat([x[:, None, :], state["apart"]], axis=1))
        steps = xp.ones(who.shape, dtype=xp.bool, device=device(x)) if self.everybody_steps else who
        moved = after_own_steps(local, clients, steps, steps=1, lr=self.client_lr)
        p = held_on_backend(np.array(self.aggregation_weights), x, x.dtype)
        # The inverse of the mixing matrix M is M' diag(p).
        after = xp.matmul(mixing.T, p[None, :, None] * moved)
        mean, apart = after[:, 0, :], after[:, 1:, :]
        if not self.averages:
            return {"x": mean, "apart": apart}
        if self.everybody_steps:
            mean = mean + weighted_sum(participant_average(who, x), moved - mean[:, None, :])
        return {"x": mean, "apart": xp.zeros_like(apart)}


def _mixing_of(weights: tuple[float, ...]) -> FloatArray:
    """Return `_mixing`, cached if the weights are floats."""
    return _remembered(weights) if isinstance(weights[0], float) else _mixing(weights)


def _mixing(weights: tuple[float, ...]) -> FloatArray:
    """Return M (N, N), which maps the mean and N - 1 further vectors to the clients' models.

    ``M = diag(p)^{-1/2} U`` with an orthogonal U whose first column is ``sqrt(p)`` (a Householder
    reflection), so that ``sum_k p_k ||w^k||^2`` is the sum of squares of the stored vectors. A step
    that brings every client closer to its optimum then also contracts the state, and the exact
    engine's bound on rounding does not grow.
    """
    root = np.sqrt(np.array(weights))
    normal = root.copy()
    # This is root[0] - 1, as the squares sum to one. The direct difference would be mostly rounding
    # error for p_1 close to 1.
    normal[0] = -(root[1:] * root[1:]).sum() / (1 + root[0])
    length = normal @ normal
    reflection = np.eye(root.size, dtype=np.int64)
    if length > 0:
        reflection = reflection - 2 * np.outer(normal, normal) / length
    return read_only(np.asarray(reflection / root[:, None]))


_remembered = lru_cache(_mixing)
