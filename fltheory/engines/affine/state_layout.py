"""An algorithm's state as one vector, the model first."""

from __future__ import annotations

from collections.abc import Mapping
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

_NO_PULL = 1e-9


@dataclass(frozen=True, eq=False)
class StateLayout:
    """The position and scale of each entry of the state in the vector.

    Attributes
    ----------
    origin : array, (n,)
        The model x* and the memory that ``init`` sets up there, around which moments are taken.
    shapes : mapping of str to tuple of int
        Shape of each entry; the model ``"x"`` comes first.
    units : array, (n,)
        Size in the state of one unit in the vector: powers of two, 1 for the model. Rounding errors
        are bounded in the norm of the vector, so memory is measured in units in which it moves the
        model about as much as the model moves the memory.
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
        """Return the units that balance memory and model in a round of every other client."""
        units = self.units
        if units.size == problem.dim:
            return units
        branch = max(algorithm.branches, key=lambda named: named[1])[0]
        probe = Probe(self.function(algorithm, branch), problem, self.origin, self.origin)
        every_other = np.arange(problem.n_clients)[None] % 2 == 0
        try:
            slope = probe.maps(every_other).slopes[0]
        except RoundOverflowError:
            return units
        return balanced_units(slope, self.shapes)

    def form(self, form: QuadraticForm) -> QuadraticForm:
        """Return a quadratic form in the model's offset as a form in the state's offset."""
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


def balanced_units(slope: FloatArray, shapes: Mapping[str, tuple[int, ...]]) -> FloatArray:
    """Return units in which each entry of the memory and the model affect each other equally."""
    widths = [prod(shape) for shape in shapes.values()]
    units, first, dim = np.ones(sum(widths)), widths[0], widths[0]
    for width in widths[1:]:
        part = slice(first, first + width)
        units[part] = _balance(slope[part, :dim], slope[:dim, part])
        first = part.stop
    return units


def _balance(from_model: FloatArray, to_model: FloatArray) -> float:
    """Return the root of the ratio of two maps' sizes, to the nearest power of two.

    Memory that does not move the model gets the size that the model gives it.
    """
    from_size, to_size = np.linalg.norm(from_model), np.linalg.norm(to_model)
    if not from_size > _NO_PULL:
        return 1.0
    unit = np.sqrt(from_size / to_size) if to_size > _NO_PULL else from_size
    return float(2.0 ** np.rint(np.log2(unit)))


def _model_first(state: State) -> list[str]:
    return ["x", *sorted(name for name in state if name != "x")]


def _flat(state: State) -> FloatArray:
    return joined(state, _model_first(state))
