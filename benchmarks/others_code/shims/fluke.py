"""fluke (PyPI: fluke-fl): `fluke.algorithms`, with their own server and clients.

`Server.get_eligible_clients` chooses who takes part; the rest of a round is the loop of
`CentralizedFL.run`.
"""

import numpy as np
from fluke import DDict, FlukeENV
from fluke.algorithms.fedavg import FedAVG
from fluke.algorithms.fednova import FedNova
from fluke.algorithms.fedprox import FedProx
from fluke.algorithms.scaffold import SCAFFOLD
from fluke.data import FastDataLoader
from torch import nn

from shims.torch_model import Vector, mean, rows, vector

DISTRIBUTION = "fluke-fl"


class Loss(nn.Module):
    def forward(self, losses, labels):
        return mean(losses)


class Data:
    """The data splitter: every client's rows, without test data."""

    def __init__(self, counts):
        self.counts = counts

    def assign(self, n_clients, batch_size):
        loaders = [
            FastDataLoader(*rows(i, count), num_labels=1, batch_size=0, skip_singleton=False)
            for i, count in enumerate(self.counts)
        ]
        return (loaders, [None] * n_clients), None


def run_of(algorithm_class, server, client):
    def run(x0, clients, trace, *, client_lr, local_steps, server_lr, **options):
        Vector.clients = clients
        FlukeENV().set_device("cpu")
        steps = local_steps if isinstance(local_steps, tuple) else (local_steps,) * len(clients)
        algorithm = algorithm_class(
            len(clients),
            Data([c.n_samples for c in clients]),
            DDict(
                model=Vector(x0),
                client=DDict(
                    batch_size=0,
                    local_epochs=1,
                    loss=Loss,
                    optimizer=DDict(name="SGD", lr=client_lr),
                    scheduler=DDict(name="StepLR", step_size=1, gamma=1),
                    **client(options),
                ),
                server=DDict(**server(server_lr, options)),
            ),
        )
        for one, count in zip(algorithm.clients, steps):
            one.hyper_params.local_epochs = count
        models = [vector(algorithm.server.model)]
        for number, present in enumerate(trace, start=1):
            eligible = [algorithm.clients[i] for i in np.flatnonzero(present)]
            if eligible:
                algorithm.server.broadcast_model(eligible)
                for one in eligible:
                    one.local_update(number)
                returned = algorithm.server.receive_client_models(eligible, state_dict=False)
                algorithm.server.aggregate(eligible, returned)
            models.append(vector(algorithm.server.model))
        FlukeENV().close_cache()
        return models

    return run


def weighted(server_lr, options):
    return {"weighted": options.get("weighting", "n_samples") == "n_samples", "lr": server_lr}


IMPLEMENTATIONS = {
    "FedAVG": run_of(FedAVG, weighted, lambda options: {}),
    "FedProx": run_of(FedProx, weighted, lambda options: {"mu": options["proximal"]}),
    "FedNova": run_of(
        FedNova, lambda server_lr, options: {"weighted": True, "lr": server_lr}, lambda options: {}
    ),
    "SCAFFOLD": run_of(
        SCAFFOLD, lambda server_lr, options: {"weighted": False}, lambda options: {}
    ),
    "SCAFFOLD, lr": run_of(
        SCAFFOLD,
        lambda server_lr, options: {"weighted": False, "lr": server_lr},
        lambda options: {},
    ),
    "SCAFFOLD, global_step": run_of(
        SCAFFOLD,
        lambda server_lr, options: {"weighted": False, "global_step": server_lr},
        lambda options: {},
    ),
}
