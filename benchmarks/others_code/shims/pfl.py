"""pfl-research (PyPI: pfl): `pfl.algorithm`, through its own `run` and `SimulatedBackend`.

The user sampler and the cohort size follow the trace.  pfl keeps model differences in single
precision.
"""

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.algorithm.fedprox import FedProx, FedProxParams
from pfl.algorithm.scaffold import SCAFFOLD, SCAFFOLDParams
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.user_state import InMemoryUserStateStorage
from pfl.hyperparam.base import HyperParam, NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel

from shims.torch_model import _Loss

DISTRIBUTION = "pfl"


class Vector(torch.nn.Module):
    clients = ()

    def __init__(self, x0):
        super().__init__()
        self.x = torch.nn.Parameter(torch.tensor(x0))

    def loss(self, batch, is_eval=False):
        return _Loss.apply(self.x, self.clients[int(batch[0])])

    def metrics(self, batch):
        return {}


class Cohort(HyperParam):
    """The number of participants in the next round."""

    def __init__(self, rounds):
        self.rounds, self.now = rounds, 0

    def value(self):
        return len(self.rounds[self.now])


class AfterRound(TrainingProcessCallback):
    def __init__(self, cohort, models):
        self.cohort, self.models = cohort, models

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        self.models.append(model.pytorch_model.x.detach().numpy().astype(float).copy())
        self.cohort.now = min(self.cohort.now + 1, len(self.cohort.rounds) - 1)
        return False, Metrics()


def run_of(algorithm_class, parameters):
    def run(x0, clients, trace, *, client_lr, local_steps, server_lr, **options):
        Vector.clients = clients
        rounds = [[int(i) for i in np.flatnonzero(present)] for present in trace]
        taking = [chosen for chosen in rounds if chosen]
        if not taking:
            return [x0] * (len(trace) + 1)
        module = Vector(x0)
        model = PyTorchModel(
            module, torch.optim.SGD, torch.optim.SGD(module.parameters(), server_lr)
        )
        coming = iter([str(i) for chosen in taking for i in chosen])
        data = FederatedDataset(
            lambda user: Dataset(
                (torch.full((clients[int(user)].n_samples,), int(user)),), user_id=user
            ),
            lambda: next(coming),
        )
        cohort = Cohort(taking)
        weighted = options.get("weighting") == "n_samples"
        backend = SimulatedBackend(data, data, [WeightByDatapoints()] if weighted else [])
        after = []
        algorithm_class().run(
            parameters(
                options,
                len(clients),
                central_num_iterations=len(taking),
                evaluation_frequency=10**9,
                train_cohort_size=cohort,
                val_cohort_size=None,
            ),
            backend,
            model,
            NNTrainHyperParams(
                local_batch_size=None, local_num_epochs=local_steps, local_learning_rate=client_lr
            ),
            callbacks=[AfterRound(cohort, after)],
            send_metrics_to_platform=False,
        )
        models, after = [x0], iter(after)
        for chosen in rounds:
            models.append(next(after) if chosen else models[-1])
        return models

    return run


def scaffold(options, population, **common):
    return SCAFFOLDParams(
        population=population,
        use_gradient_as_control_variate=options["option"] == 1,
        user_state_storage=InMemoryUserStateStorage(),
        **common,
    )


IMPLEMENTATIONS = {
    "FederatedAveraging": run_of(
        FederatedAveraging, lambda options, population, **common: NNAlgorithmParams(**common)
    ),
    "FedProx": run_of(
        FedProx,
        lambda options, population, **common: FedProxParams(mu=options["proximal"], **common),
    ),
    "SCAFFOLD": run_of(SCAFFOLD, scaffold),
    "SCAFFOLD, gradient as control variate": run_of(SCAFFOLD, scaffold),
}
