"""Shared fixtures: small problems with known answers, and deterministic Hypothesis profiles."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from fltheory.problems import QuadraticProblem

# Whether work takes two seconds depends on the machine; the tests' stderr must not.
os.environ["FLTHEORY_PROGRESS"] = "off"

for profile, examples in (("quick", 20), ("soundness", 60)):
    settings.register_profile(
        profile,
        derandomize=True,
        deadline=None,
        max_examples=examples,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
settings.load_profile("quick")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Exclude modules and tests, which live until the end, from garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def plugins_found_as_ever() -> None:
    """Let runs of pytest inside tests find plugins by themselves, which `make test` does not."""
    for name in ("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTEST_PLUGINS"):
        os.environ.pop(name, None)


@pytest.fixture
def two_points() -> QuadraticProblem:
    """Losses (x + 1)^2 and (x - 1)^2: x* = 0, F* = 1, L = mu = 2, sigma_G = 2, Gamma = 1."""
    return QuadraticProblem([[2.0]], [[-1.0], [1.0]])


@pytest.fixture
def mixed_hessians() -> QuadraticProblem:
    """Three noisy clients in the plane whose Hessians neither agree nor commute."""
    return QuadraticProblem(
        [[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.25], [-0.25, 3.0]], [[1.5, 0.0], [0.0, 0.5]]],
        [[1.0, -2.0], [-0.5, 1.5], [3.0, 0.25]],
        sigma=0.75,
        server_sigma=0.5,
        target_weights=[0.5, 0.25, 0.25],
    )


@pytest.fixture
def own_theorems_forgotten() -> Iterator[None]:
    """Remove the theorems that a test registers, after the test."""
    from fltheory.theorems import registry

    before = dict(registry._BY_NAME)
    yield
    registry._BY_NAME.clear()
    registry._BY_NAME.update(before)


@pytest.fixture
def processors(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that makes the machine appear to have a given number of processors."""

    def pretend(count: int) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(count)))

    return pretend


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240229)


@pytest.fixture
def fltheory_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs ``fltheory`` as a user does: exit status, output, errors.

    If the first word is ``NAME.py``, it runs that script of docs/scripts/.
    """
    from tests.typed import run_typed

    def command(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", [])
        with pytest.raises(SystemExit) as stop:
            run_typed(arguments)
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return command
