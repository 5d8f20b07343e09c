"""What a round is made of, whoever takes part: kinds of clients, and the moments of their weights.

Definitions
-----------
Client i's update ``D_i``, the sum of its gradients, has a random weight ``W_i``; clients of a kind
are alike, n of them in kind c. With ``a_c = E sum W_i`` over the kind, ``M_cd = E (sum_c W_i)(sum_d
W_j)`` and ``v_c = n (E W_i^2 - E W_i W_j)``,

    E||sum W_i D_i||^2 = sum_cd M_cd <mean_c D, mean_d D> + sum_c v_c mean_c ||D_i - mean_c D||^2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


@dataclass(frozen=True)
class ClientKind:
    """Clients that are alike.

    Attributes
    ----------
    name : str
    n_clients : int or None
        None for every number.
    share : Fraction
        Their part of F.
    takes_part : bool
    """

    name: str
    n_clients: int | None
    share: Fraction
    takes_part: bool = True


@dataclass(frozen=True, eq=False)
class WeightMoments(ReadOnlyArrays):
    """Moments of the kinds' weights, ``server_lr`` aside.

    Attributes
    ----------
    mean : array, (C,)
        a.
    second : array, (C, C)
        M.
    spread : array, (C,)
        v.
    square : array, (C,)
        ``n E W_i^2``: what independent noise of each client is multiplied by.
    """

    mean: FloatArray
    second: FloatArray
    spread: FloatArray
    square: FloatArray


class Played(Protocol):
    """One round in fractions, as `OneRound` and `AveragingRound` are."""

    @property
    def local_steps(self) -> int:
        """K."""

    @property
    def client_lr(self) -> Fraction:
        """Step of local SGD."""

    @property
    def server_lr(self) -> Fraction:
        """Factor on the clients' weighted updates."""

    @property
    def assist_lr(self) -> Fraction:
        """The server's own step."""

    @property
    def q(self) -> Fraction:
        """Probability of a clients' round."""

    @property
    def kinds(self) -> tuple[ClientKind, ...]:
        """Clients by kind."""

    @property
    def moments(self) -> WeightMoments:
        """The moments of their weights."""

    @property
    def total_weight(self) -> Fraction:
        """What all weights add up to if everybody takes part, or in the mean."""

    @property
    def noise_weight(self) -> Fraction:
        """``E sum_i W_i^2``."""

    @property
    def tells_clients_apart(self) -> bool:
        """Whether it matters to a round how clients differ."""

    @property
    def taking_part(self) -> Mapping[str, Any]:
        """Who takes part, as certificates have it."""
