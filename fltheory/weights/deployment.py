"""The problem of the weights for clients of whom availability and sizes of data are known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.weights.trade_off import TradeOff

# Squares of what is given are multiplied by others.
_MOST = 1e100


def _within(least: float, value: float) -> bool:
    return least <= value <= _MOST


@dataclass(frozen=True)
class Training:
    """What CA-Fed's bound asks for beside who is there, in units that need no measurement.

    The unit of length is ``||w_0 - w*||``, that of slopes L, so that losses are in units of
    ``L ||w_0 - w*||^2``. Steps are constant, the longest that Lemma 2 allows with weights that sum
    to one: ``eta = 1/(2 L (E + 1))``.

    Parameters
    ----------
    rounds : int
        T.
    local_steps : int
        E.
    noise : float
        sigma, of a local gradient, in units of ``L ||w_0 - w*||``: by default as long as a gradient
        at the start may be.
    dissimilarity : float
        Gamma, the largest ``F_k(w*) - F_k*``: by default 1/2, as if the start had been the
        minimiser of a client.
    condition : float
        kappa = L/mu, at least 1. The default 1 prices bias as CA-Fed itself does, equation (14).

    Raises
    ------
    ValueError
        For arguments out of range.

    Examples
    --------
    >>> Training(rounds=100).step
    0.25
    """

    rounds: int = 1000
    local_steps: int = 1
    noise: float = 1.0
    dissimilarity: float = 0.5
    condition: float = 1.0

    def __post_init__(self) -> None:
        validation.whole_number("rounds", self.rounds, at_least=1)
        validation.whole_number("local_steps", self.local_steps, at_least=1)
        validation.positive("dissimilarity", self.dissimilarity)
        for name, least in (("noise", 0.0), ("condition", 1.0)):
            value = getattr(self, name)
            must_be = f"at least {least:g} and at most {_MOST:g}"
            validation.real_number(name, value, must_be, partial(_within, least))

    @property
    def step(self) -> float:
        """eta, in units of 1/L."""
        return 1 / (2 * (self.local_steps + 1))

    def trade_off(self, availability: ArrayLike, target_weights: ArrayLike) -> TradeOff:
        """Return the problem whose solution are the weights; the rules are those of `for_setting`.

        ``a_k = sigma^2 pi_k T eta^2``, ``b = 2/E + (T eta^2 + sum_t 1/t^2)/4`` and ``bias =
        kappa^2 Gamma T eta``. M is 1, as in `for_setting` with ``chain="clients"``, memory or not:
        clients are taken to come and go independently of each other.

        Parameters
        ----------
        availability : array, (N,)
            pi, above 0.
        target_weights : array, (N,)
            alpha.
        """
        pi = validation.real_array("availability", availability, shape="(N,)")
        squares = self.rounds * self.step**2
        inverse_squares = float((1 / np.arange(1.0, self.rounds + 1) ** 2).sum())
        return TradeOff(
            pi,
            target_weights,
            a=self.noise**2 * squares * pi,
            b=2 / self.local_steps + (squares + inverse_squares) / 4,
            bias=self.condition**2 * self.dissimilarity * self.rounds * self.step,
        )
