"""Clients on forms: local maps against plain loops, and answers against those on numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import random_problem

from fltheory.engines.affine.numbers import FLOAT64, RATIONAL, as_fraction
from fltheory.engines.affine.symbolic.clients import ClientNumbers, FormClients
from fltheory.engines.affine.symbolic.forms import (
    AffineArray,
    NotAffineError,
    Space,
    noise_covariance,
)
from fltheory.engines.clients.analytic_clients import QuadraticClients, Silence
from fltheory.problems import QuadraticProblem
from tests.engines.impulses import CountedSilence, UnitImpulses

HESSIANS = [[[1.25, 0.5], [0.5, 0.75]], [[0.9, -0.1], [-0.1, 0.4]]]
OPTIMA = [[0.3, -1.1], [2.0, 0.7]]


def problem_of(shared: bool) -> QuadraticProblem:
    return QuadraticProblem(
        HESSIANS[0] if shared else HESSIANS, OPTIMA, sigma=0.6, server_sigma=0.4
    )


def local_loops(
    hessian: list[list[float]], steps: int, lr: Fraction, proximal: Fraction
) -> tuple[np.ndarray, ...]:
    """Return slope, push and noise of K steps, one after another, in fractions."""
    decimal = np.vectorize(lambda value: Fraction(repr(float(value))), otypes=[object])
    h, eye = decimal(hessian), decimal(np.eye(2))
    slope, push, noise = 0 * eye, 0 * eye, 0 * eye
    level = Fraction(6, 10) ** 2 / 2
    for _ in range(steps):
        shrink = eye - lr * (h + proximal * eye)
        slope, push = shrink @ slope - lr * h, shrink @ push - lr * eye
        noise = shrink @ noise @ shrink + lr**2 * level * eye
    return slope, push, noise


def test_maps_of_few_step_sizes_are_kept() -> None:
    """A schedule has as many as rounds; the last are the same arrays again, the first are not."""
    numbers = ClientNumbers(problem_of(False), FLOAT64)
    rates = [0.01 * (round_index + 1) for round_index in range(20)]
    made = [numbers.local_maps(2, rate) for rate in rates]
    assert numbers.local_maps(2, rates[-1]) is made[-1]
    again = numbers.local_maps(2, rates[0])
    assert again is not made[0]
    np.testing.assert_array_equal(again.slope, made[0].slope)


@given(
    st.integers(1, 12),
    st.sampled_from([0.1, 0.35, 0.01]),
    st.booleans(),
    st.sampled_from([0.0, 0.3, 4.0]),
)
def test_local_maps_are_those_of_loops(
    steps: int, lr: float, shared: bool, proximal: float
) -> None:
    """Equal in fractions, and to 1e-13 in floats."""
    problem = problem_of(shared)
    given = RATIONAL.parameter(lr), RATIONAL.parameter(proximal)
    exact = ClientNumbers(problem, RATIONAL).local_maps(steps, *given)
    near = ClientNumbers(problem, FLOAT64).local_maps(steps, lr, proximal)
    for client in range(1 if shared else 2):
        numbers = Fraction(repr(lr)), Fraction(repr(proximal))
        expected = local_loops(HESSIANS[client], steps, *numbers)
        for name, values in zip(("slope", "push", "noise"), expected, strict=True):
            found = getattr(exact, name)[client]
            assert [as_fraction(item) for item in found.flat] == list(values.flat)
            size = float(abs(values).max())
            floats = getattr(near, name)[client]
            np.testing.assert_allclose(floats, values.astype(float), atol=1e-13 * size, rtol=0)


CORRECTION = np.random.default_rng(5).standard_normal((1, 3, 2))
WEIGHTS = np.array([[0.5, 0.2, 0.7]])


def corrections(who: np.ndarray) -> np.ndarray:
    return np.tile(CORRECTION, (len(who), 1, 1))


ANSWERS = {
    "local SGD": lambda c, x, who: c.local_sgd(x, who, steps=3, lr=0.2),
    "corrected": lambda c, x, who: c.local_sgd(
        x, who, steps=3, lr=0.2, correction=corrections(who)
    ),
    "a sum": lambda c, x, who: c.summed_local_sgd(x, who, WEIGHTS, steps=3, lr=0.2),
    "a corrected sum": lambda c, x, who: c.summed_local_sgd(
        x, who, WEIGHTS, steps=3, lr=0.2, correction=corrections(who)
    ),
    "held back": lambda c, x, who: c.local_sgd(x, who, steps=3, lr=0.2, proximal=0.7),
    "a sum of those held back": lambda c, x, who: c.summed_local_sgd(
        x, who, WEIGHTS, steps=3, lr=0.2, correction=corrections(who), proximal=0.7
    ),
    "gradients": lambda c, x, who: c.summed_local_gradients(x, who, WEIGHTS, steps=3, lr=0.2),
    "the server": lambda c, x, who: c.server_gradient(x),
}


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_those_on_numbers(name: str, shared: bool) -> None:
    """At random models, and with the noise read off one unit impulse after another."""
    problem = random_problem(4, 3, 2, shared=shared)
    masks = np.array([[True, False, True], [True, True, True], [False, False, False]])
    space, answer = Space(FLOAT64, 2), ANSWERS[name]
    symbols = np.concatenate([np.zeros((2, 1)), np.eye(2)], axis=1)
    x = AffineArray(space, np.tile(symbols, (3, 1, 1)))
    forms = answer(FormClients(ClientNumbers(problem, FLOAT64), space), x, masks)
    model = np.random.default_rng(1).standard_normal(2)
    silence = CountedSilence()
    models = np.tile(model, (3, 1))
    silent = answer(QuadraticClients(problem, silence), models, masks)
    np.testing.assert_allclose(
        forms.constant + forms.linear(2) @ model, silent, rtol=1e-12, atol=1e-13
    )
    covariance = noise_covariance(forms.reshape(3, -1))
    count = silence.numbers_per_replica
    assert count > 0
    for row, mask in enumerate(masks):
        impulses = UnitImpulses(np.arange(count))
        many = np.tile(model, (count, 1))
        images = answer(QuadraticClients(problem, impulses), many, np.tile(mask, (count, 1)))
        columns = (images - silent[row]).reshape(count, -1)
        np.testing.assert_allclose(covariance[row], columns.T @ columns, atol=1e-13)


def test_losses_of_a_model_that_is_known() -> None:
    problem = random_problem(4, 3, 2)
    space = Space(FLOAT64, 2)
    models = np.array([[0.5, -1.0], [2.0, 0.0]])
    masks = np.array([[True, False, True], [True, True, True]])
    clients = FormClients(ClientNumbers(problem, FLOAT64), space)
    found = clients.loss(space.constants(models), masks)
    expected = QuadraticClients(problem, Silence()).loss(models, masks)
    np.testing.assert_allclose(found.constant, expected, rtol=1e-13)
    assert clients.n_clients == 3


def test_losses_and_weights_that_depend_on_the_model_are_refused() -> None:
    problem = random_problem(4, 3, 2)
    space = Space(FLOAT64, 2)
    x = AffineArray(space, np.concatenate([np.zeros((2, 1)), np.eye(2)], axis=1)[None])
    clients, who = FormClients(ClientNumbers(problem, FLOAT64), space), np.ones((1, 3), dtype=bool)
    with pytest.raises(
        NotAffineError, match="takes the losses of a value that depends on the model"
    ):
        clients.loss(x, who)
    with pytest.raises(NotAffineError, match="takes weights of clients of a value that depends"):
        clients.summed_local_sgd(x, who, x[:, :1] * np.ones((1, 3)), steps=1, lr=0.1)
