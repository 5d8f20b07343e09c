"""Rerun of CA-Fed's experiment on synthetic data (Section V and Appendix F): Table I.

Details that the paper does not give: d = 10, 150 rounds and batches of 32 are taken from the
authors' published scripts; 150 training and 500 test samples are the defaults of their data program
(their scripts set 50 and 150 instead), and 10 local steps are two passes over 150. F3AST and AdaFed
follow their published code (F3AST trains half of the clients, beta = 1/T). The groups have 12
clients each (Section V: r_1 = r_2 = 1/2), not a random number (Appendix F). Models have no
intercept and are initialised like torch's linear layers; all clients have equal weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import islice, product
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from fltheory import validation
from fltheory.algorithms import AdaFed, CAFed, F3ast, ServerMomentum, Unbiased
from fltheory.algorithms.contract import Algorithm, Clients
from fltheory.cli import run_script
from fltheory.commands.shared.console import table_console
from fltheory.commands.shared.kept_cells import ResultFile
from fltheory.commands.shared.options import FurtherPage, ResultsFile
from fltheory.commands.shared.written_files import tell_written
from fltheory.engines.simulation import simulate
from fltheory.files.whole_file import write_whole
from fltheory.participation import MarkovOnOff
from fltheory.participation.base import Masks
from fltheory.problems import LogisticProblem
from fltheory.validation import ClientIndices, FloatArray

METHODS = ("Unbiased", "F3AST", "AdaFed", "CA-Fed", "CA-Fed, F* known")
CHOICES = ("time-average", "maximum", "published", "all as CA-Fed")
"""How learning rates are chosen.

The paper tunes on its grid and does not say for what: here for the time-average or for the maximum.
The authors' scripts give rates, which are far smaller; they give CA-Fed three times the product
eta eta_s of the others, so a last choice gives CA-Fed's to everybody.
"""

PUBLISHED_RATES = {
    "Unbiased": (0.03, 0.03),
    "F3AST": (0.03, 0.03),
    "AdaFed": (0.001, 1.0),
    "CA-Fed": (0.01, 0.3),
    "CA-Fed, F* known": (0.01, 0.3),
}
"""(eta, eta_s) of the authors' scripts, which run them with momentum 0.9."""

PAPER = {
    "Unbiased": (78.94, 75.32, 0.48),
    "F3AST": (78.97, 75.33, 0.40),
    "AdaFed": (78.69, 74.81, 0.59),
    "CA-Fed": (79.03, 76.22, 0.28),
}
"""Table I, synthetic: maximum, time-average and standard deviation of the test accuracy, in %."""

_N_CLIENTS = 24
_MORE_OR_LESS = 0.4
_CORRELATION = 0.9
_WEAK_SPREAD = 0.01
_RIDGE = 0.01
_FLIPPED = 0.2

Key = tuple[int, str]


class LogisticClients(Clients):
    """The Clients contract for a `LogisticProblem` in NumPy, handling all participants at once.

    A step draws a batch from the client's own samples with replacement, so that its gradient is
    unbiased and independent of other steps. CA-Fed (Section II) requires a random batch and does
    not say how it is drawn.

    Parameters
    ----------
    problem : LogisticProblem
    rng : numpy.random.Generator
        Generator of the batches.
    batch_size : int, optional
        B; by default all samples are used, and nothing is random.
    momentum : float
        Heavy-ball momentum of local SGD, in [0, 1), reset when a round begins.

    Raises
    ------
    ValueError
        If ``batch_size`` is below 1 or ``momentum`` out of range.
    """

    def __init__(
        self,
        problem: LogisticProblem,
        rng: np.random.Generator,
        batch_size: int | None = None,
        momentum: float = 0.0,
    ) -> None:
        if batch_size is not None:
            batch_size = validation.whole_number("batch_size", batch_size, at_least=1)
        validation.real_number("momentum", momentum, "in [0, 1)", lambda m: 0 <= m < 1)
        self._momentum = momentum
        self._problem = problem
        self._rng = rng
        self._batch_size = batch_size
        # The loss depends only on the sample times its sign.
        self._signed = problem.samples * problem.signs[:, None]

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        return self._problem.n_clients

    def local_sgd(
        self,
        x: FloatArray,
        who: Masks,
        *,
        steps: int,
        lr: float,
        correction: FloatArray | None = None,
        proximal: float = 0,
    ) -> FloatArray:
        """Return each client's change, (replicas, n_clients, dim), zero where absent."""
        rows, clients = np.nonzero(who)
        start = x[rows]
        y = start.copy()
        push = 0.0 if correction is None else correction[rows, clients]
        velocity = np.zeros_like(y)
        for _ in range(steps):
            velocity = self._momentum * velocity + self._gradients(y, clients) + push
            if proximal:
                velocity += proximal * (y - start)
            y -= lr * velocity
        change = np.zeros((*who.shape, x.shape[1]))
        change[rows, clients] = y - start
        return change

    def loss(self, x: FloatArray, who: Masks) -> FloatArray:
        """Return each client's loss on a batch at its replica's model, zero where absent.

        CA-Fed, Section IV-A: clients report the loss of one batch. The penalty is included.
        """
        if self._batch_size is None:
            return np.where(who, self._problem.client_losses(x), 0.0)
        rows, clients = np.nonzero(who)
        margins = np.einsum("tba,ta->tb", self._batches(clients, self._batch_size), x[rows])
        penalty = 0.5 * self._problem.ridge * np.square(x[rows]).sum(axis=1)
        losses = np.zeros(who.shape)
        losses[rows, clients] = np.logaddexp(0.0, -margins).mean(axis=1) + penalty
        return losses

    def server_gradient(self, x: FloatArray) -> FloatArray:
        """Return the exact gradient of F, as the server has no samples of its own."""
        return self._problem.gradient(x)

    def _gradients(self, y: FloatArray, clients: ClientIndices) -> FloatArray:
        from scipy.special import expit

        if self._batch_size is None:
            return self._problem.client_gradients(y, clients)
        batches = self._batches(clients, self._batch_size)
        margins = np.matmul(batches, y[:, :, None])
        pull = np.matmul(expit(-margins).swapaxes(1, 2), batches)[:, 0]
        return self._problem.ridge * y - pull / self._batch_size

    def _batches(self, clients: ClientIndices, batch_size: int) -> FloatArray:
        """Draw a batch for each row: signed samples, (rows, batch_size, dim)."""
        sizes, starts = self._problem.sizes[clients], self._problem.starts[clients]
        drawn = (self._rng.random((clients.size, batch_size)) * sizes[:, None]).astype(np.intp)
        return np.take(self._signed, drawn + starts[:, None], axis=0)


@dataclass(frozen=True)
class SyntheticPlan:
    """The plan of the runs for a seed: sizes, and the learning rates to choose from.

    A seed determines a data set and the clients' availability; the paper's three runs then differ
    in participants and batches. The grids are those of the paper.

    Parameters
    ----------
    rounds : int
        T.
    runs : int
        Number of runs over which a figure is averaged.
    dim : int
        d.
    train_size, test_size : int
        Number of samples of each client.
    local_steps : int
        E.
    batch_size : int
        B.
    start_spread : float
        Initial parameters are uniform within +- start_spread / sqrt(d); 1 is torch's default for a
        linear layer, and 0 starts at zero, from where even a short first step has the right
        direction.
    momentum : float
        Momentum of local SGD, reset when a round begins, and of the server; the paper has none, the
        authors' code 0.9.
    client_lrs, server_lrs : tuple of float
        The grids of eta and eta_s.

    Raises
    ------
    ValueError
        If a number is out of range, or a grid is empty.
    """

    rounds: int = 150
    _: KW_ONLY
    runs: int = 3
    dim: int = 10
    train_size: int = 150
    test_size: int = 500
    local_steps: int = 10
    batch_size: int = 32
    start_spread: float = 1.0
    momentum: float = 0.0
    client_lrs: tuple[float, ...] = tuple(10 ** (-e / 2) for e in (6, 5, 4, 3, 2))
    server_lrs: tuple[float, ...] = tuple(10 ** (-e / 2) for e in (4, 3, 2, 1, 0))

    def __post_init__(self) -> None:
        validation.whole_number("rounds", self.rounds, at_least=2)
        for name in ("runs", "dim", "train_size", "test_size", "local_steps", "batch_size"):
            validation.whole_number(name, getattr(self, name), at_least=1)
        validation.nonnegative("start_spread", self.start_spread)
        validation.real_number("momentum", self.momentum, "in [0, 1)", lambda m: 0 <= m < 1)
        for name in ("client_lrs", "server_lrs"):
            if not getattr(self, name):
                raise ValueError(f"{name} must hold at least one step size, got none")
            for rate in getattr(self, name):
                validation.positive(name, rate)


@dataclass(frozen=True, eq=False)
class DrawnData:
    """A data set and the clients' availability.

    Attributes
    ----------
    train, test : LogisticProblem
        The clients' losses, and their test samples.
    participation : MarkovOnOff
    best : float
        Test accuracy of the parameters that the labels are drawn from.
    """

    train: LogisticProblem
    test: LogisticProblem
    participation: MarkovOnOff
    best: float


@dataclass(frozen=True)
class Figures:
    """A row of Table I, in percent, averaged over runs.

    Attributes
    ----------
    maximum : float
        The highest test accuracy of a run.
    time_average : float
        Mean test accuracy over rounds 1 to T.
    logged_maximum, logged_average : float
        The same over the `logged_points` only, with equal weights.
    deviation : float
        Standard deviation of the test accuracy over the second half of the rounds.
    deviation_of_average : float
        The same for the time-average up to each round, which Figure 3 shows.
    kept_more, kept_less : float or None
        Share of rounds in which a client of the more or less available class is not excluded; None
        for methods that exclude nobody.
    """

    maximum: float
    time_average: float
    logged_maximum: float
    logged_average: float
    deviation: float
    deviation_of_average: float
    kept_more: float | None = None
    kept_less: float | None = None


@dataclass(frozen=True)
class MeasuredMethod:
    """The results of a method on a seed, for each way of choosing learning rates.

    Attributes
    ----------
    seed : int
    method : str
    best : float
        Test accuracy, in percent, of the parameters that generated the labels.
    rates : dict
        (client_lr, server_lr) by the name of the choice in `CHOICES`.
    figures : dict
        The results of fresh runs with these rates.
    """

    seed: int
    method: str
    best: float
    rates: dict[str, tuple[float, float]] = field(default_factory=dict)
    figures: dict[str, Figures] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """The key that identifies it among the results of a plan."""
        return self.seed, self.method


def instance(plan: SyntheticPlan, seed: int) -> DrawnData:
    """Draw the data of Appendix F and the availability of Section V-A.

    The first half of the clients is the group whose labels are drawn with probability sigmoid(<w*,
    x>), the other half the group whose labels are flipped with probability 0.2. In each group a
    random half is available with probability 1/2 + g, g = 0.4, the rest with 1/2 - g; of each such
    class a random half has lambda_k = nu = 0.9, the rest normal lambda_k with standard deviation
    epsilon = 0.01.
    """
    rng = np.random.default_rng([seed, 0])
    truth = rng.standard_normal(plan.dim)
    flipped = np.arange(_N_CLIENTS) >= _N_CLIENTS // 2
    train = _labelled(truth, flipped, plan.train_size, rng)
    test = _labelled(truth, flipped, plan.test_size, rng)
    more, correlated = np.empty(_N_CLIENTS, dtype=bool), np.empty(_N_CLIENTS, dtype=bool)
    classes = np.repeat([[True, True], [True, False], [False, True], [False, False]], 3, axis=0)
    for group in (flipped, ~flipped):
        more[group], correlated[group] = rng.permutation(classes).T
    weak = _WEAK_SPREAD * rng.standard_normal(_N_CLIENTS)
    participation = MarkovOnOff(
        np.where(more, 0.5 + _MORE_OR_LESS, 0.5 - _MORE_OR_LESS),
        np.where(correlated, _CORRELATION, weak),
    )
    return DrawnData(train, test, participation, float(test.accuracy(truth)))


def _labelled(
    truth: FloatArray, flipped: np.ndarray, size: int, rng: np.random.Generator
) -> LogisticProblem:
    from scipy.special import expit

    features = rng.standard_normal((flipped.size, size, truth.size))
    chance = expit(features @ truth)
    shown = np.where(flipped[:, None], (1 - _FLIPPED) * chance + _FLIPPED * (1 - chance), chance)
    return LogisticProblem(features, rng.random(shown.shape) < shown, ridge=_RIDGE)


def algorithm(
    method: str, plan: SyntheticPlan, drawn: DrawnData, client_lr: float, server_lr: float
) -> Algorithm:
    """Return a method of Table I with the oracle's knowledge of this instance.

    Raises
    ------
    ValueError
        If the method is not in `METHODS`.
    """
    alpha, pi = drawn.train.alpha, drawn.participation.availability
    steps = plan.local_steps
    if method == "Unbiased":
        return Unbiased(alpha, pi, client_lr, steps, server_lr=server_lr)
    if method == "AdaFed":
        return AdaFed(alpha, pi, client_lr, steps, server_lr=server_lr)
    if method == "F3AST":
        return F3ast(
            alpha,
            alpha.size // 2,
            client_lr,
            steps,
            server_lr=server_lr,
            smoothing=1 / plan.rounds,
            availability=pi,
        )
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    return CAFed(
        alpha,
        client_lr,
        steps,
        server_lr=server_lr,
        loss_smoothing=0.2,
        threshold=0.0,
        availability=pi,
        correlation=drawn.participation.correlation,
        known_minima=drawn.train.client_minima if method == "CA-Fed, F* known" else None,
    )


def run(plan: SyntheticPlan, drawn: DrawnData, chosen: Algorithm, seed: Sequence[int]) -> Figures:
    """Return the row of Table I that an algorithm reaches.

    The same ``seed`` gives all algorithms the same participants and the same start.
    """
    present, batches, start = (
        np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(3)
    )
    width = plan.start_spread / math.sqrt(plan.dim)
    states = simulate(
        ServerMomentum(chosen, plan.momentum),
        LogisticClients(drawn.train, batches, plan.batch_size, plan.momentum),
        drawn.participation,
        width * start.uniform(-1, 1, (plan.runs, plan.dim)),
        participation_rng=present,
        branch_rng=batches,
    )
    curves = np.empty((plan.rounds + 1, plan.runs))
    kept = []
    for done, (state, _) in enumerate(islice(states, plan.rounds + 1)):
        curves[done] = 100 * drawn.test.accuracy(state["x"])
        if done and "kept" in state:
            kept.append(100 * state["kept"].mean(axis=0))
    row = figures(curves)
    if not kept:
        return row
    more = drawn.participation.availability > 0.5
    share = np.mean(kept, axis=0)
    return replace(row, kept_more=float(share[more].mean()), kept_less=float(share[~more].mean()))


def logged_points(rounds: int) -> list[int]:
    """Return the numbers of rounds after which the authors' script evaluates the model.

    Before training, after rounds 2, 5, ..., 38, and after every tenth: for 150 rounds, 28 points,
    17 of which fall in the first 40 rounds. Its time-averages are unweighted means over these.

    Examples
    --------
    >>> logged_points(30)
    [0, 2, 5, 8, 10, 11, 14, 17, 20, 23, 26, 29, 30]
    >>> len(logged_points(150)), sum(point <= 40 for point in logged_points(150))
    (28, 17)
    """
    early = range(2, min(rounds, 40) + 1, 3)
    return sorted({0, *early, *range(10, rounds + 1, 10)})


def figures(curves: FloatArray) -> Figures:
    """Return Table I's figures for accuracies (rounds + 1, runs), averaged over runs.

    The first accuracies are those before training, which count only in the logged figures.
    """
    logged = curves[logged_points(len(curves) - 1)]
    curves = curves[1:]
    rounds = len(curves)
    running = np.cumsum(curves, axis=0) / np.arange(1, rounds + 1)[:, None]
    late = slice(rounds // 2, None)
    return Figures(
        float(curves.max(axis=0).mean()),
        float(curves.mean()),
        float(logged.max(axis=0).mean()),
        float(logged.mean()),
        float(curves[late].std(axis=0).mean()),
        float(running[late].std(axis=0).mean()),
    )


def keys(seeds: int) -> tuple[Key, ...]:
    """Return all pairs of a seed, from 0, and a method."""
    seeds = validation.whole_number("seeds", seeds, at_least=1)
    return tuple(product(range(seeds), METHODS))


def measure(key: Key, plan: SyntheticPlan) -> MeasuredMethod:
    """Choose learning rates for a method on a seed, and measure them in fresh runs."""
    seed, method = key
    drawn = instance(plan, seed)

    def row(rates: tuple[float, float], stream: int) -> Figures:
        return run(plan, drawn, algorithm(method, plan, drawn, *rates), [seed, stream])

    grid = list(product(plan.client_lrs, plan.server_lrs))
    tried = {rates: row(rates, 1) for rates in grid}
    chosen = {
        "time-average": max(grid, key=lambda rates: tried[rates].time_average),
        "maximum": max(grid, key=lambda rates: tried[rates].maximum),
        "published": PUBLISHED_RATES[method],
        "all as CA-Fed": PUBLISHED_RATES["CA-Fed"],
    }
    reached = {rates: row(rates, 2) for rates in set(chosen.values())}
    return MeasuredMethod(
        seed,
        method,
        100 * drawn.best,
        chosen,
        {choice: reached[rates] for choice, rates in chosen.items()},
    )


_HEADINGS = (
    "method",
    "maximum",
    "paper",
    "time-average",
    "of logged points",
    "paper",
    "deviation",
    "paper",
    "of running average",
    "time-average above Unbiased's",
    "of logged points",
    "kept: more, less available",
    "eta, eta_s most often",
)
# The compared figures, here and in the paper, which has no column for the logged average.
_COLUMNS = (("maximum", 0), ("time_average", None), ("logged_average", 1), ("deviation", 2))
_AVERAGES = ("time_average", "logged_average")
_TITLES = {
    "time-average": "Learning rates tuned on the paper's grid for the highest time-average",
    "maximum": "Learning rates tuned on the paper's grid for the highest maximum",
    "published": "Learning rates of the authors' scripts",
    "all as CA-Fed": "The scripts' learning rates for CA-Fed, given to every method",
}
_SHORT = {
    "time-average": "tuned for the time-average",
    "maximum": "tuned for the maximum",
    "published": "with the scripts' rates",
    "all as CA-Fed": "with CA-Fed's rates",
}


def experiment_tables(results: Sequence[MeasuredMethod]) -> list[Table]:
    """Return one table for each choice of learning rates, with one row per method."""
    tables = []
    for choice in CHOICES:
        table = Table(title=_TITLES[choice], title_justify="left", expand=False)
        for heading in _HEADINGS:
            table.add_column(heading, justify="left" if heading == "method" else "right")
        for row in _rows(results, choice):
            table.add_row(*row)
        tables.append(table)
    return tables


def experiment_summary(results: Sequence[MeasuredMethod], plan: SyntheticPlan) -> str:
    """Return a summary of the tables in a few lines."""
    seeds = {result.seed for result in results}
    best = np.mean([result.best for result in results])
    return (
        f"There are {len(seeds)} seeds; each has its own data set and {plan.runs} runs of "
        f"{plan.rounds} rounds. The tables show test\naccuracy in percent, as means over seeds +- "
        f"standard errors. The true parameters, from which the\nlabels were drawn, reach "
        f"{best:.2f}. The column 'deviation' has the standard deviation over the second\nhalf of "
        "the rounds; the column 'of running average' has that of the running average, which\n"
        "Figure 3 of the paper shows. The paper's figures are averages of three runs on one data "
        "set."
    )


def experiment_page(results: Sequence[MeasuredMethod], plan: SyntheticPlan, command: str) -> str:
    """Return the tables in Markdown, with the command that made them."""
    return "\n".join(_lines(results, plan, command)) + "\n"


def _lines(results: Sequence[MeasuredMethod], plan: SyntheticPlan, command: str) -> Iterator[str]:
    with_momentum = f", with momentum {plan.momentum:g}" if plan.momentum else ""
    yield f"# CA-Fed's experiment on synthetic data, run again{with_momentum}"
    yield ""
    yield f"Made by `{command}`; do not edit."
    yield ""
    yield experiment_summary(results, plan)
    yield ""
    yield _WHAT_DIFFERS.format(
        dim=plan.dim,
        steps=plan.local_steps,
        batch=plan.batch_size,
        train=plan.train_size,
        test=plan.test_size,
        spread=plan.start_spread,
        momentum=plan.momentum,
    )
    yield ""
    yield "## What the tables say"
    yield ""
    yield from _remarks(results)
    for choice in CHOICES:
        yield ""
        yield f"## {_TITLES[choice]}"
        yield ""
        yield "| " + " | ".join(_HEADINGS) + " |"
        yield "|---" * len(_HEADINGS) + "|"
        for row in _rows(results, choice):
            yield "| " + " | ".join(row) + " |"


_WHAT_DIFFERS = """\
Availability and labels are those of Section V-A and Appendix F: 24 clients in two groups, g = 0.4,
nu = 0.9, epsilon = 0.01, ridge 0.01. CA-Fed has tau = 0 and beta = 0.2. Every method knows pi, and
CA-Fed also knows lambda. These points are not in the paper, or differ between the paper and its
authors' code:

- The dimension, {dim}, the batch size, {batch}, and the number of rounds are those of the authors'
  scripts. Every client has {train} training and {test} test samples, the defaults of the authors'
  data program. It takes {steps} local steps, which are two passes over 150 samples. The scripts
  use 50 and 150 samples, with which two passes are 4 steps.
- Section V-A splits the more available clients into correlated and weakly correlated ones, and the
  less available clients as well. So do we. In the code's matrix of joint classes, half of all
  clients are more available and weakly correlated, a quarter are less available and correlated,
  and a quarter are less available and weakly correlated. So **the code's more available clients
  are never correlated**. In the code, the lambda_k of weakly correlated clients are normal with
  mean 0.005 and standard deviation 0.005. In the paper, and here, they have mean 0 and standard
  deviation 0.01.
- Initial models are uniform within +-{spread:g}/sqrt(d); a factor of 1 is torch's default.
- Clients and server have momentum {momentum:g}. The paper mentions no momentum; the code has 0.9.
  In the code the server's step also decays the weights, which we leave out.
- Clients report their loss on a batch of their training samples, as in the paper. The code
  evaluates all clients, including absent ones, on test samples.
- F* is the smallest smoothed loss so far, as in the paper. The code fits each client's data before
  training. The row "CA-Fed, F* known" uses the exact minima of the clients' losses.
- F3AST and AdaFed have the form of the published code, because the paper does not define them.
- Every seed draws new data and availability, and all methods of a seed see the same participants.
  Rates are tuned on participants and batches that differ from those of the measurements."""


def _remarks(results: Sequence[MeasuredMethod]) -> Iterator[str]:
    """Yield the paper's claims, each with the corresponding number here."""
    yield from _on_averages(results)
    kept, alike = (
        _kept([r.figures["time-average"] for r in results if r.method == method])
        for method in ("CA-Fed", "CA-Fed, F* known")
    )
    each = kept.replace(", ", " of the rounds and the less available clients in ")
    yield (
        f"- CA-Fed keeps the more available clients in {each} of them, if it is tuned for the "
        "time-average. But the paper says that excluded clients tend to be less available or "
        "correlated, and that more available clients are favoured."
    )
    yield (
        "- One reason is that F_hat^* is the minimum of a client's own reports. A client that "
        "reports often has a lower minimum, hence a larger gap, and is excluded; a client that "
        "rarely reports has a small gap. If F* is known, the more and the less available clients "
        f"are kept in {alike.replace(', ', ' and ')} of the rounds."
    )


def _on_averages(results: Sequence[MeasuredMethod]) -> Iterator[str]:
    """Yield the results that depend on the averaged rounds: leads and gaps for both averages."""
    yield (
        "- **Which rounds are averaged.** The authors' script evaluates the model before training, "
        "after rounds 2, 5, ..., 38 and after every tenth round. These are 28 points in 150 "
        "rounds, 17 of which fall in the first 40. Its time-averages weight these points equally, "
        "so early rounds count for more than their share. We show both averages: over all rounds, "
        "and over the logged points. The paper's figures compare with the average over the logged "
        "points."
    )
    leads = {
        average: {
            choice: _mean(_gain(results, "CA-Fed", choice, average), sign="+") for choice in CHOICES
        }
        for average in _AVERAGES
    }
    for gain, words in zip(
        leads.values(), ("over all rounds", "over the logged points"), strict=True
    ):
        yield (
            f"- **CA-Fed's time-average minus Unbiased's, {words}**: "
            f"{gain['time-average']} if every method is tuned for the time-average, "
            f"{gain['maximum']} if tuned for the maximum, {gain['published']} with the scripts' "
            f"rates, and {gain['all as CA-Fed']} with CA-Fed's rates for both. The paper has +0.90."
            " With the scripts' rates, CA-Fed's product eta eta_s is more than three times that of "
            "Unbiased."
        )
    gaps = {
        (choice, average): _mean(_gap(results, choice, average))
        for choice in CHOICES
        for average in _AVERAGES
    }
    shown = "; ".join(
        f"{_SHORT[choice]}, {gaps[choice, 'time_average']} over all rounds and "
        f"{gaps[choice, 'logged_average']} over the logged points"
        for choice in CHOICES
    )
    yield (f"- **Unbiased's maximum minus its time-average**: {shown}. The paper has 3.62.")
    gain = leads["logged_average"]
    yield (
        "- **What is explained, and what is not.** With the scripts' rates and the logged points, "
        f"Unbiased's maximum exceeds its time-average by {gaps['published', 'logged_average']}, "
        f"where the paper has 3.62. CA-Fed's gain over Unbiased is {gain['published']}, where the "
        "paper has +0.90. With CA-Fed's rates for both methods, the gain is "
        f"{gain['all as CA-Fed']}. So CA-Fed gains from its rates, not from its weights. We cannot "
        "explain the rest of the difference from the paper, whose figures are means of three runs "
        "on one data set, with other joint classes and fewer samples."
    )


def _gap(results: Sequence[MeasuredMethod], choice: str, average: str) -> FloatArray:
    """Return Unbiased's maximum less its average over the same rounds, for each seed."""
    highest = "maximum" if average == "time_average" else "logged_maximum"
    rows = [r.figures[choice] for r in results if r.method == "Unbiased"]
    return np.array([getattr(row, highest) - getattr(row, average) for row in rows])


def _gain(results: Sequence[MeasuredMethod], method: str, choice: str, average: str) -> FloatArray:
    """Return a method's average less Unbiased's, for each seed with both."""
    base = {r.seed: getattr(r.figures[choice], average) for r in results if r.method == "Unbiased"}
    return np.array(
        [
            getattr(r.figures[choice], average) - base[r.seed]
            for r in sorted(results, key=lambda r: r.seed)
            if r.method == method and r.seed in base
        ]
    )


def _rows(results: Sequence[MeasuredMethod], choice: str) -> Iterator[list[str]]:
    ours = {
        method: {result.seed: result for result in results if result.method == method}
        for method in METHODS
    }
    for method, by_seed in ours.items():
        if not by_seed:
            continue
        paper = PAPER.get(method)
        row = [method]
        for column, place in _COLUMNS:
            row.append(_mean(_values(list(by_seed.values()), choice, column)))
            if place is not None:
                row.append("" if paper is None else f"{paper[place]:.2f}")
        row.append(_mean(_values(list(by_seed.values()), choice, "deviation_of_average")))
        for average in _AVERAGES:
            gain = _gain(results, method, choice, average)
            row.append("" if method == "Unbiased" or not gain.size else _mean(gain, sign="+"))
        row.append(_kept([result.figures[choice] for result in by_seed.values()]))
        row.append(_commonest([result.rates[choice] for result in by_seed.values()]))
        yield row


def _values(results: Sequence[MeasuredMethod], choice: str, column: str) -> FloatArray:
    return np.array([getattr(result.figures[choice], column) for result in results])


def _mean(values: FloatArray, sign: str = "") -> str:
    if values.size == 0:
        return "not measured"
    if values.size == 1:
        return f"{values[0]:{sign}.2f}"
    error = values.std(ddof=1) / math.sqrt(values.size)
    return f"{values.mean():{sign}.2f} +- {error:.2f}"


def _kept(rows: Sequence[Figures]) -> str:
    more = [row.kept_more for row in rows if row.kept_more is not None]
    less = [row.kept_less for row in rows if row.kept_less is not None]
    return f"{np.mean(more):.0f}%, {np.mean(less):.0f}%" if more else ""


def _commonest(rates: Sequence[tuple[float, float]]) -> str:
    client_lr, server_lr = max(sorted(set(rates)), key=rates.count)
    return f"{client_lr:.2g}, {server_lr:.2g}"


def _plan(entry: dict[str, object]) -> SyntheticPlan:
    return SyntheticPlan(
        **{name: tuple(part) if isinstance(part, list) else part for name, part in entry.items()}  # type: ignore[arg-type]
    )


def _measured(entry: dict[str, dict[str, dict[str, float]]]) -> MeasuredMethod:
    rates = {choice: tuple(pair) for choice, pair in entry["rates"].items()}
    figures = {choice: Figures(**row) for choice, row in entry["figures"].items()}
    return MeasuredMethod(**{**entry, "rates": rates, "figures": figures})  # type: ignore[arg-type]


MEASURED = ResultFile("measured", "rows", "experiment", _plan, _measured)
"""The file that a long measurement goes on from."""


def command(
    seeds: Annotated[int, typer.Option(help="Data sets to run it on.")] = 10,
    rounds: Annotated[int, typer.Option(help="Rounds of a run.")] = 150,
    start_spread: Annotated[
        float, typer.Option(help="Start within so much / sqrt(dim): 1 as torch, 0 at zero.")
    ] = 1.0,
    momentum: Annotated[
        float, typer.Option(help="Of clients and server: 0 in the paper, 0.9 in its code.")
    ] = 0.0,
    out: ResultsFile = Path("out/ca-fed.json"),
    page: FurtherPage = None,
) -> None:
    """CA-Fed's Table I on synthetic data, beside the paper's figures."""
    plan = SyntheticPlan(rounds, start_spread=start_spread, momentum=momentum)
    results = MEASURED.resumed(
        measure,
        keys(seeds),
        plan,
        out,
        begins="running",
        about=lambda result: f"{result.method}, seed {result.seed}",
    )
    for table in experiment_tables(results):
        table_console().print(table)
    print(experiment_summary(results, plan))
    tell_written(out)
    if page is not None:
        made_by = (
            f"python docs/scripts/ca_fed.py --seeds {seeds} --rounds {rounds} "
            f"--start-spread {start_spread:g} --momentum {momentum:g} --out {out} --page {page}"
        )
        write_whole(page, experiment_page(results, plan, made_by))
        tell_written(page)


if __name__ == "__main__":
    run_script(command)
