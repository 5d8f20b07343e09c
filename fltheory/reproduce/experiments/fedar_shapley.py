"""FedAR's motivating experiment (Section 3.2) on analytic clients: what a stale update is worth.

All clients but the last take part in every round; the last stops a number of rounds before the
end. The server applies everybody's latest update. The paper measures test accuracy with sampled
noise; here the worth of a coalition of updates is the expected decrease of F from the last
round's model, exact over noise and over all coalitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from fltheory import validation
from fltheory.algorithms import Mifa
from fltheory.engines import Setting
from fltheory.engines.history.histories import Chances, follow
from fltheory.engines.history.history_rounds import AffineRounds
from fltheory.long_work.progress import Progress
from fltheory.participation import Trace
from fltheory.problems import QuadraticProblem, quadratic
from fltheory.read_only import ReadOnlyArrays
from fltheory.reproduce.experiments.shapley import coalitions, shapley_values
from fltheory.validation import FloatArray

AGGREGATES = ("mean", "sum")


@dataclass(frozen=True)
class StalePlan:
    """An experiment: clients, steps, and when the last client's contribution is measured.

    Parameters
    ----------
    n_clients : int
        N, at least 2; the last is the one that stops.
    rounds : int
        T; contributions are those to the step of round T.
    dim : int
        d.
    client_lr : float
        eta, the step size of local SGD.
    local_steps : int
        K.
    sigma_G : float
        The clients' gradient dissimilarity; the last client attains it.
    sigma : float
        Of the gradients' noise.
    distance : float
        ``||x_0 - x*||``.
    aggregate : {"mean", "sum"}
        What a coalition S makes of its updates u_i: ``x + sum_{i in S} u_i / |S|``, or
        ``x + sum_{i in S} u_i / N`` as a server that knows the others' to be missing.

    Raises
    ------
    ValueError
        If a number is out of range or ``aggregate`` does not exist.
    """

    n_clients: int = 5
    _: KW_ONLY
    rounds: int = 60
    dim: int = 4
    client_lr: float = 0.02
    local_steps: int = 5
    sigma_G: float = 1.0  # noqa: N815
    sigma: float = 0.5
    distance: float = 4.0
    aggregate: str = "mean"

    def __post_init__(self) -> None:
        validation.whole_number("n_clients", self.n_clients, at_least=2)
        for name in ("rounds", "dim", "local_steps"):
            validation.whole_number(name, getattr(self, name), at_least=1)
        validation.positive("client_lr", self.client_lr)
        for name in ("sigma_G", "sigma", "distance"):
            validation.nonnegative(name, getattr(self, name))
        validation.one_of("aggregate", self.aggregate, AGGREGATES)


SCENARIOS: Mapping[str, StalePlan] = {
    "short steps": StalePlan(rounds=20, sigma_G=0.3),
    "short steps, unlike clients": StalePlan(rounds=20, sigma_G=1.0),
    "long steps": StalePlan(rounds=6, client_lr=0.2, sigma_G=0.1, sigma=0.0),
    "long, noisy steps": StalePlan(rounds=6, client_lr=0.2, sigma_G=0.1, sigma=1.0),
}


@dataclass(frozen=True, eq=False)
class Contribution(ReadOnlyArrays):
    """What the updates of round T contribute where the last client has stopped.

    Attributes
    ----------
    staleness : int
        Rounds since its last update; 0 where it takes part in round T.
    values : array, (N,)
        Shapley values, the last client's last; they add up to the step's decrease of F.
    """

    staleness: int
    values: FloatArray


def stale_problem(plan: StalePlan) -> QuadraticProblem:
    """Return clients with one Hessian (eigenvalues 1/5 to 1), the last one the extreme one."""
    made = quadratic(
        plan.n_clients, plan.dim, 1.0, 0.2 if plan.dim > 1 else 1.0, plan.sigma_G, sigma=plan.sigma
    )
    return QuadraticProblem(made.hessians, made.optima[::-1], sigma=plan.sigma)


def last_round(plan: StalePlan, staleness: int) -> tuple[FloatArray, FloatArray]:
    """Return mean and second moment of ``(x_T - x*, u_1, ..., u_N)``, stacked, (n,) and (n, n).

    ``x_T`` is the model before round T, the u_i the latest changes that the server then has.
    They are jointly Gaussian; nothing is sampled.

    Raises
    ------
    ValueError
        If the client would stop before its first round.
    """
    staleness = validation.whole_number("staleness", staleness, at_least=0)
    if staleness >= plan.rounds:
        raise ValueError(f"staleness must be below the {plan.rounds} rounds, got {staleness}")
    present = np.ones((plan.rounds, plan.n_clients), dtype=bool)
    present[plan.rounds - staleness :, -1] = False
    problem = stale_problem(plan)
    algorithm = Mifa(plan.client_lr, plan.local_steps, start="zero")
    x0 = problem.x_star + plan.distance / np.sqrt(plan.dim)
    setting = Setting(algorithm, problem, Trace(present, start=0), plan.rounds, x0)
    rounds = AffineRounds(setting, problem)
    *_, (last, _) = follow(setting, rounds, Chances.of(setting.participation))
    # Moments of the model's offset from x* and of everybody's updates, in this order.
    second, offset = last.moments[0, :-1, :-1], last.moments[0, :-1, -1]
    back = _before_the_step(plan)
    return back @ offset, back @ second @ back.T


def _before_the_step(plan: StalePlan) -> FloatArray:
    """Return the map from (x_(T+1), G) to (x_T, u): ``u = -eta G``, ``x_(T+1) = x_T + mean u``."""
    n, d = plan.n_clients, plan.dim
    scales = np.array([1.0, *[-plan.client_lr] * n])
    back = np.diag(np.repeat(scales, d))
    back[:d, d:] = np.tile(plan.client_lr / n * np.eye(d), (1, n))
    return back


def worths(plan: StalePlan, second: FloatArray) -> FloatArray:
    """Return ``E[F(x) - F(x_S)]`` of every coalition S, (2^N,), from the second moment.

    ``x_S`` is the model after the coalition's step; the empty coalition leaves x.
    """
    hessian, dim = stale_problem(plan).mean_hessian, plan.dim
    losses = []
    for members in coalitions(plan.n_clients):
        size = plan.n_clients if plan.aggregate == "sum" else max(int(members.sum()), 1)
        step = np.kron(np.concatenate([[1.0], members / size])[None], np.eye(dim))
        losses.append(0.5 * float((hessian * (step @ second @ step.T)).sum()))
    return np.asarray(losses[0] - np.array(losses))


def contributions(
    plan: StalePlan, staleness: Sequence[int], *, progress: Progress | None = None
) -> Iterator[Contribution]:
    """Yield the contributions for each number of rounds that the last client has been away.

    Examples
    --------
    >>> plan = StalePlan(3, rounds=10, sigma_G=0.1, sigma=0.0)
    >>> fresh, stale = contributions(plan, [0, 9])
    >>> bool(stale.values[-1] > fresh.values[-1] > 0)
    True
    """
    for done, rounds_away in enumerate(staleness, start=1):
        _, second = last_round(plan, rounds_away)
        yield Contribution(rounds_away, shapley_values(worths(plan, second)))
        if progress is not None:
            progress(done, len(staleness), f"{rounds_away} rounds away")
