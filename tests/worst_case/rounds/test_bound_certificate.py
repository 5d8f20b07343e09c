"""Certificates: made for random settings, refused for claims below the optimum, true of clients."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from fltheory.algorithms import Safari
from fltheory.engines import Setting, exact
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.problems.piecewise_quadratic_problem import PiecewiseQuadraticProblem
from fltheory.worst_case import ClientClass, certificate, checker, read_proof
from fltheory.worst_case.audits.witness import played
from fltheory.worst_case.rounds.bound import Bound, best_bound_of
from fltheory.worst_case.rounds.certificate import proved, raised
from fltheory.worst_case.rounds.measure import Claim
from tests.drawn import a_tenth
from tests.worst_case.settings import a_round, drawn

CLIENTS = ClientClass(1, "0.1")


def lowered(bound: Bound, factor: Fraction) -> Claim:
    """Return a claim with all that is left to choose of the residual times a factor."""
    claim = raised(bound, Fraction(1))
    return replace(
        claim,
        speed=Fraction(bound.rate),
        heterogeneity=factor * claim.heterogeneity,
        noise=factor * claim.noise,
    )


@pytest.mark.parametrize("seed", a_tenth(range(8)))
def test_random_settings_are_proved_and_less_is_refused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(2):
        a_setting, clients = drawn(rng)
        bound = best_bound_of(a_setting, clients)
        certificate(bound, 1e-5).verify()
        assert proved(a_setting, clients, lowered(bound, Fraction(98, 100))) is None


def test_a_margin_of_a_millionth_suffices_and_its_hundredth_does() -> None:
    for n_clients in (10, 10**6):
        bound = best_bound_of(replace(a_round(excluded=2), n_clients=n_clients), CLIENTS)
        for margin in (1e-6, 1e-8):
            made = certificate(bound, margin)
            claimed = made.proof.bound
            assert float(claimed["heterogeneity"][0]) == pytest.approx(
                bound.heterogeneity, rel=2 * margin
            )


def test_a_given_rate_is_kept() -> None:
    bound = best_bound_of(a_round(excluded=2), CLIENTS, Fraction(995, 1000))
    assert certificate(bound).proof.bound["rate"] == [Fraction(995, 1000)]


def test_gradient_descent_is_proved_at_its_rate() -> None:
    bound = best_bound_of(a_round(5, 0, 5, 1, "1", "1/2", "0"), CLIENTS)
    claimed = certificate(bound).proof.bound
    assert float(claimed["rate"][0]) == pytest.approx(0.9025, rel=1e-6)


def test_one_certificate_for_every_number_of_clients() -> None:
    every = a_round(10, 2).for_every_n_clients()
    made = certificate(best_bound_of(every, CLIENTS))
    assert [made.covers(n_clients=n) for n in (4, 5, 10, 12, 10**9)] == [
        False,  # four fifths of a client
        True,
        True,
        False,
        True,
    ]
    # Ten clients' own best bound is smaller than the one that holds for all numbers.
    own = certificate(best_bound_of(a_round(10, 2), CLIENTS))
    assert own.proof.bound["heterogeneity"] < made.proof.bound["heterogeneity"]
    assert [own.covers(n_clients=n) for n in (5, 10, 15)] == [True, True, False]


def test_a_certificate_covers_its_own_step_size() -> None:
    made = certificate(best_bound_of(a_round(), CLIENTS))
    assert made.covers(client_lr="1/40")
    assert not made.covers(client_lr="1/41")


def test_a_proof_is_checked_by_another_process_without_the_package(tmp_path: Path) -> None:
    made = certificate(best_bound_of(a_round(excluded=2), CLIENTS))
    path = tmp_path / "proof.json"
    made.write(path)
    # Neither the package nor anything installed: the folder alone.
    copied = shutil.copytree(Path(str(checker.__file__)).parent, tmp_path / "checker")
    call = [sys.executable, "-I", "-S", str(copied), str(path)]
    run = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout[:6]) == (0, "proved")
    document = json.loads(made.text)
    document["bound"]["heterogeneity"] = ["1/10000"]
    path.write_text(json.dumps(document))
    run = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (1, "")
    assert "has a negative eigenvalue" in run.stderr


def test_a_file_of_something_else_is_no_proof(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    for text in ("{}", "[1", '{"kind": "proof"}', "1" * 10):
        path.write_text(text)
        assert read_proof(path) is None
    assert read_proof(tmp_path / "missing.json") is None


def test_a_margin_must_be_above_zero() -> None:
    bound = best_bound_of(a_round(), CLIENTS)
    with pytest.raises(ValueError, match="margin must be above 0, got 0"):
        certificate(bound, 0)
    hopeless = replace(
        bound, heterogeneity=bound.heterogeneity / 2, given_speed=Fraction(bound.rate)
    )
    with pytest.raises(ArithmeticError, match="no proof was found at a margin of 1e-06"):
        certificate(hopeless)


@pytest.mark.parametrize("seed", a_tenth(range(5)))
def test_no_quadratic_clients_break_a_certificate(seed: int) -> None:
    """One-Hessian quadratics, whose dissimilarity is bounded everywhere, by the exact engine."""
    rng = np.random.default_rng(seed)
    a_setting = a_round(5, 1, 2, int(rng.integers(1, 5)), "1/2", "1/10", "1/5")
    claimed = certificate(best_bound_of(a_setting, ClientClass(1, "0.1", "everywhere"))).proof.bound
    rate, budget = (float(claimed[name][0]) for name in ("rate", "heterogeneity"))
    algorithm = Safari(0.5, 0.1, 0.2, a_setting.local_steps)
    for _ in range(50):
        curvatures = rng.uniform(0.1, 1, size=2)
        tilts = rng.normal(size=(5, 2))
        tilts -= tilts.mean(axis=0)
        setting = Setting(
            algorithm,
            QuadraticProblem(np.diag(curvatures), -tilts / curvatures),
            UniformSubset(5, 2, excluded=(4,)),
            1,
            rng.normal(size=2) * 10 ** rng.uniform(-1, 2),
        )
        distance = exact(setting).squared_distance
        level = np.linalg.norm(tilts, axis=1).max() ** 2
        assert distance[1] <= (rate * distance[0] + budget * level) * (1 + 1e-9)


@pytest.mark.parametrize("seed", a_tenth(range(3)))
def test_no_piecewise_quadratic_clients_break_a_certificate(seed: int) -> None:
    """In fractions: the worst of their class are of this kind."""
    rng = np.random.default_rng(seed)
    a_setting = a_round(4, 1, 2, 3, "1/2", "1/5", "1/5")
    claimed = certificate(best_bound_of(a_setting, ClientClass(2, "0.2"))).proof.bound
    rate, budget = (claimed[name][0] for name in ("rate", "heterogeneity"))
    for _ in range(10):
        problem = PiecewiseQuadraticProblem(
            rng.normal(size=(4, 3, 2)).round(2), rng.normal(size=(4, 3)).round(2), L=2, mu=0.2
        )
        result = played(problem, a_setting, (3 * rng.normal(size=2)).round(2))
        assert result.excess(rate, budget) <= 0
