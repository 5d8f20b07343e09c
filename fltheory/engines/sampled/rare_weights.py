"""Bounds on the contribution of runs with rare large weights to an expectation.

If a weight grows with a client's absences, the largest distance that any run can reach is useless
as a bound, because the runs that reach it are extremely rare. How rare they are is known if clients
follow independent chains and a client's weight depends only on its own presence (`CountedWeights`).
In the notation of `reach`, let the shares ``beta_i >= 0`` sum to one. A round then enlarges
distances by at most

``max(1 - sum_i w_i theta_i, sum_i w_i lambda_i - 1) <= prod_i f_i(w_i)``,
``f_i(w) = 1 + w max(-theta_i, 0) + max(lambda_i w - 2 beta_i, 0)``.

So ``||x - x*|| <= prod_i G_i (||x_0 - x*|| + sum_i S_i)``. Here G_i is the product of client i's
f_i over the rounds in which it is present, and S_i is the sum of ``w_i`` times the distance by
which its push and its noise move the model. The noise counts twice, for its mean and for its
spread. If v is the norm of a run's noise, then ``E v^2 <= (E v)^2 + l^2``, and both E v and l are
at most the sum of the clients' shares. Because clients are independent, the expectation of the
square follows from those of G_i^2, G_i^2 S_i and G_i^2 S_i^2. These are computed along one client's
histories, and histories with equal counts are merged.

A run is *typical* while ``lambda_i w_i <= 2 beta_i`` for all clients; a typical run cannot get far.
The contribution of the other runs is the expectation over all runs minus that over the typical
ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from fltheory.algorithms import AveragedIterate
from fltheory.algorithms.contract import Algorithm, State, in_round
from fltheory.algorithms.shared.update_bounds import BoundedUpdates, CountedWeights, UpdateBounds
from fltheory.content import cached_by_content
from fltheory.engines.clients.pulls import Pulls
from fltheory.engines.guard import guarded
from fltheory.engines.sampled.reach import Reach, followed, speaks_of_its_round
from fltheory.engines.setting import Setting
from fltheory.participation.process import ClientChains, process_of
from fltheory.problems.base import HasGradientSplit
from fltheory.validation import FloatArray

# Limit on histories times clients, summed over all rounds, which takes a second or two.
_MOST = 1 << 22
# Relative rounding error of sums of positive numbers over rounds, clients and histories.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class RareWeights:
    """A bound on typical runs, and the contribution of all other runs.

    Attributes
    ----------
    typical : Reach
        Bound on runs in which no weight has been large so far.
    start : float
        ``||x_0 - x*||``.
    squares : array, (rounds + 1, 2, 3, N)
        ``E G_i^2 S_i^k`` for k = 0, 1, 2, over all runs and over typical runs.
    """

    typical: Reach
    start: float
    squares: FloatArray

    def added(self, slope: float, level: float) -> FloatArray:
        """Bound ``E[(slope ||x_r - x*|| + level)^2 1{not typical}]`` for every round r."""
        constant = slope * self.start + level
        with np.errstate(all="ignore"):
            chance, once, twice = np.moveaxis(self.squares, 2, 0)
            each = np.where(chance > 0, once / chance, 0.0)
            spread = np.where(chance > 0, twice / chance, 0.0) - each**2
            mean = constant + slope * each.sum(axis=2)
            every = chance.prod(axis=2) * (mean**2 + slope**2 * spread.sum(axis=2))
            rare = every[:, 0] * (1 + _ROUNDING) - every[:, 1] * (1 - _ROUNDING)
        return np.nan_to_num(np.maximum(rare, 0.0), nan=np.inf, posinf=np.inf)


@cached_by_content(32)
@np.errstate(over="ignore", invalid="ignore")
def rare_weights(setting: Setting) -> RareWeights | None:
    """Return the contribution of runs with large weights, or None if it is unknown.

    Examples
    --------
    >>> from fltheory.algorithms import FedAU
    >>> from fltheory.participation import Bernoulli
    >>> from fltheory.problems import QuadraticProblem
    >>> problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    >>> setting = Setting(FedAU(0.1, 1), problem, Bernoulli([0.5, 0.6]), 30, [3.0])
    >>> found = rare_weights(setting)
    >>> bool(found.added(1.0, 0.0)[-1] < 1e-3)
    True
    """
    algorithm, problem = setting.algorithm, setting.problem
    chains = process_of(setting.participation).client_chains
    if isinstance(algorithm, AveragedIterate):
        algorithm = algorithm.algorithm
    if not isinstance(problem, HasGradientSplit) or chains is None:
        return None
    if not np.isfinite(problem.gradient_split.rest) or guarded(setting).draws_from:
        return None
    pulls_of = cache(partial(Pulls.of, problem.gradient_split))
    squares, now, shares = [], None, np.ones(0)
    for r in range(1, setting.rounds + 1):
        of_round = in_round(algorithm, r)
        bounds = _of_fresh_updates(of_round, problem.n_clients, r)
        if bounds is None or not isinstance(of_round, CountedWeights):
            return None
        pulls = pulls_of(bounds.steps, bounds.lr)
        if now is None:
            shares = _shares(pulls, setting.participation.marginals, setting.rounds)
            now = _Clients.before_the_first(of_round, chains)
            squares.append(now.squares)
        if len(now.held) * problem.n_clients > _MOST // setting.rounds:
            return None
        now = now.after(of_round, pulls, shares, problem.sigma)
        squares.append(now.squares)
    start = float(np.linalg.norm(setting.x0 - problem.x_star))
    far = followed(algorithm, problem, problem.gradient_split, start, setting.rounds, shares)
    return RareWeights(far, start, np.array(squares))


def _of_fresh_updates(of_round: Algorithm, n_clients: int, index: int) -> UpdateBounds | None:
    """Return the bounds of a round with one branch that adds fresh updates, otherwise None."""
    if not isinstance(of_round, BoundedUpdates) or not speaks_of_its_round(type(of_round)):
        return None
    bounds, *others = of_round.update_bounds(n_clients, index).values()
    other = others or bounds.stale or bounds.corrected or bounds.by_server
    return None if other else bounds


def _shares(pulls: Pulls, marginals: FloatArray, rounds: int) -> FloatArray:
    """Return the shares beta, in proportion to clients' usual effects; any choice is valid."""
    usual = np.maximum(pulls.largest, 0.0) / np.maximum(marginals, 1 / rounds)
    total = float(usual.sum())
    return usual / total if total > 0 else np.full(usual.shape, 1 / usual.size)


@dataclass(frozen=True, eq=False)
class _Clients:
    """Every client on all of its own histories, of which those with equal counts are merged.

    Attributes
    ----------
    counts : mapping of str to array, (H, 1)
        Counts of each history, the same for all clients.
    held : array, (H, 2, 2, 3, N)
        Each history's part of ``E G_i^2 S_i^k``. The second axis says whether the client was
        present in the last round, and the others are as in `RareWeights.squares`.
    going, coming : arrays, (2, N)
        Probabilities of being absent and of being present in the next round, for clients who were
        absent (row 0) and present (row 1).
    """

    chains: ClientChains
    counts: State
    held: FloatArray
    going: FloatArray
    coming: FloatArray

    @classmethod
    def before_the_first(cls, algorithm: Algorithm, chains: ClientChains) -> _Clients:
        counts = {n: a for n, a in algorithm.init(np.zeros((1, 1)), 1).items() if n != "x"}
        held = np.zeros((1, 2, 2, 3, chains.first.size))
        held[:, 0, :, 0] = 1.0
        return cls(chains, counts, held, *(np.stack([p, p]) for p in (chains.absent, chains.first)))

    @property
    def squares(self) -> FloatArray:
        """(2, 3, N) sums over all histories."""
        return np.asarray(self.held.sum(axis=(0, 1)))

    def after(
        self, algorithm: CountedWeights, pulls: Pulls, shares: FloatArray, sigma: float
    ) -> _Clients:
        """Return the clients after one more round."""
        n = self.chains.first.size
        weights = np.broadcast_to(algorithm.weights_if_present(self.counts, n), (len(self.held), n))
        excess = pulls.largest * weights - 2 * shares
        growth = 1 + weights * np.maximum(-pulls.least, 0.0) + np.maximum(excess, 0.0)
        step = weights * (pulls.push + 2 * sigma * pulls.noise)
        here = self._moved(self.coming)
        chance, once, twice = np.moveaxis(here, 2, 0)
        twice += 2 * step[:, None] * once
        twice += step[:, None] ** 2 * chance
        once += step[:, None] * chance
        here *= growth[:, None, None] ** 2
        # Weights within the shares certainly count as typical, including the limit itself.
        here[:, 1] *= (excess <= 0)[:, None]
        away = self._moved(self.going)
        made = [
            algorithm.counted(self.counts, np.full((len(self.held), 1), present))
            for present in (True, False)
        ]
        names = list(self.counts)
        rows = np.concatenate([np.hstack([counts[name] for name in names]) for counts in made])
        order = np.lexsort(rows.T)
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        rows = rows[order]
        first = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]).any(axis=1)))
        split = np.zeros((order.size, *self.held.shape[1:]))
        split[place[: len(here)], 1], split[place[len(here) :], 0] = here, away
        held = np.add.reduceat(split, first)
        kept = rows[first]
        counts = {name: kept[:, [column]] for column, name in enumerate(names)}
        going = np.stack([self.chains.lacks, self.chains.leaves])
        coming = np.stack([self.chains.comes, self.chains.stays])
        return _Clients(self.chains, counts, held, going, coming)

    def _moved(self, chances: FloatArray) -> FloatArray:
        """Return the sum of both states of the last round, times the probabilities (2, N)."""
        return np.asarray(self.held[:, 0] * chances[0] + self.held[:, 1] * chances[1])
