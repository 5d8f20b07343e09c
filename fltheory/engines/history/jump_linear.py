"""The exact engine along a chain of participants: moments for each state of the chain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeGuard

import numpy as np

from fltheory.algorithms.contract import Algorithm, in_round
from fltheory.engines.affine.probe import UNIT_ROUNDOFF, DependentRoundsError, RoundOverflowError
from fltheory.engines.affine.probing import MOST_SETS
from fltheory.engines.affine.state_layout import StateLayout
from fltheory.engines.history.jump_map import DistinctSets, JumpMap, MomentErrors, Moments, jump_map
from fltheory.engines.moments.error_growth import ErrorGrowth, SteadyGrowth
from fltheory.engines.observables import Observable, QuadraticForm, standard_forms
from fltheory.engines.rounds import runs_of_rounds
from fltheory.engines.setting import Setting
from fltheory.engines.trajectory import OVERFLOW, Trajectory, exact_trajectory
from fltheory.participation import FiniteChain
from fltheory.participation.base import Participation
from fltheory.participation.process import Process, process_of
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray


def runs_along_chain(participation: Participation) -> TypeGuard[Process]:
    """Say whether exact moments must be kept apart by a chain's state.

    Raises
    ------
    DependentRoundsError
        If the chain has more states than can be followed.
    """
    n_states = process_of(participation).n_states
    if participation.independent or n_states is None:
        return False
    if n_states > MOST_SETS:
        raise DependentRoundsError(
            f"participation must be independent over rounds, or have at most {MOST_SETS} states, "
            f"for exact moments, got {participation!r} with {n_states}: "
            "use engines.monte_carlo, or engines.paths with drawn paths"
        )
    return True


def follow_chain(
    setting: Setting, problem: QuadraticProblem, observe: Sequence[Observable]
) -> Trajectory:
    """Follow the moments of the model and the chain's state together.

    Raises
    ------
    NotAffineError
        If a round is not affine given who takes part.
    RoundOverflowError
        If an observable, or an algorithm without schedule, exceeds the range of float64.
    """
    states = process_of(setting.participation).states()
    sets = DistinctSets.of(states)
    first = in_round(setting.algorithm, 1)
    layout = StateLayout.of(first, problem)

    def step_of(algorithm: Algorithm) -> JumpMap:
        return jump_map(algorithm, problem, layout, states, sets)

    steps = runs_of_rounds(setting.algorithm, step_of, setting.rounds)
    start = layout.start(first, problem, setting.x0)
    forms = _state_forms(problem, layout, sets, observe)
    n_values = setting.rounds + 1
    values = np.full((len(forms), n_values), np.inf)
    errors = np.full((len(forms), n_values), np.inf)
    diverged_at = None
    for index, (moments, bounds) in enumerate(_run(steps, *_initial(start, states.initial))):
        now = np.array([form.expectation(moments) for form in forms.values()])
        if not (np.abs(now) < OVERFLOW).all() or not moments.traces.sum() < OVERFLOW:
            diverged_at = index
            break
        values[:, index] = now
        errors[:, index] = [
            form.error(moments, bounds, problem.x_star_error) for form in forms.values()
        ]
    return exact_trajectory(
        dict(zip(forms, values, strict=True)), dict(zip(forms, errors, strict=True)), diverged_at
    )


def _initial(start: FloatArray, law: FloatArray) -> tuple[Moments, MomentErrors]:
    size = float(np.linalg.norm(start))
    error = 2 * UNIT_ROUNDOFF * size
    moments = Moments(law, np.outer(law, start), np.multiply.outer(law, np.outer(start, start)))
    return moments, MomentErrors(
        np.zeros_like(law),
        (error + UNIT_ROUNDOFF * size) * law,
        (2 * size * error + error**2 + 4 * UNIT_ROUNDOFF * size**2) * law,
    )


def _run(
    steps: Iterator[tuple[JumpMap, int]], moments: Moments, errors: MomentErrors
) -> Iterator[tuple[Moments, MomentErrors]]:
    """Yield the moments before and after every round; where a map overflows, infinite ones."""
    yield moments, errors
    growth: SteadyGrowth | ErrorGrowth
    try:
        for step, count in steps:
            growth = step.rounding.one_round(*_sums(errors))
            for index in range(count):
                after, fresh = errors.after(step, moments)
                if index > 0 and isinstance(growth, SteadyGrowth) and growth.second_gain > 1:
                    growth = step.growth(*_sums(errors))
                growth.add(*fresh)
                errors = replace(after, totals=(growth.second, growth.first))
                moments = step(moments)
                yield moments, errors
    except RoundOverflowError:
        yield (
            Moments(moments.weights, moments.first, np.full_like(moments.second, np.inf)),
            errors,
        )


def _sums(errors: MomentErrors) -> tuple[float, float]:
    """Return the best bounds on the sums over states of M's and of m's errors."""
    second, first = errors.totals
    return min(second, float(errors.second.sum())), min(first, float(errors.first.sum()))


@dataclass(frozen=True, eq=False)
class StateForms:
    """A quadratic form in the state's offset for every state of a chain.

    matrices (M, n, n), vectors (M, n), constants and relative errors (M,).
    """

    matrices: FloatArray
    vectors: FloatArray
    constants: FloatArray
    relative_errors: FloatArray

    @classmethod
    def of(cls, forms: Sequence[QuadraticForm]) -> StateForms:
        """Stack forms, one a state."""
        return cls(
            np.stack([form.matrix for form in forms]),
            np.stack([form.vector for form in forms]),
            np.array([form.constant for form in forms]),
            np.array([form.relative_error for form in forms]),
        )

    def expectation(self, moments: Moments) -> float:
        """Return the form's expectation."""
        return float(
            (self.matrices * moments.second).sum()
            + 2 * (self.vectors * moments.first).sum()
            + (self.constants * moments.weights).sum()
        )

    @cached_property
    def _sizes(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        curvatures = np.sqrt((self.matrices**2).sum(axis=(1, 2)))
        return curvatures, np.sqrt((self.vectors**2).sum(axis=1)), np.abs(self.constants)

    def error(self, moments: Moments, errors: MomentErrors, origin_error: float) -> float:
        """Bound the expectation's rounding error to first order, as `QuadraticForm.error`."""
        curvature, slope, constant = self._sizes
        traces, weights = moments.traces, moments.weights
        distance = np.sqrt(traces * weights)
        size = curvature * traces + 2 * slope * distance + constant * weights
        n = self.vectors.shape[1]
        operations = n * n + n + 1 + len(weights)
        readout = 8 * operations * UNIT_ROUNDOFF + self.relative_errors
        shifted = curvature * (2 * distance + origin_error * weights) + 2 * slope * weights
        of_moments = min(
            float((curvature * errors.second + 2 * slope * errors.first).sum()),
            float(curvature.max() * errors.totals[0] + 2 * slope.max() * errors.totals[1]),
        )
        bounds = constant * errors.weights + readout * size + shifted * origin_error
        return of_moments + float(bounds.sum())


def _state_forms(
    problem: QuadraticProblem,
    layout: StateLayout,
    sets: DistinctSets,
    observe: Sequence[Observable],
) -> Mapping[str, StateForms]:
    """Return every form, given the state; observables as if its set took part for certain."""
    forms = {
        name: StateForms.of([layout.form(form)]) for name, form in standard_forms(problem).items()
    }
    certain = [FiniteChain([[1.0]], mask[None]) for mask in sets.masks]
    for item in observe:
        each = [layout.form(item.form(problem, participation)) for participation in certain]
        forms[item.name] = StateForms.of([each[index] for index in sets.of_state])
    return forms
