from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from fltheory.testing import check_algorithm, run_of
from fltheory.testing.conformance.case import Case, QuadraticClient
from fltheory.testing.conformance.guarded_run import GuardedRun
from fltheory.testing.conformance.own_runs import Run

right = run_of("fedavg")


def _told(run: Run) -> str:
    report = check_algorithm(run, "fedavg", raises=False, stop_at_first=True)
    assert not report.conforms
    return report.failures[0].text


def test_an_exception_is_told_with_its_line() -> None:
    def run(*args: Any, **given: Any) -> Any:
        raise RuntimeError("out of clients")

    text = _told(run)
    assert "run raises RuntimeError: out of clients" in text
    assert "test_guarded_run.py, line" in text


def test_an_exception_that_cannot_be_told_is_told() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise KeyError("mute")

    def run(*args: Any, **given: Any) -> Any:
        raise MuteError

    assert "run raises MuteError: its message raises KeyError" in _told(run)


@pytest.mark.parametrize("which", [0, 2])
def test_a_changed_input_is_told(which: int) -> None:
    def run(*args: Any, **given: Any) -> Any:
        args[which][...] = 0
        return right(*args, **given)

    assert "run changes its inputs, which are read-only" in _told(run)


def test_a_changed_list_of_clients_is_told() -> None:
    def run(x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
        models = right(x0, clients, trace, **given)
        clients.reverse()
        clients.pop()
        return models

    assert "run changes its inputs: clients" in _told(run)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda models: models[1:], "the first row must be x0"),
        (lambda models: models[-1], "not only the last one"),
        (lambda models: np.full_like(models, np.nan), "must return finite models"),
        (lambda models: None, "got None"),
        (lambda models: "models", "got str"),
        (lambda models: (row for row in models), "got generator"),
        (lambda models: models + 1e-3j, "real numbers, not complex numbers"),
        (lambda models: models.astype(int), "floating-point numbers, not integers"),
        (lambda models: models.astype(bool), "floating-point numbers, not integers"),
        (lambda models: models.astype(str), "real numbers, not text"),
        (lambda models: np.full(models.shape, object()), "got ndarray, which is not one"),
        (lambda models: [[1.0], [1.0, 2.0]], "got list, which is not one"),
        (lambda models: {0: models}, "got dict"),
        (lambda models: models[:, None], "(2, 1, 1)"),
        (lambda models: models[0, 0], "got ()"),
    ],
)
def test_what_are_no_models_is_told(change: Any, words: str) -> None:
    assert words in _told(lambda *args, **given: change(right(*args, **given)))


@pytest.mark.parametrize("change", [lambda models: models.tolist(), tuple, list])
def test_lists_of_rows_are_models(change: Any) -> None:
    run = lambda *args, **given: change(right(*args, **given))  # noqa: E731
    assert check_algorithm(run, "fedavg", laws=["by-hand"]).conforms


def test_numbers_changed_inside_a_client_are_told() -> None:
    def run(x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
        optimum = clients[0].client.optimum
        optimum.flags.writeable = True
        optimum += 1
        return right(x0, clients, trace, **given)

    assert "run changes its inputs: the numbers inside the clients" in _told(run)


def test_an_attribute_set_on_a_client_is_told() -> None:
    def run(x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
        clients[0].n_samples = 1

    assert "run changes its inputs, which are read-only" in _told(run)


def test_an_exit_and_endless_recursion_are_told() -> None:
    def leaves(*args: Any, **given: Any) -> Any:
        sys.exit(3)

    def recurs(*args: Any, **given: Any) -> Any:
        return recurs(*args, **given)

    assert "run raises SystemExit: 3" in _told(leaves)
    assert "run raises RecursionError" in _told(recurs)


def test_models_that_fail_on_reading_are_told() -> None:
    class Lazy:
        def __array__(self, *args: Any, **given: Any) -> Any:
            raise KeyError("gone")

    assert "got Lazy, which is not one" in _told(lambda *args, **given: Lazy())


def test_what_run_prints_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    def run(*args: Any, **given: Any) -> Any:
        print("round")
        return right(*args, **given)

    assert check_algorithm(run, "fedavg", laws=["by-hand"]).conforms
    assert "round" in capsys.readouterr().out


def test_another_first_row_is_told() -> None:
    def run(*args: Any, **given: Any) -> Any:
        models = right(*args, **given)
        return np.concatenate([models[1:], models[-1:]])

    assert "starts-at-x0" in _told(run)


def test_chance_is_told() -> None:
    rng = np.random.default_rng(0)

    def run(*args: Any, **given: Any) -> Any:
        models = right(*args, **given)
        models[1:] += 1e-6 * rng.standard_normal()
        return models

    text = _told(run)
    assert "deterministic" in text
    assert "nothing is random" in text


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_less_than_double_precision_is_told(kind: type) -> None:
    run = lambda *args, **given: right(*args, **given).astype(kind)  # noqa: E731
    report = check_algorithm(run, "fedavg", raises=False, stop_at_first=True)
    assert not report.conforms
    assert f"note: run returns {np.dtype(kind).name}" in report.text
    assert "run returns float" not in check_algorithm(right, "fedavg", laws=["by-hand"]).text


def test_state_kept_between_calls_is_told() -> None:
    kept: list[float] = []

    def run(*args: Any, **given: Any) -> Any:
        models = right(*args, **given)
        kept.append(float(models[-1, 0]))
        models[1:] += 1e-3 * kept[-2] if len(kept) > 1 else 0
        return models

    assert "deterministic" in _told(run)


def test_an_ignored_trace_is_told() -> None:
    def run(x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
        return right(x0, clients, np.ones_like(trace), **given)

    text = _told(run)
    assert "run ignores the trace" in text
    assert "everybody takes part: the trace is ignored" in text


def test_an_argument_that_run_does_not_take_is_told_once_before_any_law() -> None:
    def run(x0: Any, clients: Any, trace: Any, *, client_lr: float, local_steps: int) -> Any:
        return right(x0, clients, trace, client_lr=client_lr, local_steps=local_steps, server_lr=1)

    def without_a_trace(x0: Any, clients: Any, **given: Any) -> Any:
        return right(x0, clients, np.ones((3, len(clients)), dtype=bool), **given)

    arguments = "x0, clients, trace and the keyword arguments client_lr, local_steps, server_lr"
    for wrong, why in ((run, "'server_lr'"), (without_a_trace, "too many positional arguments")):
        with pytest.raises(ValueError, match=rf"run must take {arguments}, weighting .*{why}"):
            check_algorithm(wrong, "fedavg")


def _asks_everybody(x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
    """Look at every client's gradient once, present or not, and use none of them."""
    for client in clients:
        client.gradient(x0)
    return right(x0, clients, trace, **given)


def test_calls_are_counted_and_what_is_asked_of_those_who_never_come() -> None:
    """Two calls, as a case that is known is not run again; one client of two never comes."""
    clients = (QuadraticClient(np.eye(1), np.zeros(1)),) * 2
    trace = np.array([[True, False]] * 3)
    case = Case(clients, np.ones(1), trace, 0.5, 1, options={"weighting": "uniform"})
    guarded = GuardedRun(_asks_everybody)
    assert (guarded.calls, guarded.asked_absent) == (0, 0)
    guarded.models(case)
    guarded.models(case)
    guarded.fresh(case)
    assert (guarded.calls, guarded.asked_absent) == (2, 2)


def test_what_is_asked_of_those_who_never_come_is_noted_and_no_fault() -> None:
    report = check_algorithm(_asks_everybody, "fedavg", laws=["one-never-comes"])
    assert "gradients were requested from clients who are never present in that run" in report.text
    assert check_algorithm(right, "fedavg", laws=["one-never-comes"]).notes == ()
