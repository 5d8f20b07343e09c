"""The structure of a Markov chain: irreducibility, period, stationary distribution, mixing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fltheory.exact_or_float import root
from fltheory.validation import FloatArray

_REVERSIBLE = 1e-12
_EQUAL = 1e-9  # eigenvalues of small chains, in [-1, 1], that differ by less count as equal


class CitedFactor(NamedTuple):
    """C_P as CA-Fed takes it from its reference [14], Lemma 1 (Sun, Sun and Yin 2018).

    ``(sum_{i >= 2} n_i^2)^(1/2) ||U||_F ||U^-1||_F`` over the Jordan blocks, of sizes n_i, of a
    chain with ``P = U J U^-1``. We state the lemma from memory, because its text was not available.
    For a diagonalisable chain with M states, the first factor is sqrt(M - 1), and T_P = 0. For a
    single state the sum is empty, so the factor is set to 1, and then (5) holds.

    Attributes
    ----------
    at_least : float, or exact number
        A lower bound for every eigenbasis: ``||U||_F ||U^-1||_F >= tr(U U^-1) = M``.
    of_eigenbasis : float, or exact number
        The value for one eigenbasis.
    """

    at_least: Any
    of_eigenbasis: Any


def cited_factor_of(states: int, lengths: Any) -> CitedFactor:
    """Return the factor, given ``lengths = sum_i ||u_i|| ||v_i||`` for eigenvectors of P and P'.

    This is the smallest ``||U||_F ||U^-1||_F`` over all scalings of the u_i, attained if every u_i
    is as long as its v_i.
    """
    blocks = root(lengths * 0 + max(states - 1, 1))
    return CitedFactor(blocks * states, blocks * lengths)


def cited_factor(transition: FloatArray, law: FloatArray) -> CitedFactor:
    """Return C_P of CA-Fed's reference [14] for a chain, in floats.

    The eigenbasis of a reversible chain is orthonormal once rows are multiplied and columns are
    divided by ``sqrt(pi)``. If eigenvalues are equal, LAPACK may return any basis of their space,
    depending on the machine, so we take the basis that also diagonalises ``diag(1 / pi)``. For a
    chain that is not reversible, LAPACK's eigenbasis is used unchanged.
    """
    roots = np.sqrt(law)
    alike = transition * (roots[:, None] / roots)
    if np.allclose(alike, alike.T, rtol=0, atol=_REVERSIBLE):
        values, orthonormal = np.linalg.eigh((alike + alike.T) / 2)
        for space in np.split(np.arange(len(law)), np.flatnonzero(np.diff(values) > _EQUAL) + 1):
            basis = orthonormal[:, space]
            orthonormal[:, space] = basis @ np.linalg.eigh(basis.T @ (basis / law[:, None]))[1]
        vectors, inverse = orthonormal / roots[:, None], orthonormal.T * roots
    else:
        _, vectors = np.linalg.eig(transition)
        inverse = np.linalg.inv(vectors)
    lengths = np.linalg.norm(vectors, axis=0) @ np.linalg.norm(inverse, axis=1)
    return cited_factor_of(len(transition), float(lengths))


@dataclass(frozen=True)
class Mixing:
    """Constants of ``max_ij |[P^t]_ij - pi_j| <= factor * rate^t for t >= onset``.

    Attributes
    ----------
    second_eigenvalue : float
        lambda_2(P), the second largest modulus of an eigenvalue.
    rate : float
        lambda(P) = (lambda_2(P) + 1) / 2.
    factor : float
        C_P.
    onset : int
        T_P.

    Notes
    -----
    CA-Fed, equation (5), which cites the constants (`CitedFactor`). The constants here are smaller,
    and are proved in the functions that compute them.
    """

    second_eigenvalue: float
    rate: float
    factor: float
    onset: int


def check_irreducible(transition: FloatArray) -> None:
    """Raise ValueError, naming two states, unless every state can be reached from every other."""
    edges = transition > 0
    missed = np.flatnonzero(_levels(edges) < 0)
    if missed.size:
        raise ValueError(
            f"transition must be irreducible, got state {missed[0]} that cannot be reached "
            "from state 0"
        )
    stuck = np.flatnonzero(_levels(edges.T) < 0)
    if stuck.size:
        raise ValueError(
            "transition must be irreducible, got state 0 that cannot be reached "
            f"from state {stuck[0]}"
        )


def period(transition: FloatArray) -> int:
    """Return the period of an irreducible chain: the greatest common divisor of its cycles."""
    edges = transition > 0
    level = _levels(edges)
    origin, target = np.nonzero(edges)
    return int(np.gcd.reduce(np.abs(level[origin] + 1 - level[target])))


def _levels(edges: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the smallest number of steps from state 0 to every state, or -1 if unreachable."""
    level = np.full(len(edges), -1)
    frontier = np.zeros(len(edges), dtype=bool)
    frontier[0] = True
    steps = 0
    while frontier.any():
        level[frontier] = steps
        frontier = edges[frontier].any(axis=0) & (level < 0)
        steps += 1
    return level


def stationary_law(transition: Any) -> NDArray[Any]:
    """Return the stationary distribution pi (M,) of an irreducible chain, by GTH elimination.

    It is in fractions if the rows of P are.

    States are eliminated starting from the last. Because nothing is subtracted, every entry is
    accurate to within a few rounding errors, however close the second eigenvalue is to one.

    Notes
    -----
    Grassmann, Taksar and Heyman (1985), Operations Research 33(5).
    """
    rest = np.array(transition)
    size = len(rest)
    for last in range(size - 1, 0, -1):
        rest[:last, last] /= rest[last, :last].sum()
        rest[:last, :last] += np.outer(rest[:last, last], rest[last, :last])
    law = 0 * rest[0] + 1
    for state in range(1, size):
        law[state] = law[:state] @ rest[:state, state]
    return np.asarray(law / law.sum())


def mixing(transition: FloatArray, law: FloatArray) -> Mixing:
    """Return the constants of equation (5) for an irreducible, aperiodic chain.

    Let D be ``P - 1 pi'`` with its rows multiplied and its columns divided by ``sqrt(pi)``, so that
    ``[P^t]_ij - pi_j = sqrt(pi_j / pi_i) [D^t]_ij`` for t >= 1, and let ``r_i`` be the spectral
    norm of ``D^(2^i)`` over ``rate^(2^i)``. If ``r_n <= 1``, all powers have ``||D^t|| <= rate^t
    prod_(i<n) max(1, r_i)``. This product times the largest ``sqrt(pi_j / pi_i)`` is C_P, with T_P
    = 0. A reversible chain has ``r_0 = lambda_2 / rate < 1``. No eigenvector is needed, and the
    bound holds even if the eigenvalues are computed inaccurately.

    Raises
    ------
    ArithmeticError
        If the second eigenvalue is one up to rounding.
    """
    moduli = np.sort(np.abs(np.linalg.eigvals(transition)))
    second = float(moduli[-2]) if moduli.size > 1 else 0.0
    rate = (second + 1) / 2
    if rate >= 1:
        raise ArithmeticError(
            "the second eigenvalue must be below 1 by more than rounding for the chain to have a "
            f"rate, got {second!r}"
        )
    roots = np.sqrt(law)
    power = (transition - law) * (roots[:, None] / roots) / rate
    factor = float(roots.max() / roots.min())
    while (growth := float(np.linalg.norm(power, 2))) > 1:
        factor *= growth
        power = power @ power
    return Mixing(second, rate, factor, 0)
