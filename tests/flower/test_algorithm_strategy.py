"""Every algorithm as a Flower strategy, against the engine that runs it here."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra flower: docs/how-to/flower.md")

from exact_quadratics import Floats, Quadratic, clients, trace
from flwr.app import ArrayRecord, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fltheory.algorithms import FedAvg, Safari, Scaffold
from fltheory.algorithms.contract import Algorithm
from fltheory.algorithms.table import ALGORITHMS
from fltheory.engines.simulation import simulate
from fltheory.flower import AlgorithmStrategy, local_client_app, run_of
from fltheory.flower.algorithm_strategy import LOG, Nodes
from fltheory.flower.layout import ArrayLayout
from fltheory.flower.local_clients import GradientClient
from fltheory.flower.strategy_runs import InProcessGrid, as_server, gradient_descent_app
from fltheory.participation import Bernoulli, MarkovOnOff, Participation, Trace

N = 5
X0 = np.array([1.0, -2.0, 0.5])
WHO = trace(30, N)
STEPS = {"client_lr": 0.1, "local_steps": 3}


class Backend:
    """The Clients contract on `Quadratic`, one step after another, for one replica."""

    n_clients = N

    def __init__(self, them: list[Quadratic]) -> None:
        self.them = them

    def local_sgd(
        self,
        x: Floats,
        who: Any,
        *,
        steps: int,
        lr: float,
        correction: Any = None,
        proximal: float = 0,
    ) -> Floats:
        changes = np.zeros((1, N, x.shape[1]))
        for k in np.flatnonzero(who[0]):
            y = x[0].copy()
            for _ in range(steps):
                push = 0.0 if correction is None else correction[0, k]
                y = y - lr * (self.them[k].gradient(y) + push + proximal * (y - x[0]))
            changes[0, k] = y - x[0]
        return changes

    def summed_local_sgd(self, x: Floats, who: Any, weights: Any, **steps: Any) -> Floats:
        return np.einsum("ri,ria->ra", np.where(who, weights, 0), self.local_sgd(x, who, **steps))

    def loss(self, x: Floats, who: Any) -> Floats:
        return np.where(who, [[one.loss(x[0]) for one in self.them]], 0.0)

    def server_gradient(self, x: Floats) -> Floats:
        return np.mean([[one.gradient(x[0]) for one in self.them]], axis=1)


def here(
    algorithm: Any, them: list[Quadratic], participation: Participation, rounds: int, seed: int = 0
) -> Floats:
    """Return the models that the package's own loop makes."""
    participants, branches = np.random.SeedSequence(seed).spawn(2)
    states = simulate(
        algorithm,
        Backend(them),
        participation,
        X0[None],
        participation_rng=np.random.default_rng(participants),
        branch_rng=np.random.default_rng(branches),
    )
    return np.array(
        [state["x"][0] for (state, _), _ in zip(states, range(rounds + 1), strict=False)]
    )


def app(them: Any, client_lr: float, local_steps: Any) -> ClientApp:
    return local_client_app(lambda number: GradientClient(them[number]))


def server_gradient_of(them: list[Quadratic]) -> Any:
    def gradient(arrays: ArrayRecord) -> ArrayRecord:
        (x,) = arrays.to_numpy_ndarrays()
        return ArrayRecord([np.mean([one.gradient(x) for one in them], axis=0)])

    return gradient


def in_flower(
    algorithm: Any, them: list[Quadratic], who: Any, client_app: Any = app, **given: Any
) -> Floats:
    absent = given.pop("absent", "away")

    def make(**_: Any) -> AlgorithmStrategy:
        gradient = server_gradient_of(them)
        return AlgorithmStrategy(
            algorithm, **{"wait_for": 0, "n_clients": N, "server_gradient": gradient, **given}
        )

    run = run_of(make, client_app=client_app, absent=absent)
    return run(X0, them, who, **STEPS, server_lr=1.0)


def of_table(name: str) -> Algorithm:
    circumstances = {
        **STEPS,
        "assist_lr": 0.2,
        "target_weights": np.full(N, 1 / N),
        "aggregation_weights": (1 / N,) * N,
        "availability": np.full(N, 0.5),
        "correlation": np.zeros(N),
    }
    return ALGORITHMS[name].tried(N, circumstances)


@pytest.mark.parametrize("absent", ["away", "error", "silent"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_follows_the_engine(name: str, absent: str) -> None:
    them, algorithm = clients((5, 1, 9, 3, 2)), of_table(name)
    models = in_flower(algorithm, them, WHO, absent=absent)
    np.testing.assert_allclose(
        models, here(algorithm, them, Trace(WHO, start=0), len(WHO)), atol=1e-10
    )


def test_a_second_question_of_a_round_is_asked() -> None:
    them, algorithm = clients((1,) * N), Scaffold(**STEPS, option=1)
    models = in_flower(algorithm, them, WHO)
    np.testing.assert_allclose(
        models, here(algorithm, them, Trace(WHO, start=0), len(WHO)), atol=1e-10
    )


@pytest.mark.parametrize(
    "participation", [Bernoulli([0.3, 0.5, 0.7, 0.9, 1.0]), MarkovOnOff([0.5] * N, [0.6] * N)]
)
def test_participation_is_drawn_from_the_seed(participation: Participation) -> None:
    them, everybody = clients((1,) * N), np.ones((40, N), dtype=bool)
    safari = Safari(q=0.4, assist_lr=0.2, **STEPS)
    models = in_flower(safari, them, everybody, participation=participation, seed=3)
    np.testing.assert_allclose(models, here(safari, them, participation, 40, seed=3), atol=1e-10)
    others = in_flower(safari, them, everybody, participation=participation, seed=4)
    assert np.abs(models - others).max() > 1e-3


class _Failing:
    """A client that fails at some of its calls."""

    def __init__(self, known: Quadratic, fails: Any) -> None:
        self.known, self.fails, self.n_samples = known, fails, known.n_samples

    def local_sgd(self, x: Floats, **told: Any) -> Floats:
        if self.fails(told["draw"]):
            raise OSError("the power is gone")
        return GradientClient(self.known).local_sgd(x, **told)

    def loss(self, x: Floats, draw: Any) -> float:
        return self.known.loss(x)


def app_of_the_failing(lost: Any) -> Any:
    """Return a ClientApp whose nodes answer as Flower has them do: with errors, where they fail."""

    def make(them: Any, client_lr: float, local_steps: Any) -> Any:
        inner = local_client_app(
            lambda number: _Failing(them[number], lambda draw: not lost[draw[0] - 1, number])
        )

        def answering(message: Message, context: Any) -> Message:
            try:
                return inner(message, context)
            except OSError as error:
                return Message(Error(code=0, reason=f"Traceback\n{error}"), reply_to=message)

        return answering

    return make


@pytest.mark.parametrize("name", ["ca-fed", "mifa", "fedau", "scaffold", "f3ast", "adafed"])
def test_a_node_that_dies_in_a_round_was_absent_all_of_it(name: str) -> None:
    """CA-Fed has then heard a loss from it, and counted it as available."""
    them, algorithm = clients((5, 1, 9, 3, 2)), of_table(name)
    everybody = np.ones_like(WHO)
    models = in_flower(algorithm, them, everybody, client_app=app_of_the_failing(WHO))
    expected = here(algorithm, them, Trace(WHO, start=0), len(WHO))
    np.testing.assert_allclose(models, expected, rtol=0, atol=1e-10)


def strategy(**given: Any) -> AlgorithmStrategy:
    return AlgorithmStrategy(Scaffold(**STEPS), **{"n_clients": 2, "wait_for": 0, **given})


def test_absence_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[str] = []
    for level in ("info", "warning"):
        monkeypatch.setattr(LOG, level, lambda text, *values: logged.append(text % values))
    lost = np.array([[True, True], [False, True], [True, True]])
    run = run_of(lambda **_: strategy(), client_app=app_of_the_failing(lost))
    away = np.array([[True, True], [True, True], [True, False]])
    run(X0, clients((1, 1)), away, **STEPS)
    assert "client 0 counts as absent: the power is gone" in logged
    assert "client 1 is absent: it is not connected" in logged
    assert len([line for line in logged if " is absent" in line or " as absent" in line]) == 2


def test_an_error_in_the_superlinks_name_is_the_absent_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So it answers for a node that it takes for gone."""
    logged: list[str] = []
    monkeypatch.setattr(LOG, "warning", lambda text, *values: logged.append(text % values))
    lost = np.array([[True, True], [True, False]])

    def make(them: Any, client_lr: float, local_steps: Any) -> Any:
        inner = app_of_the_failing(lost)(them, client_lr, local_steps)

        def answering(message: Message, context: Any) -> Message:
            reply = inner(message, context)
            if reply.has_error():
                reply.metadata.__dict__["_src_node_id"] = 12345
            return reply

        return answering

    models = run_of(lambda **_: strategy(), client_app=make)(
        X0, clients((1, 1)), np.ones((2, 2), dtype=bool), **STEPS
    )
    assert logged == ["client 1 counts as absent: the power is gone"]
    expected = in_flower(Scaffold(**STEPS), clients((1, 1)), lost, n_clients=2)
    np.testing.assert_allclose(models, expected, rtol=0, atol=1e-14)


def test_a_client_that_ignores_the_correction_is_told_so() -> None:
    def without(them: Any, client_lr: float, local_steps: Any) -> ClientApp:
        plain = gradient_descent_app(them, client_lr, local_steps)

        @plain.query("client")
        def who(message: Message, context: Any) -> Message:
            metrics = MetricRecord({"client": int(context.node_config["partition-id"])})
            return Message(RecordDict({"metrics": metrics}), reply_to=message)

        return plain

    run = run_of(lambda **_: strategy(), client_app=without)
    with pytest.raises(ValueError, match="client 0 must add the arrays 'correction'"):
        run(X0, clients((1, 1)), WHO[:, :2], **STEPS)


def test_a_node_that_starts_again_is_its_client_again() -> None:
    grid = InProcessGrid(app(clients((1, 1)), 0.1, 1), 2)
    nodes = Nodes(2)
    with as_server():
        assert nodes.connected(grid, 1.0) == {0: 1, 1: 2}
        grid._all = (1, 2, 3)
        grid._present = frozenset((1, 3))
        grid._contexts[3] = grid._contexts[2]
        assert nodes.connected(grid, 1.0) == {0: 1, 1: 3}
        assert nodes.client(3) == 1


def test_a_node_must_be_one_of_the_clients() -> None:
    run = run_of(lambda **_: strategy(), client_app=app)
    with pytest.raises(ValueError, match="partition-id must be from 0 to 1, got 2 from node 3"):
        run(X0, clients((1, 1, 1)), np.ones((2, 3), dtype=bool), **STEPS)


def test_the_number_of_clients_must_be_known() -> None:
    with pytest.raises(ValueError, match="n_clients must be given if participation is not"):
        AlgorithmStrategy(Scaffold(**STEPS))
    with pytest.raises(ValueError, match="n_clients must be the participation's 2, got 3"):
        AlgorithmStrategy(Scaffold(**STEPS), Bernoulli([0.5, 0.5]), n_clients=3)


def test_safari_needs_the_servers_gradient() -> None:
    safari = Safari(q=0.5, assist_lr=0.1, **STEPS)
    run = run_of(lambda **_: AlgorithmStrategy(safari, n_clients=2, wait_for=0), client_app=app)
    with pytest.raises(ValueError, match="server_gradient must be given for Safari, got none"):
        run(X0, clients((1, 1)), np.ones((20, 2), dtype=bool), **STEPS)


def test_what_a_wrapper_does_to_the_model_stays() -> None:
    class Halved(AlgorithmStrategy):
        """As differential privacy's wrappers do: they change what comes of a round."""

        def aggregate_train(self, server_round: int, replies: Any) -> Any:
            arrays, metrics = super().aggregate_train(server_round, replies)
            return ArrayRecord([array / 2 for array in arrays.to_numpy_ndarrays()]), metrics

    them = clients((1, 1))
    make = lambda **_: Halved(FedAvg(**STEPS), n_clients=2, wait_for=0)  # noqa: E731
    models = run_of(make, client_app=app)(X0, them, np.ones((2, 2), dtype=bool), **STEPS)
    for before, after in pairwise(models):
        mean = np.mean([one.trained(before, 0.1, 3) for one in them], axis=0)
        np.testing.assert_allclose(after, mean / 2, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ([np.ones(2), np.ones(1, dtype=np.float32)], "float32, float64"),
        ([np.ones(2), np.ones(1, dtype=np.int64)], "float64, int64"),
        ([], "none"),
    ],
)
def test_arrays_must_be_floats_of_one_kind(arrays: list[Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"arrays must be floats of one kind, got {said}"):
        ArrayLayout.of(ArrayRecord(arrays))


def test_a_model_of_another_shape_is_refused() -> None:
    layout = ArrayLayout.of(ArrayRecord([np.ones((2, 2))]))
    with pytest.raises(ValueError, match="arrays must have shapes"):
        layout.flat(ArrayRecord([np.ones(4)]))
