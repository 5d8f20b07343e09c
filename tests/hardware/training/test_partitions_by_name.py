"""Partitions by name: they are those of `fltheory.hardware.partitions`."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from fltheory.hardware import partitions  # noqa: E402
from fltheory.hardware.datasets import load  # noqa: E402
from fltheory.hardware.training.named_parts import DEALINGS  # noqa: E402

OPTIONS = {
    "evenly": {"n_clients": 6},
    "classes": {"n_clients": 10, "classes_per_client": 2, "equal": True},
    "two classes": {"n_clients": 10},
    "dirichlet": {"n_clients": 5, "concentration": 1.0},
    "label swap": {"n_clients": 8, "pairs": 2},
}


@pytest.mark.parametrize("kind", DEALINGS)
def test_every_kind_deals(kind: str) -> None:
    data = load("digits")
    dealing = DEALINGS[kind](**OPTIONS[kind])
    dealt = dealing.deal(data, np.random.default_rng(2))
    assert len(dealt.parts) == dealing.n_clients == OPTIONS[kind]["n_clients"]
    places = np.concatenate(dealt.parts)
    assert len(set(places.tolist())) == len(places)
    if kind in ("classes", "two classes"):
        assert {len(set(dealt.train_labels[part])) for part in dealt.parts} == {2}
        assert len({len(part) for part in dealt.parts}) == 1
    if kind != "label swap":
        assert dealt.train_labels is data.train.labels
        assert dealt.test_labels is data.test.labels


def test_dirichlet_has_the_concentration_asked_for() -> None:
    data = load("digits")
    found = DEALINGS["dirichlet"](n_clients=5, concentration=0.3).deal(
        data, np.random.default_rng(1)
    )
    rng = np.random.default_rng(1)
    expected = partitions.dirichlet(data.train.labels, 5, rng, concentration=0.3)
    for part, other in zip(found.parts, expected, strict=True):
        np.testing.assert_array_equal(part, other)


def test_second_half_of_the_clients_sees_swapped_labels_in_training_and_test() -> None:
    data = load("digits")
    dealt = DEALINGS["label swap"](n_clients=8, pairs=2).deal(data, np.random.default_rng(0))
    first, second = np.concatenate(dealt.parts[:4]), np.concatenate(dealt.parts[4:])
    true = data.train.labels
    np.testing.assert_array_equal(dealt.train_labels[first], true[first])
    pairs = set(zip(true[second].tolist(), dealt.train_labels[second].tolist(), strict=True))
    moved = {pair for pair in pairs if pair[0] != pair[1]}
    assert len(pairs) == 10
    assert len(moved) == 4
    assert {(b, a) for a, b in moved} == moved
    tested = data.test.labels
    assert set(zip(tested.tolist(), dealt.test_labels.tolist(), strict=True)) <= pairs | {
        (label, label) for label in range(10)
    }
    share = np.mean(tested != dealt.test_labels)
    affected = np.isin(tested, [pair[0] for pair in moved]).mean()
    assert share == pytest.approx(affected / 2, abs=0.08)
