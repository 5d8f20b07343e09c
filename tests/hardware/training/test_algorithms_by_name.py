"""Algorithms by name get what they are told, and know what an oracle knows."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from fltheory import algorithms  # noqa: E402
from fltheory.algorithms.shared.inactivity_weights import CappedLinear  # noqa: E402
from fltheory.algorithms.table import ALGORITHMS  # noqa: E402
from fltheory.hardware.training.named_parts import NamedMethod, circumstances  # noqa: E402
from fltheory.participation import Bernoulli, MarkovOnOff  # noqa: E402

PI, NU = [0.9, 0.5, 0.1], [0.9, 0.0, 0.5]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_method_is_an_algorithm_with_the_steps_given(name: str) -> None:
    given = circumstances(0.25, 7, 0.125, 50, MarkovOnOff(PI, NU))
    options = ALGORITHMS[name].example(3)
    made = NamedMethod(name, options).algorithm(given)
    assert made.client_lr == 0.25
    assert made.local_steps == 7
    made.init(np.zeros((1, 2)), 3)
    extra = {} if name == "safari" else {"server_lr": 0.5}
    assert (
        getattr(NamedMethod(name, {**options, **extra}).algorithm(given), "server_lr", 0.5) == 0.5
    )


def test_oracles_know_who_is_how_available() -> None:
    given = circumstances(0.25, 7, None, 50, MarkovOnOff(PI, NU))
    ca_fed = NamedMethod("CA-Fed", {"threshold": 0.5}).algorithm(given)
    np.testing.assert_allclose(ca_fed.availability, PI)
    np.testing.assert_allclose(ca_fed.correlation, NU)
    np.testing.assert_allclose(ca_fed.target_weights, 1 / 3)
    assert ca_fed.threshold == 0.5
    assert NamedMethod("FedAvg-IS", {}).algorithm(given).availability == pytest.approx(PI)
    f3ast = NamedMethod("F3AST", {"size": 2}).algorithm(given)
    assert f3ast.smoothing == 1 / 50
    np.testing.assert_allclose(f3ast.availability, PI)
    unbiased = NamedMethod("Unbiased", {}).algorithm(given)
    np.testing.assert_allclose(unbiased.availability, PI)


def test_options_arrive() -> None:
    given = circumstances(0.25, 7, 0.125, 50, Bernoulli(PI))
    assert NamedMethod("SAFARI", {"q": 0.3}).algorithm(given) == algorithms.Safari(
        0.3, 0.25, 0.125, 7
    )
    fedau = NamedMethod("FedAU", {"cutoff": 4}).algorithm(given)
    assert fedau == algorithms.FedAU(0.25, 7, cutoff=4)
    assert NamedMethod("FedAU", {}).algorithm(given) == algorithms.FedAU(0.25, 7)
    weights = NamedMethod("average all", {}).algorithm(given).aggregation_weights
    assert weights == pytest.approx([1 / 3] * 3)
    fedar = NamedMethod("FedAR", {"growth": 0.1, "largest": 3.0, "cutoff": 9.0}).algorithm(given)
    assert fedar == algorithms.FedAR(0.25, 7, weight=CappedLinear(0.1, 3.0), cutoff=9.0)


def test_refusals() -> None:
    given = circumstances(0.25, 7, None, 50, Bernoulli(PI))
    with pytest.raises(ValueError, match=r"algorithm.name must be one of fedavg, "):
        NamedMethod("SGD", {})
    with pytest.raises(ValueError, match=r"algorithm has server_lr, got 'client_lr'$"):
        NamedMethod("FedAvg", {"client_lr": 1}).algorithm(given)
    with pytest.raises(ValueError, match=r"algorithm.start must be one of"):
        NamedMethod("MIFA", {"start": "now"}).algorithm(given)
    with pytest.raises(ValueError, match="must not be CA-Fed unless"):
        NamedMethod("CA-Fed", {}).algorithm(given)
    with pytest.raises(ValueError, match="must not be SAFARI without a table"):
        NamedMethod("SAFARI", {"q": 0.5}).algorithm(given)
    with pytest.raises(ValueError, match=r"algorithm must have q, got nothing"):
        NamedMethod("SAFARI", {}).algorithm({**given, "assist_lr": 0.1})
