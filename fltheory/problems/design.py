"""Designing problems that have prescribed constants exactly."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.problems.base import checked_target_weights, weighted_mean
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.problems.tilted import RippledProblem
from fltheory.validation import FloatArray

_INNER_SHARE = 0.9


def quadratic(
    n_clients: int,
    dim: int,
    L: float,
    mu: float,
    sigma_G: float,
    Gamma: float | None = None,
    *,
    sigma: float = 0.0,
    server_sigma: float = 0.0,
    target_weights: ArrayLike | None = None,
    x_star: ArrayLike | None = None,
    seed: int = 0,
) -> QuadraticProblem:
    """Design quadratic clients with exactly these constants.

    The constants are exact except for the rounding of the stored optima. This error is within
    1e-12, unless ``x_star`` is far from the origin compared with the clients' spread.

    All clients share one diagonal Hessian, with eigenvalues spaced geometrically from ``L`` to
    ``mu``. One client of smallest weight attains both ``sigma_G`` and ``Gamma``. The others balance
    it; they are spread at random and lie strictly inside both limits. For algorithms that commute
    with rotations, a diagonal Hessian is no loss of generality.

    Parameters
    ----------
    n_clients, dim : int
    L, mu : float
        Largest and smallest curvature, ``0 < mu <= L``.
    sigma_G : float
        Gradient dissimilarity.
    Gamma : float, optional
        ``max_i F_i(x*) - F_i*``, by default the middle of the range that ``sigma_G`` allows,
        ``[sigma_G**2 / (2 L), sigma_G**2 / (2 mu)]``.
    sigma, server_sigma, target_weights
        As in `QuadraticProblem`.
    x_star : array, (d,), optional
        Minimiser of F; the origin by default.
    seed : int
        Random seed for the spread of the clients.

    Raises
    ------
    ValueError
        If the combination is impossible; the message says which argument and why.

    Examples
    --------
    >>> problem = quadratic(10, 3, L=4.0, mu=1.0, sigma_G=2.0, Gamma=1.5)
    >>> [round(value, 12) for value in (problem.L, problem.mu, problem.sigma_G, problem.Gamma)]
    [4.0, 1.0, 2.0, 1.5]
    """
    n_clients = validation.whole_number("n_clients", n_clients, at_least=1)
    dim = validation.whole_number("dim", dim, at_least=1)
    L, mu = validation.positive("L", L), validation.positive("mu", mu)
    sigma_G = _with_finite_gap(sigma_G, mu)
    seed = validation.seed_number("seed", seed)
    _check_curvatures(dim, L, mu)
    weights = checked_target_weights(target_weights, n_clients)
    gradients = np.zeros((n_clients, dim))
    curvatures = np.geomspace(L, mu, dim)
    curvatures[0], curvatures[-1] = L, mu
    extreme = _extreme_gradient(n_clients, dim, L, mu, sigma_G, Gamma)
    if sigma_G > 0:
        alpha = np.full(n_clients, 1 / n_clients) if weights is None else weights
        gradients = _balanced_gradients(extreme, alpha, curvatures, np.random.default_rng(seed))
    centre = _checked_point(x_star, dim)
    return QuadraticProblem(
        np.diag(curvatures),
        centre + gradients / curvatures,
        sigma=sigma,
        server_sigma=server_sigma,
        target_weights=weights,
    )


def _with_finite_gap(sigma_G: float, mu: float) -> float:
    """Return sigma_G if the largest Gamma that it allows is finite, else raise ValueError."""
    most = math.sqrt(np.finfo(np.float64).max) * min(1.0, math.sqrt(mu))
    if validation.nonnegative("sigma_G", sigma_G) > most:
        raise ValueError(
            f"sigma_G must be at most {most:.3g}, so that sigma_G**2 / (2 mu) is finite, "
            f"got {sigma_G:g}"
        )
    return float(sigma_G)


def _check_curvatures(dim: int, L: float, mu: float) -> None:
    if mu > L:
        raise ValueError(f"mu must be at most L, got mu={mu:g} with L={L:g}")
    if dim == 1 and mu < L:
        raise ValueError(
            f"mu must equal L when dim=1 (there is only one curvature), got mu={mu:g} with L={L:g}"
        )


def _extreme_gradient(
    n_clients: int, dim: int, L: float, mu: float, sigma_G: float, Gamma: float | None
) -> FloatArray:
    """Return g with ``||g|| = sigma_G`` and ``1/2 g' H^{-1} g = Gamma``."""
    lowest, highest = sigma_G**2 / (2 * L), sigma_G**2 / (2 * mu)
    if Gamma is None:
        Gamma = 0.5 * (lowest + highest)
    Gamma = validation.nonnegative("Gamma", Gamma)
    if n_clients == 1 and sigma_G > 0:
        raise ValueError(f"sigma_G must be 0 with a single client, got {sigma_G:g}")
    slack = 4 * np.finfo(np.float64).eps * highest
    if not lowest - slack <= Gamma <= highest + slack:
        raise ValueError(
            "Gamma must lie between sigma_G**2/(2 L) and sigma_G**2/(2 mu) when all clients "
            f"share a Hessian, here [{lowest:.6g}, {highest:.6g}], got {Gamma:.6g}"
        )
    extreme = np.zeros(dim)
    share = 0.0 if highest == lowest else (Gamma - lowest) / (highest - lowest)
    share = min(max(share, 0.0), 1.0)
    extreme[0] = sigma_G * math.sqrt(1 - share)
    if dim > 1:
        extreme[-1] = sigma_G * math.sqrt(share)
    return extreme


def _balanced_gradients(
    extreme: FloatArray, alpha: FloatArray, curvatures: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return gradients of mean zero, with ``extreme`` for the client of smallest weight."""
    lightest = int(np.argmin(alpha))
    others = np.delete(np.arange(alpha.size), lightest)
    share = alpha[others] / alpha[others].sum()
    counterweight = -alpha[lightest] / alpha[others].sum() * extreme
    spread = rng.standard_normal((others.size, extreme.size))
    spread -= weighted_mean(spread, share)
    reach = min(
        _largest_step(counterweight * scale, spread * scale, float(np.linalg.norm(extreme * scale)))
        for scale in (np.ones_like(curvatures), 1 / np.sqrt(curvatures))
    )
    gradients = np.empty((alpha.size, extreme.size))
    gradients[lightest] = extreme
    gradients[others] = counterweight + _INNER_SHARE * reach * spread
    return gradients


def _largest_step(start: FloatArray, directions: FloatArray, limit: float) -> float:
    """Return the largest t with ``||start + t direction|| <= limit`` for every direction."""
    square = np.einsum("ia,ia->i", directions, directions)
    moving = square > 0
    if not moving.any():
        return 0.0
    square, slope = square[moving], directions[moving] @ start
    room = max(0.0, limit**2 - float(start @ start))
    return float(np.min((np.sqrt(slope**2 + square * room) - slope) / square))


def nonconvex(
    n_clients: int,
    dim: int,
    L: float,
    sigma_G: float,
    *,
    bowl: float = 0.1,
    frequency: float = 2.0,
    sigma: float = 0.0,
    server_sigma: float = 0.0,
    x_star: ArrayLike | None = None,
    seed: int = 0,
) -> RippledProblem:
    """Design nonconvex clients that are exactly ``L``-smooth with dissimilarity ``sigma_G``.

    Parameters
    ----------
    n_clients, dim : int
    L : float
        Smoothness of every client.
    sigma_G : float
        Gradient dissimilarity, attained by the first client.
    bowl : float
        Share of ``L`` that comes from the convex bowl under the ripples, between 0 and 1; below 1/2
        the clients are nonconvex.
    frequency : float
        Angular frequency of the ripples.
    sigma, server_sigma : float
        Noise of the clients' and the server's gradients.
    x_star : array, (d,), optional
        The global minimiser; the origin by default.
    seed : int
        Random seed for the clients' tilts.

    Raises
    ------
    ValueError
        If an argument is out of range, or ``sigma_G > 0`` with a single client.

    Examples
    --------
    >>> rippled = nonconvex(4, 2, L=2.0, sigma_G=1.0)
    >>> round(rippled.L, 12), round(rippled.sigma_G, 12)
    (2.0, 1.0)
    """
    n_clients = validation.whole_number("n_clients", n_clients, at_least=1)
    dim = validation.whole_number("dim", dim, at_least=1)
    L = validation.positive("L", L)
    sigma_G = validation.nonnegative("sigma_G", sigma_G)
    bowl = validation.real_number("bowl", bowl, "a number between 0 and 1", lambda b: 0 < b < 1)
    frequency = validation.positive("frequency", frequency)
    seed = validation.seed_number("seed", seed)
    if n_clients == 1 and sigma_G > 0:
        raise ValueError(f"sigma_G must be 0 with a single client, got {sigma_G:g}")
    tilts = np.zeros((n_clients, dim))
    if sigma_G > 0:
        alpha = np.full(n_clients, 1 / n_clients)
        extreme = np.full(dim, sigma_G / math.sqrt(dim))
        tilts = _balanced_gradients(extreme, alpha, np.ones(dim), np.random.default_rng(seed))
    return RippledProblem(
        tilts,
        curvature=bowl * L,
        amplitude=(1 - bowl) * L / frequency**2,
        frequency=frequency,
        x_star=_checked_point(x_star, dim),
        sigma=sigma,
        server_sigma=server_sigma,
    )


def _checked_point(x_star: ArrayLike | None, dim: int) -> FloatArray:
    if x_star is None:
        return np.zeros(dim)
    return validation.array_of("x_star", x_star, dim)
