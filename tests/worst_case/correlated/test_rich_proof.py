"""Bounds by functions that see gradients: against another program, truths, and a third checker."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fltheory.algorithms import FedAvg, WeightedFedAvg
from fltheory.engines import Setting, stationary
from fltheory.participation import MarkovOnOff, UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.worst_case import ClientClass, best_bound, certificate, read_proof
from fltheory.worst_case.checker import correlated_checker, kernel, rich_checker
from fltheory.worst_case.correlated.bound import best_correlated_bound
from fltheory.worst_case.correlated.rich import (
    RichBound,
    RichCertificate,
    rich_certificate,
    richer_bound,
)
from fltheory.worst_case.rounds.one_round import AveragingRound
from tests.worst_case.correlated.enumerated_rich_proof import is_proved
from tests.worst_case.correlated.test_correlated_bound import CLIENTS, by_chain, on_off

STEEP = ClientClass(3, "0.2")
ROUNDS: dict[str, tuple[AveragingRound, dict[str, Any]]] = {
    "a group": (on_off(3, correlation="0.9", client_lr="0.1"), {}),
    "loss, over those present": (
        on_off(2, correlation="0.5", client_lr="0.1", local_steps=2, averaging="present"),
        {"measure": "loss"},
    ),
    "two groups": (on_off(1, 2, correlation="0.8", client_lr="0.1"), {}),
    "a chain": (by_chain(1, 1), {}),
}


@cache
def _made(name: str) -> RichCertificate:
    played, asked = ROUNDS[name]
    bound = richer_bound(best_correlated_bound(played, STEEP, **asked))
    assert isinstance(bound, RichBound)
    return rich_certificate(bound)


# ---------------------------------------------------------------- bounds


@pytest.mark.parametrize(
    ("correlation", "client_lr", "floor"),
    [
        ("0", "0.1", 0.05028),
        ("0.5", "0.1", 0.1492),
        ("0.9", "0.1", 0.9012),
        ("0.9", "0.01", 0.0944),
    ],
)
def test_floors_are_those_of_a_program_of_other_authors(
    correlation: str, client_lr: str, floor: float
) -> None:
    """Ten clients at pi = 1/2; computed with another program, from the same mathematics."""
    played = on_off(10, correlation=correlation, client_lr=client_lr)
    found = richer_bound(best_correlated_bound(played, CLIENTS))
    assert found.floor == pytest.approx(floor, rel=6e-4)


@pytest.mark.parametrize(("local_steps", "correlation"), [(1, 0.6), (2, 0.95), (3, 0.3)])
def test_the_worst_quadratics_reach_the_floor(local_steps: int, correlation: float) -> None:
    """The exact limit of clients that share the least curvature is nearly the floor, if below."""
    n, step = 2, 0.02
    problem = QuadraticProblem([[0.1]], [[-1.0], [1.0]])
    method = WeightedFedAvg([1 / (n * 0.5)] * n, step, local_steps)
    chains = MarkovOnOff([0.5] * n, correlation)
    truth = float(stationary(Setting(method, problem, chains, 1, [0.0])).squared_distance)
    played = on_off(n, correlation=str(correlation), client_lr="0.02", local_steps=local_steps)
    found = richer_bound(best_correlated_bound(played, CLIENTS)).floor * 0.01
    assert truth * (1 - 1e-6) < found < truth * 1.002


def test_it_is_never_worse() -> None:
    """At a rate the plain function may be the better one, which is then returned."""
    played = on_off(2, correlation="0.9", client_lr="0.1")
    plain = best_correlated_bound(played, CLIENTS, rounds=50, distance=3)
    found = richer_bound(plain)
    assert isinstance(found, RichBound)
    assert found.after(50, 3) < plain.after(50, 3)
    of_rate = best_correlated_bound(played, STEEP, rate="0.99")
    assert richer_bound(of_rate).floor <= of_rate.floor


# ---------------------------------------------------------------- certificates


@pytest.mark.parametrize("name", ROUNDS)
def test_a_third_derivation_agrees(name: str) -> None:
    """All sets and next sets, no moments: it accepts what the checker accepts, and no more."""
    made = _made(name)
    made.verify()
    assert is_proved(made.text)
    verdicts = []
    for document in _changed(json.loads(made.text)):
        text = json.dumps(document)
        verdicts.append(_is_accepted(text))
        assert is_proved(text) == verdicts[-1]
    assert not any(verdicts[:4])


def _is_accepted(text: str) -> bool:
    try:
        RichCertificate(text).verify()
    except kernel.ProofError:
        return False
    return True


def _changed(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield certificates of claims that are too good, and with other numbers."""

    def changed(change: Any, *path: Any) -> dict[str, Any]:
        copy = json.loads(json.dumps(document))
        place = copy
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = str(change(Fraction(place[path[-1]])))
        return copy

    less = Fraction(98, 100)
    yield changed(lambda value: value * less, "bound", "heterogeneity")
    yield changed(lambda value: value / 2, "bound", "start")
    yield changed(lambda value: value * less, "class", "mu")
    yield changed(lambda value: value * Fraction(11, 10), "function", 1, "form", 0, 0)
    yield changed(lambda value: value + 1, "function", 1, "present_losses", 0, 0)
    yield changed(lambda value: value - 1, "function", 2, "absent_losses", 0)
    yield changed(lambda value: value + 1, "function", 1, "absent", 0, 0, 0)
    yield changed(lambda value: value * 2, "multipliers", 1, 0, 0, 1)


def test_mutated_certificates_are_judged_alike() -> None:
    """Any number of a file changed: what is accepted is what the third derivation proves."""
    good = json.loads(_made("a group").text)
    draw, accepted = random.Random(11), 0
    paths = [path for path in _numbers(good) if path[0] in ("bound", "function", "lower", "first")]
    for _ in range(40):
        document = json.loads(json.dumps(good))
        *path, last = draw.choice(paths)
        place: Any = document
        for name in path:
            place = place[name]
        factor = draw.choice([Fraction(-1), Fraction(0), Fraction(99, 100), Fraction(101, 100)])
        place[last] = str(Fraction(place[last]) * factor)
        text = json.dumps(document)
        is_accepted = _is_accepted(text)
        assert is_accepted == is_proved(text)
        accepted += is_accepted
    assert 0 < accepted < 40


def _numbers(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(found, dict | list):
        for name, value in found.items() if isinstance(found, dict) else enumerate(found):
            yield from _numbers(value, (*path, name))
    elif isinstance(found, str) and found != "0":
        yield path


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("class", "noise"), True, "gradients must be exact"),
        (("function", 0, "present"), [], "one entry per group"),
        (("function", 1, "absent_losses"), ["0", "0"], "must be 1 numbers"),
        (("multipliers", 1, 0), [["0"]], "multipliers: out of range"),
        (("lower", 1, 0, 0, 1), "-1", "must not be negative"),
        (("first",), [[["0"]]], "first: out of range"),
    ],
)
def test_a_file_of_another_shape_is_refused(path: Any, value: Any, message: str) -> None:
    document = json.loads(_made("a group").text)
    place = document
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    with pytest.raises(kernel.ProofError, match=message):
        RichCertificate(json.dumps(document)).verify()


def test_the_front_door_and_the_checker_as_a_program(tmp_path: Path) -> None:
    method, bursts = WeightedFedAvg([1.0] * 2, 0.1, 1), MarkovOnOff([0.5] * 2, 0.9)
    found = best_bound(method, bursts, CLIENTS, rich=True)
    assert found.floor < 0.9 * best_bound(method, bursts, CLIENTS).floor
    made, path = certificate(found), tmp_path / "proof.json"
    made.write(path)
    assert read_proof(path) == made
    for module in (kernel, correlated_checker, rich_checker):
        source = Path(module.__file__)
        (tmp_path / source.name).write_bytes(source.read_bytes())
    call = [sys.executable, "-S", str(tmp_path / "rich_checker.py"), str(path)]
    run = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout[:6]) == (0, "proved")
    path.write_text(made.text.replace('"mu": "1/10"', '"mu": "1/20"'))
    run = subprocess.run(call, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "has a negative eigenvalue" in run.stderr


def test_a_program_that_is_too_large_is_refused_in_a_line() -> None:
    plain = best_correlated_bound(on_off(2, correlation="0.5", client_lr="0.1"), CLIENTS)
    larger = on_off(99, correlation="0.5", client_lr="0.1", local_steps=3)
    asked = replace(plain, request=replace(plain.request, round=larger))
    with pytest.raises(ValueError, match="at most 3000 coefficients and multipliers, got 8"):
        richer_bound(asked)


@pytest.mark.parametrize(
    ("method", "participation", "clients", "message"),
    [
        (FedAvg(0.1, 1), MarkovOnOff([0.5] * 2, 0.5), ClientClass(1, "0.1", sigma=1), "sigma = 0"),
        (FedAvg(0.1, 1), UniformSubset(3, 2), CLIENTS, "or rich, got UniformSubset"),
    ],
)
def test_what_is_not_covered_is_refused_in_a_line(
    method: Any, participation: Any, clients: ClientClass, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        best_bound(method, participation, clients, rich=True)
