"""A round's map as a function of who takes part, read from one run of the round on symbols.

The map of participants S is ``T_S = sum_e h_e(|S|) (T_e + sum_i s_i D_ei)``, where s_i is 1 if
client i takes part and 0 otherwise. The function h_0 is 1, and the others, such as 1/|S|, are the
factors that the round itself uses. The law of T then depends only on the first two moments of ``s_i
h_e(|S|)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeVar

import numpy as np

from fltheory.engines.affine.numbers import Entries
from fltheory.engines.affine.random_affine_map import Effects, MapErrors, RandomAffineMap
from fltheory.engines.affine.symbolic.clients import ClientNumbers
from fltheory.engines.affine.symbolic.forms import AffineArray, NotAffineError, nothing_refused
from fltheory.engines.affine.symbolic.presences import (
    NoRoomError,
    PresenceSpace,
    PresentClients,
    together,
)
from fltheory.participation.base import Masks, Participation
from fltheory.participation.process import process_of
from fltheory.validation import ClientIndices, FloatArray

StateFunction = Callable[[Any, Any, Any], Any]
Noise = tuple[Entries, Entries]


@dataclass(frozen=True, eq=False)
class Reading:
    """The map of any participant set, as a sum over clients.

    Attributes
    ----------
    numbers : array, (K,)
        Possible numbers of participants.
    functions : array, (E, K)
        h_e of each number.
    maps : array, (E, 1 + N, k, 1 + n)
        Offset and slope of T_e, then of each D_ei.
    served : sequence of arrays (E, k, w) and (w, w)
        The map applied to noise that is not the clients', and the covariance of that noise.
    own : sequence of arrays (E, N, k, w) and (N or 1, w, w), and bool
        The map applied to each client's noise, the covariance of that noise, and whether it occurs
        when the client is absent instead of when it is present.
    """

    numbers: ClientIndices
    functions: Entries
    maps: Entries
    served: Sequence[Noise]
    own: Sequence[tuple[Entries, Entries, bool]]

    def of(self, who: Masks) -> tuple[Entries, Entries, Entries]:
        """Return slope (k, n), offset (k,) and covariance (k, k) for a participant mask (N,)."""
        h = self.functions[:, int(np.flatnonzero(self.numbers == who.sum())[0])]
        shares = np.concatenate([[1], who])
        image = np.tensordot(shares, np.tensordot(h, self.maps, 1), 1)
        noise = image[:, :1] @ image[:, :1].T * 0
        for parts, covariance in self.served:
            part = np.tensordot(h, parts, 1)
            noise = noise + part @ covariance @ part.T
        for parts, covariances, away in self.own:
            times = ~who if away else who
            each = np.tensordot(h, parts, 1) * times[:, None, None]
            noise = noise + (each @ covariances @ each.swapaxes(1, 2)).sum(axis=0)
        return image[:, 1:], image[:, 0], noise

    def law(self, participation: Participation, errors: MapErrors) -> RandomAffineMap:
        """Return the law of the map under a participation process, for a reading in floats."""
        eligible = np.flatnonzero(participation.marginals > 0)
        whole, functions, added = self._by_client(eligible)
        there = _Inclusions(participation, eligible, self.numbers)
        second = np.block([[there.pairs(f * g) for g in functions] for f in functions])
        means = np.concatenate([np.diag(there.pairs(f)) for f in functions])
        noise = np.zeros((len(whole), len(whole)))
        for parts, covariance in self.served:
            for (g, left), (h, right) in self._couples(parts):
                noise += there.mean(g * h) * left @ covariance @ right.T
        for parts, covariances, away in self.own:
            for (g, left), (h, right) in self._couples(parts):
                chances = np.zeros((parts.shape[1], 1, 1))
                chances[eligible, 0, 0] = np.diag(there.pairs(g * h))
                chances = there.mean(g * h) - chances if away else chances
                noise += np.tensordot(chances * left @ covariances, right, axes=([0, 2], [0, 2]))
        average = whole + np.tensordot(means, added, axes=1)
        deviations = Effects(
            slopes=added[:, :, 1:],
            offsets=added[:, :, 0],
            covariance=second - np.outer(means, means),
            balanced=participation.fixed_size is not None,
        )
        return deviations.law(average[:, 1:], average[:, 0], noise, **errors)

    def _couples(self, parts: Entries) -> Iterator[Any]:
        """Return pairs of functions with their coefficients, without pairs that are all zero."""
        some = [(h, part) for h, part in zip(self.functions, parts, strict=True) if part.any()]
        return product(some, repeat=2)

    def _by_client(
        self, eligible: ClientIndices
    ) -> tuple[FloatArray, list[FloatArray], FloatArray]:
        """Return T_0, functions (F, K), and each client's contribution to each, (F N, k, 1 + n).

        A term that depends only on the number of participants is split equally among them.
        """
        found: list[tuple[FloatArray, FloatArray]] = []
        whole = self.maps[0, 0].copy()

        def add(function: FloatArray, parts: FloatArray) -> None:
            for known, sums in found:
                if np.array_equal(known, function):
                    sums += parts
                    return
            if parts.any() or not found:
                found.append((function, parts.copy()))

        for e, (h, maps) in enumerate(zip(self.functions, self.maps, strict=True)):
            add(np.where(self.numbers > 0, h, 0.0), maps[1 + eligible])
            if e > 0:
                whole += h[0] * maps[0]
                add(
                    _shared(h, self.numbers),
                    np.broadcast_to(maps[0], (eligible.size, *maps[0].shape)),
                )
        functions = [function for function, _ in found]
        none = np.zeros((0, *whole.shape))
        return whole, functions, np.concatenate([none, *(parts for _, parts in found)])


class _Inclusions:
    """Pair inclusion probabilities weighted by functions of the number present, cached.

    Parameters
    ----------
    participation : Participation
    clients : array, (M,)
    numbers : array, (K,)
    """

    def __init__(
        self, participation: Participation, clients: ClientIndices, numbers: ClientIndices
    ) -> None:
        self._process, self._numbers = process_of(participation), numbers
        self._pairs = np.ix_(clients, clients)
        self._known: dict[bytes, FloatArray] = {}

    def pairs(self, weight: FloatArray) -> FloatArray:
        """Return ``E[1{i and j take part} weight[|S|]]``, (M, M)."""
        # Without participants, there is no pair.
        weight = np.where(self._numbers > 0, weight, 0.0)
        key = weight.tobytes()
        if key not in self._known:
            by_number = np.zeros(self._process.n_clients + 1)
            by_number[self._numbers] = weight
            try:
                self._known[key] = self._process.weighted_inclusions(by_number)[self._pairs]
            except ValueError as error:
                raise NotAffineError(f"{error}: use engines.monte_carlo") from error
        return self._known[key]

    def mean(self, values: FloatArray) -> float:
        """Return the mean of a function of the number of participants."""
        return float(values[0] + np.trace(self.pairs(_shared(values, self._numbers))))


def _shared(values: FloatArray, numbers: ClientIndices) -> FloatArray:
    """Return each participant's equal share of ``values[number] - values[0]``."""
    return np.asarray((values - values[0]) / np.maximum(numbers, 1))


def reading_of(
    function: StateFunction,
    clients: ClientNumbers,
    origins: tuple[Entries, Entries],
    numbers: ClientIndices,
) -> Reading:
    """Read a function's map from symbols, in the arithmetic of the clients' numbers.

    Parameters
    ----------
    function : callable
        Takes states (1, n), clients and a mask (1, N); returns (1, k).
    clients : ClientNumbers
    origins : arrays, (n,) and (k,)
        The points from which states and images are measured.
    numbers : array, (K,)
        Possible numbers of participants.

    Raises
    ------
    NotAffineError
        If the function is not affine in the model, or combines several participants in any way
        other than a sum.
    """
    origin, image_origin = origins

    def with_room(room: int) -> PresentClients:
        space = PresenceSpace(
            clients.arithmetic, origin.size, clients.problem.n_clients, numbers, room
        )
        return PresentClients(clients, space)

    image, present = run_on_symbols(function, origin, with_room)
    return _taken_apart(present.space, image, image_origin, numbers)


Present = TypeVar("Present", bound=PresentClients)


def run_on_symbols(
    function: StateFunction, origin: Entries, clients_with_room: Callable[[int], Present]
) -> tuple[AffineArray, Present]:
    """Run a function on symbols of the model and of who takes part; any error is a refusal.

    Parameters
    ----------
    function, origin
        As in `reading_of`.
    clients_with_room : callable
        Takes the number of noise symbols to allow for, and returns the clients.

    Returns
    -------
    image, clients
    """
    room = 0
    while True:
        clients = clients_with_room(room)
        space = clients.space
        try:
            with nothing_refused(), np.errstate(all="ignore"):
                return space.forms(function(space.variables(origin), clients, space.mask)), clients
        except NotAffineError:
            raise
        except NoRoomError:
            room = 2 * space.noises
        except Exception as error:
            raise together(
                f"it raises {type(error).__name__} ({error}) on a symbolic mask"
            ) from error


def _taken_apart(
    space: PresenceSpace, image: AffineArray, image_origin: Entries, numbers: ClientIndices
) -> Reading:
    # (E, 1 + N, k, width), for the only replica
    blocks = np.moveaxis(space.blocks(image)[0], 0, 2)
    maps = blocks[..., : 1 + space.symbols].copy()
    maps[0, 0, :, 0] = maps[0, 0, :, 0] - image_origin
    served: list[Noise] = []
    own: list[tuple[Entries, Entries, bool]] = []
    for first, covariance in space.noise:
        columns = slice(1 + first, 1 + first + covariance.shape[-1])
        parts = blocks[..., columns]
        if first in space.own:
            own.append((parts[:, 1:], covariance, space.own[first][1]))
        elif parts[:, 1:].any():
            raise together("it multiplies noise by the participation mask")
        else:
            served.append((parts[:, 0], covariance[0]))
    functions = np.stack([space.forms(values).constant for values in space.functions[: len(maps)]])
    return Reading(numbers, functions, maps, served, own)
