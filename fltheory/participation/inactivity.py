"""Absences of clients: counts along a path, and exact probabilities of long absences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.exact_or_float import is_exact
from fltheory.participation.base import Masks, Participation
from fltheory.participation.process import process_of
from fltheory.validation import FloatArray


def inactive_rounds(masks: Masks) -> FloatArray:
    """Return tau, (rounds, N), the number of rounds since a client last took part.

    It is 0 in rounds in which the client takes part, and 0 before the first round, as in FedAR's
    equation (5).

    Examples
    --------
    >>> inactive_rounds(np.array([[0], [1], [0], [0]], dtype=bool)).ravel().tolist()
    [1.0, 0.0, 1.0, 2.0]
    """
    counts = np.empty(masks.shape)
    before = np.zeros(masks.shape[1])
    for index, mask in enumerate(masks):
        before = np.where(mask, 0.0, before + 1)
        counts[index] = before
    return counts


def chance_of_longer_absence(participation: Participation, limits: ArrayLike, rounds: int) -> Any:
    """Return the probability that any client is ever inactive for longer than allowed.

    This is the probability that ``tau_{i,t} > limits_t`` for some client i and some round t of the
    first ``rounds``. It is exact, because clients are independent and the distribution of each
    client's tau is followed round by round.

    Parameters
    ----------
    participation : Bernoulli, MarkovOnOff, or a deterministic process
    limits : float or array, (rounds,)
        The same for all clients; infinity means no limit.
    rounds : int

    Raises
    ------
    ValueError
        If ``participation`` is of a different kind, or ``limits`` are negative or have a different
        shape.

    Examples
    --------
    >>> from fltheory.participation import Bernoulli
    >>> chance_of_longer_absence(Bernoulli([0.5]), 1, 3)  # 001, 000 and 100 have two absences
    0.375
    """
    rounds = validation.whole_number("rounds", rounds, at_least=1)
    allowed = _checked_limits(limits, rounds)
    process = process_of(participation)
    masks, chains = process.known_path(rounds), process.client_chains
    if masks is not None:
        return int((inactive_rounds(masks) > allowed[:, None]).any())
    if chains is None:
        raise ValueError(
            "participation must be Bernoulli, MarkovOnOff or known beforehand for the "
            f"probabilities of absences, got {participation!r}"
        )
    first, stay, come = chains.first, chains.stays, chains.comes
    longest = int(min(allowed.max(), rounds))
    if is_exact(come):
        each = list(zip(come, stay, first, strict=True))
        # Exact numbers are slow, so clients with the same chain share one computation.
        failing = {alike: _exact_chance(*alike, allowed, longest) for alike in dict.fromkeys(each)}
        return 1 - np.prod([1 - failing[client] for client in each])
    law = np.zeros((longest + 2, come.size))
    law[0], law[1] = first, 1 - first
    failed = np.zeros(come.size)
    for index in range(rounds):
        if index > 0:
            present = stay * law[0] + come * law[1:].sum(axis=0)
            law[2:] = (1 - come) * law[1:-1]
            law[1] = (1 - stay) * law[0]
            law[0] = present
        beyond = int(min(np.floor(allowed[index]), longest)) + 1
        failed += law[beyond:].sum(axis=0)
        law[beyond:] = 0.0
    with np.errstate(divide="ignore"):
        return max(0.0, float(-np.expm1(np.log1p(-np.minimum(failed, 1.0)).sum())))


def _exact_chance(come: Any, stay: Any, first: Any, allowed: FloatArray, longest: int) -> Any:
    """Return the probability that one client exceeds its limit, in exact numbers.

    Absences are grouped by the round in which they began: those that began k rounds ago last until
    now with probability ``(1 - come)^k``.
    """
    come, stay, first = (number.widened() for number in (come, stay, first))
    goes_on = [(1 - come) ** k for k in range(longest + 2)]
    began = [1 - first]
    present, absent, failed, oldest = first, began[0], 0 * first, 0
    for index, limit in enumerate(allowed):
        if index > 0:
            began.append((1 - stay) * present)
            present = stay * present + come * absent
            absent = goes_on[1] * absent + began[-1]
        while index - oldest + 1 > limit:
            over = began[oldest] * goes_on[index - oldest]
            failed, absent, oldest = failed + over, absent - over, oldest + 1
    return failed


def _checked_limits(limits: ArrayLike, rounds: int) -> FloatArray:
    array = np.asarray(limits, dtype=np.float64)
    if array.shape not in ((), (rounds,)):
        raise ValueError(f"limits must have shape () or ({rounds},), got {array.shape}")
    if not (array >= 0).all():
        raise ValueError(f"limits must be at least 0, got {array.min():g}")
    return np.broadcast_to(array, (rounds,))
