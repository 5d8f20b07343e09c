"""Runs on which a theorem is measured: the problem is the one that torch trains on."""

from __future__ import annotations

import numpy as np
import pytest

from tests.hardware.experiment_tables import tables

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
pytest.importorskip("sklearn", reason="scikit-learn is an optional extra")
from fltheory.hardware.theory_runs import theory_run  # noqa: E402
from fltheory.hardware.training.prepared import prepared  # noqa: E402
from fltheory.hardware.training.settings import run_settings  # noqa: E402


def run(replicas=3, seed=0, problem_seed=1, **changes):
    settings = run_settings(tables(**changes))
    return theory_run(settings, problem_seed, replicas=replicas, seed=seed)


def premises(found):
    return {premise.name: premise.holds for premise in found.premises}


def test_the_problem_is_what_torch_trains_on():
    """Losses and gradients of torch's clients, in its own flat order of parameters."""
    found = run()
    ready = prepared(run_settings(tables()), 1)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, found.problem.dim)).astype(np.float32)
    losses = ready.clients.client_losses(torch.from_numpy(x)).numpy()
    gradients = ready.clients.client_gradients(torch.from_numpy(x)).numpy()
    ours = found.problem.client_sums(x.astype(np.float64))
    np.testing.assert_allclose(losses, ours.losses, rtol=1e-5)
    np.testing.assert_allclose(gradients, ours.gradients, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found.x0, ready.start[0].numpy(), rtol=0)


def test_all_images_weigh_alike():
    found = run()
    sizes = found.problem.sizes
    assert len(set(sizes.tolist())) > 1
    np.testing.assert_allclose(found.problem.alpha, sizes / 1442)


def test_all_runs_begin_at_one_model_and_then_differ():
    found = run()
    trajectory = found.measured.trajectory
    distance = np.square(found.x0 - found.problem.x_star).sum()
    assert trajectory.rounds == 4
    assert trajectory.squared_distance[0] == pytest.approx(distance, rel=1e-9)
    assert trajectory.standard_error.squared_distance[0] < 1e-12
    assert trajectory.standard_error.squared_distance[-1] > 1e-6


def test_seeds_of_problem_and_runs():
    first, same, other = run(), run(), run(seed=1)
    ends = [found.measured.trajectory.squared_distance for found in (first, same, other)]
    np.testing.assert_array_equal(ends[0], ends[1])
    assert ends[0][0] == ends[2][0]
    assert ends[0][-1] != ends[2][-1]
    assert run(problem_seed=2).measured.trajectory.squared_distance[0] != ends[0][0]


def test_a_known_problem_is_used_again_where_it_is_the_same():
    first = run()
    settings = run_settings(tables(participation={"excluded": 0}))
    again = theory_run(settings, 1, replicas=2, known=first.problem)
    assert again.problem is first.problem
    other = theory_run(settings, 2, replicas=2, known=first.problem)
    assert other.problem is not first.problem


def test_full_batches_at_q_one_are_gradient_descent():
    """No noise, everybody there, one step: x <- x - lr * mean of the clients' gradients."""
    found = run(
        algorithm={"q": 1.0},
        participation={"size": 5, "excluded": 0},
        training={"local_steps": 1, "batch_size": 400, "sampling": "shuffle"},
    )
    x = found.x0.copy()
    for r in range(5):
        distance = np.square(x - found.problem.x_star).sum()
        assert found.measured.trajectory.squared_distance[r] == pytest.approx(distance, rel=1e-5)
        x = x - 0.01 * found.problem.client_sums(x[None]).gradients[0].mean(axis=0)
    assert found.measured.sigma.high == 0
    assert premises(found)["clients' gradients unbiased given the past"]


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({}, None),
        (
            {"training": {"sampling": "shuffle"}},
            "clients' gradients unbiased given the past",
        ),
        ({"training": {"sampling": "shuffle", "local_steps": 1}}, None),
        (
            {"training": {"local_steps": None, "local_epochs": 1}},
            "the same number of local steps for every client",
        ),
        ({"server": {"samples": 1441}}, "server's gradient unbiased"),
        ({"server": {"steps": 2}}, "one server step in a round of the server"),
    ],
)
def test_premises(changes, wrong):
    assert {name for name, holds in premises(run(**changes)).items() if not holds} == (
        {wrong} if wrong else set()
    )


def test_bias_of_a_server_with_few_images():
    found = run(server={"samples": 20})
    assert found.measured.server_bias > 0.1
    assert found.measured.server_sigma.low > found.measured.server_bias
    assert run().measured.server_bias == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": {"name": "cnn"}}, "model.name must be logistic with training.weight_decay"),
        ({"training": {"weight_decay": 0.0}}, "with training.weight_decay above 0, .* with 0"),
        ({"training": {"client_lr": 1e30}}, "models must stay finite, got NaN or infinity after"),
    ],
)
def test_bad_input(changes, message):
    with pytest.raises(ValueError, match=message):
        run(**changes)


def test_at_least_two_runs():
    with pytest.raises(ValueError, match="replicas must be a whole number of at least 2, got 1"):
        run(replicas=1)
