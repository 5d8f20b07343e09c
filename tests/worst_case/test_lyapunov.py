"""Rates of methods with memory: closed forms, published rates, and problems that are run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from fltheory.algorithms import FedVarp, Mifa, Scaffold
from fltheory.algorithms.contract import CLIENTS, Algorithm
from fltheory.engines import Setting, exact
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.participation import Bernoulli, UniformSubset
from fltheory.participation.base import Participation
from fltheory.problems import QuadraticProblem
from fltheory.problems.piecewise_quadratic_problem import PiecewiseQuadraticProblem
from fltheory.worst_case import ClientClass, best_bound, checker, read_proof
from fltheory.worst_case.audits.audit import ClassOutcome
from fltheory.worst_case.memory import (
    LyapunovBound,
    LyapunovProgram,
    MemoryRound,
    lyapunov_bound_of,
    proved_gap,
)
from tests.drawn import a_tenth

TEN = ClientClass(1, "1/10")


def of_saga(n_clients: int, step: str, mifa: bool = False) -> MemoryRound:
    one = Fraction(1, n_clients)
    surprise = one if mifa else Fraction(1)
    return MemoryRound(n_clients, 1, one, surprise, Fraction(step), "zero")


def test_sagas_rate() -> None:
    """At 1/(3L), N = 10, mu = L/10 its authors have 1 - min(1/(4N), mu/(3L)) = .975."""
    found = lyapunov_bound_of(of_saga(10, "1/3"), TEN)
    assert found.outcome is ClassOutcome.PROVED
    assert found.rate is not None
    assert found.rate <= Fraction("0.9409")
    assert found.start is not None
    assert found.start >= 1
    found.certificate.verify()  # type: ignore[union-attr]


@pytest.mark.parametrize("margin", ["1/10", "1/100"])
def test_what_is_proved_at_once_is_as_near_as_was_asked(margin: str) -> None:
    """1 - rate is the solver's over 1 + margin, to six digits: nothing nearer is looked for."""
    found = lyapunov_bound_of(of_saga(10, "1/3"), TEN, margin=margin)
    assert found.rate is not None
    assert found.least_rate is not None
    away = (1 - found.least_rate) / (1 + float(Fraction(margin)))
    assert float(1 - found.rate) == pytest.approx(away, rel=1e-5)


def test_without_a_function_inside_its_limits_nothing_is_proved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LyapunovProgram, "inner_solution", lambda *given: None)
    found = lyapunov_bound_of(of_saga(10, "1/3"), TEN, "0.975")
    assert found.outcome is ClassOutcome.UNDECIDED


@pytest.mark.parametrize(("n_clients", "mu"), [(5, "1/20"), (50, "1/10"), (1000, "1/100")])
def test_published_rates_are_proved(n_clients: int, mu: str) -> None:
    """SAGA (Defazio et al., 2014) at 1/(3L); SAG (Schmidt et al., 2017, Theorem 1) at 1/(16L)."""
    clients, share = ClientClass(1, mu), Fraction(mu)
    saga = 1 - min(Fraction(1, 4 * n_clients), share / 3)
    sag = 1 - min(Fraction(1, 8 * n_clients), share / 16)
    for a_round, rate in (
        (of_saga(n_clients, "1/3"), saga),
        (of_saga(n_clients, "1/16", mifa=True), sag),
    ):
        assert lyapunov_bound_of(a_round, clients, rate).outcome is ClassOutcome.PROVED


@pytest.mark.parametrize(
    ("a_round", "step"),
    [
        (MemoryRound(1, 1, Fraction(1), Fraction(1), Fraction(1), "zero"), "1"),
        (MemoryRound(4, 4, Fraction(1), Fraction(1, 4), Fraction(1), "zero"), "1/5"),
        (MemoryRound(4, 0, Fraction(1), Fraction(1, 4), Fraction(1), "gradients"), "9/5"),
    ],
)
def test_everybody_is_gradient_descent(a_round: MemoryRound, step: str) -> None:
    """One client, or all of them: max(|1 - eta L|, |1 - eta mu|)^2, and nothing below."""
    eta, clients = Fraction(step), ClientClass(2, "1/5")
    played = replace(a_round, step=eta / 2)
    rate = max(abs(1 - eta), abs(1 - eta / 10)) ** 2
    found = lyapunov_bound_of(played, clients)
    assert found.rate is not None
    assert rate <= found.rate <= rate + Fraction(1, 2000)
    below = lyapunov_bound_of(played, clients, rate - Fraction(1, 2000))
    assert below.outcome is ClassOutcome.UNDECIDED
    assert below.certificate is below.rate is below.start is None
    assert below.after(3, 1.0) == float("inf")
    assert below.tried.endswith(f"at a rate of {float(rate - Fraction(1, 2000)):.6g}")


METHODS: dict[str, tuple[Algorithm, Participation, str]] = {
    "SAGA": (FedVarp(0.25, 1), UniformSubset(4, 1), "y"),
    "FedVARP": (FedVarp(0.5, 1), UniformSubset(4, 2), "y"),
    "SCAFFOLD": (Scaffold(0.25, 1), UniformSubset(3, 2), "c_i"),
    "SCAFFOLD, option 1": (Scaffold(0.5, 1, option=1), UniformSubset(3, 1), "c_i"),
    "MIFA, drawn": (Mifa(0.25, 1, start="zero"), UniformSubset(4, 1), "updates"),
    "MIFA, independent": (Mifa(0.5, 1, start="zero"), Bernoulli([0.5] * 4), "updates"),
}


@pytest.fixture(scope="module")
def bounds() -> dict[str, LyapunovBound]:
    return {name: best_bound(method, who, TEN) for name, (method, who, _) in METHODS.items()}


def _quadratics(rng: np.random.Generator, n_clients: int) -> tuple[QuadraticProblem, float]:
    """Return random clients of the class, x* = 0, and the mean square of gradients there."""
    turns = [np.linalg.qr(rng.normal(size=(2, 2)))[0] for _ in range(n_clients)]
    ends = rng.choice([0.1, 1.0, 0.3], size=(n_clients, 2))
    hessians = np.array([q @ np.diag(c) @ q.T for q, c in zip(turns, ends, strict=True)])
    hessians = (hessians + hessians.transpose(0, 2, 1)) / 2
    tilts = rng.normal(size=(n_clients, 2)) * 10 ** rng.uniform(-2, 1)
    tilts -= tilts.mean(axis=0)
    optima = -np.linalg.solve(hessians, tilts[:, :, None])[:, :, 0]
    return QuadraticProblem(hessians, optima), float((tilts**2).sum() / n_clients)


@pytest.mark.parametrize("count", [15, pytest.param(150, marks=pytest.mark.soundness)])
@pytest.mark.parametrize("name", METHODS)
def test_no_quadratic_clients_are_slower(
    name: str, count: int, bounds: dict[str, LyapunovBound]
) -> None:
    """Random problems, 40 rounds each, by the exact engine from the code's start."""
    method, who, _ = METHODS[name]
    found, rng = bounds[name], np.random.default_rng(0)
    assert found.certificate is not None
    rate, start, heterogeneity = (
        float(found.certificate.proof.bound[key]) for key in ("rate", "start", "heterogeneity")
    )
    for _ in range(count):
        problem, level = _quadratics(rng, who.n_clients)
        setting = Setting(method, problem, who, 40, rng.normal(size=2) * 10 ** rng.uniform(-1, 1))
        distance = exact(setting).squared_distance
        bound = rate ** np.arange(41) * (start * distance[0] + heterogeneity * level)
        assert (distance <= bound * (1 + 1e-9)).all()


@pytest.mark.parametrize("rate", ["1", "99/100"])
def test_no_quadratic_clients_have_a_larger_sum_of_gaps(rate: str) -> None:
    """Random problems, 40 rounds each, by the exact engine from the code's start."""
    method, who, _ = METHODS["SCAFFOLD"]
    rng = np.random.default_rng(2)
    made = proved_gap(MemoryRound.of(method, who), ClientClass(1, "1/10"), rate, 1.0)
    assert made is not None
    bound = {key: float(value) for key, value in made.proof.bound.items()}
    for _ in range(15):
        problem, level = _quadratics(rng, who.n_clients)
        setting = Setting(method, problem, who, 40, rng.normal(size=2) * 10 ** rng.uniform(-1, 1))
        run = exact(setting)
        first = bound["start"] * run.squared_distance[0] + bound["heterogeneity"] * level
        total = bound["rate"] ** np.arange(39, -1, -1) @ run.excess_loss[:40]
        assert 0 < bound["gap"] * total <= bound["rate"] ** 40 * first


@pytest.mark.parametrize("count", [4, pytest.param(20, marks=pytest.mark.soundness)])
@pytest.mark.parametrize("name", METHODS)
def test_no_piecewise_quadratic_clients_are_slower(
    name: str, count: int, bounds: dict[str, LyapunovBound]
) -> None:
    """Random problems, over all sets of three rounds of the algorithm's own code."""
    method, who, _ = METHODS[name]
    found, rng = bounds[name], np.random.default_rng(1)
    outcomes = list(who.outcomes())
    for _ in range(count):
        n = who.n_clients
        problem = PiecewiseQuadraticProblem(
            rng.normal(size=(n, 3, 2)), rng.normal(size=(n, 3)), L=1.0, mu=0.1
        )
        clients = SteppedClients(problem, Silence())
        x0 = 3 * rng.normal(size=2)
        at_zero = problem.client_gradients(np.zeros((n, 2)), np.arange(n))
        level = float((at_zero**2).sum() / n)
        state = dict(method.init(x0[None], n))
        chances = np.ones(1)
        for rounds in range(1, 4):
            copies = len(chances)
            repeated = {
                key: np.repeat(value, len(outcomes), axis=0) for key, value in state.items()
            }
            masks = np.tile([mask for _, mask in outcomes], (copies, 1))
            state = dict(method.round(repeated, clients, masks, CLIENTS))
            chances = np.repeat(chances, len(outcomes)) * np.tile([c for c, _ in outcomes], copies)
            mean = float(chances @ (state["x"] ** 2).sum(axis=1))
            scaled = replace(found, client_class=ClientClass(1, "1/10", dissimilarity=level**0.5))
            assert mean <= scaled.after(rounds, float(np.linalg.norm(x0))) * (1 + 1e-9)


def test_mifa_that_waits_is_not_slower_once_all_have_appeared() -> None:
    """Over all sets of three rounds, the first of which the last client appears in."""
    method, who = Mifa(0.25, 1), Bernoulli([0.5] * 3)
    found, rng = best_bound(method, who, TEN), np.random.default_rng(2)
    assert found.outcome is ClassOutcome.PROVED
    assert found.heterogeneity == 0
    masks = [mask for _, mask in who.outcomes()]
    for _ in range(20):
        problem, _ = _quadratics(rng, 3)
        clients = SteppedClients(problem, Silence())
        x0 = rng.normal(size=2)
        state = dict(method.init(x0[None], 3))
        for present in ([True, True, False], [False, False, True]):
            state = dict(method.round(state, clients, np.array([present]), CLIENTS))
        for rounds in range(1, 4):
            mean = float((state["x"] ** 2).sum(axis=1).mean())
            assert mean <= found.after(rounds, float(np.linalg.norm(x0))) * (1 + 1e-9)
            copies = len(state["x"])
            state = {key: np.repeat(value, len(masks), axis=0) for key, value in state.items()}
            state = dict(method.round(state, clients, np.tile(masks, (copies, 1)), CLIENTS))


@pytest.mark.parametrize("name", METHODS)
def test_claims_below_the_least_rate_are_not_proved(
    name: str, bounds: dict[str, LyapunovBound]
) -> None:
    """1 - rate 2% larger than the largest found."""
    method, who, _ = METHODS[name]
    least = bounds[name].least_rate
    assert least is not None
    faster = 1 - Fraction(1 - least) * Fraction(102, 100)
    assert best_bound(method, who, TEN, rate=faster).outcome is ClassOutcome.UNDECIDED


def test_a_step_that_is_too_long_is_undecided() -> None:
    """Gradient descent of everybody at 3/L moves away."""
    found = best_bound(FedVarp(3.0, 1), UniformSubset(3, 3), TEN)
    assert found.outcome is ClassOutcome.UNDECIDED
    assert found.least_rate is None
    assert "quadratic in the model, the memory and its points" in found.tried


@pytest.mark.parametrize("seed", a_tenth(range(3)))
def test_random_methods_are_proved(seed: int) -> None:
    """FedVARP with up to a million clients, condition to 1,000, steps below 1/(3L)."""
    rng = np.random.default_rng(seed)
    for _ in range(3):
        n_clients, smoothness = int(10 ** rng.uniform(0.5, 6)), 10 ** rng.uniform(-3, 3)
        size = int(rng.integers(1, min(n_clients, 100) + 1))
        clients = ClientClass(f"{smoothness:.4g}", f"{smoothness / 10 ** rng.uniform(0.5, 3):.4g}")
        step = Fraction(f"{10 ** rng.uniform(-1.5, -0.5) / smoothness:.3g}")
        played = MemoryRound(
            n_clients, size, Fraction(size, n_clients), Fraction(1, size), step, "zero"
        )
        found = lyapunov_bound_of(played, clients)
        assert found.outcome is ClassOutcome.PROVED


def test_units_do_not_matter() -> None:
    one = lyapunov_bound_of(of_saga(10, "1/3"), TEN)
    other = lyapunov_bound_of(of_saga(10, "1/3000"), ClientClass(1000, 100))
    assert one.rate == other.rate
    assert float(one.heterogeneity or 0) == pytest.approx(1e6 * float(other.heterogeneity or 0))


def test_a_bound_after_rounds_is_the_certificates(bounds: dict[str, LyapunovBound]) -> None:
    found = replace(bounds["SAGA"], client_class=ClientClass(1, "1/10", dissimilarity=3))
    assert found.rate is not None
    assert found.start is not None
    assert found.heterogeneity is not None
    value = found.rate**7 * (found.start * 4 + found.heterogeneity * 9)
    assert found.after(7, 2.0) == pytest.approx(float(value))


def test_a_proof_is_checked_by_another_process_without_the_package(
    bounds: dict[str, LyapunovBound], tmp_path: Path
) -> None:
    made = bounds["MIFA, independent"].certificate
    assert made is not None
    path = tmp_path / "proof.json"
    made.write(path)
    # Neither the package nor anything installed: the folder alone.
    copied = shutil.copytree(Path(str(checker.__file__)).parent, tmp_path / "checker")
    call = [sys.executable, "-I", "-S", str(copied), str(path)]
    run = subprocess.run(call, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (run.returncode, run.stdout[:6]) == (0, "proved")
    text = made.text.replace(f'"rate": "{made.proof.bound["rate"]}"', '"rate": "1/2"')
    path.write_text(text)
    run = subprocess.run(call, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("not proved: decrease: ")


def test_certificates_are_told_apart(bounds: dict[str, LyapunovBound], tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    made = bounds["SAGA"].certificate
    assert made is not None
    made.write(path)
    assert read_proof(path) == made
    path.write_text("{}")
    assert read_proof(path) is None
    assert read_proof(tmp_path / "missing.json") is None
