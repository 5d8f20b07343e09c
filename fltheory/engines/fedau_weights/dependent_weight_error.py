"""The error of FedAU's online weights if who takes part depends on the past.

Client n's weight follows Algorithm 2. It is compared with 1/p_n, where p_n is the client's long-run
share of rounds. Theorem 3 makes the same comparison but assumes independent rounds.

Under a two-state chain, the recursion of `weight_error` also needs to know whether the client is
present when an interval ends. Either a round of presence ends the interval, and the client is
present in the next round with probability ``stays``. Or K rounds of absence end it, and the client
is present in the next round with probability ``comes``. Split ``u(m, s)`` accordingly, and let
``v(m, s)`` be the probability that the m-th interval ends at s and the next begins with an absence.
An interval that begins in this way has k rounds with probability ``comes (1 - comes)^(k-2)`` for 2
<= k <= K, and is cut off at K otherwise. Cyclic participation is deterministic. For any other
participation, the error is sampled by running the algorithm itself.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from fltheory import validation
from fltheory.algorithms import FedAU
from fltheory.algorithms.contract import State
from fltheory.decimals import complement
from fltheory.engines.affine.numbers import Entries, raw_number
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.engines.fedau_weights.enclosed_weight_error import enclosed_weight_errors
from fltheory.engines.fedau_weights.weight_error import WeightError, checked_cutoff, weight_error
from fltheory.engines.setting import Setting
from fltheory.engines.simulation import simulate
from fltheory.exact_or_float import is_exact
from fltheory.participation.base import Masks, Participation
from fltheory.participation.process import ClientChains, process_of
from fltheory.validation import FloatArray

_EPS = float(np.finfo(np.float64).eps)
# Probabilities below this are dropped, at most 3 T^2 of them. In 10^6 rounds they sum to 3e-18.
_NEGLIGIBLE = 1e-30

_Row = tuple[int, FloatArray]


def weight_error_under(participation: Participation, cutoff: float, rounds: int) -> WeightError:
    """Return ``E[(p_n omega_t^n - 1)^2]`` for every client and t = 0 .. rounds-1.

    Parameters
    ----------
    participation : Bernoulli, MarkovOnOff, or a deterministic one such as Cyclic
        Its marginals are the p_n.
    cutoff : int or math.inf
        K, the longest interval.
    rounds : int

    Returns
    -------
    WeightError
        Arrays (n_clients, rounds).

    Raises
    ------
    ValueError
        If participation is of a different kind, the cutoff is not a positive integer or infinite,
        or there is less than one round.

    Examples
    --------
    >>> from fltheory.participation import Cyclic
    >>> weight_error_under(Cyclic([2], [0]), 5, 4).values.tolist()
    [[0.25, 0.25, 0.25, 0.0625]]
    """
    rounds = validation.whole_number("rounds", rounds, at_least=1)
    longest = checked_cutoff(cutoff)
    p, process = participation.marginals, process_of(participation)
    chains = process.client_chains
    if chains is None and process.period is None:
        raise ValueError(
            "participation must be Bernoulli, MarkovOnOff or Cyclic for exact weight errors, "
            f"got {participation!r}"
        )
    if chains is None:
        scaled = p[:, None] * cyclic_weights(participation, longest, rounds)
        if is_exact(p):
            return WeightError((scaled - 1) ** 2, np.zeros(scaled.shape))
        rounding = 8 * _EPS * np.arange(1.0, rounds + 1) * scaled
        errors = rounding * (2 * np.abs(scaled - 1) + rounding) + _EPS
        return WeightError((scaled - 1) ** 2, errors)
    if is_exact(p):
        return _enclosed(p, chains, longest, rounds)
    if process.n_states == 1 and p.all():
        return weight_error(p, longest, rounds)
    curves = [_of_client(client, longest, rounds) for client in _clients(p, chains)]
    values, errors = (np.array(part) for part in zip(*curves, strict=True))
    return WeightError(values, errors)


def _enclosed(p: FloatArray, chains: ClientChains, cutoff: float, rounds: int) -> WeightError:
    known: dict[tuple[Any, ...], Entries] = {}
    rows = []
    for numbers in zip(chains.first, chains.stays, chains.comes, p, strict=True):
        if numbers not in known:
            raw = enclosed_weight_errors(*map(raw_number, numbers), cutoff=cutoff, rounds=rounds)
            known[numbers] = np.array([type(numbers[0])(value) for value in raw], dtype=object)
        rows.append(known[numbers])
    return WeightError(np.stack(rows), np.zeros((len(rows), rounds)))


@dataclass(frozen=True)
class _Client:
    """One client's share p of rounds, 1 - p, and the probabilities of its chain."""

    share: float
    rest: float
    first: float
    stays: float
    comes: float
    absent: float
    leaves: float
    lacks: float


def _clients(p: FloatArray, chains: ClientChains) -> Iterator[_Client]:
    every = [chains.first, chains.stays, chains.comes, chains.absent, chains.leaves, chains.lacks]
    return map(_Client, *(array.tolist() for array in (p, complement(p), *every)))


def _of_client(client: _Client, cutoff: float, rounds: int) -> tuple[FloatArray, FloatArray]:
    """Return errors and their bounds for one client.

    The error of ``x = p (s/m - 1) - (1 - p)`` is a few roundoff units of ``|x| + 2 (1 - p)``. The
    error of its square is ``2 |x|`` times that, and the mean of ``|x|`` is at most the root of ``E
    x^2``. Without a cutoff, nothing else is subtracted, so the remaining errors are proportional to
    the result.
    """
    values = _averages(client, cutoff, rounds)
    largest = max(client.rest**2, (client.share * min(cutoff, rounds) - 1) ** 2)
    rounding = 16 * _EPS * np.arange(1.0, rounds + 1)
    left_out = 3 * rounds**2 * _NEGLIGIBLE
    scale = values if cutoff >= rounds else np.full(rounds, largest)
    of_weights = 2.5 * _EPS * (values + 2 * client.rest * np.sqrt(values))
    errors = np.maximum(rounding * scale, rounding / 2 * scale + of_weights)
    return values, np.asarray(errors + left_out * largest)


def _averages(client: _Client, cutoff: float, rounds: int) -> FloatArray:
    """Average ``(p omega_t - 1)^2`` over all histories, for t = 0 .. rounds-1."""
    if cutoff >= rounds:
        cutoff = math.inf
    first, stays, comes = client.first, client.stays, client.comes
    cut = 0.0 if cutoff == math.inf else client.lacks ** (cutoff - 1)
    averages = np.empty(rounds)
    averages[0] = client.rest**2
    # v(., s), by the round s in which an interval ended, and its sum with the values.
    length = 2 if cutoff == math.inf else int(cutoff) + 1
    onward: deque[_Row] = deque([(0, np.array([client.absent]))], maxlen=length)
    sums: deque[float] = deque([averages[0] * client.absent], maxlen=length)
    open_now = 0.0
    at_once: _Row = (0, np.array([first]))
    later = _NOTHING
    for s in range(1, rounds):
        long_ago = _NOTHING if cutoff == math.inf else _row_before(onward, int(cutoff))
        before = _NOTHING if cutoff == math.inf else _row_before(onward, int(cutoff) + 1)
        away_once = _row_before(onward, 2)
        later = _added((client.lacks, later, 0), (comes, away_once, 1), (-cut * comes, before, 1))
        present, away = _added((1.0, later, 0), (1.0, at_once, 1)), _added((cut, long_ago, 1))
        at_once = _added((stays, present, 0), (comes, away, 0))
        open_now = client.lacks * open_now + sums[-1]
        open_now -= cut * sums[-int(cutoff)] if len(sums) >= cutoff else 0.0
        averages[s] = _sum(_added((1.0, present, 0), (1.0, away, 0)), s, client) + open_now
        onward.append(_added((client.leaves, present, 0), (client.lacks, away, 0)))
        sums.append(_sum(onward[-1], s, client))
    return averages


def _sum(row: _Row, s: int, client: _Client) -> float:
    """Return ``sum_m u(m, s) (p s/m - 1)^2``."""
    start, chances = row
    ended = np.arange(start, start + chances.size)
    return float(chances @ (client.share * ((s - ended) / ended) - client.rest) ** 2)


_NOTHING: _Row = (0, np.zeros(0))


def _row_before(rows: deque[_Row], rounds: int) -> _Row:
    """Return the row that is a given number of rounds before the coming one."""
    return rows[-rounds] if len(rows) >= rounds else _NOTHING


def _added(*parts: tuple[float, _Row, int]) -> _Row:
    """Return ``sum factor * row``, each row shifted by a number of intervals.

    Negligible probabilities at both ends are dropped.
    """
    some = [(factor, start + shift, row) for factor, (start, row), shift in parts if row.size]
    if not some:
        return _NOTHING
    low = min(start for _, start, _ in some)
    high = max(start + row.size for _, start, row in some)
    total = np.zeros(high - low)
    for factor, start, row in some:
        total[start - low : start - low + row.size] += factor * row
    large = np.flatnonzero(np.abs(total) > _NEGLIGIBLE)
    return (low + int(large[0]), total[large[0] : large[-1] + 1]) if large.size else _NOTHING


def recorded_weights(masks: Masks, longest: float, ones: Any) -> Any:
    """Return omega_t for t = 0 .. rounds along recorded participation, computed as in FedAU.

    Parameters
    ----------
    masks : array of bool, (rounds, N)
    longest : int or math.inf
        K, the longest interval.
    ones : array, (N,)
        An array of ones, of the number type in which the weights are computed.

    Returns
    -------
    array, (N, rounds + 1)
    """
    fedau = FedAU(client_lr=1.0, local_steps=1, cutoff=longest)
    counts: State = {"omega": ones, **dict.fromkeys(("intervals", "ended", "lasted"), 0 * ones)}
    weights = [ones]
    for mask in masks:
        counts = fedau.counted(counts, mask)
        weights.append(counts["omega"])
    return np.stack(weights, axis=1)


def cyclic_weights(cycles: Participation, cutoff: float, rounds: int) -> FloatArray:
    """Return omega_t of every client, (n_clients, rounds), under deterministic participation.

    The weights have the number type of the cycles' marginals.

    Raises
    ------
    ValueError
        If the cutoff is not a positive integer or infinite, or there is less than one round.

    Examples
    --------
    >>> from fltheory.participation import Cyclic
    >>> cyclic_weights(Cyclic([3], [0]), 5, 5).tolist()
    [[1.0, 1.0, 1.0, 1.0, 2.0]]
    """
    rounds = validation.whole_number("rounds", rounds, at_least=1)
    masks = islice(cycles.masks(np.random.default_rng(0), 1), rounds)
    ones = cycles.marginals / cycles.marginals
    return recorded_weights(np.concatenate(list(masks)), checked_cutoff(cutoff), ones)[:, :-1]


def sampled_weight_errors(setting: Setting, replicas: int, rng: np.random.Generator) -> FloatArray:
    """Return the mean over clients of ``(p_n omega_t^n - 1)^2`` in rounds t = 0 .. T-1.

    Parameters
    ----------
    setting : Setting
        A setting whose algorithm keeps the weights as ``omega`` in its state. Gradients have no
        noise.
    replicas : int
    rng : numpy Generator

    Returns
    -------
    array, (replicas, rounds)
    """
    p = setting.participation.marginals
    runs = simulate(
        setting.algorithm,
        SteppedClients(setting.problem, Silence()),
        setting.participation,
        np.tile(setting.x0, (replicas, 1)),
        participation_rng=rng,
        branch_rng=rng,
    )
    errors = np.empty((replicas, setting.rounds))
    for t, (state, _) in zip(range(setting.rounds), runs, strict=False):
        errors[:, t] = ((p * state["omega"] - 1) ** 2).mean(axis=1)
    return errors
