"""One large group in bursts: proofs by polynomials in n, against a block for every n and truths."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from math import perm
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fltheory.algorithms import Unbiased, WeightedFedAvg
from fltheory.participation import MarkovOnOff
from fltheory.worst_case import ClientClass, best_bound, certificate, read_proof
from fltheory.worst_case.checker import correlated_checker, kernel, polynomial_checker
from fltheory.worst_case.correlated.bound import CorrelatedCertificate, best_correlated_bound
from fltheory.worst_case.correlated.polynomial import PolynomialCertificate, polynomial_bound
from tests.worst_case.correlated.test_correlated_bound import CLIENTS, on_off


@cache
def _made(
    n: int, local_steps: int, correlation: str = "0.9", pi: str = "1/2"
) -> PolynomialCertificate:
    played = on_off(
        n, correlation=correlation, client_lr="0.1", local_steps=local_steps, availability=(pi,)
    )
    found = certificate(polynomial_bound(played, CLIENTS))
    assert isinstance(found, PolynomialCertificate)
    return found


def _at_every_n(document: dict[str, Any]) -> str:
    """Return the same proof in the plain format, with coefficients for every n."""
    (group,) = document["round"]["groups"]
    N = group["n_clients"]

    def at(n: int, numbers: list[str]) -> str:
        terms = [Fraction(perm(n, r), N**r) for r in range(4)]
        return str(sum(t * Fraction(v) for t, v in zip(terms, numbers, strict=True)))

    def value(n: int) -> dict[str, Any]:
        terms = document["function"]
        form = [[at(n, [t["form"][i][j] for t in terms]) for j in range(2)] for i in range(2)]
        own = {name: [at(n, [t[name][0] for t in terms])] for name in ("present", "all")}
        return {"form": form, **own, "constant": "0"}

    cells = [[k for k in (0, 1) if (n, N - n)[k]] for n in range(N + 1)]
    made = {key: v for key, v in document.items() if key != "pieces"}
    made |= {
        "kind": correlated_checker.KIND,
        "version": correlated_checker.VERSION,
        "noise_below": "0",
        "function": [value(n) for n in range(N + 1)],
        "multipliers": [
            [[[at(n, p) for p in row] for row in document["multipliers"][k]] for k in own]
            for n, own in enumerate(cells)
        ],
        "noises": [[[] for _ in own] for own in cells],
        "orthogonal": [[[] for _ in own] for own in cells],
    }
    return json.dumps(made)


@pytest.mark.parametrize(("local_steps", "pi"), [(1, "1/2"), (2, "3/10")])
def test_blocks_are_those_of_every_n(local_steps: int, pi: str) -> None:
    """The plain checker enumerates all next states; nine n determine the blocks at all others."""
    N, made = 13, _made(13, local_steps, "0.9", pi)
    every = correlated_checker.Checker(
        correlated_checker.parsed(_at_every_n(json.loads(made.text)))
    )
    whole = polynomial_checker.PolynomialChecker(made.proof)
    for n in range(N + 1):
        alone = polynomial_checker.CheckerAt(made.proof, n)
        wanted = {"round": every.round_slack(n), "lower bound": every.end_slack(n)}
        found = {"round": alone.round_slack(0), "lower bound": alone.end_slack(0)}
        for name, sums in wanted.items():
            assert found[name].blocks() == sums.blocks()
            for part, block in sums.blocks().items():
                if n in (0, N) and part == "means":
                    continue
                size = range(len(block))
                if part == "means":
                    scale = [Fraction(1)] * (len(block) - 1) + [Fraction(n)]
                    block = [[block[i][j] * scale[i] * scale[j] for j in size] for i in size]
                rows = polynomial_checker.to_bernstein(Fraction(n), Fraction(n), whole.nodes)
                values = [own[f"{name}, {part}"] for own in whole.at_nodes]
                for row in rows:
                    assert block == [
                        [sum(f * v[i][j] for f, v in zip(row, values, strict=True)) for j in size]
                        for i in size
                    ]
    assert alone.start_slack().blocks() == every.start_slack().blocks()


@pytest.mark.parametrize(
    ("n", "local_steps", "correlation"),
    [(20, 1, "0.5"), (20, 2, "0.9"), (50, 1, "0.9"), (50, 1, "0.99"), (50, 2, "0.5")],
)
def test_little_is_lost_against_a_block_for_every_n(
    n: int, local_steps: int, correlation: str
) -> None:
    played = on_off(n, correlation=correlation, client_lr="0.1", local_steps=local_steps)
    least = best_correlated_bound(played, CLIENTS).floor
    assert least * (1 - 1e-7) <= _made(n, local_steps, correlation).floor <= 1.01 * least


def test_no_run_of_many_clients_is_above_the_bound() -> None:
    """A plain loop: shared quadratics of curvature mu, in 40 dimensions at once."""
    N, rounds, step, mu, pi, nu = 500, 2000, 0.1, 0.1, 0.5, 0.9
    proof = _made(N, 1)
    rng = np.random.default_rng(0)
    g = rng.normal(size=(N, 40))
    g -= g.mean(axis=0)
    present, z, total = rng.random(N) < pi, np.zeros(40), 0.0
    for _ in range(rounds):
        total += float(z @ z) / rounds
        present = rng.random(N) < (1 - nu) * pi + nu * present
        z = z - step / (N * pi) * (present.sum() * mu * z + g[present].sum(axis=0))
    h = float(np.mean(np.sum(g**2, axis=1)))
    bound = float(proof.mean_after(rounds, Fraction(0), Fraction(1), Fraction(0))) * h
    assert 0.7 * bound < total <= bound


# ---------------------------------------------------------------- forgeries


def _numbers(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(found, str):
        yield path
    else:
        for key, value in found.items() if isinstance(found, dict) else enumerate(found):
            yield from _numbers(value, (*path, key))


def _changed(document: dict[str, Any], factor: Fraction, *path: Any) -> str:
    copy = json.loads(json.dumps(document))
    place = copy
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = str(Fraction(place[path[-1]]) * factor)
    return json.dumps(copy)


def _is_accepted(kind: Any, text: str) -> bool:
    return kind.accepted(text) is not None


def test_changed_numbers_are_judged_as_by_a_block_for_every_n() -> None:
    """What is accepted is true at every n: the plain checker accepts it, too."""
    document = json.loads(_made(13, 1).text)
    assert _is_accepted(CorrelatedCertificate, _at_every_n(document))
    paths = [
        path for key in ("function", "multipliers") for path in _numbers(document[key], (key,))
    ]
    refused = 0
    for path in paths:
        place: Any = document
        for name in path:
            place = place[name]
        for factor in (Fraction(11, 10), Fraction(-1)):
            text = _changed(document, factor, *path)
            if Fraction(place) == 0:
                continue
            if _is_accepted(PolynomialCertificate, text):
                assert _is_accepted(CorrelatedCertificate, _at_every_n(json.loads(text)))
            else:
                refused += 1
    assert refused > 70


@pytest.mark.parametrize(
    ("path", "factor"),
    [
        (("bound", "heterogeneity"), Fraction(99, 100)),
        (("bound", "start"), Fraction(9, 10)),
        (("bound", "start_heterogeneity"), Fraction(9, 10)),
        (("below",), Fraction(9, 10)),
        (("round", "groups", 0, "correlation"), Fraction(21, 20)),
        (("round", "groups", 0, "availability"), Fraction(9, 10)),
        (("round", "client_lr"), Fraction(21, 20)),
        (("class", "mu"), Fraction(98, 100)),
    ],
)
def test_a_claim_that_is_too_good_is_refused(path: tuple[Any, ...], factor: Fraction) -> None:
    document = json.loads(_made(500, 1).text)
    with pytest.raises(kernel.ProofError, match=r"negative eigenvalue|multipliers"):
        PolynomialCertificate(_changed(document, factor, *path)).verify()


def _other(change: Any) -> str:
    document = json.loads(_made(500, 1).text)
    change(document)
    return json.dumps(document)


def _negative(document: Any) -> None:
    """Make one multiplier and its opposite negative at some n between the ends, values cancel."""
    for a, b in ((0, 1), (1, 0)):
        document["multipliers"][0][a][b] = ["1", "-8", "8", "0"]


def _fewer_clients(document: Any) -> None:
    document["round"]["groups"][0] |= {"n_clients": 400, "target_weight": "1/400"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["multipliers"].reverse(), "negative eigenvalue"),
        (lambda d: d["function"].reverse(), "negative eigenvalue"),
        (lambda d: d["function"].append(d["function"][0]), "function: out of range"),
        (lambda d: d["function"].pop(), "function: out of range"),
        (lambda d: d["multipliers"][0][0][1].append("0"), r"multipliers.*: must be 4 numbers"),
        (lambda d: d["multipliers"][0].pop(), "multipliers: out of range"),
        (lambda d: d.update(pieces=0), "pieces: out of range"),
        (lambda d: d.update(pieces=1), "negative"),
        (_negative, "multipliers: must not be negative at any n"),
        (lambda d: d["multipliers"][1][0][1].__setitem__(0, "9"), "do not cancel"),
        (_fewer_clients, "negative eigenvalue"),
        (lambda d: d["round"].update(averaging="present"), "weight|averaging"),
        (lambda d: d["class"].update(noise=True), "class.noise: out of range"),
        (lambda d: d["round"]["groups"][0].update(availability="1"), "groups: out of range"),
        (lambda d: d.update(claim=correlated_checker.CLAIMS["loss"]), "claim: out of range"),
        (lambda d: d["round"]["groups"][0].update(n_clients=200_000), "n_clients: out of range"),
    ],
)
def test_another_file_is_refused(change: Any, message: str) -> None:
    with pytest.raises(kernel.ProofError, match=message):
        PolynomialCertificate(_other(change)).verify()


def test_too_few_clients_are_refused() -> None:
    document = json.loads(_made(13, 1).text)
    document["round"]["groups"][0] |= {"n_clients": 11, "target_weight": "1/11"}
    with pytest.raises(kernel.ProofError, match="groups: out of range"):
        PolynomialCertificate(json.dumps(document)).verify()


def test_long_fractions_cost_no_more_for_many_clients() -> None:
    """A common denominator of all binomial probabilities would have millions of digits here."""
    document = json.loads(_made(13, 1).text)
    document["round"]["groups"][0] |= {
        "n_clients": 100_000,
        "target_weight": "1/100000",
        "availability": "4444444444444443/9999999999999999",
        "correlation": "7777777777777771/8888888888888889",
    }
    at_one = polynomial_checker.CheckerAt(polynomial_checker.parsed(json.dumps(document)), 50_000)
    tracemalloc.start()
    try:
        assert at_one.law(0).denominator > 1
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 100_000


# ---------------------------------------------------------------- the front door


def test_the_front_door_and_the_checker_as_a_program(tmp_path: Path) -> None:
    N, path = 1000, tmp_path / "proof.json"
    method = Unbiased([1 / N] * N, [0.5] * N, client_lr=0.1, local_steps=1)
    made = certificate(best_bound(method, MarkovOnOff([0.5] * N, 0.9), CLIENTS))
    assert isinstance(made, PolynomialCertificate)
    made.write(path)
    assert read_proof(path) == made
    assert made.lines[2].endswith(
        "clients come and go independently of each other, stationary at first:"
    )
    folder = Path(polynomial_checker.__file__).parent
    for program in (["-S", str(folder / "polynomial_checker.py")], ["-I", "-S", str(folder)]):
        command = [sys.executable, *program, str(path)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout.startswith("proved, for every client of the class: 1/T sum_(t<T)")


@pytest.mark.parametrize(
    ("clients", "asked", "chances"),
    [
        (CLIENTS, {"measure": "loss"}, [0.5] * 450),
        (CLIENTS, {"rate": "0.99"}, [0.5] * 450),
        (CLIENTS, {"rich": True}, [0.5] * 450),
        (ClientClass(1, "0.1", sigma=1), {}, [0.5] * 450),
        (CLIENTS, {}, [0.5] * 30 + [0.4] * 30),
    ],
)
def test_what_is_not_covered_is_refused_as_before(
    clients: ClientClass, asked: dict[str, Any], chances: list[float]
) -> None:
    n = len(chances)
    method = WeightedFedAvg([2 / n] * n, 0.1, 1)
    with pytest.raises(ValueError, match="participation must have at most 400 states"):
        best_bound(method, MarkovOnOff(chances, 0.9), clients, **asked)
