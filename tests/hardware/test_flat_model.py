"""A module as a function of one vector."""

from __future__ import annotations

import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from torch import nn  # noqa: E402

from fltheory.hardware import models  # noqa: E402
from fltheory.hardware.gradients import FlatModel  # noqa: E402


@pytest.mark.parametrize("name", ["logistic", "cnn", "lenet5", "resnet18"])
def test_its_own_parameters_give_its_own_outputs(name: str) -> None:
    module = models.build(name, (3, 16, 16), 10)
    model = FlatModel(module)
    inputs = torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    assert model.dim == sum(parameter.numel() for parameter in module.parameters())
    assert torch.equal(model(model.initial, inputs), module(inputs))
    other = models.build(name, (3, 16, 16), 10)
    assert torch.equal(model(FlatModel(other).initial, inputs), other(inputs))


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Flatten(), "must have parameters, got Flatten with none"),
        (nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double()), "of one dtype"),
        (nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), "got BatchNorm1d"),
        (nn.Sequential(nn.Linear(2, 2), nn.Dropout()), "got Dropout"),
    ],
    ids=["no parameters", "dtypes", "batch norm", "dropout"],
)
def test_modules_that_are_refused(module: nn.Module, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FlatModel(module)
