"""Flower (PyPI: flwr): strategies of `flwr.serverapp.strategy`, run by `fltheory.flower.run_of`.

Flower leaves local training to its user; here nodes run plain gradient descent and report their
number of examples. The environment imports fltheory from the checkout.
"""

from flwr.serverapp import strategy

from fltheory.flower import run_of

DISTRIBUTION = "flwr"
WAIT_FOR_NOBODY = {"min_available_nodes": 0, "min_train_nodes": 0, "fraction_evaluate": 0.0}


def fedavg(weighting="n_samples", **told):
    return strategy.FedAvg(
        **WAIT_FOR_NOBODY, weighted_by_key="num-examples" if weighting == "n_samples" else "uniform"
    )


def fedavgm(server_lr, weighting="n_samples", **told):
    return strategy.FedAvgM(
        **WAIT_FOR_NOBODY,
        weighted_by_key="num-examples" if weighting == "n_samples" else "uniform",
        server_learning_rate=server_lr,
        server_momentum=0.0,
    )


def fedprox(proximal, weighting="n_samples", **told):
    return strategy.FedProx(
        **WAIT_FOR_NOBODY,
        weighted_by_key="num-examples" if weighting == "n_samples" else "uniform",
        proximal_mu=proximal,
    )


IMPLEMENTATIONS = {"FedAvg": run_of(fedavg), "FedAvgM": run_of(fedavgm), "FedProx": run_of(fedprox)}
