"""After its first round no algorithm makes a tensor out of anything that lives on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from fltheory.algorithms.contract import in_round  # noqa: E402
from tests.hardware.clients.test_torch_clients import ALGORITHMS, DIM, name, problem  # noqa: E402
from tests.hardware.quadratic_module import torch_clients  # noqa: E402

MAKERS = ("asarray", "as_tensor", "tensor", "from_numpy")


def forbidden(*arguments: Any, **keywords: Any) -> Any:
    if arguments and isinstance(arguments[0], torch.Tensor):
        return arguments[0]
    raise AssertionError(f"a tensor is made from the host: {arguments!r}")


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=name)
def test_only_the_first_round_brings_anything(
    algorithm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = torch_clients(problem())
    who = torch.tensor(np.array([[1, 0, 1, 1, 0, 1], [1, 1, 1, 0, 0, 1]], dtype=bool))
    first = in_round(algorithm, 1)
    state = first.init(torch.ones((2, DIM), dtype=torch.float64), 6)
    for branch, _ in first.branches:
        state = first.round(state, clients, who, branch)
    for maker in MAKERS:
        monkeypatch.setattr(torch, maker, forbidden)
    second = in_round(algorithm, 2)
    for branch, _ in second.branches:
        state = second.round(state, clients, who, branch)
    assert torch.isfinite(state["x"]).all()
