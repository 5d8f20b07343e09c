"""FLGo (PyPI: flgo): `flgo.algorithm`, its `Server.iterate` and `Client.reply`.

`Server.sample` chooses who takes part.  FLGo's runner hands server and clients a message bus, a
clock and a simulator of the network; here the bus calls the client at once and the network is
ideal.
"""

import tempfile
import types

import numpy as np
import torch

from shims.torch_model import _Loss, pretend

pretend(
    "torchvision",
    "torchvision.transforms",
    "torchvision.datasets",
    "torchvision.models",
    "torchvision.utils",
)

from flgo.algorithm import fedavg, fedbase, fednova, fedprox, mifa, scaffold  # noqa: E402
from flgo.benchmark.base import BasicTaskCalculator  # noqa: E402
from flgo.utils.fmodule import FModule  # noqa: E402

DISTRIBUTION = "flgo"


class Model(FModule):
    # FLGo makes models of the same class without arguments.
    x0 = np.zeros(1)

    def __init__(self):
        super().__init__()
        self.x = torch.nn.Parameter(torch.tensor(self.x0))


class Calculator(BasicTaskCalculator):
    def compute_loss(self, model, client):
        return {"loss": _Loss.apply(model.x, client)}


class Bus:
    """The global state of one run, FLGo's `gv`."""

    def __init__(self):
        self.communicator = self.clock = self.simulator = self.logger = self
        self.parties, self.cache_path = {}, tempfile.mkdtemp()

    def apply_for_device(self):
        return torch.device("cpu")

    def request(self, source, target, package):
        return self.parties[target].message_handler(package)

    def info(self, words):
        pass


OPTIONS = {
    "task": "", "eval_interval": 0, "num_parallels": 1, "server_with_cpu": False, "optimizer": "SGD", "num_rounds": 0,
    "num_epochs": 1, "proportion": 1.0, "learning_rate_decay": 1.0, "lr_scheduler": "-1", "sample": "full",
    "momentum": 0.0, "weight_decay": 0.0, "batch_size": -1, "clip_grad": 0.0, "test_batch_size": 1, "num_workers": 0,
    "no_tqdm": True, "use_cache": False, "scene": "horizontal", "algo_para": None,
}  # fmt: skip


def run_of(module, parameters=lambda server_lr, options: None, aggregate="other", empty=False):
    def run(x0, clients, trace, *, client_lr, local_steps, server_lr, **options):
        bus, Model.x0 = Bus(), x0
        steps = local_steps if isinstance(local_steps, tuple) else (local_steps,) * len(clients)
        option = {
            **OPTIONS,
            "learning_rate": client_lr,
            "num_steps": 1,
            "algo_para": parameters(server_lr, options),
            "aggregate": "uniform" if options.get("weighting") == "uniform" else aggregate,
        }

        class Server(module.Server):
            gv, TaskCalculator = bus, Calculator
            # The virtual clock's decorator is removed, as its simulator never delays or drops
            # clients here.
            communicate = fedbase.BasicServer.communicate.__closure__[0].cell_contents

            def sample(self):
                return self.chosen

        class Client(module.Client):
            gv, TaskCalculator = bus, Calculator

            def get_batch_data(self):
                return self.data

        server, parties = Server(option), [Client(option) for _ in clients]
        server.model = Model()
        for index, (party, client) in enumerate(zip(parties, clients)):
            party.set_id(index)
            party.data, party.datavol, party.num_steps = client, client.n_samples, steps[index]
            bus.parties[index] = party
        server.register_clients(parties)
        server.initialize()
        for party in parties:
            party.initialize()
        models = [x0]
        for present in trace:
            server.chosen = [int(i) for i in np.flatnonzero(present)]
            if server.chosen or empty:
                server.iterate()
            models.append(server.model.x.detach().numpy().copy())
        return models

    return run


IMPLEMENTATIONS = {
    "fedavg": run_of(types.SimpleNamespace(Server=fedavg.Server, Client=fedavg.Client)),
    "fedprox": run_of(fedprox, lambda server_lr, options: [options["proximal"]]),
    "fednova": run_of(fednova),
    "scaffold": run_of(scaffold, lambda server_lr, options: [server_lr]),
    "mifa": run_of(mifa, lambda server_lr, options: [1.0], empty=True),
    "mifa, c = 0": run_of(mifa, lambda server_lr, options: [0.0], empty=True),
}
