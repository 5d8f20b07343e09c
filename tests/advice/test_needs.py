"""What algorithms need, read off what they keep."""

from __future__ import annotations

import pytest

from fltheory.advice.algorithm_advice import Needs
from fltheory.algorithms import FedAvg, ServerMomentum
from fltheory.algorithms.table import ALGORITHMS

CIRCUMSTANCES = {
    "client_lr": 0.1,
    "assist_lr": 0.1,
    "local_steps": 1,
    "target_weights": (0.25,) * 4,
    "aggregation_weights": (0.25,) * 4,
    "availability": (0.5,) * 4,
    "correlation": 0.0,
}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fedavg", "nothing"),
        ("mifa", "1 vector per client, 1 number per client"),
        ("adafed", "known availability"),
        ("safari", "server data"),
    ],
)
def test_needs_in_words(name: str, said: str) -> None:
    listed = ALGORITHMS[name]
    algorithm = listed.tried(4, CIRCUMSTANCES)
    assert str(Needs.of(algorithm, listed.facts_required, 4)) == said


def test_server_data_is_the_hardest_to_come_by_and_nothing_the_easiest() -> None:
    ranks = {
        name: Needs.of(listed.tried(4, CIRCUMSTANCES), listed.facts_required, 4).rank
        for name, listed in ALGORITHMS.items()
    }
    assert max(ranks, key=ranks.__getitem__) == "safari"
    assert min(ranks.values()) == ranks["fedavg"]


@pytest.mark.parametrize("n_clients", [1, 2, 3])
def test_a_vector_of_the_servers_is_no_number_of_the_clients(n_clients: int) -> None:
    needs = Needs.of(ServerMomentum(FedAvg(0.1, 1), 0.9), (), n_clients)
    assert (needs.vectors, needs.numbers) == (0, 0)
