"""Certificates where clients come and go in bursts: accepted twice over, forged ones refused."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from fltheory.worst_case import ClientClass, certificate, read_proof
from fltheory.worst_case.checker import correlated_checker, kernel
from fltheory.worst_case.correlated.bound import CorrelatedCertificate, best_correlated_bound
from fltheory.worst_case.rounds.one_round import Averaging
from tests.worst_case.correlated.enumerated_proof import is_proved
from tests.worst_case.correlated.test_correlated_bound import CLIENTS, by_chain, on_off

SETTINGS: list[tuple[tuple[int, ...], dict[str, Any], dict[str, Any]]] = [
    ((3,), {"correlation": "0.9"}, {}),
    ((2,), {"correlation": "0.5", "local_steps": 2}, {"measure": "loss"}),
    ((1, 2), {"correlation": "0.8", "averaging": "present"}, {}),
    ((2,), {"correlation": "0.9", "local_steps": 2}, {"rate": "0.99"}),
]
NUMBERS = ("round", "class", "bound", "function", "multipliers", "below")
PLAIN = ("0", 1, 2, 3, False, None)
NOISY = ClientClass(3, "0.2", sigma=1)


def _made(
    sizes: tuple[int, ...], played: dict[str, Any], asked: dict[str, Any]
) -> CorrelatedCertificate:
    found = certificate(
        best_correlated_bound(on_off(*sizes, client_lr="0.1", **played), CLIENTS, **asked)
    )
    assert isinstance(found, CorrelatedCertificate)
    return found


@pytest.mark.parametrize(("sizes", "played", "asked"), SETTINGS)
def test_a_second_derivation_agrees(
    sizes: tuple[int, ...], played: dict[str, Any], asked: dict[str, Any]
) -> None:
    """All sets and next sets, no moments: it accepts what the checker accepts, and no more."""
    made = _made(sizes, played, asked)
    made.verify()
    assert is_proved(made.text)
    for document in _falsified(json.loads(made.text)):
        text = json.dumps(document)
        with pytest.raises(kernel.ProofError):
            CorrelatedCertificate(text).verify()
        assert not is_proved(text)


@pytest.mark.parametrize("averaging", ["weights", "present"])
def test_a_second_derivation_agrees_on_chains_of_sets(averaging: Averaging) -> None:
    made = certificate(best_correlated_bound(by_chain(1, 1, averaging), CLIENTS))
    made.verify()
    assert is_proved(made.text)
    assert "participants by a chain, stationary at first:" in made.lines[2]
    assert made.lines[3].endswith("of rounds: clients 0, 1")
    forged = json.loads(made.text)
    forged["bound"]["heterogeneity"] = str(
        Fraction(forged["bound"]["heterogeneity"]) * Fraction(98, 100)
    )
    with pytest.raises(kernel.ProofError, match="negative eigenvalue"):
        CorrelatedCertificate(json.dumps(forged)).verify()
    assert not is_proved(json.dumps(forged))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("law", ["1/4"] * 4, r"round.chain.law \(stationary\)"),
        ("law", ["1", "1", "-1", "0"], "round.chain.law: out of range"),
        ("masks", [[1, 1, 0]] * 4, "round.chain.masks"),
        ("masks", [[True, True, True]] * 4, "round.groups"),
        ("transition", [["1/2"] * 4] * 4, "round.chain.transition"),
    ],
)
def test_a_chain_that_is_none_is_refused(field: str, value: Any, message: str) -> None:
    document = json.loads(certificate(best_correlated_bound(by_chain(1, 1), CLIENTS)).text)
    document["round"]["chain"][field] = value
    with pytest.raises(kernel.ProofError, match=message):
        CorrelatedCertificate(json.dumps(document)).verify()


def _falsified(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield certificates of claims that are too good, or with a number that is wrong."""

    def changed(factor: Fraction, *path: Any) -> dict[str, Any]:
        copy = json.loads(json.dumps(document))
        place = copy
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = str(Fraction(place[path[-1]]) * factor)
        return copy

    less, more = Fraction(98, 100), Fraction(11, 10)
    yield changed(less, "bound", "heterogeneity")
    yield changed(Fraction(9, 10), "bound", "start")
    yield changed(more, "function", 1, "form", 0, 0)
    yield changed(Fraction(21, 20), "round", "groups", 0, "correlation")
    yield changed(less, "class", "mu")
    yield changed(more, "multipliers", 1, 0, 0, 1)


@pytest.mark.parametrize("local_steps", [1, 2])
def test_noise_is_proved_in_units_of_any_size(local_steps: int) -> None:
    """A claim of 2% less noise is not."""
    played = on_off(3, correlation="0.9", client_lr="0.03", local_steps=local_steps)
    made = certificate(best_correlated_bound(played, NOISY))
    made.verify()
    document = json.loads(made.text)
    for name in ("noise", "start_noise"):
        forged = json.loads(made.text)
        forged["bound"][name] = str(Fraction(document["bound"][name]) * Fraction(98, 100))
        with pytest.raises(kernel.ProofError, match="noise"):
            CorrelatedCertificate(json.dumps(forged)).verify()


def test_mutated_certificates_are_refused_or_prove_no_less() -> None:
    """Any number of a file changed: whatever is accepted, the second derivation proves."""
    made = _made(*SETTINGS[0])
    draw = random.Random(7)
    paths = list(_numbers(json.loads(made.text), ()))
    accepted = 0
    for _ in range(60):
        document = json.loads(made.text)
        path = draw.choice(paths)
        place: Any = document
        for name in path[:-1]:
            place = place[name]
        factor = draw.choice([Fraction(-1), Fraction(0), Fraction(99, 100), Fraction(101, 100)])
        place[path[-1]] = str(Fraction(place[path[-1]]) * factor)
        text = json.dumps(document)
        try:
            CorrelatedCertificate(text).verify()
        except kernel.ProofError:
            continue
        accepted += 1
        assert is_proved(text)
    assert accepted < 30


def _numbers(found: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if isinstance(found, dict | list):
        items = found.items() if isinstance(found, dict) else enumerate(found)
        for name, value in items:
            yield from _numbers(value, (*path, name))
    elif (
        path[0] in NUMBERS and path[-1] != "averaging" and found not in ("0", 1, 2, 3, False, None)
    ):
        yield path


def test_the_checker_is_a_program_of_its_own(tmp_path: Path) -> None:
    made = _made(*SETTINGS[0])
    path = tmp_path / "proof.json"
    made.write(path)
    assert read_proof(path) == made
    assert made.lines[0].startswith("1/T sum_(t<T) E||x_t - x*||^2 <= (")
    for module in (kernel, correlated_checker):
        source = Path(module.__file__)
        (tmp_path / source.name).write_bytes(source.read_bytes())
    call = [sys.executable, "-S", str(tmp_path / "correlated_checker.py"), str(path)]
    run = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout[:6]) == (0, "proved")
    path.write_text(made.text.replace('"mu": "1/10"', '"mu": "1/20"'))
    run = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (1, "")
    assert "has a negative eigenvalue" in run.stderr
