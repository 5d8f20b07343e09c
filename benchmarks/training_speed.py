"""Time a cell of SA-FL's Table 1 in torch, and local SGD against a plain torch.optim loop."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from operator import truediv
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from measure import in_fresh_processes, in_turn, report
from torch import nn

from fltheory.hardware import LocalTraining, TorchClients
from fltheory.hardware.training import read_experiment
from fltheory.hardware.training.run import train

TABLE = Path(__file__).parent.parent / "experiments" / "sa-fl-table1.toml"
IMAGES, TESTS, SIDE, CLASSES = 60_000, 10_000, 28, 10
CLIENTS, PRESENT, BATCH, LR = 10, 5, 64, 0.1
STEPS = -(-IMAGES // CLIENTS // BATCH)
ROUNDS = 10
REPEATS = 9


def made_up_mnist() -> Path:
    """Return a folder of random images in MNIST's format and sizes, made once."""
    folder = Path(tempfile.gettempdir()) / f"made-up-mnist-{os.getuid()}"
    if not (folder / "t10k-labels-idx1-ubyte").exists():
        folder.mkdir(exist_ok=True)
        rng = np.random.default_rng(0)
        for name, count in (("train", IMAGES), ("t10k", TESTS)):
            sizes = np.array([count, SIDE, SIDE], dtype=">u4")
            pixels = rng.integers(0, 256, (count, SIDE, SIDE), dtype=np.uint8)
            labels = rng.integers(0, CLASSES, count, dtype=np.uint8)
            images = folder / f"{name}-images-idx3-ubyte"
            images.write_bytes(b"\0\0\x08\x03" + sizes.tobytes() + pixels.tobytes())
            answers = folder / f"{name}-labels-idx1-ubyte"
            answers.write_bytes(b"\0\0\x08\x01" + sizes[:1].tobytes() + labels.tobytes())
    return folder


def cell() -> None:
    experiment = read_experiment(TABLE, ["data.published=false"])
    train(experiment.rows[0][1][0].settings, 0, folder=made_up_mnist())


def images() -> tuple[torch.Tensor, torch.Tensor, list[np.ndarray]]:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.rand(IMAGES, 1, SIDE, SIDE, generator=generator)
    labels = torch.randint(0, CLASSES, (IMAGES,), generator=generator)
    places = np.random.default_rng(0).permutation(IMAGES)
    return inputs, labels, np.array_split(places, CLIENTS)


def logistic() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, CLASSES))


def together(**options: Any) -> Callable[[], None]:
    """Return a function that runs rounds of `TorchClients`."""
    own = LocalTraining(BATCH, epochs=1)
    clients = TorchClients(logistic(), *images(), training=own, **options)
    who = torch.zeros(1, CLIENTS, dtype=torch.bool)
    who[0, :PRESENT] = True

    def rounds() -> None:
        x = clients.model.initial[None]
        for _ in range(ROUNDS):
            x = x + clients.summed_local_sgd(x, who, who / PRESENT, steps=STEPS, lr=LR)

    return rounds


def one_after_another() -> Callable[[], None]:
    """Return the same rounds in the usual style: a module and an optimiser per client."""
    inputs, labels, parts = images()
    server = logistic()

    def trained(part: np.ndarray) -> torch.Tensor:
        module = logistic()
        module.load_state_dict(server.state_dict())
        optimiser = torch.optim.SGD(module.parameters(), lr=LR)
        for batch in torch.from_numpy(part)[torch.randperm(len(part))].split(BATCH):
            optimiser.zero_grad()
            nn.functional.cross_entropy(module(inputs[batch]), labels[batch]).backward()
            optimiser.step()
        return nn.utils.parameters_to_vector(module.parameters()).detach()

    def rounds() -> None:
        for _ in range(ROUNDS):
            mean = torch.stack([trained(part) for part in parts[:PRESENT]]).mean(0)
            nn.utils.vector_to_parameters(mean, server.parameters())

    return rounds


if __name__ == "__main__":
    made_up_mnist()
    of_cell = in_fresh_processes(__file__, {"cell": cell})["cell"]
    ways = {
        "closed form": together(),
        "vmap": together(way="vmap"),
        "compiled vmap": together(way="vmap", compiled=True),
    }
    seconds = in_turn({"plain": one_after_another(), **ways}, REPEATS)
    steps = ROUNDS * PRESENT * STEPS
    rows = [
        ("a cell of Table 1: 150 rounds, evaluated", f"{of_cell['seconds']:.1f} s", "6 s"),
        (
            "client-steps per second, torch.optim loop",
            f"{steps / median(seconds['plain']):,.0f}",
            "-",
        ),
    ]
    for name in ways:
        ratio = median(map(truediv, seconds["plain"], seconds[name]))
        target = "4 times the loop's" if name == "closed form" else "-"
        speed = steps / median(seconds[name])
        rows.append((f"client-steps per second, {name}", f"{speed:,.0f} ({ratio:.1f}x)", target))
    report(f"Training, torch {torch.__version__}, {torch.get_num_threads()} threads", rows)
