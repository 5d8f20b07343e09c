"""Sums over participants drawn as one: against loops over clients, and where they are used."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.engines.clients import summed_maps
from fltheory.engines.clients.summed_maps import Scratch, SummedMaps, worth_it

N, D = 5, 3
RNG = np.random.default_rng(0)
ROOTS = RNG.standard_normal((N, D, D))
SLOPES = ROOTS @ ROOTS.swapaxes(1, 2)
# Orthogonal columns of lengths between 1/2 and 2.
FACTORS = np.linalg.qr(RNG.standard_normal((N, D, D)))[0] * RNG.uniform(0.5, 2, (N, 1, D))
PULLS = RNG.standard_normal((N, D))
WEIGHTS = RNG.uniform(0.1, 1.0, (7, N)) * (RNG.random((7, N)) < 0.7) + 0.01 * np.eye(7, N)
X = RNG.standard_normal((7, D))


def maps(*, noisy: bool = True) -> SummedMaps:
    found = SummedMaps.of(SLOPES, FACTORS, PULLS, noisy=noisy)
    assert found is not None
    return found


@pytest.mark.parametrize("weights", [WEIGHTS, np.tile(WEIGHTS[:1], (7, 1)), np.ones((7, N))])
@pytest.mark.parametrize("block", [1, 3, 256])
def test_sums_are_those_of_a_loop(
    weights: np.ndarray, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summed_maps, "_BLOCK", block)
    draws = RNG.standard_normal((7, D))
    found = maps().sums(X, weights, draws, Scratch())
    for r in range(7):
        mean = sum(weights[r, i] * (SLOPES[i] @ X[r] - PULLS[i]) for i in range(N))
        covariance = sum(weights[r, i] ** 2 * FACTORS[i] @ FACTORS[i].T for i in range(N))
        expected = mean + np.linalg.cholesky(covariance) @ draws[r]
        np.testing.assert_allclose(found[r], expected, rtol=1e-10)
        np.testing.assert_allclose(maps(noisy=False).sums(X, weights, draws, Scratch())[r], mean)


def test_blocks_are_as_small_as_numbers_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine numbers per replica: 20 are enough for two of them at once, and one is always done."""
    seen: list[int] = []
    mean = SummedMaps._mean

    def noted(self, offset, weights, scratch):  # type: ignore[no-untyped-def]
        seen.append(offset.shape[1])
        return mean(self, offset, weights, scratch)

    monkeypatch.setattr(SummedMaps, "_mean", noted)
    for numbers, expected in ((20, [2, 2, 2, 1]), (1, [1] * 7), (9 * 7, [7])):
        monkeypatch.setattr(summed_maps, "_NUMBERS_IN_BLOCK", numbers)
        seen.clear()
        maps().sums(X, WEIGHTS, None, Scratch())
        assert seen == expected


def test_what_overflows_or_is_too_uneven_is_left_to_others() -> None:
    for spoilt in ("slopes", "pulls"):
        arrays = {"slopes": SLOPES.copy(), "pulls": PULLS.copy()}
        arrays[spoilt].flat[1] = np.inf
        assert SummedMaps.of(arrays["slopes"], FACTORS, arrays["pulls"], noisy=False) is None
    for ratio, is_used in ((99.0, True), (101.0, False), (np.inf, False)):
        factors = np.tile(np.diag([1.0, 1.0, 1 / ratio]), (N, 1, 1))
        found = SummedMaps.of(SLOPES, factors, PULLS, noisy=True)
        assert (found is not None) is is_used
        assert SummedMaps.of(SLOPES, factors, PULLS, noisy=False) is not None


def test_which_replicas_are_covered() -> None:
    """Nobody there, and squares beyond floats, are not; all alike are, whatever it costs."""
    weights = np.ones((4, 40))
    many = SummedMaps.of(*(np.tile(a[:1], (40, 1, 1)) for a in (SLOPES, FACTORS)),
                         np.tile(PULLS[:1], (40, 1)), noisy=True)  # fmt: skip
    assert many is not None
    assert many.covers(weights).tolist() == [True] * 4
    assert many.covers(0 * weights).tolist() == [False] * 4
    weights[1], weights[2], weights[3] = 0.0, 1e120, 1e-120
    assert many.covers(weights).tolist() == [True, False, False, False]


def test_when_a_sum_costs_less_than_its_terms() -> None:
    """(1500 + 0.4 N d^2 + 7 d^2)/(150 + 25 d + 0.2 d^2): 16.8 at N = 50 and d = 20."""
    weights = np.zeros((3, 50))
    weights[0, :16] = weights[1, :17] = weights[2, :50] = 1.0
    assert worth_it(weights, 20).tolist() == [False, True, True]
    assert worth_it(weights[:1], 20).tolist() == [True]
    # 8.008 at N = 50 and d = 2; 62.6 at N = 100 and d = 50.
    assert worth_it(np.tri(10, 50), 2).tolist() == [False] * 8 + [True] * 2
    assert worth_it(np.tri(64, 100), 50).tolist() == [False] * 62 + [True] * 2
