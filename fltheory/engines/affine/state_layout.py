"""An algorithm's state as one vector, with the model first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from fltheory.algorithms.contract import Algorithm, State
from fltheory.engines.affine.probe import Probe, RoundOverflowError, StateFunction
from fltheory.engines.affine.symbolic.clients import joined, split
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.clients.analytic_clients import QuadraticClients
from fltheory.engines.observables import QuadraticForm
from fltheory.participation.base import Masks
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray

_NO_EFFECT = 1e-9
# One pass is enough for a single entry of memory; with several entries, the units settle within a
# few passes.
_SWEEPS = 8


@dataclass(frozen=True, eq=False)
class StateLayout:
    """The position and scale of each entry of the state in the vector.

    Attributes
    ----------
    origin : array, (n,)
        The point around which moments are taken: the model x* and the memory that ``init`` sets up
        for it.
    shapes : mapping of str to tuple of int
        Shape of each entry, with the model ``"x"`` first.
    units : array, (n,)
        Size in the state of one unit in the vector, a power of two, which is 1 for the model.
        Rounding errors are bounded in the norm of the vector. So memory is measured in units in
        which it affects the model about as much as the model affects the memory.
    """

    origin: FloatArray
    shapes: Mapping[str, tuple[int, ...]]
    units: FloatArray

    @classmethod
    def of(cls, algorithm: Algorithm, problem: QuadraticProblem) -> StateLayout:
        """Return the layout of an algorithm's state."""
        x_star = problem.x_star[None]
        # Errors are distances from x*, even if ``init`` moves the model.
        state = {**algorithm.init(x_star, problem.n_clients), "x": x_star}
        for name, array in state.items():
            if np.asarray(array).dtype.itemsize < 8 and np.asarray(array).dtype.kind in "iuf":
                raise NotAffineError(
                    f"the state's {name!r} must be of 64 bits for exact moments, got "
                    f"{array.dtype}: use engines.paths, or engines.monte_carlo"
                )
        shapes = {name: np.shape(state[name])[1:] for name in _model_first(state)}
        origin = _flat(state)[0]
        plain = cls(origin, shapes, np.ones(origin.size))
        units = plain._balanced_units(algorithm, problem)
        return cls(origin / units, shapes, units)

    def start(self, algorithm: Algorithm, problem: QuadraticProblem, x0: FloatArray) -> FloatArray:
        """Return the initial state's offset from the origin, (n,)."""
        state = _flat(algorithm.init(x0[None], problem.n_clients))[0]
        return np.asarray(state / self.units - self.origin)

    def function(self, algorithm: Algorithm, branch: str) -> StateFunction:
        """Return one branch of the algorithm's round as a function of vectors."""

        def run(states: FloatArray, clients: QuadraticClients, who: Masks) -> FloatArray:
            return _flat(algorithm.round(self._state(states), clients, who, branch)) / self.units

        return run

    def _balanced_units(self, algorithm: Algorithm, problem: QuadraticProblem) -> FloatArray:
        """Return the units that balance memory and model."""

        def slopes(branch: str) -> FloatArray:
            probe = Probe(self.function(algorithm, branch), problem, self.origin, self.origin)
            return probe.maps(telling_sets(problem.n_clients)).slopes

        try:
            return balanced_units(algorithm, slopes, self.shapes)
        except RoundOverflowError:
            return self.units

    def form(self, form: QuadraticForm) -> QuadraticForm:
        """Convert a quadratic form in the model's offset to a form in the state's offset."""
        memory = self.origin.size - form.vector.size
        if memory == 0:
            return form
        return replace(
            form,
            matrix=np.pad(form.matrix, ((0, memory), (0, memory))),
            vector=np.pad(form.vector, (0, memory)),
        )

    def _state(self, vectors: FloatArray) -> State:
        return split(vectors * self.units, self.shapes)


def telling_sets(n_clients: int) -> Masks:
    """Return two sets, every other client and everybody, that show which entries affect which."""
    return np.stack([np.arange(n_clients) % 2 == 0, np.full(n_clients, True)])


def balanced_units(
    algorithm: Algorithm, slopes: Callable[[str], FloatArray], shapes: Mapping[str, tuple[int, ...]]
) -> FloatArray:
    """Return units in which each entry of memory and the other entries affect each other equally.

    Parameters
    ----------
    algorithm : Algorithm
    slopes : callable
        Returns the slopes of a branch's round, (sets, n, n). Later sets matter only where one entry
        does not affect another in the first set.
    shapes : mapping of str to tuple of int
        Shapes of the state's entries, with the model first.

    Returns
    -------
    array, (n,)
        Powers of two, which are 1 for the model. The unit of memory that affects nothing follows
        from how the other entries affect it.
    """
    widths = [width for width in map(prod, shapes.values()) if width]
    if len(widths) == 1:
        return np.ones(widths[0])
    first, units = np.cumsum([0, *widths[:-1]]), np.ones(len(widths))
    effects = np.zeros((len(widths), len(widths)))
    with np.errstate(over="ignore"):
        squares = np.sum([p * slopes(name) ** 2 for name, p in algorithm.branches if p > 0], axis=0)
        for sums in np.add.reduceat(np.add.reduceat(squares, first, axis=1), first, axis=2):
            effects = np.where(effects > 0, effects, np.sqrt(sums))
    effects[~np.isfinite(effects) | (effects <= _NO_EFFECT)] = 0.0
    np.fill_diagonal(effects, 0.0)
    # A model that is only an output affects nothing. The entries from which it is made are then
    # measured in the same unit.
    effects[:, 0] = np.where(effects[:, 0] > 0, effects[:, 0], effects[0])
    for entry in _SWEEPS * list(range(1, len(widths))):
        of_others = np.linalg.norm(effects[entry] * units)
        on_others = np.linalg.norm(effects[:, entry] / units)
        if of_others > 0:
            units[entry] = np.sqrt(of_others / on_others) if on_others > 0 else of_others
    return np.repeat(2.0 ** np.rint(np.log2(units)), widths)


def _model_first(state: State) -> list[str]:
    return ["x", *sorted(name for name in state if name != "x")]


def _flat(state: State) -> FloatArray:
    return joined(state, _model_first(state))
