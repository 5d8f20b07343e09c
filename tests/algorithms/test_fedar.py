"""FedAR: rounds by hand, counted contributors, the weight's contract, and bad input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from replay import replay

from fltheory.algorithms import FedAR, Mifa
from fltheory.algorithms.shared.inactivity_weights import CappedLinear
from fltheory.participation import MarkovOnOff

WEIGHT = CappedLinear(growth=0.5, largest=2.0)


def test_by_hand() -> None:
    """One local step of 0.1, psi = 1, 1.5, 2, 2, ..., and tau_max = 2.

    1: G_0 = 5 counts alone. 2: (1.5 * 5 - 1.5)/2 = 3. 3: (2 * 5 - 1.8)/2 = 4.1.
    4: nobody; client 0 is 3 rounds old and out, -1.5 * 1.8 counts alone. 5: -2 * 1.8.
    6: nobody counts. 7: client 0 is back and alone, 4.42.
    """
    presence = [[1, 0], [0, 1], [0, 1], [0, 0], [0, 0], [0, 0], [1, 0]]
    found = replay(FedAR(0.1, 1, weight=WEIGHT, cutoff=2), presence)
    expected = [3, 2.5, 2.2, 1.79, 2.06, 2.42, 2.42, 1.978]
    assert found["x"] == pytest.approx(expected, rel=1e-14)
    assert found["inactive"][-1] == [0, 4]
    assert found["updates"][-1] == pytest.approx([4.42, -1.8], rel=1e-14)


@pytest.mark.parametrize(("cutoff", "mean"), [(np.inf, 1.675), (2, 0.715)])
def test_pulls_at_the_limit_by_hand(cutoff: float, mean: float) -> None:
    """Of age 1 or more, 2 or more, 3 or more with chance .75, .75 x .8, .75 x .8^2.

    psi = 1, 1.5, 2 has the mean 1 + .5 x .75 + .5 x .6, less 2 x .48 where age 3 is cut off; a
    client who is never there pulls nothing.
    """
    chains = MarkovOnOff([0.25, 0.0], 0.2)
    algorithm = FedAR(0.1, 1, weight=WEIGHT, cutoff=cutoff)
    found = algorithm.limit_pulls(chains, lambda steps, lr: np.array([3.0, 5.0]))
    assert found == pytest.approx([3 * mean, 0.0], rel=1e-14)


def test_a_cutoff_that_grows_with_the_round() -> None:
    """tau_max(t) = t/2: of age 1 in round 2, client 0 counts; of age 2 in round 3, it does not.

    2: (1.5 * 5 - 1.5)/2 = 3. 3: -1.5 * 1.5. 4: of age 3, still not, client 1 of age 2 does.
    """
    algorithm = FedAR(0.1, 1, weight=WEIGHT, cutoff=lambda rounds: rounds / 2)
    found = replay(algorithm, [[1, 0], [0, 1], [0, 0], [0, 0]])
    assert found["x"] == pytest.approx([3, 2.5, 2.2, 2.425, 2.725], rel=1e-14)
    assert found["rounds"] == [0, 1, 2, 3, 4]


def test_clients_never_seen_are_not_counted() -> None:
    """However many they are: 3 - 0.1 * 5, and - 0.1 * 1.05 * 5 for the default's first age."""
    presence = [[1, 0, 0, 0], [0, 0, 0, 0]]
    found = replay(FedAR(0.1, 1), presence, (-2.0, 4.0, 5.0, 6.0))
    assert found["x"] == pytest.approx([3, 2.5, 1.975], rel=1e-14)


def test_nobody_at_all_moves_nothing() -> None:
    assert replay(FedAR(0.1, 2), [[0, 0], [0, 0]])["x"] == [3, 3, 3]


def test_equal_weights_without_cutoff_are_mifa_once_all_have_appeared() -> None:
    presence = [[1, 1], [0, 1], [0, 0], [1, 0], [0, 1]]
    found = replay(FedAR(0.1, 3, weight=CappedLinear(0.0), server_lr=1.5), presence)["x"]
    expected = replay(Mifa(0.1, 3, server_lr=1.5), presence)["x"]
    assert found == pytest.approx(expected, rel=1e-13)


@dataclass(frozen=True)
class Table:
    """A weight read from a short table, constant afterwards."""

    values: tuple[float, ...]
    growth: float = 1.0
    largest: float = 2.0

    def __call__(self, inactive):
        return np.array(self.values)[np.minimum(inactive, len(self.values) - 1).astype(int)]


def test_any_weight_that_keeps_the_contract_will_do() -> None:
    """Steps 0.1 * 5, then 0.1 * 1 * 5 after a round, then 0.1 * 1.25 * 5 after two."""
    found = replay(FedAR(0.1, 1, weight=Table((1, 1, 1.25))), [[1, 0], [0, 0], [0, 0]])
    assert found["x"] == pytest.approx([3, 2.5, 2, 1.375], rel=1e-14)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (Table((0.5, 1)), "weight must be 1 for a client just seen, got 0.5 after 0 inactive"),
        (
            Table((1, 1.5, 1.2)),
            "weight must never decrease with the inactive rounds, got 1.2 after 2 inactive rounds",
        ),
        (
            Table((1, 1.1, 1.5), growth=0.25),
            "weight must grow by at most growth=0.25 per round, got 1.5 after 2 inactive rounds",
        ),
        (
            Table((1, 1.5, 2.25)),
            "weight must be at most largest=2, got 2.25 after 2 inactive rounds",
        ),
        (Table((1, np.inf)), "weight must be finite, got inf after 1 inactive rounds"),
        (Table((1,), growth=-1.0), "weight.growth must be a finite number of at least 0"),
        (Table((1,), largest=0.5), "weight.largest must be a finite number of at least 1"),
    ],
)
def test_the_broken_clause_is_named(weight: Table, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FedAR(0.1, 1, weight=weight)


def test_a_weight_must_answer_entry_by_entry() -> None:
    class Lump(Table):
        def __call__(self, inactive):
            return 1.0

    with pytest.raises(ValueError, match="weight must give one number for each count"):
        FedAR(0.1, 1, weight=Lump((1,)))


@pytest.mark.parametrize("weight", [None, 1.0, lambda inactive: 1 + 0 * inactive])
def test_a_weight_says_its_growth_and_cap(weight) -> None:
    with pytest.raises(
        ValueError, match=r"weight must be a function.*attributes growth and largest"
    ):
        FedAR(0.1, 1, weight=weight)


@pytest.mark.parametrize(
    "values", [lambda counts: ["one"] * len(counts), lambda counts: 1j * counts]
)
def test_a_weight_gives_real_numbers(values) -> None:
    class Odd(Table):
        def __call__(self, inactive):
            return values(inactive)

    with pytest.raises(ValueError, match="weight must give real numbers, got"):
        FedAR(0.1, 1, weight=Odd((1,)))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"cutoff": "late"}, "cutoff must give real numbers, got 'late'"),
        ({"cutoff": lambda rounds: np.zeros(3)}, "one number for each round, got shape"),
        ({"cutoff": -1}, "cutoff must be a number of at least 0 in every round, got -1 in round 1"),
        ({"cutoff": np.nan}, "cutoff must be a number of at least 0 in every round, got nan"),
        ({"cutoff": lambda rounds: 5 - rounds}, "got -1 in round 6"),
        ({"client_lr": 0.0}, "client_lr must be a finite number above 0"),
        ({"local_steps": 0}, "local_steps must be a whole number of at least 1"),
        ({"server_lr": -1.0}, "server_lr must be a finite number above 0"),
    ],
)
def test_bad_input_is_named(changed, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FedAR(**{"client_lr": 0.1, "local_steps": 1, **changed})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-0.1, 2.0), "growth must be a finite number of at least 0, got -0.1"),
        ((0.1, 0.9), "largest must be a finite number of at least 1, got 0.9"),
        ((0.1, np.inf), "largest must be a finite number of at least 1, got inf"),
    ],
)
def test_bad_default_weights(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CappedLinear(*arguments)
