"""Losses and gradients of several models at once, against autograd one sample at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from torch import nn  # noqa: E402

from fltheory.hardware.gradients import (  # noqa: E402
    FlatModel,
    LinearSoftmax,
    OneByOne,
    Vmapped,
    batch_losses,
    cross_entropy,
)

ROWS, WIDTH = 3, 4
MODULES = {
    "linear": lambda: nn.Sequential(nn.Flatten(), nn.Linear(6, 5)),
    "no bias": lambda: nn.Linear(6, 5, bias=False),
    "network": lambda: nn.Sequential(nn.Linear(6, 3), nn.Tanh(), nn.Linear(3, 5)),
}


def drawn(module: nn.Module) -> tuple[Any, ...]:
    generator = torch.Generator().manual_seed(3)
    dim = FlatModel(module).dim
    y = torch.randn(ROWS, dim, generator=generator, dtype=torch.float64)
    inputs = torch.randn(ROWS, WIDTH, 6, generator=generator, dtype=torch.float64)
    targets = torch.randint(0, 5, (ROWS, WIDTH), generator=generator)
    weights = torch.rand(ROWS, WIDTH, generator=generator, dtype=torch.float64)
    weights[1, 2:] = 0
    return y, inputs, targets, weights


def expected(module: nn.Module, y: Any, inputs: Any, targets: Any, weights: Any) -> Any:
    losses, gradients = [], []
    for row in range(ROWS):
        nn.utils.vector_to_parameters(y[row], module.parameters())
        module.zero_grad()
        loss = sum(
            weight * nn.functional.cross_entropy(module(sample[None]), target[None])
            for sample, target, weight in zip(inputs[row], targets[row], weights[row], strict=True)
        )
        loss.backward()
        losses.append(loss.item())
        gradients.append(torch.cat([p.grad.reshape(-1) for p in module.parameters()]).numpy())
    return np.array(losses), np.array(gradients)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("way", ["auto", "vmap", "one by one"])
def test_against_autograd(name: str, way: Any) -> None:
    module = MODULES[name]().double()
    given = drawn(module)
    losses, gradients = expected(module, *given)
    found = batch_losses(FlatModel(module), cross_entropy, way=way)
    np.testing.assert_allclose(found.losses(*given), losses, rtol=1e-12)
    np.testing.assert_allclose(found.gradients(*given), gradients, atol=1e-12)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("way", ["auto", "vmap", "one by one"])
def test_descents_against_autograd(name: str, way: Any) -> None:
    """Two steps on different samples, each along the gradient where it begins."""
    module, lr = MODULES[name]().double(), 0.3
    y, inputs, targets, weights = drawn(module)
    steps = [(inputs, targets, weights), (-inputs, 4 - targets, 2 * weights)]
    found = batch_losses(FlatModel(module), cross_entropy, way=way)
    parts, kept = found.split(y), y.clone()
    stacked = (torch.stack(given) for given in zip(*steps, strict=True))
    for descend, step in zip(found.descents(parts, *stacked, lr), steps, strict=True):
        descend()
        y = y - lr * torch.from_numpy(expected(module, y, *step)[1])
        np.testing.assert_allclose(found.joined(parts), y, atol=1e-12)
    assert not torch.equal(kept, y)
    np.testing.assert_array_equal(found.joined(found.split(kept)), kept)


def test_the_way_that_is_chosen() -> None:
    def chosen(module: nn.Module, **options: Any) -> type:
        return type(batch_losses(FlatModel(module), cross_entropy, **options))

    convolution = nn.Conv2d(1, 1, 2)
    assert chosen(MODULES["linear"]()) is LinearSoftmax
    assert chosen(MODULES["network"]()) is Vmapped
    assert chosen(convolution) is OneByOne
    assert chosen(convolution, on_gpu=True) is Vmapped
    assert chosen(MODULES["linear"](), way="vmap") is Vmapped
    squared = batch_losses(FlatModel(MODULES["linear"]()), lambda o, t: ((o - t) ** 2).sum(1))
    assert type(squared) is Vmapped


def test_refusals() -> None:
    model = FlatModel(MODULES["network"]())
    with pytest.raises(ValueError, match="way must not be 'closed form' except for one linear"):
        batch_losses(model, cross_entropy, way="closed form")
    with pytest.raises(ValueError, match="way must be one of"):
        batch_losses(model, cross_entropy, way="fast")  # type: ignore[arg-type]


def test_compiled_gradients_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """That `torch.compile` is what is applied; its own output is measured in benchmarks."""
    applied = []
    monkeypatch.setattr(torch, "compile", lambda function: applied.append(function) or function)
    module = MODULES["network"]().double()
    given = drawn(module)
    plain = batch_losses(FlatModel(module), cross_entropy, way="vmap")
    compiled = batch_losses(FlatModel(module), cross_entropy, way="vmap", compiled=True)
    assert len(applied) == 1
    assert torch.equal(plain.gradients(*given), compiled.gradients(*given))
    assert torch.equal(plain.losses(*given), compiled.losses(*given))
