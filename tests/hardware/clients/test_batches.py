"""Batches of local SGD: every sample once in a pass, weights of a mean, clients that stop."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from fltheory.hardware.clients.batches import Pools  # noqa: E402

SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=4)


def pools(sizes: list[int]) -> Any:
    places = np.random.default_rng(0).permutation(sum(sizes) + 3)
    parts = np.split(places[: sum(sizes)], np.cumsum(sizes)[:-1])
    made = Pools(parts, len(places), device=torch.device("cpu"), dtype=torch.float64)
    return made, parts


def drawn(made: Any, clients: list[int], steps: int, seed: int = 0, **options: Any) -> Any:
    generator = torch.Generator().manual_seed(seed)
    chosen = {"batch_size": 3, "sampling": "shuffle", "epochs": None, **options}
    return made.drawn(torch.tensor(clients), steps, generator=generator, **chosen)


@given(SIZES, st.integers(1, 10), st.integers(1, 4))
def test_a_pass_holds_every_sample_once(sizes: list[int], batch_size: int, passes: int) -> None:
    made, parts = pools(sizes)
    clients = list(range(len(sizes)))
    longest = passes * max(-(-size // batch_size) for size in sizes)
    batches = drawn(made, clients, longest, batch_size=batch_size)
    for row, part in enumerate(parts):
        steps = -(-len(part) // batch_size)
        for turn in range(longest // steps):
            stretch = slice(turn * steps, (turn + 1) * steps)
            used = batches.weights[stretch, row] > 0
            found = batches.samples[stretch, row][used].tolist()
            assert Counter(found) == Counter(part.tolist())
            held = used.sum(1).tolist()
            assert held == [batch_size] * (steps - 1) + [len(part) - (steps - 1) * batch_size]
    np.testing.assert_allclose(batches.weights.sum(2), 1.0, atol=1e-12)


@given(SIZES, st.integers(1, 3))
def test_clients_stop_after_their_epochs(sizes: list[int], epochs: int) -> None:
    made, _ = pools(sizes)
    steps = made.steps_of_epochs(epochs, 3)
    assert steps == epochs * max(-(-size // 3) for size in sizes)
    batches = drawn(made, list(range(len(sizes))), steps + 2, epochs=epochs)
    taken = batches.takes.sum(0).tolist()
    assert taken == [epochs * -(-size // 3) for size in sizes]
    assert torch.equal(batches.weights.sum(2) > 0, batches.takes > 0)


def test_orders_change_from_pass_to_pass_and_with_the_seed() -> None:
    made, _ = pools([60])
    batches = drawn(made, [0], 40)
    first, second = batches.samples[:20].flatten(), batches.samples[20:].flatten()
    assert not torch.equal(first, second)
    assert not torch.equal(batches.samples, drawn(made, [0], 40, seed=1).samples)
    assert torch.equal(batches.samples, drawn(made, [0], 40).samples)


def test_replacement_draws_own_samples_uniformly() -> None:
    """Each count is binomial; off by 7 standard deviations with probability under 3e-12 each."""
    made, parts = pools([4, 7])
    batches = drawn(made, [1, 0], 2000, batch_size=5, sampling="replacement")
    np.testing.assert_allclose(batches.weights, 0.2, atol=1e-15)
    for row, client in enumerate([1, 0]):
        counts = Counter(batches.samples[:, row].flatten().tolist())
        assert set(counts) == set(parts[client].tolist())
        chance = 1 / len(parts[client])
        deviation = np.sqrt(10_000 * chance * (1 - chance))
        assert all(abs(n - 10_000 * chance) < 7 * deviation for n in counts.values())


@pytest.mark.parametrize("batch_size", [None, 9])
def test_all_samples_at_once(batch_size: int | None) -> None:
    made, parts = pools([9, 2])
    batches = drawn(made, [0, 1], 3, batch_size=batch_size, epochs=2)
    assert batches.takes.tolist() == [[1, 1], [1, 1], [0, 0]]
    for row, part in enumerate(parts):
        used = batches.weights[1, row] > 0
        assert sorted(batches.samples[1, row][used].tolist()) == sorted(part.tolist())


def test_stretches_make_up_the_whole() -> None:
    made, _ = pools([9, 2])
    clients = torch.tensor([1, 0])
    whole = made.whole(clients)
    pieces = [made.whole(clients, first, min(first + 4, 9)) for first in (0, 4, 8)]
    assert torch.equal(torch.cat([piece.weights for piece in pieces], 2), whole.weights)
    np.testing.assert_allclose(whole.weights.sum(2), 1.0)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([[0], []], "every client at least one sample, got none for 1"),
        ([[0], [5]], "indices of samples, 0 to 4, got 5 for client 1"),
        ([[-1], [1]], "indices of samples, 0 to 4, got -1 for client 0"),
    ],
)
def test_parts_must_be_places(parts: list[list[int]], message: str) -> None:
    arrays = [np.array(part, dtype=int) for part in parts]
    with pytest.raises(ValueError, match=message):
        Pools(arrays, 5, device=torch.device("cpu"), dtype=torch.float64)
