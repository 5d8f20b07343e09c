"""FedAvg and SAFARI as JAX scans that make every local step; float32 for the quadratics."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax import lax, random
from jax import numpy as jnp
from serving import Case, instances, serve

REPLICAS = 512


def quadratic(of: dict[str, Any], q: float) -> Case:
    """Return runs on noisy quadratics, compiled."""
    hessians = jnp.asarray(of["hessians"], jnp.float32)
    optima = jnp.asarray(of["optima"] - of["x_star"], jnp.float32)
    n_clients, dim = optima.shape
    participants, lr = of["participants"], of["lr"]
    level, assist = of["sigma"] / dim**0.5, of["assist_lr"]
    mean_hessian = hessians.mean(axis=0)

    def round_(x: Any, key: Any) -> Any:
        who_key, noise_key, branch_key = random.split(key, 3)
        who = lax.top_k(random.uniform(who_key, (REPLICAS, n_clients)), participants)[1]
        h, c = hessians[who], optima[who]

        def step(y: Any, key: Any) -> Any:
            noise = level * random.normal(key, y.shape, jnp.float32)
            return y - lr * (jnp.einsum("ria,riab->rib", y - c, h) + noise), None

        start = jnp.broadcast_to(x[:, None], (REPLICAS, participants, dim))
        y, _ = lax.scan(step, start, random.split(noise_key, of["local_steps"]))
        by_clients = random.uniform(branch_key, (REPLICAS, 1)) < q
        x = jnp.where(by_clients, y.mean(axis=1), x - assist * x @ mean_hessian)
        return x, (x**2).sum(axis=1)

    @jax.jit
    def scan(key: Any) -> Any:
        x0 = jnp.tile(jnp.asarray(of["x0"] - of["x_star"], jnp.float32), (REPLICAS, 1))
        squared = lax.scan(round_, x0, random.split(key, of["rounds"]))[1]
        return squared.mean(axis=1), squared.std(axis=1, ddof=1) / REPLICAS**0.5

    seeds = iter(range(10**6))

    def run() -> dict[str, Any]:
        mean, error = scan(random.key(next(seeds)))
        return {"mean": np.asarray(mean), "error": np.asarray(error), "replicas": REPLICAS}

    return run


def digits(of: dict[str, Any]) -> Case:
    """Return a run of softmax regression in float64; clients' data are padded to one length."""
    classes, sizes = int(of["classes"]), of["sizes"].astype(int)
    dim = of["images"].shape[1] + 1
    inputs = np.zeros((len(sizes), sizes.max(), dim))
    targets = np.zeros((len(sizes), sizes.max(), classes))
    for client, size in enumerate(sizes):
        rows = of["owner"] == client
        inputs[client, :size, :-1], inputs[client, :size, -1] = of["images"][rows], 1
        targets[client, :size] = np.eye(classes)[of["labels"][rows]]
    everything, marks = jnp.asarray(inputs), jnp.asarray(targets)
    # A padded row is zero, and so is what it adds to the gradient.
    present = jnp.asarray([np.flatnonzero(row) for row in of["trace"]])
    counts = jnp.asarray(sizes)

    def round_(x: Any, who: Any) -> Any:
        a, t, rate = everything[who], marks[who], of["digits_lr"] / counts[who][:, None, None]

        def step(y: Any, _: Any) -> Any:
            push = jax.nn.softmax(a @ y) - t
            return y - rate * jnp.einsum("isd,isc->idc", a, push), None

        start = jnp.broadcast_to(x, (len(who), dim, classes))
        y, _ = lax.scan(step, start, None, length=of["local_steps"])
        return y.mean(axis=0), None

    scan = jax.jit(lambda: lax.scan(round_, jnp.zeros((dim, classes)), present)[0])

    def run() -> dict[str, Any]:
        x = np.asarray(scan())
        return {"model": np.concatenate([x[:-1].T.ravel(), x[-1]]), "replicas": 1}

    return run


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    of = instances()
    cases = {"fedavg": quadratic(of, 1.0), "safari": quadratic(of, of["q"]), "digits": digits(of)}
    serve(cases, "jax", "numpy")
