"""An algorithm's state as one vector, the model first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from fltheory.algorithms.contract import Algorithm, State
from fltheory.engines.observables import QuadraticForm
from fltheory.engines.probe import StateFunction
from fltheory.engines.quadratic_clients import QuadraticClients
from fltheory.participation.base import Masks
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class StateLayout:
    """Where each entry of the state lies in the vector.

    Attributes
    ----------
    origin : array, (n,)
        The state of an algorithm that starts at x*; moments are taken around it.
    shapes : mapping of str to tuple of int
        Shape of each entry, the model ``"x"`` first.
    """

    origin: FloatArray
    shapes: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, algorithm: Algorithm, problem: QuadraticProblem) -> StateLayout:
        """Return the layout of an algorithm's state."""
        state = algorithm.init(problem.x_star[None], problem.n_clients)
        shapes = {name: np.shape(state[name])[1:] for name in _model_first(state)}
        return cls(_flat(state)[0], shapes)

    def start(self, algorithm: Algorithm, problem: QuadraticProblem, x0: FloatArray) -> FloatArray:
        """Return the initial state's offset from the origin, (n,)."""
        return np.asarray(_flat(algorithm.init(x0[None], problem.n_clients))[0] - self.origin)

    def function(self, algorithm: Algorithm, branch: str) -> StateFunction:
        """Return one branch of the algorithm's round as a function of vectors."""

        def run(states: FloatArray, clients: QuadraticClients, who: Masks) -> FloatArray:
            return _flat(algorithm.round(self._state(states), clients, who, branch))

        return run

    def form(self, form: QuadraticForm) -> QuadraticForm:
        """Return a form in the model's offset as a form in the state's."""
        memory = self.origin.size - form.vector.size
        return replace(
            form,
            matrix=np.pad(form.matrix, ((0, memory), (0, memory))),
            vector=np.pad(form.vector, (0, memory)),
        )

    def _state(self, vectors: FloatArray) -> State:
        state, first = {}, 0
        for name, shape in self.shapes.items():
            width = int(np.prod(shape))
            state[name] = vectors[:, first : first + width].reshape(-1, *shape)
            first += width
        return state


def _model_first(state: State) -> list[str]:
    return ["x", *sorted(name for name in state if name != "x")]


def _flat(state: State) -> FloatArray:
    parts = [state[name].reshape(state["x"].shape[0], -1) for name in _model_first(state)]
    return np.concatenate(parts, axis=1)
