"""Observables that theorems name, against hand-made numbers and enumeration."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracles import random_problem

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting, exact
from fltheory.engines.clients.analytic_clients import QuadraticClients, Silence
from fltheory.engines.observables import (
    Observable,
    ParticipantExcessLoss,
    ParticipantGradientSum,
    QuadraticForm,
    standard_forms,
    standard_samples,
)
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem

OBSERVABLES: list[Observable] = [ParticipantExcessLoss(), ParticipantGradientSum(3, 0.2)]


def value(form: QuadraticForm, offset: np.ndarray) -> float:
    return float(offset @ form.matrix @ offset + 2 * form.vector @ offset + form.constant)


@pytest.mark.parametrize("observable", OBSERVABLES, ids=lambda item: item.name)
@pytest.mark.parametrize("shared", [True, False])
def test_form_is_the_mean_sample_over_participant_sets(
    observable: Observable, shared: bool
) -> None:
    """Without noise the form at a model is the plain average over all 6 sets."""
    problem = random_problem(0, 4, 3, shared=shared, sigma=0.0)
    form = observable.form(problem, UniformSubset(4, 2))
    masks = np.zeros((6, 4), dtype=bool)
    for row, members in enumerate(combinations(range(4), 2)):
        masks[row, list(members)] = True
    clients = QuadraticClients(problem, Silence())
    for x in np.random.default_rng(1).standard_normal((5, 3)):
        samples = observable.sample(problem, clients, np.tile(x, (6, 1)), masks)
        np.testing.assert_allclose(value(form, x - problem.x_star), samples.mean(), rtol=1e-11)


def test_gradient_sum_by_hand() -> None:
    """h = 2, lr = 1/4, K = 2 from x = 1 with c = -1: gradients 4 and 2, squared sum 36.

    Noise of variance 1 in the first step moves the second gradient by -lr h xi = -xi / 2:
    0.25 more. Both clients (mirrored) present: sums 6 and 0, mean 3, and half the noise.
    """
    problem = QuadraticProblem([[2.0]], [[-1.0], [1.0]], sigma=1.0)
    observable = ParticipantGradientSum(2, 0.25)
    alone, both = (observable.form(problem, UniformSubset(2, size)) for size in (1, 2))
    np.testing.assert_allclose(value(alone, np.array([1.0])), (36 + 0) / 2 + 0.25, rtol=1e-13)
    np.testing.assert_allclose(value(both, np.array([1.0])), 9 + 0.125, rtol=1e-13)


def test_envelope_of_a_gradient_sum_by_hand() -> None:
    """The same steps: 2 r, and r once a step has halved the distance; noise moves that by xi / 2.

    Beyond the distance a client adds 2 in each gradient, and at most 1 by where a step leads it.
    """
    problem = QuadraticProblem([[2.0]], [[-1.0], [1.0]], sigma=1.0)
    found = ParticipantGradientSum(2, 0.25).envelope(problem)
    assert (found.slope, found.level, found.noise, found.spread) == (3.0, 5.0, 0.5, 0.5)


def test_participant_excess_loss_by_hand() -> None:
    """F_i = (x + 1)^2, (x - 1)^2: at x = 2 they exceed their values at 0 by 8 and 0."""
    problem = QuadraticProblem([[2.0]], [[-1.0], [1.0]])
    form = ParticipantExcessLoss().form(problem, UniformSubset(2, 1))
    np.testing.assert_allclose(value(form, np.array([2.0])), 4.0, rtol=1e-14)
    only_first = ParticipantExcessLoss().form(problem, UniformSubset(2, 1, excluded=(1,)))
    np.testing.assert_allclose(value(only_first, np.array([2.0])), 8.0, rtol=1e-14)
    np.testing.assert_allclose(value(only_first, np.array([-1.0])), -1.0, rtol=1e-14)


def test_participant_excess_loss_needs_a_fixed_size() -> None:
    class Anyone:
        fixed_size = None

    problem = QuadraticProblem([[2.0]], [[-1.0], [1.0]])
    with pytest.raises(ValueError, match=r"participation must have a fixed number"):
        ParticipantExcessLoss().form(problem, Anyone())


def test_standard_quantities_of_a_point(mixed_hessians: QuadraticProblem) -> None:
    """Distance, gradient and excess loss from the definition of F, at random points."""
    problem = mixed_hessians
    points = np.random.default_rng(2).standard_normal((5, 2))
    samples = np.array(standard_samples(problem, points))
    forms = standard_forms(problem)

    def total(x: np.ndarray) -> float:
        gaps = x - problem.optima
        return 0.5 * sum(
            a * gap @ h @ gap
            for a, h, gap in zip(problem.alpha, problem.hessians, gaps, strict=True)
        )

    for column, x in enumerate(points):
        gradient = sum(
            a * h @ (x - c)
            for a, h, c in zip(problem.alpha, problem.hessians, problem.optima, strict=True)
        )
        expected = {
            "squared_distance": np.sum((x - problem.x_star) ** 2),
            "squared_gradient": gradient @ gradient,
            "excess_loss": total(x) - total(problem.x_star),
        }
        for row, (name, number) in enumerate(expected.items()):
            np.testing.assert_allclose(samples[row, column], number, rtol=1e-11)
            np.testing.assert_allclose(value(forms[name], x - problem.x_star), number, rtol=1e-11)


def test_observed_quantities_are_found_by_name(two_points: QuadraticProblem) -> None:
    observe = [ParticipantGradientSum(1, 0.1, name="G_2"), ParticipantExcessLoss(name="G_4")]
    run = exact(Setting(FedAvg(0.1, 1), two_points, UniformSubset(2, 1), 3, [1.0]), observe=observe)
    assert set(run.observed) == {"G_2", "G_4"}
    assert run["G_2"].shape == run["squared_gradient"].shape == (4,)
    with pytest.raises(ValueError, match=r"name must be one of squared_distance.*G_4, got 'G_3'"):
        run["G_3"]


def test_error_of_a_form_by_hand() -> None:
    """3 s^2 + 2 x 5 s - 7 with E s^2 = 16, a distance of 4.

    Of moments 3 x .3 + 2 x 5 x .2; of reading out a hundredth (the roundings of floats are far
    below) of 3 x 16 + 2 x 5 x 4 + 7; of an origin that is off by a tenth
    .1 (3 (2 x 4 + .1) + 2 x 5).
    """
    form = QuadraticForm(np.array([[3.0]]), np.array([5.0]), -7.0, relative_error=0.01)
    found = form.error(np.array([16.0]), np.array([0.3]), np.array([0.2]), 0.1)
    assert found.tolist() == pytest.approx([2.9 + 0.95 + 3.43], rel=1e-12)


def test_without_a_split_of_gradients_their_sum_has_no_envelope() -> None:
    problem: Any = SimpleNamespace(sigma=1.0, dim=2)
    assert ParticipantGradientSum(2, 0.25).envelope(problem) is None
