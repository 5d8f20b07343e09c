"""Direct simulation of SA-FL on thresholds: the server's data, the clients', and both together.

Nothing is assumed of the two populations: their targets may differ, and the best threshold of the
mixture may be bad for P. So this is where Theorem 3's conditions are evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fltheory import validation
from fltheory.learnability.populations.population import Population, excess_at, mixture
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_LARGEST_BATCH = 1 << 20


@dataclass(frozen=True)
class ServerAssisted(ReadOnlyArrays):
    """What SA-FL and the server alone arrive at, one entry per replica.

    Attributes
    ----------
    together : array, (replicas,)
        Excess error on P of the worst empirical minimiser over the server's and clients' samples.
    server_only : array, (replicas,)
        The same over the server's samples.
    no_worse_on_server : array of bool, (replicas,)
        Whether the former has at most as many errors on the server's samples as h_Q*: the first
        condition of Theorem 3.
    """

    together: FloatArray
    server_only: FloatArray
    no_worse_on_server: NDArray[np.bool_]


def sample_server_assisted(
    server: Population,
    clients: Population,
    n_server: int,
    n_clients: int,
    replicas: int,
    rng: np.random.Generator,
    *,
    target: Population | None = None,
) -> ServerAssisted:
    """Draw the server's samples from P, or P', and the clients' from D, so many times.

    Parameters
    ----------
    server, clients : Population
        P and D.
    n_server, n_clients : int
        n_T and n_S.
    replicas : int
    rng : numpy Generator
    target : Population, optional
        P, on which errors count, if the server's samples come from another P'.

    Raises
    ------
    ValueError
        For sources of P with different targets, or counts below 1.
    """
    judge = server if target is None else target
    if len(judge.targets) > 1:
        raise ValueError("target must have one target of all its sources")
    for name, count in (("n_server", n_server), ("n_clients", n_clients), ("replicas", replicas)):
        validation.whole_number(name, count, at_least=1)
    best = float(best_together(server, clients, n_server, n_clients))
    batch = max(1, _LARGEST_BATCH // (n_server + n_clients))
    parts = []
    for start in range(0, replicas, batch):
        size = min(batch, replicas - start)
        points, labels = draw(server, (size, n_server), rng)
        others, other_labels = draw(clients, (size, n_clients), rng)
        chosen = worst_minimiser(
            judge,
            np.concatenate((points, others), axis=1),
            np.concatenate((labels, other_labels), axis=1),
        )
        alone = worst_minimiser(judge, points, labels)
        errors = [_errors(points, labels, place) for place in (chosen.inside, best)]
        parts.append((chosen.excess, alone.excess, errors[0] <= errors[1]))
    together, server_only, no_worse = (np.concatenate(part) for part in zip(*parts, strict=True))
    return ServerAssisted(together, server_only, no_worse)


def best_together(server: Population, clients: Population, n_server: int, n_clients: int) -> float:
    """Return the best threshold of Q, the mixture in the proportion of the samples."""
    share = n_server / (n_server + n_clients)
    return float(mixture(clients, server, share).best)


def draw(
    population: Population, size: tuple[int, int], rng: np.random.Generator
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Draw points, and labels of +1 and -1."""
    shares = [float(weight) for weight, _ in population.present]
    chosen = rng.choice(len(shares), size=size, p=np.array(shares) / sum(shares))
    points = np.zeros(size)
    labels = np.zeros(size, dtype=np.int64)
    for index, (_, source) in enumerate(population.present):
        places = source.marginal.draw(rng, size)
        right = rng.random(size) < (1 + source.margin(places)) / 2
        side = np.where(places >= float(source.target), 1, -1)
        points = np.where(chosen == index, places, points)
        labels = np.where(chosen == index, np.where(right, side, -side), labels)
    return points, labels


@dataclass(frozen=True)
class Minimiser(ReadOnlyArrays):
    """The empirical minimiser with the largest excess error, one entry per replica.

    Attributes
    ----------
    excess : array, (replicas,)
        The supremum over its gap between samples.
    inside : array, (replicas,)
        A threshold inside that gap.
    """

    excess: FloatArray
    inside: FloatArray


def worst_minimiser(target: Population, points: FloatArray, labels: NDArray[np.int64]) -> Minimiser:
    """Minimise the empirical risk over thresholds; ties go to the one that is worst on P.

    P's excess error grows with the distance from its target, so that is the minimiser farthest to
    the left or the one farthest to the right.

    Parameters
    ----------
    target : Population
        P.
    points, labels : array, (replicas, n)
    """
    order = np.argsort(points, axis=1)
    ordered = np.take_along_axis(points, order, axis=1)
    moved = np.cumsum(np.take_along_axis(labels, order, axis=1), axis=1)
    # Errors of a threshold past the first i samples, less those of one before all samples.
    errors = np.concatenate((np.zeros((points.shape[0], 1), dtype=np.int64), moved), axis=1)
    low, high = float(target.places[0]) - 1.0, float(target.places[-1]) + 1.0
    ends = np.pad(ordered, ((0, 0), (1, 1)), constant_values=((0, 0), (low, high)))
    rows = np.arange(points.shape[0])
    first = np.argmin(errors, axis=1)
    last = errors.shape[1] - 1 - np.argmin(errors[:, ::-1], axis=1)
    leftmost = excess_at(target, ends[rows, first])
    rightmost = excess_at(target, ends[rows, last + 1])
    chosen = np.where(leftmost >= rightmost, first, last)
    middle = (ends[rows, chosen] + ends[rows, chosen + 1]) / 2
    return Minimiser(np.maximum(leftmost, rightmost), middle)


def _errors(
    points: FloatArray, labels: NDArray[np.int64], thresholds: FloatArray | float
) -> NDArray[np.int64]:
    at = np.reshape(thresholds, (-1, 1))
    wrong: NDArray[np.int64] = ((points >= at) != (labels > 0)).sum(axis=1)
    return wrong
