"""The clients of a log as a population for running algorithms: groups, targets, curvatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fltheory.advice.orthogonal_clients import OrthogonalClients
from fltheory.logs import AvailabilityLog
from fltheory.logs.description import BATCHES, batch_edges
from fltheory.logs.transitions import fit_on_off
from fltheory.participation.base import Masks
from fltheory.participation.markov_on_off import MarkovOnOff
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import ClientIndices, FloatArray
from fltheory.weights.client_weights import Training

MOST_GROUPS = 200
_MOST_ENTRIES = 2**18
_MOST_ROUNDS = 8192


@dataclass(frozen=True, eq=False)
class Distances(ReadOnlyArrays):
    """Distances between weighted means of optima and the target mean, over all possible optima.

    With weights w the model is at ``sum_k w_k c_k``, and the optimum is ``sum_k t_k c_k``. Optima
    are at a distance ``radius`` from their centre.

    Attributes
    ----------
    targets : array, (G,)
        t, with sum one.
    spread : array, (G,)
        ``||c_k||^2`` relative to ``radius^2``: 1 for a client, 1/n for the mean of a group of n.
    radius : float
    """

    targets: FloatArray
    spread: FloatArray
    radius: float

    def unrelated(self, weights: FloatArray) -> float:
        """Return the root mean square over optima in independent directions."""
        return self.radius * float(np.sqrt(self.squares(weights).sum()))

    def squares(self, off: FloatArray) -> FloatArray:
        """Return ``spread (w - t)^2``."""
        return np.asarray(self.spread * (off - self.targets) ** 2)

    def at_worst(self, weights: FloatArray) -> float:
        """Return the largest distance over all optima."""
        return float(self.parts(weights).sum())

    def parts(self, weights: FloatArray) -> FloatArray:
        """Return each client's contribution to the largest distance, (G,).

        This distance is the maximum of ``sum_k (w_k - t_k) y_k`` over ``|y_k| <= radius`` with
        ``sum_k t_k y_k = 0``: by duality, the minimum of ``radius sum_k |w_k - lambda t_k|``.
        """
        ratio = weights / self.targets
        return np.asarray(
            self.radius * self.targets * np.abs(ratio - ratio[self._in_order(ratio)[1]])
        )

    def farthest(self, weights: FloatArray) -> FloatArray:
        """Return optima on a line, (G,), for which the distance is largest, `at_worst`."""
        order, median = self._in_order(weights / self.targets)
        optima = np.full(order.size, -1.0)
        optima[order[np.flatnonzero(order == median)[0] :]] = 1.0
        # The target mean of the optima must be 0, so the middle optimum compensates for the others.
        optima[median] = 0
        optima[median] = -float(self.targets @ optima) / self.targets[median]
        return self.radius * optima

    def _in_order(self, ratio: FloatArray) -> tuple[ClientIndices, int]:
        """Return the order of ``w/t``, and the index of its median under t."""
        order = np.argsort(ratio, kind="stable")
        half = np.searchsorted(np.cumsum(self.targets[order]), self.targets.sum() / 2)
        return order, int(order[min(int(half), order.size - 1)])


@dataclass(frozen=True, eq=False)
class ClientPopulation(ReadOnlyArrays):
    """Quadratic clients that come and go as in a log.

    Parameters
    ----------
    log : AvailabilityLog
    importance : array, (N,)
        alpha, positive with sum one.
    curvatures : array, (N,)
        Curvatures of the clients' losses, in units of L.
    training : Training
        Gives noise, dissimilarity and local steps.
    most_groups : int
    weighted : bool
        Whether each client's loss is multiplied by N alpha, for algorithms that weight clients
        equally (Li et al., ICLR 2020, Section 3.3).
    period : float, optional
        Rounds of a cycle; batches consist of whole cycles.
    drifts : bool
        Whether availability drifts; only the last quarter of the record then counts.

    Notes
    -----
    Rounds are computed with at most ``most_groups`` groups of clients. Clients seen at least once
    are sorted by availability and divided into groups of nearly equal size, and each group is
    represented by its middle client, with the weight of the whole group. Limits in closed form are
    those of all clients.
    """

    log: AvailabilityLog
    importance: FloatArray
    curvatures: FloatArray
    training: Training
    most_groups: int = MOST_GROUPS
    weighted: bool = False
    period: float | None = None
    drifts: bool = False

    @cached_property
    def ever(self) -> ClientIndices:
        """Clients seen at least once."""
        return np.flatnonzero(self.log.rounds_present)

    @cached_property
    def never(self) -> ClientIndices:
        """Clients never seen."""
        return np.flatnonzero(self.log.rounds_present == 0)

    @property
    def radius(self) -> float:
        """Distance of optima from the centre, at which ``F_k(w*) - F_k*`` is at most Gamma."""
        return float(np.sqrt(2 * self.training.dissimilarity))

    @cached_property
    def curvature(self) -> float:
        """Curvature of F."""
        return float(self.importance @ self.curvatures)

    @cached_property
    def distances(self) -> Distances:
        """Distances for means of all clients' optima."""
        targets = self.importance * self.curvatures / self.curvature
        return Distances(targets, np.ones(targets.size), self.radius)

    @cached_property
    def chains(self) -> MarkovOnOff:
        """The process fitted to the log, with a chain for each client seen at least once."""
        fitted = fit_on_off(self.log)
        return MarkovOnOff(fitted.availability[self.ever], fitted.correlation[self.ever])

    def among_all(self, of_those_ever_there: FloatArray) -> FloatArray:
        """Return weights (N,) proportional to the pulls of the clients seen at least once."""
        weights = np.zeros(self.log.n_clients)
        weights[self.ever] = of_those_ever_there / of_those_ever_there.sum()
        return weights

    @cached_property
    def emphasis(self) -> FloatArray:
        """Factors of mean one on the losses of the clients seen at least once."""
        importance = self.importance[self.ever]
        return importance / importance.mean() if self.weighted else np.ones(importance.size)

    def moves(self, steps: int, lr: float) -> FloatArray:
        """Return the fraction of the way that each client seen at least once moves."""
        return np.asarray(1 - (1 - lr * self.emphasis * self.curvatures[self.ever]) ** steps)

    def group_moves(self, steps: int, lr: float) -> FloatArray:
        """Return the fraction of the way that each group moves."""
        return np.asarray(1 - (1 - lr * self._group_emphasis * self._group_curvatures) ** steps)

    @property
    def _group_curvatures(self) -> FloatArray:
        return self.curvatures[self.ever[self.shown]]

    @property
    def _group_emphasis(self) -> FloatArray:
        return np.array([self.emphasis[part].mean() for part in self.groups])

    @cached_property
    def groups(self) -> list[ClientIndices]:
        """Members of each group, as indices among the clients seen at least once."""
        order = np.argsort(self.chains.availability, kind="stable")
        # Algorithms without sizes weight groups equally, so groups must have nearly equal sizes.
        # For example, 201 clients form 101 groups of one or two, not 199 groups of one and one
        # pair.
        size = -(-order.size // self.most_groups)
        return [np.sort(part) for part in np.array_split(order, -(-order.size // size))]

    @cached_property
    def shown(self) -> ClientIndices:
        """The index of each group's representative."""
        rank = np.argsort(np.argsort(self.chains.availability, kind="stable"))
        return np.array([part[np.argsort(rank[part])[part.size // 2]] for part in self.groups])

    @cached_property
    def group_chains(self) -> MarkovOnOff:
        """The chains of the groups' representatives."""
        chains = self.chains
        return MarkovOnOff(chains.availability[self.shown], chains.correlation[self.shown])

    @cached_property
    def group_distances(self) -> Distances:
        """Distances for means of the groups' optima; clients never seen form the last group."""
        members = [self.ever[part] for part in self.groups]
        members += [self.never] if self.never.size else []
        targets = np.array([self.distances.targets[part].sum() for part in members])
        squares = np.array([(self.distances.targets[part] ** 2).sum() for part in members])
        return Distances(targets, squares / targets**2, self.radius)

    @cached_property
    def recorded(self) -> Masks:
        """The record of the representatives, limited to the number of rounds that can be computed.

        A limited record consists of stretches from beginning to end, one per batch, so that rare
        clients and drifts show.
        """
        shown, rounds = self.ever[self.shown], self.log.n_rounds
        most = min(_MOST_ROUNDS, _MOST_ENTRIES // self.shown.size)
        if rounds <= most:
            return self.log.present(clients=shown)
        length = most // BATCHES
        ends = np.linspace(length, rounds, BATCHES).astype(int)
        return np.concatenate([self.log.present(end - length, end, shown) for end in ends])

    @cached_property
    def batches(self) -> Sequence[int]:
        """Edges of the batches of the rounds that count: all rounds, or the last quarter."""
        rounds = len(self.recorded)
        first = rounds - max(2, rounds // 4) if self.drifts else 0
        whole = self.period if rounds == self.log.n_rounds else None
        return (first + batch_edges(rounds - first, whole)).tolist()

    @property
    def thinning(self) -> float:
        """Number of groups per client seen at least once, the factor on gradient noise."""
        return self.shown.size / self.ever.size

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """Facts that algorithms may use about all clients seen at least once."""
        importance = self.importance[self.ever]
        return _facts(importance, self.chains)

    @cached_property
    def group_facts(self) -> Mapping[str, Any]:
        """Facts that algorithms may use about the groups."""
        importance = np.array([self.importance[self.ever[part]].sum() for part in self.groups])
        return _facts(importance, self.group_chains)

    def clients(self, seed: int) -> OrthogonalClients:
        """Return the groups as clients with orthogonal optima."""
        return OrthogonalClients(
            self._group_curvatures,
            self.group_distances.targets,
            self.group_distances.spread,
            curvature=self.curvature,
            radius=self.radius,
            noise=self.training.noise,
            emphasis=self._group_emphasis,
            rng=np.random.default_rng(seed),
        )


def _facts(importance: FloatArray, chains: MarkovOnOff) -> Mapping[str, Any]:
    return {
        "target_weights": importance / importance.sum(),
        "availability": chains.availability,
        "correlation": chains.correlation,
    }
