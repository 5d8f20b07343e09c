"""Participation that replays the rounds of a log, starting at a given round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np

from fltheory import validation
from fltheory.logs.availability_log import AvailabilityLog
from fltheory.logs.transitions import fit_on_off
from fltheory.participation.base import Masks
from fltheory.participation.process import Process
from fltheory.validation import FloatArray

_BLOCK = 1024  # rounds held in memory as a matrix at a time


@dataclass(frozen=True, eq=False)
class PlayedLog(Process):
    """The rounds of a log in their order; nothing of them is random.

    Unlike a `Trace`, it may have clients that are never present, it ends, and it is not stored as a
    matrix. Its probabilities are shares of all rounds of the log, wherever replay begins.

    Parameters
    ----------
    log : AvailabilityLog
    first_round : int
        The round of the log, counted from 0, that is played first.
    repeat : bool
        Whether the log starts again after its last round; otherwise the rounds end there.

    Raises
    ------
    ValueError
        If ``first_round`` is outside the log.

    Examples
    --------
    >>> log = AvailabilityLog.from_masks([[1, 0], [1, 1], [0, 0]])
    >>> played = PlayedLog(log, first_round=1)
    >>> played.rounds_left, [who.astype(int).tolist() for who in played.masks(None, 1)]
    (2, [[[1, 1]], [[0, 0]]])
    """

    log: AvailabilityLog
    _: KW_ONLY
    first_round: int = 0
    repeat: bool = False

    def __post_init__(self) -> None:
        first = validation.whole_number("first_round", self.first_round, at_least=0)
        if first >= self.log.n_rounds:
            raise ValueError(
                f"first_round must be below the log's {self.log.n_rounds} rounds, got {first}"
            )

    @property
    def rounds_left(self) -> float:
        """The number of rounds to play; infinity if they are repeated."""
        return np.inf if self.repeat else self.log.n_rounds - self.first_round

    @property
    def independent(self) -> bool:
        """Whether all rounds of the log are the same."""
        return bool(np.isin(self.marginals, (0, 1)).all())

    @property
    def n_states(self) -> None:
        """None, because the rounds may end."""
        return None

    @property
    def n_clients(self) -> int:
        """N, all clients, including those never seen."""
        return self.log.n_clients

    @property
    def marginals(self) -> FloatArray:
        """Share of the log's rounds in which each client is present, (N,)."""
        return self.log.marginals

    @cached_property
    def correlation(self) -> FloatArray:
        """Second eigenvalue of the two-state chain that `fit_on_off` fits to each client, (N,)."""
        nu = fit_on_off(self.log).correlation
        return np.broadcast_to(np.asarray(nu, dtype=np.float64), self.n_clients)

    @cached_property
    def pair_inclusions(self) -> FloatArray:
        """Share of the log's rounds in which both of two clients are present, (N, N)."""
        together = np.zeros((self.n_clients, self.n_clients))
        for block in self._blocks(0):
            present = block.astype(np.float64)
            together += present.T @ present
        return together / self.log.n_rounds

    @property
    def fixed_size(self) -> int | None:
        """The number of participants if it is the same in every round, else None."""
        sizes = self.log.n_present
        return int(sizes[0]) if (sizes == sizes[0]).all() else None

    @cached_property
    def _shares(self) -> tuple[Masks, FloatArray]:
        masks, counts = np.unique(self.log.present(), axis=0, return_counts=True)
        return masks, counts / self.log.n_rounds

    def masks(self, rng: np.random.Generator | None, replicas: int) -> Iterator[Masks]:
        """Play the rounds, the same in every run; nothing is drawn."""
        replicas = validation.whole_number("replicas", replicas, at_least=1)
        begin = self.first_round
        while True:
            for block in self._blocks(begin):
                for who in block:
                    yield np.tile(who, (replicas, 1))
            if not self.repeat:
                return
            begin = 0

    def _blocks(self, begin: int) -> Iterator[Masks]:
        for first in range(begin, self.log.n_rounds, _BLOCK):
            yield self.log.present(first, min(first + _BLOCK, self.log.n_rounds))
