"""A mask in which each client is a symbol, which shows whether a round adds up its participants.

Where sets are too many to be enumerated, a round's map is read off few of them, which is right if
it is ``T_S = T_nobody + sum_i 1{i in S} D_i`` for sets of one size. No number of sets shows that it
is: three clients may count only if all of them are there. So the round is run once, at a model in
numbers, on a mask whose entry for client i is whatever it is without and with that client. Any
function of one such entry is again of this kind; a sum over clients is linear in who is there; and
what takes two clients together, a product or a comparison of sums, some clients picked out, is
refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from fltheory.engines.affine.numbers import FLOAT64
from fltheory.engines.affine.symbolic.forms import (
    AffineArray,
    NotAffineError,
    Space,
    noted,
    nothing_refused,
)
from fltheory.engines.clients.noise import Silence
from fltheory.engines.clients.quadratic_clients import QuadraticClients
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray

_FOLDS = ("any", "all", "min", "max", "amin", "amax")


def check_one_by_one(
    function: Callable[..., Any], problem: QuadraticProblem, origin: FloatArray, size: int
) -> None:
    """See to it that a round adds up what each of ``size`` participants does, for a given model.

    Parameters
    ----------
    function : callable
        Takes states (replicas, n), clients and masks (replicas, N); returns (replicas, k).
    problem : QuadraticProblem
    origin : array, (n,)
        A state.
    size : int
        How many take part.

    Raises
    ------
    NotAffineError
        If what it does depends on several of them together.
    """
    rng, n_clients = np.random.default_rng(0), problem.n_clients
    states = origin + rng.standard_normal((2, origin.size))
    nobody = np.zeros((2, n_clients), dtype=bool)
    who = Presences(Space(FLOAT64, n_clients), nobody, ~nobody, size)
    try:
        with nothing_refused(), np.errstate(all="ignore"):
            function(states, _Clients(QuadraticClients(problem, Silence())), who)
    except NotAffineError:
        raise
    except Exception as error:
        raise _together(
            f"it raises {type(error).__name__} ({error}) on a mask of symbols"
        ) from error


def _together(what: str) -> NotAffineError:
    return noted(
        NotAffineError(
            "the algorithm's round must add up what each participant does, for exact moments with "
            f"this many participant sets, but {what}: use engines.monte_carlo"
        )
    )


class Presences(NDArrayOperatorsMixin):
    """Numbers for each client, (replicas, N, ...), that depend on whether that client is there.

    Parameters
    ----------
    space : Space
        With a symbol a client.
    absent, present : arrays, (replicas, N, ...)
    number : int
        How many take part.
    axis : int
        That of the clients, which moves where axes of length one are put before it.
    """

    __array_priority__ = 2000

    def __init__(self, space: Space, absent: Any, present: Any, number: int, axis: int = 1) -> None:
        self.space = space
        self.absent, self.present = np.broadcast_arrays(absent, present)
        self.number = number
        self.axis = axis

    @property
    def shape(self) -> tuple[int, ...]:
        """(replicas, N, ...)."""
        return self.absent.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.absent.ndim

    @property
    def dtype(self) -> Any:
        """Of the numbers."""
        return np.result_type(self.absent, self.present)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        import array_api_compat.numpy

        return array_api_compat.numpy

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        raise _together("it branches on who takes part")

    def __iter__(self) -> Any:
        raise _together("it goes through participants one by one")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise _together("it reads who takes part as numbers")

    def _each(self, function: Callable[[Any], Any], axis: int | None = None) -> Presences:
        return self._with(function(self.absent), function(self.present), axis)

    def _with(self, absent: Any, present: Any, axis: int | None = None) -> Presences:
        at = self.axis if axis is None else axis
        return Presences(self.space, absent, present, self.number, at)

    def astype(self, dtype: Any, copy: bool = True) -> Presences:
        """Return the same with entries of another kind."""
        return self._each(lambda values: values.astype(dtype))

    def copy(self) -> Presences:
        """Return the same."""
        return self

    def __getitem__(self, index: Any) -> Presences:
        parts = list(index) if isinstance(index, tuple) else [index]
        if Ellipsis not in parts:
            parts.append(Ellipsis)
        taken = sum(part is not None and part is not Ellipsis for part in parts)
        at = parts.index(Ellipsis)
        parts[at : at + 1] = [slice(None)] * (self.ndim - taken)
        axes = [place for place, part in enumerate(parts) if part is not None]
        if parts[axes[self.axis]] != slice(None) or not all(
            part is None or isinstance(part, slice) for part in parts
        ):
            raise _together("it picks out some of those who take part")
        return self._each(lambda values: values[tuple(parts)], axes[self.axis])

    def reshape(self, *shape: Any) -> AffineArray:
        """Return the numbers as forms, in another shape."""
        return self.forms().reshape(*shape)

    def forms(self) -> AffineArray:
        """Return the numbers as forms in who takes part."""
        n_clients = self.shape[self.axis]
        values = np.zeros((*self.shape, 1 + n_clients))
        values[..., 0] = self.absent
        own = np.moveaxis(values[..., 1:], self.axis, 0)
        change = np.moveaxis(np.subtract(self.present, self.absent, dtype=float), self.axis, 0)
        for client in range(n_clients):
            own[client, ..., client] = change[client]
        return AffineArray(self.space, values)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__":
            raise _together(f"it takes {ufunc.__name__}.{method} of who takes part")
        return (
            self._matmul(*inputs)
            if ufunc is np.matmul
            else self._elementwise(ufunc, inputs, kwargs)
        )

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = function.__name__
        if function is np.where:
            return self._elementwise(function, args, kwargs)
        if name in ("sum", "mean", *_FOLDS) and args[0] is self:
            return self._fold(function, *args[1:], **kwargs)
        if name in ("zeros_like", "ones_like", "full_like"):
            return function(self.absent, *args[1:], **kwargs)
        if name == "astype":
            return self.astype(*args[1:], **kwargs)
        if name == "einsum" and args[0].replace(" ", "") == "ri,ria->ra":
            return (args[1][:, :, None] * args[2]).sum(axis=1)
        if name == "concatenate":
            forms = [item.forms() if isinstance(item, Presences) else item for item in args[0]]
            return np.concatenate(forms, *args[1:], **kwargs)
        raise _together(f"it takes {name} of who takes part")

    def _matmul(self, left: Any, right: Any) -> Any:
        """Return a product of rows (replicas, 1, N), of who takes part, and (replicas, N, d)."""
        rows = (
            isinstance(left, Presences) and left.axis == left.ndim - 1 == 2 and left.shape[1] == 1
        )
        if not rows or right.ndim != 3 or getattr(right, "axis", 1) != 1:
            raise _together("it takes a matrix product of who takes part")
        turned = left._each(lambda values: values.swapaxes(1, 2), 1)
        return (turned * right).sum(axis=1, keepdims=True)

    def _elementwise(self, function: Any, inputs: Any, kwargs: Any) -> Any:
        if any(isinstance(item, AffineArray) for item in inputs):
            # A form is refused by name where it meets another in a product.
            forms = [item.forms() if isinstance(item, Presences) else item for item in inputs]
            return function(*forms, **kwargs)
        absent, present = (
            function(*(getattr(item, side, item) for item in inputs), **kwargs)
            for side in ("absent", "present")
        )
        like = [item for item in inputs if isinstance(item, Presences)]
        aligned = all((item.ndim, item.axis) == (absent.ndim, self.axis) for item in like)
        if not aligned or absent.shape[self.axis] != self.shape[self.axis]:
            raise _together("it sets participants against each other")
        return self._with(absent, present)

    def sum(self, axis: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:
        """Return sums along an axis; over clients a number, or forms in who is there."""
        return self._fold(np.sum, axis=axis, keepdims=keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:
        """Return means along an axis."""
        return self._fold(np.mean, axis=axis, keepdims=keepdims)

    def any(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Return whether any is not zero along an axis."""
        return self._fold(np.any, axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Return whether all are not zero along an axis."""
        return self._fold(np.all, axis=axis, keepdims=keepdims)

    def _fold(self, function: Any, axis: Any = None, keepdims: bool = False, **kwargs: Any) -> Any:
        if axis is None or isinstance(axis, tuple):
            raise _together(f"it takes {function.__name__} over replicas and participants at once")
        axis %= self.ndim
        if axis != self.axis:
            moved = self.axis - (axis < self.axis and not keepdims)
            return self._each(lambda values: function(values, axis=axis, keepdims=keepdims), moved)
        sides = [np.moveaxis(side, axis, 0) for side in (self.absent, self.present)]
        if all((side == side[:1]).all() for side in sides):
            # Clients are all alike: what becomes of them depends on how many are there.
            there = np.arange(len(sides[0])) < self.number
            there = there.reshape([-1 if place == axis else 1 for place in range(self.ndim)])
            return function(
                np.where(there, self.present, self.absent), axis=axis, keepdims=keepdims
            )
        if function not in (np.sum, np.mean):
            raise _together(f"it takes {function.__name__} over participants that differ")
        total = self.forms().sum(axis=axis, keepdims=keepdims)
        change = total.linear(self.shape[axis])
        if (change == change[..., :1]).all():
            total = total.constant + self.number * change[..., 0]
        return total / self.shape[axis] if function is np.mean else total


class _Clients:
    """The Clients contract for a mask of symbols, at models in numbers."""

    def __init__(self, clients: QuadraticClients) -> None:
        self._clients = clients

    @property
    def n_clients(self) -> int:
        return self._clients.n_clients

    def server_gradient(self, x: FloatArray) -> FloatArray:
        return self._clients.server_gradient(_in_numbers(x))

    def loss(self, x: FloatArray, who: Any) -> Any:
        return self._where_there(who, self._clients.loss(_in_numbers(x), self._everybody(x)))

    def local_sgd(
        self,
        x: FloatArray,
        who: Any,
        *,
        steps: int,
        lr: float,
        correction: Any = None,
        proximal: float = 0,
    ) -> Any:
        def changes(push: Any) -> FloatArray:
            return self._clients.local_sgd(
                _in_numbers(x),
                self._everybody(x),
                steps=steps,
                lr=lr,
                correction=push,
                proximal=proximal,
            )

        if not isinstance(correction, Presences):
            return self._where_there(who, changes(correction))
        return self._where_there(who, correction._each(changes))

    def summed_local_sgd(self, x: FloatArray, who: Any, weights: Any, **options: Any) -> Any:
        # Who is absent may have any weight, an infinite one too.
        there = np.where(who, weights, 0.0)
        return (there[:, :, None] * self.local_sgd(x, who, **options)).sum(axis=1)

    def _everybody(self, x: FloatArray) -> Any:
        return np.ones((len(x), self.n_clients), dtype=bool)

    def _where_there(self, who: Any, values: Any) -> Any:
        axes = [None] * (values.ndim - 2)
        return np.where(who[:, :, *axes], values, 0.0)


def _in_numbers(x: Any) -> FloatArray:
    if isinstance(x, Presences | AffineArray):
        raise _together("clients begin at a model that depends on who takes part")
    return np.asarray(x)
