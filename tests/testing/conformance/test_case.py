from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fltheory.testing.conformance.case import Case, QuadraticClient


def _case(**changed: Any) -> Case:
    clients = tuple(
        QuadraticClient(np.diag([1.0 + k, 2.0]), np.array([4.0 * k, 1.0]), n_samples=k)
        for k in range(3)
    )
    trace = np.array([[1, 1, 0], [0, 0, 0], [0, 1, 1]], dtype=bool)
    return replace(Case(clients, np.array([1.0, 2.0]), trace, 0.5, 2), **changed)


def test_options_follow_the_order_of_clients() -> None:
    options = {"availability": (0.1, 0.2, 0.3), "size": 2, "prior": (1.0, 2.0)}
    turned = _case(options=options, local_steps=(1, 2, 3)).ordered([2, 0, 1])
    assert turned.options == {**options, "availability": (0.3, 0.1, 0.2)}
    assert turned.local_steps == (3, 1, 2)
    assert [client.n_samples for client in turned.clients] == [2, 0, 1]
    assert turned.trace[0].tolist() == [False, True, True]


def test_of_fewer_clients_shares_sum_to_one_and_the_size_fits() -> None:
    fewer = _case(options={"target_weights": (0.5, 0.25, 0.25), "size": 3}).ordered([0, 2])
    assert fewer.options["target_weights"] == pytest.approx((2 / 3, 1 / 3))
    assert fewer.options["size"] == 2


def test_smaller_cases_lack_one_thing_each() -> None:
    case = _case(local_steps=2)
    shapes = [
        (one.rounds, one.n_clients, one.dim, one.local_steps, int(one.trace.sum()))
        for one in case.smaller(fewer_clients=True, fewer_steps=True)
    ]
    assert shapes[:3] == [(2, 3, 2, 2, 2), (2, 3, 2, 2, 4), (2, 3, 2, 2, 2)]
    assert shapes[3:6] == [(3, 2, 2, 2, 3), (3, 2, 2, 2, 2), (3, 2, 2, 2, 3)]
    assert shapes[6:8] == [(3, 3, 1, 2, 4), (3, 3, 2, 1, 4)]
    assert shapes[8:] == [(3, 3, 2, 2, 3)] * 4
    kept = list(case.smaller(fewer_clients=False, fewer_steps=False))
    assert {one.n_clients for one in kept} == {3}
    assert {one.local_steps for one in kept} == {2}


def test_the_least_case_has_nothing_left_to_leave_out() -> None:
    least = _case(local_steps=1).ordered([0]).first_rounds(1).in_dimension(1)
    (only,) = least.smaller(fewer_clients=True, fewer_steps=True)
    assert not only.trace.any()


def test_fewer_dimensions_are_the_first_ones() -> None:
    flat = QuadraticClient(np.zeros((2, 2)), np.zeros(2), slope=np.array([3.0, 4.0]))
    case = _case(clients=(flat,), trace=np.ones((1, 1), dtype=bool)).in_dimension(1)
    assert case.clients[0].gradient(np.zeros(1)).tolist() == [3.0]
    assert case.x0.tolist() == [1.0]


def test_the_scale_is_the_largest_number_there_is() -> None:
    assert _case().scale == 8.0
    assert _case(x0=np.array([-9.0, 0.0])).scale == 9.0


@pytest.mark.parametrize(
    "changed",
    [
        {"x0": np.array([1.0, 2.5])},
        {"trace": np.ones((3, 3), dtype=bool)},
        {"server_lr": 0.5},
        {"options": {"option": 1}},
        {"local_steps": 3},
    ],
)
def test_cases_that_differ_have_other_keys(changed: dict[str, Any]) -> None:
    assert _case(**changed).key != _case().key
    assert _case().key == _case().key


def test_the_text_says_who_is_present_when() -> None:
    text = _case(options={"option": 1}).described()
    assert "N = 3 clients, d = 2, 3 rounds, client_lr=0.5, local_steps=2" in text
    assert "option=1" in text
    assert "round 1: clients 0, 1 present\nround 2: nobody present\nround 3: clients 1, 2" in text
    assert "client 2: gradient(x) = [3 0; 0 2] (x - (8, 1))" in text
    long = _case(trace=np.ones((30, 3), dtype=bool)).described()
    assert long.endswith("... 6 more rounds")
    assert "round 25" not in long
    assert "more rounds" not in _case(trace=np.ones((24, 3), dtype=bool)).described()
