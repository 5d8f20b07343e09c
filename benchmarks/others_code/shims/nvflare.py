"""NVIDIA FLARE (PyPI: nvflare): its workflow `Scaffold`, with `PTScaffoldHelper` on clients.

The controller's own `run` goes round by round; `sample_clients` and `send_model_and_wait`, which
need a deployment, are replaced by the trace and by a client in this process.  The client's loop is
that of the library's own Lightning callback: optimizer step, `model_update`, and `terms_update` at
the end.
"""

import copy

import numpy as np
import torch
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.app_constant import AlgorithmConstants
from nvflare.app_common.workflows import scaffold
from nvflare.app_common.workflows.base_fedavg import BaseFedAvg
from nvflare.app_opt.pt.scaffold import PTScaffoldHelper, get_lr_values

from shims.torch_model import Vector, mean, rows, vector

DISTRIBUTION = "nvflare"


class Scaffold(scaffold.Scaffold):
    """The controller without a deployment: no engine, no files, no events."""

    def deploy(self, x0, train, rounds):
        self.train, self.rounds, self.after = train, rounds, []
        self.x0, self.engine, self.fl_ctx = x0, None, FLContext()

    def load_model(self):
        return FLModel(params={"x": self.x0.copy()})

    def save_model(self, model):
        self.after.append(np.array(model.params["x"]))

    def sample_clients(self, num_clients=None):
        return self.rounds[self.current_round]

    def send_model_and_wait(self, targets, data):
        return [self.train(target, data) for target in targets]

    def event(self, *anything):
        pass

    info = debug = warning = exception = event

    def panic(self, reason):
        raise RuntimeError(reason)

    def run(self):
        self._run_rounds()


class Client:
    def __init__(self, index, x0, client_lr, local_steps):
        self.model, self.data, self.steps = Vector(x0), rows(index, 1), local_steps
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=client_lr)
        self.helper = PTScaffoldHelper()
        self.helper.init(model=self.model)

    def train(self, received):
        self.helper._prepare_model(self.model)
        self.helper.load_global_controls(received.meta[AlgorithmConstants.SCAFFOLD_CTRL_GLOBAL])
        c_global, c_local = self.helper.get_params()
        self.model.load_state_dict(
            {name: torch.as_tensor(value) for name, value in received.params.items()}
        )
        before = copy.deepcopy(self.model)
        for _ in range(self.steps):
            inputs, labels = self.data
            self.optimizer.zero_grad()
            mean(self.model(inputs), labels).backward()
            self.optimizer.step()
            self.helper.model_update(
                model=self.model,
                curr_lr=get_lr_values(self.optimizer)[0],
                c_global_para=c_global,
                c_local_para=c_local,
            )
        self.helper.terms_update(
            model=self.model,
            curr_lr=get_lr_values(self.optimizer)[0],
            c_global_para=c_global,
            c_local_para=c_local,
            model_global=before,
        )
        return FLModel(
            params_type=ParamsType.FULL,
            params={"x": vector(self.model)},
            current_round=received.current_round,
            meta={AlgorithmConstants.SCAFFOLD_CTRL_DIFF: self.helper.get_delta_controls()},
        )


def run(x0, clients, trace, *, client_lr, local_steps, server_lr, **options):
    Vector.clients = clients
    parties = [Client(index, x0, client_lr, local_steps) for index in range(len(clients))]
    rounds = [[int(i) for i in np.flatnonzero(present)] for present in trace]
    taking = [chosen for chosen in rounds if chosen]
    controller = Scaffold(num_clients=len(clients), num_rounds=len(taking))
    controller.deploy(x0, lambda index, received: parties[index].train(received), taking)
    # BaseFedAvg's own initialize asks the deployment's engine for its parts.
    parent, BaseFedAvg.initialize = BaseFedAvg.initialize, lambda self, context: None
    try:
        controller.initialize(None)
    finally:
        BaseFedAvg.initialize = parent
    controller.run()
    models, after = [x0], iter(controller.after)
    for chosen in rounds:
        models.append(next(after) if chosen else models[-1])
    return models


IMPLEMENTATIONS = {"Scaffold": run}
