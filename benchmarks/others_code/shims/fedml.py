"""FedML (PyPI: fedml): `fedml.simulation.sp`, each trainer in one call of its own `train`.

`_client_sampling` (`client_sampling` in FedNova) chooses who takes part.  The trainers keep one
worker object for each participant of a round, so the replacement of the sampler makes as many as
the trace needs; a round's model is read where the trainer would evaluate it.

"Parameters by value": on a CPU `get_model_params` returns tensors that share memory with the model
in training; moving a model to a GPU separates them. These entries copy the returned tensors, as a
GPU does, to show other faults.
"""

import copy
import types

import numpy as np

from shims.torch_model import Logits, pretend, rows, vector

pretend(
    "torchvision",
    "torchvision.transforms",
    "torchvision.datasets",
    "torchvision.utils",
    "torchvision.models",
)

import torch  # noqa: E402
from fedml import mlops  # noqa: E402
from fedml.simulation.sp.fedavg.fedavg_api import FedAvgAPI  # noqa: E402
from fedml.simulation.sp.fednova.fednova_trainer import FedNovaTrainer  # noqa: E402
from fedml.simulation.sp.fedprox.fedprox_trainer import FedProxTrainer  # noqa: E402
from fedml.simulation.sp.scaffold.scaffold_trainer import ScaffoldTrainer  # noqa: E402

DISTRIBUTION = "fedml"

# The tracker writes to FedML's own service, so tracking is off here.
for name in ("event", "log", "log_round_info", "log_training_status", "log_aggregation_status"):
    setattr(mlops, name, lambda *args, **kwargs: None)
for name in ("log_training_finished_status", "log_aggregation_finished_status"):
    setattr(mlops, name, lambda *args, **kwargs: None)


def run_of(
    trainer_class,
    optimizer,
    sampler="_client_sampling",
    evaluator="_local_test_on_all_clients",
    by_value=False,
):
    def run(x0, clients, trace, *, client_lr, local_steps, server_lr, **options):
        Logits.clients = clients
        steps = local_steps if isinstance(local_steps, tuple) else (local_steps,) * len(clients)
        args = types.SimpleNamespace(
            federated_optimizer=optimizer,
            dataset="vectors",
            client_num_in_total=len(clients),
            client_num_per_round=len(clients),
            initialize_all_clients=True,
            frequency_of_the_test=1,
            epochs=1,
            client_optimizer="sgd",
            learning_rate=client_lr,
            weight_decay=0.0,
            server_lr=server_lr,
            enable_wandb=False,
            fedprox_mu=options.get("proximal", 0.0),
            # FedNova's own: no momentum on either side, no proximal term.
            gmf=0.0,
            mu=0.0,
            momentum=0.0,
            dampening=0.0,
            wd=0.0,
            nesterov=False,
            ci=0,
        )
        counts = [c.n_samples for c in clients]
        # A client's epoch has as many batches as its local steps, each with all its data.
        batches = {i: [rows(i, 1)] * steps[i] for i in range(len(clients))}
        data = [
            sum(counts),
            0,
            None,
            None,
            dict(enumerate(counts)),
            batches,
            dict.fromkeys(batches),
            2,
        ]
        rounds = [[int(i) for i in np.flatnonzero(present)] for present in trace]
        args.comm_round = sum(map(bool, rounds))
        cpu, model = torch.device("cpu"), Logits(x0)
        trainer = (
            FedAvgAPI(args, cpu, data, model)
            if optimizer == "FedAvg"
            else trainer_class(data, model, cpu, args)
        )
        if by_value:
            handed = trainer.model_trainer.get_model_params
            trainer.model_trainer.get_model_params = lambda: copy.deepcopy(handed())
        everybody, coming = trainer.client_list, iter(filter(None, rounds))

        def sample(*anything):
            chosen = next(coming)
            if optimizer != "SCAFFOLD":
                trainer.client_list = everybody[: len(chosen)]
            return chosen

        after = []
        setattr(trainer, sampler, sample)
        setattr(trainer, evaluator, lambda *anything: after.append(vector(model)))
        if args.comm_round:
            trainer.train()
        models, after = [x0], iter(after)
        for chosen in rounds:
            models.append(next(after) if chosen else models[-1])
        return models

    return run


IMPLEMENTATIONS = {
    "FedAvgAPI": run_of(FedAvgAPI, "FedAvg"),
    "FedAvgAPI, parameters by value": run_of(FedAvgAPI, "FedAvg", by_value=True),
    "FedProxTrainer": run_of(FedProxTrainer, "FedProx"),
    "FedProxTrainer, parameters by value": run_of(FedProxTrainer, "FedProx", by_value=True),
    "FedNovaTrainer": run_of(
        FedNovaTrainer, "FedNova", "client_sampling", "local_test_on_all_clients"
    ),
    "ScaffoldTrainer": run_of(ScaffoldTrainer, "SCAFFOLD"),
    "ScaffoldTrainer, parameters by value": run_of(ScaffoldTrainer, "SCAFFOLD", by_value=True),
}
