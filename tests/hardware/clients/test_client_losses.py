"""An implementation that trains torch modules with torch's optimiser goes through the suite."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from fltheory.hardware import client_loss, module_at  # noqa: E402
from fltheory.testing import check_algorithm  # noqa: E402

LAWS = ["returns-models", "by-hand", "uneven-participation", "no-data", "server-lr"]


def fedavg(x0: Any, clients: Any, trace: Any, **given: Any) -> np.ndarray:
    models = [np.array(x0)]
    for who in trace:
        x, total, change = models[-1], 0.0, np.zeros_like(x0)
        for k in np.flatnonzero(who):
            module = deepcopy(module_at(x))
            optimizer = torch.optim.SGD(module.parameters(), lr=given["client_lr"])
            for _ in range(given["local_steps"]):
                optimizer.zero_grad()
                client_loss(clients[k], module).backward()
                optimizer.step()
            weight = clients[k].n_samples if given["weighting"] == "n_samples" else 1
            after = torch.nn.utils.parameters_to_vector(module.parameters())
            change = change + weight * (after.detach().numpy() - x)
            total += weight
        models.append(x + given["server_lr"] * change / total if total else x)
    return np.array(models)


def test_torch_modules_conform() -> None:
    assert check_algorithm(fedavg, "fedavg", laws=LAWS).conforms


def test_a_forgotten_weight_is_found() -> None:
    def plain(*args: Any, weighting: str, **given: Any) -> np.ndarray:
        return fedavg(*args, weighting="uniform", **given)

    report = check_algorithm(plain, "fedavg", laws=LAWS, raises=False)
    assert "plain mean" in report.failures[0].causes[0]


@pytest.mark.parametrize("x", ["x", ..., [[1.0]], [np.nan]])
def test_what_is_no_model_is_refused(x: Any) -> None:
    with pytest.raises(ValueError, match="x must"):
        module_at(x)


def test_what_is_no_client_is_refused() -> None:
    with pytest.raises(ValueError, match="client must be a LossClient, got 3"):
        client_loss(3, module_at([1.0]))  # type: ignore[arg-type]
