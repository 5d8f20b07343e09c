"""FedAvg and SAFARI in plain NumPy, float64: every local step is made."""

from __future__ import annotations

from typing import Any

import numpy as np
from serving import Case, instances, serve

REPLICAS = 256


def quadratic(of: dict[str, Any], q: float) -> Case:
    """Return runs on noisy quadratics: a server's exact step with probability 1 - q."""
    hessians, optima, x_star = of["hessians"], of["optima"], of["x_star"]
    n_clients, dim = optima.shape
    level = of["sigma"] / dim**0.5
    mean_hessian = hessians.mean(axis=0)

    def run() -> dict[str, Any]:
        rng = np.random.default_rng()
        x = np.tile(of["x0"], (REPLICAS, 1))
        squared = []
        for _ in range(of["rounds"]):
            ranks = rng.random((REPLICAS, n_clients)).argsort(axis=1)
            who = ranks[:, : of["participants"]]
            y, h, c = np.repeat(x[:, None], who.shape[1], axis=1), hessians[who], optima[who]
            for _ in range(of["local_steps"]):
                noise = level * rng.standard_normal(y.shape)
                y -= of["lr"] * (((y - c)[:, :, None] @ h)[:, :, 0] + noise)
            by_server = x - of["assist_lr"] * (x - x_star) @ mean_hessian
            by_clients = rng.random(REPLICAS)[:, None] < q
            x = np.where(by_clients, y.mean(axis=1), by_server)
            squared.append(((x - x_star) ** 2).sum(axis=1))
        return sampled(np.array(squared))

    return run


def sampled(squared: Any) -> dict[str, Any]:
    """Return means and standard errors over replicas, (rounds, replicas)."""
    errors = squared.std(axis=1, ddof=1) / squared.shape[1] ** 0.5
    return {"mean": squared.mean(axis=1), "error": errors, "replicas": squared.shape[1]}


def digits(of: dict[str, Any]) -> Case:
    """Return a run of softmax regression with the gradients of whole data sets."""
    classes = int(of["classes"])
    data = []
    for client in range(len(of["sizes"])):
        rows = of["owner"] == client
        inputs = np.column_stack([of["images"][rows], np.ones(rows.sum())])
        data.append((inputs, np.eye(classes)[of["labels"][rows]]))

    def run() -> dict[str, Any]:
        x = np.zeros((data[0][0].shape[1], classes))
        for who in of["trace"]:
            models = []
            for client in np.flatnonzero(who):
                inputs, targets = data[client]
                y = x
                for _ in range(of["local_steps"]):
                    logits = inputs @ y
                    chance = np.exp(logits - logits.max(axis=1, keepdims=True))
                    chance /= chance.sum(axis=1, keepdims=True)
                    y = y - of["digits_lr"] / len(inputs) * (inputs.T @ (chance - targets))
                models.append(y)
            x = np.mean(models, axis=0)
        return {"model": np.concatenate([x[:-1].T.ravel(), x[-1]]), "replicas": 1}

    return run


def normals(count: int) -> Case:
    """Return the drawing of so many normal numbers, which sampling cannot do without."""
    rng = np.random.default_rng(0)

    def run() -> dict[str, Any]:
        rng.standard_normal(count)
        return {}

    return run


def congruences(of: dict[str, Any]) -> Case:
    """Return the products ``A_i C A_i'`` of all clients and rounds, which moments need."""
    maps, covariance = of["hessians"], np.eye(of["optima"].shape[1])

    def run() -> dict[str, Any]:
        for _ in range(of["rounds"]):
            maps @ covariance @ maps
        return {}

    return run


if __name__ == "__main__":
    of = instances()
    cases = {
        "fedavg": quadratic(of, 1.0),
        "safari": quadratic(of, of["q"]),
        "digits": digits(of),
        "normals": normals(10**6),
        "congruences": congruences(of),
    }
    serve(cases, "numpy")
