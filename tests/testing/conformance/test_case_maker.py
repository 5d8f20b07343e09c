from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from fltheory.testing.conformance import case_maker
from fltheory.testing.conformance.case import Case, QuadraticClient
from fltheory.testing.conformance.case_maker import CaseMaker, steady
from fltheory.testing.conformance.specifications import SPECIFICATIONS

SEEDS = range(10)


@pytest.mark.parametrize("seed", SEEDS)
def test_traces_are_what_their_names_say(seed: int) -> None:
    rng, rounds, n = np.random.default_rng(seed), 12, 4
    assert case_maker.full(rng, rounds, n).all()
    assert (case_maker.uniform(rng, rounds, n).sum(axis=1) == 2).all()
    empty = case_maker.with_empty(rng, rounds, n)
    assert not empty[[0, 6, 11]].any()
    assert empty.any()
    late = case_maker.late(rng, rounds, n)
    assert np.flatnonzero(late[:, 3])[0] == 8
    assert late[:8, 2].any()
    away = case_maker.long_absence(rng, rounds, n)[:, 0]
    assert np.flatnonzero(away).tolist() == [0, 10, 11]
    never = case_maker.never(rng, rounds, n)
    assert not never[:, 3].any()
    assert never[:, 2].any()
    assert case_maker.never(rng, rounds, 1).all()


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_what_is_fixed_is_kept_and_steps_are_stable(name: str) -> None:
    one, fixed = SPECIFICATIONS[name], {"client_lr": 0.125, "server_lr": 0.75}
    make = CaseMaker(one, fixed, np.random.default_rng(0))
    case = make.case(case_maker.bursty, n=4, dim=3, rounds=5, sizes=(1, 2, 3))
    rate, n = 0.75 if one.server_lr else None, 4 + one.server
    assert (case.client_lr, case.server_lr, case.n_clients, case.dim) == (0.125, rate, n, 3)
    assert [client.n_samples for client in case.clients] == [1, 2, 3, *[1] * (n - 3)]
    for client in case.clients:
        assert np.linalg.eigvalsh(0.125 * client.hessian).max() < 0.6 + 1e-12
        assert np.linalg.eigvalsh(0.125 * client.hessian).min() > 0.1 - 1e-12


def test_a_stiff_proximal_term_makes_steps_small() -> None:
    make = CaseMaker(SPECIFICATIONS["fedprox"], {"proximal": 100.0}, np.random.default_rng(0))
    assert make.case(client_lr=2.0).client_lr == pytest.approx(0.013)
    free = CaseMaker(SPECIFICATIONS["fedprox"], {}, np.random.default_rng(0))
    assert free.case(client_lr=2.0).client_lr == 2.0


@pytest.mark.parametrize("told", [None, lambda case: replace(case, x0=np.zeros(case.dim))])
def test_no_case_depends_on_a_tie(told: Callable[[Case], Case] | None) -> None:
    """Also where it is told in another way: in half of those drawn it matters who goes first."""
    one = SPECIFICATIONS["ca-fed"]
    hyper = one.checked({"availability": None, "kappa_bar": 0.0})
    make = CaseMaker(one, hyper, np.random.default_rng(0))
    assert not all(steady(one, make.drawn(case_maker.bursty, n=6, rounds=16)) for _ in range(8))
    for _ in range(4):
        case = make.case(case_maker.bursty, n=6, rounds=16, told=told)
        assert steady(one, case)
        assert told is None or not case.x0.any()


def test_a_client_has_one_sample_and_the_gradient_of_its_loss() -> None:
    client = QuadraticClient(np.array([[2.0]]), np.array([3.0]), slope=np.array([0.5]))
    assert client.n_samples == 1
    assert client.gradient(np.array([4.0])).tolist() == [2.5]
    assert client.loss(np.array([4.0])) == 1.0 + 2.0
