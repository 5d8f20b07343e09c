"""The conic program: its promise over scales of the bias, and SciPy's SLSQP on small cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from fltheory import weights
from fltheory.weights import conic
from fltheory.weights.trade_off import TradeOff


def problem_of(n_clients: int, bias: float, b: float, rarest: float) -> TradeOff:
    rng = np.random.default_rng(n_clients)
    pi = 10 ** rng.uniform(-rarest, 0, n_clients)
    alpha = rng.dirichlet(np.ones(n_clients))
    return TradeOff(pi, alpha, a=n_clients * pi, b=b, bias=bias)


@pytest.mark.parametrize("bias", [1e-14, 1e-10, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e9, 1e12])
@pytest.mark.parametrize(("n_clients", "b"), [(2, 0.0), (2, 1e4), (24, 1e-4)])
def test_it_keeps_its_promise_at_every_scale(n_clients: int, b: float, bias: float) -> None:
    problem = problem_of(n_clients, bias, b, 1.0)
    found = weights.optimal(problem, method="cvxpy")
    newton = weights.optimal(problem, method="newton")
    assert found.kkt_residual <= 1e-8
    assert abs(found.error / newton.error - 1) <= 1e-8


@pytest.mark.parametrize("bias", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize("n_clients", [2, 3, 6])
def test_another_solver_finds_nothing_better(n_clients: int, bias: float) -> None:
    """SLSQP over the weights q themselves, from the target, with the objective as printed."""
    problem = problem_of(n_clients, bias, 1.0, 0.5)
    pi, alpha, a = problem.availability, problem.target_weights, problem.a

    def error(q: np.ndarray) -> float:
        p = pi * q / (pi @ q)
        return (0.5 * a @ q**2 + 1.0) / (pi @ q) + bias * float(((alpha - p) ** 2 / p).sum())

    other = minimize(
        error,
        alpha / pi / (alpha / pi).sum(),
        method="SLSQP",
        bounds=[(1e-9, 1)] * n_clients,
        constraints={"type": "eq", "fun": lambda q: q.sum() - 1},
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    found = weights.optimal(problem, method="cvxpy")
    assert error(found.q) <= other.fun * (1 + 1e-12)
    assert error(found.q) == pytest.approx(other.fun, rel=1e-6)
    np.testing.assert_allclose(found.q, other.x, atol=1e-3)


def test_what_it_cannot_do_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without refinement the first program is 1e-5 off."""
    monkeypatch.setattr(conic, "_MOST_REFINEMENTS", 0)
    with pytest.raises(ArithmeticError, match=r"found by cvxpy .* at most 1e-08"):
        weights.optimal(problem_of(24, 1e12, 1.0, 1.0), method="cvxpy")


@pytest.mark.parametrize("answers", [[0], [0, 1], [1, 0], [1, 2, 0], [1, 2, 0, 3], []])
def test_the_best_point_before_the_solver_gives_up(
    answers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first three points count, up to one with a residual of 1e-4, and none after a failure."""
    problem = problem_of(3, 1.0, 1.0, 0.5)
    exact = weights.optimal(problem, method="newton").p
    points = [
        p / p.sum() for p in (exact * (1 + size * np.arange(3)) for size in (1e-2, 0.1, 1, 0))
    ]
    told = iter([points[index] for index in answers])
    monkeypatch.setattr(conic, "_solve", lambda *_: next(told, None))
    monkeypatch.setattr(conic, "_refined", lambda *_: None)
    if not answers:
        with pytest.raises(ArithmeticError, match="Clarabel found no weights at all"):
            conic.importance(problem)
        return
    best = min(answers[:3], key=lambda index: problem.kkt_residual(points[index]))
    assert conic.importance(problem) is points[best]


def test_an_answer_that_is_good_enough_is_refined_and_not_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In units of itself the solver may do worse: of 10,000 clients 2.7e-7 are left, too much."""
    problem, solve, passes = problem_of(24, 1.0, 0.5, 0.05), conic._solve, list[float]()

    def counted(*given: Any) -> Any:
        p = solve(*given)
        passes.append(problem.kkt_residual(p))
        return p

    monkeypatch.setattr(conic, "_solve", counted)
    conic.importance(problem)
    assert len(passes) == 1
    assert passes[0] <= 1e-4


def test_the_best_refinement_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refinements go on from the last point, and stop where one fails or is exact."""
    problem = problem_of(3, 1.0, 1.0, 0.5)
    exact = weights.optimal(problem, method="newton").p
    points = [p / p.sum() for p in (exact * (1 + size * np.arange(3)) for size in (1, 0.1, 0.5))]
    seen: list[np.ndarray] = []
    monkeypatch.setattr(conic, "_solve", lambda *_: points[0])
    for follow in ([points[1], points[2], None], [exact, points[1]]):
        told = iter(follow)

        def refined(_: TradeOff, p: np.ndarray, told=told) -> np.ndarray | None:
            seen.append(p)
            return next(told)

        monkeypatch.setattr(conic, "_refined", refined)
        found = conic.importance(problem)
        best = min((p for p in follow if p is not None), key=problem.kkt_residual)
        assert found is best
    assert [id(p) for p in seen] == [id(p) for p in (*points, points[0])]
