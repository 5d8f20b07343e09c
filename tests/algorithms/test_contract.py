"""What an algorithm and a backend have by subclassing their contracts."""

from __future__ import annotations

import numpy as np
import pytest
from array_api_compat import array_namespace

from fltheory.algorithms.contract import CLIENTS, Algorithm, Clients


class Idle(Algorithm):
    def round(self, state, clients, who, branch):
        return state


class Told(Clients):
    """Clients whose changes are told: 1, 2 and 3 of those present."""

    n_clients = 3

    def local_sgd(self, x, who, *, steps, lr, correction=None, proximal=0):
        xp = array_namespace(x)
        return (xp.astype(who, x.dtype) * xp.asarray([[1.0, 2.0, 3.0]], dtype=x.dtype))[:, :, None]

    def loss(self, x, who):
        raise AssertionError

    def server_gradient(self, x):
        raise AssertionError


def test_an_algorithm_has_clients_rounds_and_a_server_that_knows_the_model_alone() -> None:
    start = np.zeros((2, 1))
    assert Idle().branches == ((CLIENTS, 1.0),)
    assert list(Idle().init(start, 3)) == ["x"]


def test_a_class_that_writes_no_round_is_none() -> None:
    class Nothing(Algorithm):
        pass

    with pytest.raises(TypeError, match="round"):
        Nothing()  # type: ignore[abstract]


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_the_plain_sum_leaves_out_whoever_is_absent_whatever_its_weight(library: str) -> None:
    xp = pytest.importorskip(library)
    x, who = xp.zeros((1, 1)), xp.asarray([[True, False, True]])
    weights = xp.asarray([[0.5, np.inf, 2.0]], dtype=x.dtype)
    total = Told().summed_local_sgd(x, who, weights, steps=1, lr=0.1)
    assert total.tolist() == [[0.5 * 1 + 2 * 3]]
    assert total.dtype == x.dtype
