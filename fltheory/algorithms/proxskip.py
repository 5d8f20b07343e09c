"""ProxSkip on clients: local steps with controls, and random averaging (Mishchenko et al.)."""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import array_namespace

from fltheory import validation
from fltheory.algorithms.contract import CLIENTS, Algorithm, Array, Clients, State
from fltheory.algorithms.shared.averaging import (
    after_own_steps,
    blank,
    participant_average,
    renewed,
    weighted_sum,
)
from fltheory.decimals import complement

AVERAGE = "average"


@dataclass(frozen=True)
class ProxSkip(Algorithm):
    """Local SGD with corrections, whose rounds are single steps; averages occur at random.

    Follows ProxSkip (Mishchenko et al., ICML 2022; Malinovsky, Yi and Richtarik, NeurIPS 2022) in
    its consensus form, Scaffnew: r is zero if all clients' models are equal and infinite otherwise,
    so its prox is the mean. In a step ``y_i = x_i - gamma (g_i(x_i) - h_i)``; with probability p
    all x_i become the mean of ``y_i - gamma/p h_i``, else ``x_i = y_i``; and ``h_i <- h_i + p/gamma
    (x_i - y_i)``. The model ``x`` is the mean of the clients' models. Controls start at zero. In
    the papers, everybody takes part; here a client that is absent in a step keeps its model and
    control, and the mean is over those present.

    - Nobody is present: nothing changes.
    - First appearance, and return: the client has the same model and control as before.
    - Clients that never appeared count in ``x`` with the initial model.

    Parameters
    ----------
    client_lr : float
        gamma, the step size.
    communication : float
        p, the probability that a step ends with an average, in (0, 1].

    Raises
    ------
    ValueError
        If the step size is not positive, or p is outside (0, 1].

    Examples
    --------
    Two clients with optima -1 and 1 start from equal models and average after the first step:

    >>> from fltheory.engines import Setting, exact
    >>> from fltheory.participation import UniformSubset
    >>> from fltheory.problems import QuadraticProblem
    >>> clients = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    >>> run = exact(Setting(ProxSkip(0.5, 1.0), clients, UniformSubset(2, 2), 2, [1.0]))
    >>> run.squared_distance.round(12).tolist()
    [1.0, 0.25, 0.0625]
    """

    client_lr: float
    communication: float

    def __post_init__(self) -> None:
        validation.positive("client_lr", self.client_lr)
        validation.real_number("communication", self.communication, "in (0, 1]", _is_chance)

    @property
    def branches(self) -> tuple[tuple[str, float], ...]:
        """Two branches: an average with probability p, none otherwise."""
        return ((AVERAGE, self.communication), (CLIENTS, complement(self.communication)))

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the model, the clients' models, and their controls, which are zero."""
        controls = blank(x0, n_clients, x0.shape[1])
        return {"x": x0, "x_i": x0[:, None, :] + controls, "h_i": controls}

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one step."""
        models, controls = state["x_i"], state["h_i"]
        xp = array_namespace(models)
        moved = after_own_steps(
            models, clients, who, steps=1, lr=self.client_lr, correction=-controls
        )
        if branch == AVERAGE:
            share = self.communication / self.client_lr
            shifted = moved - controls / share
            mean = weighted_sum(participant_average(who, models[:, 0]), shifted)[:, None, :]
            after = renewed(moved, mean + xp.zeros_like(moved), who)
            controls = renewed(controls, controls + share * (after - moved), who)
            moved = after
        return {"x": xp.mean(moved, axis=1), "x_i": moved, "h_i": controls}


def _is_chance(value: float) -> bool:
    return 0 < value <= 1
