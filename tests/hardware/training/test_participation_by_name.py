"""Participation by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from fltheory.hardware.training.named_parts import PRESENCES  # noqa: E402
from fltheory.participation import AtMost, Bernoulli, Cyclic, MarkovOnOff  # noqa: E402

SHARES = np.random.default_rng(0).dirichlet(np.full(10, 0.1), 24)
FEDAU = {"mean": 0.1, "least": 0.02, "concentration": 0.1}


def process(kind: str, **options: Any) -> Any:
    return PRESENCES[kind](**options).process(SHARES, np.random.default_rng(4))


def test_uniform_excludes_the_first() -> None:
    marginals = process("uniform", size=5, excluded=4).marginals
    np.testing.assert_allclose(marginals, [0] * 4 + [5 / 20] * 20)


def test_uniform_availability() -> None:
    every, some = (process("uniform availability", least=0.5, most=m) for m in (None, 3))
    assert isinstance(every, Bernoulli)
    assert every.marginals.min() >= 0.5
    assert every.marginals.std() > 0.1
    assert isinstance(some, AtMost)
    np.testing.assert_array_equal(some.availability, every.availability)
    assert some.size == 3


def test_patterns_share_their_availability() -> None:
    bernoulli, markov, cyclic = (
        process("by class shares", pattern=pattern, **FEDAU)
        for pattern in ("bernoulli", "markov", "cyclic")
    )
    p = bernoulli.marginals
    assert p.min() == pytest.approx(0.02)
    assert isinstance(markov, MarkovOnOff)
    np.testing.assert_allclose(markov.marginals, p)
    assert isinstance(cyclic, Cyclic)
    np.testing.assert_allclose(cyclic.marginals, np.maximum(1, np.rint(100 * p)) / 100)


def test_markov_clients_come_with_the_transition_asked_for() -> None:
    """Section 2 of FedAU's settings: P01 = c and P10 = c (1/p - 1), which must not exceed 1."""
    chains = process("by class shares", pattern="markov", **FEDAU)
    p, nu = chains.availability, chains.correlation
    comes, goes = (1 - nu) * p, (1 - nu) * (1 - p)
    slow = p >= 0.05 / 1.05
    assert slow.any()
    assert not slow.all()
    np.testing.assert_allclose(comes[slow], 0.05)
    np.testing.assert_allclose(goes[~slow], 1.0)
    np.testing.assert_allclose(goes[slow], 0.05 * (1 / p[slow] - 1))


def test_four_classes_in_both_halves() -> None:
    chains = process("four classes", g=0.4, nu=0.9, epsilon=0.01)
    for half in (slice(0, 12), slice(12, 24)):
        more = chains.availability[half] > 0.5
        correlated = chains.correlation[half] == 0.9
        assert [(more & correlated).sum(), (more & ~correlated).sum()] == [3, 3]
        assert [(~more & correlated).sum(), (~more & ~correlated).sum()] == [3, 3]
    assert set(chains.availability.round(12)) == {0.1, 0.9}
    assert abs(chains.correlation[chains.correlation < 0.5]).max() < 0.05


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("uniform", {"size": 0}, "size must be a whole number"),
        ("uniform", {"size": 5, "excluded": 24}, "size must be at most the 0 eligible"),
        ("uniform availability", {"least": 2.0}, "least must be a probability"),
        ("uniform availability", {"least": 0.5, "most": 25}, "most must be at most the 24 clients"),
        ("by class shares", {"pattern": "poisson", **FEDAU}, "pattern must be one of"),
        ("four classes", {"g": 0.5, "nu": 0.9, "epsilon": 0.0}, "g must be in"),
    ],
)
def test_refusals(kind: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        process(kind, **options)


def test_four_classes_need_a_multiple_of_eight() -> None:
    with pytest.raises(ValueError, match="multiple of 8 for four classes, got 9"):
        PRESENCES["four classes"](0.4, 0.9, 0.01).process(SHARES[:9], np.random.default_rng(0))
