"""Clients and server of the Flower examples: scikit-learn's digits, and a linear model.

Ten clients hold two classes each. A node's ``partition-id`` is the number of its client.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from flwr.app import ArrayRecord, MetricRecord

from fltheory.flower import local_client_app
from fltheory.flower.layout import Layout
from fltheory.hardware.clients.batches import LocalTraining
from fltheory.hardware.clients.single_client import SingleClient
from fltheory.hardware.datasets import load
from fltheory.hardware.models import build
from fltheory.hardware.partitions import classes_per_client

N, SEED, BATCH, SERVER_IMAGES = 10, 1, 16, 50


@lru_cache
def client(number: int) -> SingleClient:
    """Return a client, which keeps only its own images."""
    torch.set_num_threads(1)
    train, rng = load("digits").train, np.random.default_rng(SEED)
    mine = classes_per_client(train.labels, N, 2, rng)[number]
    images, labels = torch.tensor(train.images[mine]), torch.tensor(train.labels[mine])
    return SingleClient(module(), images, labels, training=LocalTraining(BATCH), seed=number)


def module() -> torch.nn.Module:
    torch.manual_seed(SEED)
    return build("logistic", (1, 8, 8), 10)


@lru_cache
def server() -> SingleClient:
    """Return the server, with a few images of all classes."""
    train = load("digits").train
    mine = np.random.default_rng(SEED).permutation(len(train.labels))[:SERVER_IMAGES]
    return SingleClient(
        module(), torch.tensor(train.images[mine]), torch.tensor(train.labels[mine])
    )


def server_gradient(arrays: ArrayRecord) -> ArrayRecord:
    layout = Layout.of(arrays)
    return layout.record(server().gradient(layout.flat(arrays)))


def accuracy(server_round: int, arrays: ArrayRecord) -> MetricRecord:
    model, test = module(), load("digits").test
    model.load_state_dict(arrays.to_torch_state_dict())
    with torch.no_grad():
        found = model(torch.tensor(test.images)).argmax(1).numpy()
    return MetricRecord({"accuracy": float((found == test.labels).mean())})


client_app = local_client_app(client)
