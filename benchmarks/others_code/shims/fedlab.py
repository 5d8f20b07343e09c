"""FedLab (PyPI: fedlab): `fedlab.contrib.algorithm`, server handlers and serial client trainers.

A round is the body of `fedlab.core.standalone.StandalonePipeline.main`, with `sample_clients`
replaced by the trace and `sample_ratio` set to the number of answers that the handler waits for.
"""

import types

import numpy as np

from shims.torch_model import Logits, pretend, rows, vector

pretend("torchvision", "torchvision.transforms", "torchvision.datasets")

from fedlab.contrib.algorithm import fedavg, fednova, fedprox, scaffold  # noqa: E402

DISTRIBUTION = "fedlab"


def run_of(handler_class, trainer_class, *handler_options, local=(), server_step=False):
    def run(x0, clients, trace, *, client_lr, local_steps, server_lr, **options):
        Logits.clients = clients
        steps = local_steps if isinstance(local_steps, tuple) else (local_steps,) * len(clients)
        handler = handler_class(Logits(x0), global_round=len(trace), sample_ratio=1.0)
        handler.num_clients = len(clients)
        if server_step or handler_options:
            handler.setup_optim(*([server_lr] if server_step else handler_options))
        trainer = trainer_class(Logits(x0), len(clients))
        # A client's epoch has as many batches as its local steps, each with all its data.
        trainer.setup_dataset(
            types.SimpleNamespace(get_dataloader=lambda i, batch_size: [rows(i, 1)] * steps[i])
        )
        trainer.setup_optim(1, None, client_lr, *(options[name] for name in local))
        models = [vector(handler._model)]
        for present in trace:
            chosen = [int(i) for i in np.flatnonzero(present)]
            if chosen:
                handler.sample_ratio = (
                    (len(chosen) + 0.5) / len(clients) if len(chosen) < len(clients) else 1.0
                )
                trainer.local_process(handler.downlink_package, chosen)
                for answer in trainer.uplink_package:
                    handler.load(answer)
            models.append(vector(handler._model))
        return models

    return run


IMPLEMENTATIONS = {
    "FedAvg": run_of(fedavg.FedAvgServerHandler, fedavg.FedAvgSerialClientTrainer),
    "FedProx": run_of(
        fedprox.FedProxServerHandler, fedprox.FedProxSerialClientTrainer, local=("proximal",)
    ),
    "FedNova": run_of(
        fednova.FedNovaServerHandler, fednova.FedNovaSerialClientTrainer, "weighted_scale"
    ),
    "FedNova, option weighted_com": run_of(
        fednova.FedNovaServerHandler, fednova.FedNovaSerialClientTrainer, "weighted_com"
    ),
    "Scaffold": run_of(
        scaffold.ScaffoldServerHandler, scaffold.ScaffoldSerialClientTrainer, server_step=True
    ),
}
