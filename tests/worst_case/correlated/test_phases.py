"""Runs whose steps change: closed forms, exact truths, the bounds of one phase, forged files."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fltheory import Setting, exact
from fltheory.algorithms import FedAvg, Harmonic, Scheduled, Unbiased, WeightedFedAvg
from fltheory.participation import MarkovOnOff
from fltheory.problems import QuadraticProblem
from fltheory.worst_case import ClientClass, best_bound, certificate, read_proof
from fltheory.worst_case.checker import correlated_checker, kernel, phases_checker
from fltheory.worst_case.correlated.bound import best_correlated_bound
from fltheory.worst_case.correlated.phases import (
    PhasedBound,
    PhasesCertificate,
    StepPhase,
    best_phased_bound,
    best_two_phases,
    phases_certificate,
)
from tests.worst_case.correlated.enumerated_proof import phases_are_proved
from tests.worst_case.correlated.plain_loop import Clients, paths
from tests.worst_case.correlated.test_correlated_bound import CLIENTS, on_off

NOISY = ClientClass(1, "0.1", sigma=1)
STEPS = ("0.2", "0.1", "0.05")


def _single(steps: Sequence[str], measured: bool) -> list[StepPhase]:
    return [StepPhase(1, Fraction(lr), measured=measured) for lr in steps]


# ---------------------------------------------------------------- closed forms


def test_with_everybody_there_it_is_gradient_descent() -> None:
    """``E||x_T - x*||^2``: products of (1 - eta mu)^2, and of noise their sums times eta^2/N."""
    played = on_off(2, correlation="0", client_lr="1", availability=("1",))
    found = best_phased_bound(played, NOISY, _single(STEPS, False))
    rates = [(1 - float(lr) / 10) ** 2 for lr in STEPS]
    assert found.start == pytest.approx(np.prod(rates), rel=1e-6)
    assert found.heterogeneity == pytest.approx(0, abs=1e-6)
    after = [np.prod(rates[k + 1 :]) for k in range(3)]
    noise = sum(float(lr) ** 2 / 2 * rest for lr, rest in zip(STEPS, after, strict=True))
    assert found.noise == pytest.approx(noise, rel=1e-5)
    mean = best_phased_bound(played, CLIENTS, _single(STEPS, True))
    assert mean.start == pytest.approx((1 + rates[0] + rates[0] * rates[1]) / 3, rel=1e-6)


@pytest.mark.parametrize("clients", [CLIENTS, NOISY])
def test_one_phase_is_the_bound_that_it_was(clients: ClientClass) -> None:
    played = on_off(3, correlation="0.9", client_lr="0.1")
    mean = best_correlated_bound(played, clients, rounds=100, distance=4)
    phased = best_phased_bound(played, clients, [StepPhase(100, Fraction("0.1"))], distance=4)
    assert phased.value == pytest.approx(mean.after(100, 4), rel=1e-6)
    rate = Fraction("0.99")
    each = best_correlated_bound(played, clients, rate=rate)
    last = [StepPhase(2000, Fraction("0.1"), rate, measured=False)]
    limit = best_phased_bound(played, clients, last, distance=Fraction(1, 1000))
    assert limit.value == pytest.approx(each.floor, rel=1e-4)


def test_rounds_of_their_own_gain_over_one_function_for_all() -> None:
    played = on_off(3, correlation="0.9", client_lr="0.1")
    lr = Fraction("0.1")
    single = best_phased_bound(played, CLIENTS, [StepPhase(1, lr)] * 12, distance=2)
    halves = best_phased_bound(played, CLIENTS, [StepPhase(6, lr)] * 2, distance=2)
    whole = best_phased_bound(played, CLIENTS, [StepPhase(12, lr)], distance=2)
    assert single.value < 0.5 * halves.value
    assert halves.value <= whole.value * (1 + 1e-6)


# ---------------------------------------------------------------- truths


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("measure", ["distance", "last"])
def test_no_truth_is_above_a_bound(seed: int, measure: Any) -> None:
    """Of quadratics with curvatures of their own along a falling step, by the exact engine."""
    rng = np.random.default_rng(seed)
    n, K, sigma = int(rng.integers(2, 4)), int(rng.integers(1, 3)), float(seed % 2)
    process = MarkovOnOff([0.5] * n, [0.5, 0.9][seed % 2])
    averages = seed >= 2
    inner = FedAvg(0.1, K) if averages else Unbiased((1 / n,) * n, (0.5,) * n, 0.1, K)
    schedule = Scheduled(inner, Harmonic(1.0, offset=4.0))
    clients = ClientClass(1, "0.1", sigma=sigma)
    bound = best_bound(schedule, process, clients, measure=measure, rounds=12, start_distance=2)
    assert isinstance(bound, PhasedBound)
    assert bound.after(12, 2) == bound.value
    with pytest.raises(ValueError, match="rounds must be the 12 of the phases, got 11"):
        bound.after(11, 2)
    made = certificate(bound, 1e-4)
    made.verify()
    said = {name: float(value) for name, value in made.proof.bound.items()}
    largest = 0.0
    for turn in range(6):
        curved = rng.choice([0.1, 0.1, 0.3, 1.0], size=n) if turn else np.full(n, 0.1)
        optima = rng.normal(size=(n, 1))
        problem = QuadraticProblem(curved[:, None, None], optima, sigma=sigma)
        x0 = problem.x_star + rng.normal()
        run = exact(Setting(schedule, problem, process, 12, x0))
        h = float(np.mean((curved * (problem.x_star - optima[:, 0])) ** 2))
        far = float((x0 - problem.x_star)[0] ** 2)
        right = said["start"] * far + said["heterogeneity"] * h + said["noise"] * sigma**2
        truths = run.squared_distance
        truth = float(truths[-1] if measure == "last" else np.mean(truths[:-1]))
        assert truth <= right * (1 + 1e-9)
        largest = max(largest, truth / right)
    assert largest > 0.4


@pytest.mark.parametrize("measured", [True, False])
def test_piecewise_quadratics_are_below_what_is_proved_of_falling_steps_but_nearly_reach_it(
    measured: bool,
) -> None:
    """Along every path of sets of two clients, from x* and from elsewhere, by a plain loop."""
    played, steps = on_off(2, correlation="0.8", client_lr="1"), ("0.4", "0.2", "0.1")
    phases = [StepPhase(1, Fraction(step), measured=measured) for step in steps]
    made = phases_certificate(best_phased_bound(played, CLIENTS, phases, distance=1), 1e-4)
    made.verify()
    rng, said = np.random.default_rng(6), made.proof.bound
    losses = Clients.drawn(rng, 0.1, 400, 2)
    best = losses.minimiser(np.array([0.5, 0.5]))
    start = best + rng.choice([0.0, 1.0, 5.0], size=best.shape)
    h = sum(losses.gradient(i, best)[:, 0] ** 2 for i in range(2)) / 2
    bound = float(said["start"]) * ((start - best) ** 2)[:, 0] + float(said["heterogeneity"]) * h
    runs = paths(losses, start, played, [float(step) for step in steps])
    squares = [((x - best) ** 2) @ chance for x, _, chance in runs]
    truth = np.mean(squares[:3], axis=0) if measured else squares[3]
    assert 0.9 < (truth / bound).max() <= 1


@pytest.mark.parametrize("clients", [CLIENTS, NOISY])
def test_two_phases_hold_for_quadratics_and_are_proved(clients: ClientClass) -> None:
    played = on_off(3, correlation="0.9", client_lr="1")
    phases = [
        StepPhase(60, Fraction("0.2"), Fraction("0.97"), measured=False),
        StepPhase(40, Fraction("0.05")),
    ]
    found = best_phased_bound(played, clients, phases, distance=10)
    made = phases_certificate(found, 1e-4)
    made.verify()
    said = {name: float(value) for name, value in made.proof.bound.items()}
    sigma = float(clients.sigma)
    # Gradients at the optimum are 1, 0 and -1.
    bound = said["start"] * 100 + said["heterogeneity"] * 2 / 3 + said["noise"] * sigma**2
    assert bound <= (found.start * 100 + found.heterogeneity * 2 / 3 + found.noise * sigma) * 1.01
    schedule = Scheduled(WeightedFedAvg((2 / 3,) * 3, 0.2, 1), _Two())
    process, largest = MarkovOnOff([0.5] * 3, 0.9), 0.0
    for curvature in (0.1, 0.5, 1.0):
        optima = np.array([[1.0], [0.0], [-1.0]]) / curvature
        problem = QuadraticProblem([[curvature]], optima, sigma=sigma)
        run = exact(Setting(schedule, problem, process, 99, [10.0]))
        largest = max(largest, float(np.mean(run.squared_distance[60:])))
    assert 0.1 * bound < largest <= bound


class _Two:
    """0.2 for sixty rounds, then 0.05."""

    def at(self, round_index: int) -> float:
        """Return eta_t."""
        return 0.2 if round_index <= 60 else 0.05

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Two)


# ---------------------------------------------------------------- files


def _mixed() -> PhasesCertificate:
    """Return a proof of two rounds alike and one of its own, and of three that are measured.

    What the last step is, the mean of the models before it does not say.
    """
    played = on_off(2, correlation="0.8", client_lr="1")
    phases = [
        StepPhase(2, Fraction("0.2"), Fraction("0.99"), measured=False),
        StepPhase(1, Fraction("0.2"), measured=False),
        StepPhase(2, Fraction("0.1")),
        StepPhase(1, Fraction("0.05")),
    ]
    return phases_certificate(best_phased_bound(played, CLIENTS, phases, distance=3))


@pytest.mark.parametrize(
    ("path", "factor", "message"),
    [
        (("bound", "start"), "0.98", "bound.start: must be at least"),
        (("bound", "heterogeneity"), "0.98", "bound.heterogeneity: must be at least"),
        (("phases", 0, "proof", "below"), "2", "bound.heterogeneity: must be at least"),
        (("phases", 0, "rate"), "100/99", "bound.start: must be at least"),
        (("phases", 0, "rate"), "0.9", "phase 0: state .* negative eigenvalue"),
        (("phases", 2, "rate"), "0.9", "1 from the first measured round on"),
        (("phases", 0, "proof", "below"), "0.5", "before the next phase"),
        (("phases", 1, "proof", "bound", "heterogeneity"), "0.5", "phase 1: state"),
        (("phases", 2, "proof", "round", "client_lr"), "0.5", "phase 2: state"),
        (("phases", 1, "proof", "round", "client_lr"), "0.5", "phase 1: state"),
        (("phases", 3, "proof", "class", "mu"), "0.5", "must be those of the first"),
        (("phases", 3, "proof", "function", 1, "form", 0, 0), "0.9", "phase 3: state"),
        (("phases", 0, "proof", "function", 1, "form", 0, 0), "1.5", "phase 0: state"),
        (("phases", 0, "proof", "bound", "start"), "0.5", "start"),
    ],
)
def test_forged_files_are_refused(path: tuple[Any, ...], factor: str, message: str) -> None:
    made = _mixed()
    made.verify()
    document = json.loads(made.text)
    place = document
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = str(Fraction(place[path[-1]]) * Fraction(factor))
    with pytest.raises(kernel.ProofError, match=message):
        PhasesCertificate(json.dumps(document)).verify()


def test_mutated_files_are_refused_or_prove_no_less() -> None:
    """Any number changed: what is accepted, all sets and next sets enumerated prove, too."""
    made, draw = _mixed(), random.Random(3)
    assert phases_are_proved(made.text)
    paths = list(_numbers(json.loads(made.text), ()))
    accepted = 0
    for _ in range(50):
        document = json.loads(made.text)
        place, path = document, draw.choice(paths)
        for name in path[:-1]:
            place = place[name]
        factor = draw.choice([Fraction(-1), Fraction(0), Fraction(99, 100), Fraction(101, 100)])
        place[path[-1]] = str(Fraction(place[path[-1]]) * factor)
        text = json.dumps(document)
        try:
            PhasesCertificate(text).verify()
        except kernel.ProofError:
            continue
        accepted += 1
        assert phases_are_proved(text)
    assert accepted < 30


def _numbers(found: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if isinstance(found, dict | list):
        items = found.items() if isinstance(found, dict) else enumerate(found)
        for name, value in items:
            yield from _numbers(value, (*path, name))
    elif isinstance(found, str) and found != "0" and re.fullmatch(r"-?\d+(/\d+)?", found):
        yield path


@pytest.mark.parametrize("place", [1, 3])
def test_a_single_round_has_no_constants_between_functions(place: int) -> None:
    document = json.loads(_mixed().text)
    document["phases"][place]["proof"]["below"] = "-1"
    with pytest.raises(kernel.ProofError, match=f"phases.{place}..proof.below: out of range"):
        PhasesCertificate(json.dumps(document)).verify()


def test_phases_in_another_order_or_number_of_rounds_are_refused() -> None:
    text = _mixed().text
    for change in (0, 1, 2):
        document = json.loads(text)
        phases = document["phases"]
        if change == 0:
            phases[0], phases[1] = phases[1], phases[0]
        elif change == 1:
            phases[0]["rounds"] = 1
        else:
            phases[2]["measured"] = False
        with pytest.raises(kernel.ProofError):
            PhasesCertificate(json.dumps(document)).verify()


def test_it_is_read_and_checked_as_a_program_of_its_own(tmp_path: Path) -> None:
    made, path = _mixed(), tmp_path / "proof.json"
    made.write(path)
    assert read_proof(path) == made
    assert made.lines[0].startswith("the mean of E||x_t - x*||^2 over the 3 measured rounds <= ")
    assert "2 rounds with eta_c = 1/5; then 1 rounds" in made.lines[2]
    folder = Path(str(phases_checker.__file__)).parent
    call = [sys.executable, "-I", "-S", str(folder), str(path)]
    run = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout[:6]) == (0, "proved")
    for module in (kernel, correlated_checker, phases_checker):
        source = Path(str(module.__file__))
        (tmp_path / source.name).write_bytes(source.read_bytes())
    call = [sys.executable, "-S", str(tmp_path / "phases_checker.py"), str(path)]
    run = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout[:6]) == (0, "proved")


# ---------------------------------------------------------------- what is not covered


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "rounds and start_distance must be given for steps that change"),
        (
            {"rounds": 9, "start_distance": 1, "rate": "0.9"},
            "rate, best_weights and rich must be left out",
        ),
        ({"rounds": 9, "start_distance": 1, "measure": "loss"}, "must be 'distance' or 'last'"),
        ({"rounds": 1000, "start_distance": 1}, "must be at most 666 with 3 numbers of clients"),
    ],
)
def test_what_is_not_covered_is_refused_in_a_line(more: Any, message: str) -> None:
    schedule = Scheduled(FedAvg(0.1, 1), Harmonic(1.0, offset=4.0))
    with pytest.raises(ValueError, match=message):
        best_bound(schedule, MarkovOnOff([0.5, 0.5], 0.5), CLIENTS, **more)


@pytest.mark.parametrize(
    ("phases", "message"),
    [
        ([], "phases must not be empty"),
        ([StepPhase(2, Fraction(1, 10), Fraction(0), measured=False)], "rate must be above 0"),
        ([StepPhase(2, Fraction(1, 10), Fraction(9, 10))], "rate must be 1 from the first"),
        (
            [StepPhase(2, Fraction(1, 10), 1 - Fraction(1, 10**7), False)],
            "rate must have a denominator of at most 1000000",
        ),
        ([StepPhase(0, Fraction(1, 10))], "rounds must be"),
    ],
)
def test_phases_that_are_none_are_refused(phases: list[StepPhase], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        best_phased_bound(on_off(2, correlation="0.5", client_lr="1"), CLIENTS, phases)


def test_rates_of_tiny_steps_are_the_checkers() -> None:
    """2 mu eta = 2e-5 of a step of 1e-4: three digits of it are more than the checker reads."""
    played = on_off(2, correlation="0.5", client_lr="0.0001")
    found = best_two_phases(played, CLIENTS, rounds=40, distance=1, evaluations=5)
    assert 0.99998 < found.phases[0].rate < 1
    phases_certificate(found, 1e-3).verify()


def test_steps_that_are_too_long_are_told() -> None:
    with pytest.raises(ArithmeticError, match="no finite bound was found: try smaller steps"):
        best_phased_bound(
            on_off(2, correlation="0.5", client_lr="1"), CLIENTS, [StepPhase(50, Fraction(5))]
        )
