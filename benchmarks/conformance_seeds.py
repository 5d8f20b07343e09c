"""Check right implementations with many seeds of `check_algorithm`: none may fail.

    python benchmarks/conformance_seeds.py --seeds 200 [--processes 2] [--laws LAW ...] [--torch]
        [NAME ...]

They are the gallery's in plain NumPy, or the package's own if the gallery has none. With
``--torch`` they are the package's own on torch tensors in single precision, with rtol=1e-4. Cases
are drawn anew for each seed. The script prints how long each algorithm takes, and any failure.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from fltheory.algorithms.contract import CLIENTS, SERVER, Clients, in_round
from fltheory.testing import check_algorithm, run_of
from fltheory.testing.conformance.own_runs import algorithm_of
from fltheory.testing.conformance.specifications import SPECIFICATIONS
from tests.testing.gallery import GALLERY


class SingleClients(Clients):
    """Clients whose local steps run on torch tensors in single precision."""

    def __init__(self, clients: Sequence[Any], server: Any) -> None:
        self.clients, self.server = clients, server

    @property
    def n_clients(self) -> int:
        """N."""
        return len(self.clients)

    def local_sgd(
        self,
        x: Any,
        who: Any,
        *,
        steps: int,
        lr: float,
        correction: Any = None,
        proximal: float = 0,
    ) -> Any:
        """Return each client's change, (1, N, d)."""
        changes = x.new_zeros((*who.shape, x.shape[1]))
        for k in who[0].nonzero().ravel().tolist():
            y = x[0].clone()
            for _ in range(steps):
                push = 0.0 if correction is None else correction[0, k]
                y = y - lr * (_gradient(self.clients[k], y) + push + proximal * (y - x[0]))
            changes[0, k] = y - x[0]
        return changes

    def loss(self, x: Any, who: Any) -> Any:
        """Return each present client's loss, (1, N)."""
        losses = x.new_zeros(who.shape)
        for k in who[0].nonzero().ravel().tolist():
            losses[0, k] = self.clients[k].loss(x[0].numpy().astype(np.float64))
        return losses

    def server_gradient(self, x: Any) -> Any:
        """Return the server's gradient, (1, d)."""
        return _gradient(self.server, x[0])[None]


def _gradient(client: Any, y: Any) -> Any:
    return y.new_tensor(client.gradient(y.numpy().astype(np.float64)))


def in_torch(name: str) -> Callable[..., Any]:
    """Return one of the package's algorithms on torch tensors in single precision."""
    import torch

    one = SPECIFICATIONS[name]

    def run(x0: Any, clients: Sequence[Any], trace: np.ndarray, **given: Any) -> Any:
        server = None
        branches = [CLIENTS] * len(trace)
        if one.server:
            branches = [SERVER if row[-1] else CLIENTS for row in trace]
            clients, server, trace = clients[:-1], clients[-1], trace[:, :-1]
        sizes = np.array([client.n_samples for client in clients])
        if one.by_size and given.get("weighting", "n_samples") == "n_samples":
            trace = trace & (trace @ (sizes > 0))[:, None]
        algorithm = algorithm_of(one, sizes.tolist(), **given)
        asked = SingleClients(clients, server)
        x = torch.tensor(np.array(x0)[None], dtype=torch.float32)
        state = in_round(algorithm, 1).init(x, len(clients))
        models = [x[0]]
        for t, (row, branch) in enumerate(zip(trace, branches, strict=True), start=1):
            who = torch.tensor(row[None].copy())
            state = in_round(algorithm, t).round(state, asked, who, branch)
            models.append(state["x"][0])
        return torch.stack(models).numpy()

    return run


def failure(laws: list[str] | None, torch: bool, name: str, seed: int) -> tuple[str, float, str]:
    """Return the algorithm, the seconds taken, and the failure, if any."""
    begun = time.process_time()
    run = GALLERY[name].run if name in GALLERY else run_of(name)
    rtol = 1e-9
    if torch:
        run, rtol = in_torch(name), 1e-4
    report = check_algorithm(run, name, seed=seed, laws=laws, rtol=rtol, raises=False)
    bad = [f"{f.law}: {f.message}" for f in report.findings if not f.outcome.good]
    said = f"{name}, seed {seed}: " + "\n".join(bad) if bad else ""
    return name, time.process_time() - begun, said


def main() -> int:
    """Check all of them; the exit status is 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(SPECIFICATIONS))
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--laws", nargs="+", help="these alone; all by default")
    parser.add_argument("--torch", action="store_true", help="in single precision, in torch")
    arguments = parser.parse_args()
    pairs = product(arguments.names, range(arguments.first, arguments.first + arguments.seeds))
    seconds: dict[str, list[float]] = {}
    failures = []
    check = partial(failure, arguments.laws, arguments.torch)
    with ProcessPoolExecutor(arguments.processes) as pool:
        for name, taken, said in pool.map(check, *zip(*pairs, strict=True), chunksize=1):
            seconds.setdefault(name, []).append(taken)
            if said:
                failures.append(said)
                print(said, flush=True)
            if len(seconds[name]) == arguments.seeds:
                each = sum(seconds[name]) / arguments.seeds
                print(f"{name}: {arguments.seeds} seeds, {each:.2f} s each", flush=True)
    print(f"{len(failures)} failures in {len(seconds) * arguments.seeds} runs")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
