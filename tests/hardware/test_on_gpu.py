"""On a GPU: the trajectory of the CPU, and no copy to or from the host inside a round."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from fltheory.hardware.training.prepared import prepared  # noqa: E402
from fltheory.hardware.training.run import train  # noqa: E402
from fltheory.hardware.training.settings import run_settings  # noqa: E402
from tests.hardware.training.small_experiment import SERVER, run_table  # noqa: E402

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a CUDA device, and there is none"
)
# Not F3AST, which asks once per round whether it must leave anybody out.
ALGORITHMS = [
    {"name": "FedAvg"},
    {"name": "SAFARI", "q": 0.5},
    {"name": "SCAFFOLD"},
    {"name": "FedAU"},
    {"name": "MIFA", "start": "zero"},
    {"name": "FedVARP"},
    {"name": "FedAR", "growth": 0.1, "largest": 2.0},
    {"name": "weighted-FedAvg"},
    {"name": "FedAvg-IS"},
    {"name": "FedProx", "proximal": 0.1},
    {"name": "FedNova"},
    {"name": "cluster-FedVARP", "clusters": [0, 0, 0, 0, 1, 1, 1, 1]},
    {"name": "Unbiased"},
    {"name": "AdaFed"},
]


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype:UserWarning")
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm["name"])
@pytest.mark.parametrize("model", ["logistic", "cnn"])
def test_no_copy_inside_a_round(algorithm: dict[str, Any], model: str) -> None:
    table = run_table(
        server=SERVER, model={"name": model}, participation={"kind": "uniform", "size": 4}
    )
    table["algorithm"] = algorithm
    ready = prepared(run_settings(table), 0, device="cuda")
    clients = ready.clients
    clients.expect(4)
    who = torch.zeros(1, 8, dtype=torch.bool, device="cuda")
    who[0, 2:6] = True
    state = ready.algorithm.init(ready.start, clients.n_clients)
    for branch, _ in ready.algorithm.branches:
        state = ready.algorithm.round(state, clients, who, branch)
    try:
        torch.cuda.set_sync_debug_mode("error")
        for branch, _ in ready.algorithm.branches:
            state = ready.algorithm.round(state, clients, who, branch)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.isfinite(state["x"]).all()


@pytest.mark.parametrize("model", ["logistic", "cnn"])
def test_full_batches_follow_the_cpu(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # By default cuDNN rounds factors to ten bits.
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    settings = run_settings(
        run_table(model={"name": model}, training={"batch_size": 10_000, "rounds": 2})
    )
    on_cpu, on_gpu = (train(settings, 0, device=device).model for device in ("cpu", "cuda"))
    torch.testing.assert_close(on_gpu.cpu(), on_cpu, rtol=1e-4, atol=1e-5)
