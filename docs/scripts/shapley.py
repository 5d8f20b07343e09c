"""FedAR's motivating experiment (Section 3.2) on analytic clients: the value of a stale update.

All clients but the last take part in every round; the last stops a number of rounds before the end.
The server applies everybody's latest update. The paper measures test accuracy with sampled noise;
here the worth of a coalition of updates is the expected decrease of F from the last round's model,
exact over noise and over all coalitions. The Shapley value of a game is each player's marginal
contribution, averaged over all orders of arrival. A game is an array of the worth of every
coalition, (2^N,): bit i of a coalition's index says whether player i is in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.algorithms import Mifa
from fltheory.cli import run_script
from fltheory.commands.shared.options import PAGES, Check, PageFile, written
from fltheory.commands.shared.written_files import (
    check_page,
    tell_written,
)
from fltheory.engines import Setting
from fltheory.engines.history.histories import PathWays, follow, until_read
from fltheory.engines.history.history_rounds import AffineRounds
from fltheory.files.whole_file import write_whole
from fltheory.long_work.progress import Progress, shown_progress
from fltheory.participation import Trace
from fltheory.problems import QuadraticProblem, quadratic
from fltheory.read_only import ReadOnlyArrays
from fltheory.report.figures.figure_axes import write_figure
from fltheory.validation import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_MOST_PLAYERS = 20


def shapley_values(worth: ArrayLike) -> FloatArray:
    """Return the players' exact Shapley values, (N,), computed over all coalitions.

    ``phi_i = sum_{S without i} |S|! (N - |S| - 1)! / N! (v(S + i) - v(S))`` (Shapley, 1953).

    Parameters
    ----------
    worth : array, (2^N,)
        v of every coalition, the empty one first; N is from 1 to 20.

    Raises
    ------
    ValueError
        If the number of coalitions is different.

    Examples
    --------
    >>> shapley_values([0.0, 1.0, 1.0, 4.0]).tolist()
    [2.0, 2.0]
    """
    v = validation.real_array("worth", worth, shape="(2^N,)")
    n = v.size.bit_length() - 1
    if v.ndim != 1 or v.size != 2**n or not 1 <= n <= _MOST_PLAYERS:
        raise ValueError(
            f"worth must have 2^N entries, N from 1 to {_MOST_PLAYERS}, got shape {v.shape}"
        )
    size = coalitions(n).sum(axis=1)
    weight = np.array([1 / (n * math.comb(n - 1, s)) for s in range(n)])
    values = np.empty(n)
    for player in range(n):
        without = np.flatnonzero(~coalitions(n)[:, player])
        gain = v[without + 2**player] - v[without]
        values[player] = weight[size[without]] @ gain
    return values


def coalitions(n_players: int) -> np.ndarray:
    """Return the members of each coalition as booleans, (2^N, N)."""
    return (np.arange(2**n_players)[:, None] >> np.arange(n_players)) % 2 == 1


def quadratic_shapley_values(linear: FloatArray, quadratic: FloatArray) -> FloatArray:
    """Return Shapley values of ``v(S) = sum_{i in S} l_i + sum_{i, j in S} Q_ij`` in closed form.

    Two players share their joint term equally: ``phi_i = l_i + sum_j Q_ij`` for
    symmetric Q.
    """
    return np.asarray(linear + 0.5 * (quadratic + quadratic.T).sum(axis=1))


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
        Standard deviation of the gradient noise.
    distance : float
        ``||x_0 - x*||``.
    aggregate : {"mean", "sum"}
        The model after the updates u_i of a coalition S: ``x + sum_{i in S} u_i / |S|``, or ``x +
        sum_{i in S} u_i / N``, as for a server that knows that the other updates are missing.

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
    """The contributions of the updates in round T if the last client has stopped.

    Attributes
    ----------
    staleness : int
        Rounds since its last update; 0 if it takes part in round T.
    values : array, (N,)
        Shapley values, the last client's last; they add up to the step's decrease of F.
    """

    staleness: int
    values: FloatArray


def stale_problem(plan: StalePlan) -> QuadraticProblem:
    """Return clients with a shared Hessian (eigenvalues 1/5 to 1); the last is the extreme one."""
    made = quadratic(
        plan.n_clients, plan.dim, 1.0, 0.2 if plan.dim > 1 else 1.0, plan.sigma_G, sigma=plan.sigma
    )
    return QuadraticProblem(made.hessians, made.optima[::-1], sigma=plan.sigma)


def last_round(plan: StalePlan, staleness: int) -> tuple[FloatArray, FloatArray]:
    """Return mean and second moment of ``(x_T - x*, u_1, ..., u_N)``, stacked, (n,) and (n, n).

    ``x_T`` is the model before round T, and the u_i are the server's latest updates at that time.
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
    rounds = AffineRounds(setting, problem, PathWays(present[None]))
    last, _ = until_read(lambda random: list(follow(rounds, random))[-1])
    # Moments of the model's offset from x* and of all updates, in this order.
    second, offset = last.moments[0, :-1, :-1], last.moments[0, :-1, -1]
    back = _before_the_step(plan) * rounds.units(last.random)
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


def contributions(plan: StalePlan, staleness: Sequence[int]) -> Iterator[Contribution]:
    """Yield the contributions for each number of rounds that the last client has been absent.

    Examples
    --------
    >>> plan = StalePlan(3, rounds=10, sigma_G=0.1, sigma=0.0)
    >>> fresh, stale = contributions(plan, [0, 9])
    >>> bool(stale.values[-1] > fresh.values[-1] > 0)
    True
    """
    for rounds_away in staleness:
        _, second = last_round(plan, rounds_away)
        yield Contribution(rounds_away, shapley_values(worths(plan, second)))


_COLOURS = ("#0072B2", "#009E73", "#D55E00", "#7A2B00")
_LOWEST, _HIGHEST = -1.0, 0.75

Measured = Mapping[tuple[str, str], Sequence[Contribution]]


def measured_scenarios(*, progress: Progress | None = None) -> Measured:
    """Return the contributions in all scenarios, by (scenario, aggregate)."""
    plans = {
        (name, aggregate): replace(plan, aggregate=aggregate)
        for name, plan in SCENARIOS.items()
        for aggregate in AGGREGATES
    }
    total, done = sum(plan.rounds for plan in plans.values()), 0
    found: dict[tuple[str, str], list[Contribution]] = {}
    for key, plan in plans.items():
        found[key] = []
        for contribution in contributions(plan, range(plan.rounds)):
            done += 1
            found[key].append(contribution)
            if progress is not None:
                progress(done, total, ", ".join(key))
    return found


def relative_values(series: Sequence[Contribution]) -> FloatArray:
    """Return the last client's values, divided by the total decrease if all updates are fresh."""
    whole = series[0].values.sum()
    return np.array([contribution.values[-1] for contribution in series]) / whole


def shapley_page(found: Measured, figure: str | None = None) -> str:
    """Return the page in Markdown; ``figure`` is a link to its figure."""
    return "\n".join(_lines(found, figure)) + "\n"


def _lines(found: Measured, figure: str | None) -> Iterator[str]:
    yield _INTRODUCTION.format(n=StalePlan().n_clients, others=StalePlan().n_clients - 1)
    if figure is not None:
        yield f"![Contribution against staleness]({figure})"
        yield ""
    yield "## What the figure says"
    yield ""
    for name in SCENARIOS:
        remark = _remark({a: found[name, a] for a in AGGREGATES})
        yield f"- **{name[0].upper()}{name[1:]}.** {remark}"
    yield ""
    yield _CONCLUSION
    for name, plan in SCENARIOS.items():
        yield from _table(name, plan, {a: found[name, a] for a in AGGREGATES})


_INTRODUCTION = """\
# What a stale update is worth: FedAR's motivating experiment

Made by `python docs/scripts/shapley.py`; do not edit. `--check` says whether it is current.

In FedAR's experiment (Section 3.2, Figure 1), one client stops some rounds before the end, but its
last update is still applied. Shapley values measure what each update contributes to the step of the
last round. From CIFAR-10, the paper concludes that (1) stale updates can still contribute, (2) they
contribute less the staler they are, and (3) very stale updates do harm. Because of (1) and (2),
FedAR's weights grow with the number of inactive rounds. Because of (3), they are cut off.

Here the {n} clients have quadratic losses, and the minimum is known. {others} clients take part in
all rounds, and the last client stops early. The server applies the plain mean of all clients'
latest updates. The worth of a coalition is the expected decrease of F if only the coalition's
updates are applied to the last round's model x. This expectation is exact, because x and the
updates are jointly Gaussian and F is quadratic. The Shapley values are exact too, over all 2^{n}
coalitions. "Mean" divides the sum of a coalition's updates by the number of its members, and "sum"
divides it by {n}, the number of all clients. The paper does not say which of the two it uses.

The values shown are divided by the decrease of the whole step if all updates are fresh, so an equal
share is 1/{n}. The paper shows shares of the sum of all values at the same staleness instead. That
sum passes through zero when a stale update undoes the step.
"""

_CONCLUSION = """\
So (1) and (3) already appear on these simple clients, but (2) appears only if noise outweighs the
progress of a round. A stale update was computed when the gradient was larger. While the model
descends, a stale update points in the same direction as a fresh one, and at first it is worth more.
Weights that grow with staleness then enlarge what is already large. With much noise, an update is
worth less from the first round on, because the same noise is applied again and again and the model
already contains it. If a client is unlike the others, its fresh update is worth less than an equal
share, or does harm.
"""


def _remark(both: Mapping[str, Sequence[Contribution]]) -> str:
    parts = []
    for aggregate, series in both.items():
        values = relative_values(series)
        top = int(np.argmax(values))
        harm = np.flatnonzero(values < 0)
        harmful = (
            f"does harm when it is {_ranges(harm)} rounds old" if harm.size else "never does harm"
        )
        most = (
            f"is worth most after {top} rounds ({values[top]:.3f})"
            if top
            else "is worth most when fresh"
        )
        parts.append(
            f"with the {aggregate}, the update is worth {values[0]:.3f} fresh and "
            f"{values[1]:.3f} after one round; it {most}, and it {harmful}"
        )
    return ". ".join(f"{part[0].upper()}{part[1:]}" for part in parts) + "."


def _ranges(places: np.ndarray) -> str:
    """Return successive numbers as ranges: 0 to 3 and 7."""
    runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
    return " and ".join(f"{run[0]} to {run[-1]}" if run.size > 1 else f"{run[0]}" for run in runs)


def _table(name: str, plan: StalePlan, both: Mapping[str, Sequence[Contribution]]) -> Iterator[str]:
    yield f"## {name[0].upper()}{name[1:]}"
    yield ""
    yield (
        f"{plan.rounds} rounds of {plan.local_steps} local steps of {plan.client_lr:g}, "
        f"sigma_G = {plan.sigma_G:g}, sigma = {plan.sigma:g}, d = {plan.dim}, Hessian eigenvalues "
        f"from 1/5 to 1, and initial distance {plan.distance:g} from the optimum."
    )
    yield ""
    yield (
        "| rounds away | " + " | ".join(f"stale client, {a} | each other, {a}" for a in both) + " |"
    )
    yield "|---:" * (1 + 2 * len(both)) + "|"
    wholes = {aggregate: series[0].values.sum() for aggregate, series in both.items()}
    for index in range(plan.rounds):
        row = [str(index)]
        for aggregate, series in both.items():
            values = series[index].values / wholes[aggregate]
            row += [f"{values[-1]:.3f}", f"{values[:-1].mean():.3f}"]
        yield "| " + " | ".join(row) + " |"
    yield ""


def shapley_figure(found: Measured) -> Figure:
    """Draw the stale client's contribution against staleness, in a panel per aggregate.

    Below -1 the curves leave the figure.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    for axes, aggregate in zip(
        figure.subplots(1, len(AGGREGATES), sharey=True), AGGREGATES, strict=True
    ):
        for name, colour in zip(SCENARIOS, _COLOURS, strict=True):
            values = relative_values(found[name, aggregate])
            axes.plot(values, marker=".", color=colour, label=name)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_ylim(_LOWEST, _HIGHEST)
        axes.set_xlabel("rounds since the client's last update")
        axes.set_title(f"coalitions apply the {aggregate}", fontsize="medium")
    figure.axes[0].set_ylabel("Shapley value / decrease if all were fresh")
    figure.axes[1].legend(fontsize="small")
    return figure


def command(
    out: PageFile = PAGES / "fedar-shapley.md",
    figure: Annotated[
        Path,
        written(".png", ".svg"),
        typer.Option(help="Write a figure to this file: .png or .svg."),
    ] = PAGES / "fedar-shapley.svg",
    check: Check = False,
) -> None:
    """FedAR's motivating experiment: Shapley values of stale updates, exact on quadratics."""
    with shown_progress() as advance:
        found = measured_scenarios(progress=advance)
    text = shapley_page(found, figure.name)
    if check:
        check_page(out, text, "the experiment gives: run python docs/scripts/shapley.py")
        return
    write_figure(lambda: shapley_figure(found), figure)
    write_whole(out, text)
    tell_written(figure)
    tell_written(out)


if __name__ == "__main__":
    run_script(command)
