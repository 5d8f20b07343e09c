"""Theorem 1's construction with clients: who takes part is chosen, not which samples.

The theorem speaks of a participation process, its proof of a selection of samples. A process can
only take or leave whole clients, with all n samples of each. What that does depends on how the
samples are spread over clients, of which there are three cases here.

*Split* clients hold one point each: those with x_2 are shut out. With as many of them as may be
shut out, ``(1 - omega)M``, x_2 has mass ``1 - omega`` and is hidden for certain, whatever n is.

*Drawn* clients hold one point each as well, drawn for the whole client: the number of those at x_2
is binomial over M clients, so n plays no part.

*Alike* clients draw each sample from the same P, which makes all Mn samples independent as the
proof has them. A client is free of x_2 with probability ``(1 - 4 epsilon)^n`` only, and the
probability of hiding x_2 vanishes as n grows, where the proof's selection of samples hides it all
but surely.
"""

from __future__ import annotations

from fractions import Fraction

from fltheory import validation
from fltheory.learnability.binomial import binomial_tail
from fltheory.learnability.impossibility import Impossibility, checked_system


def split_clients(M: int, n: int, m: int, rare_clients: int | None = None) -> Impossibility:
    """Return the figures where some clients hold x_2 only, and are shut out first.

    Parameters
    ----------
    M, n, m : int
        Clients, samples of each, clients who take part.
    rare_clients : int, optional
        Clients that hold x_2, as many as can be shut out by default: ``M - m``.

    Raises
    ------
    ValueError
        As `impossibility`, and for a number of such clients outside 1 .. M.
    """
    M, n, m = checked_system(M, n, m)
    rare = M - m if rare_clients is None else rare_clients
    rare = validation.whole_number("rare_clients", rare, at_least=1)
    if rare > M:
        raise ValueError(f"rare_clients must be at most M = {M}, got {rare}")
    hidden = Fraction(int(rare <= M - m))
    return Impossibility(M, n, m, Fraction(M - m, 8 * M), Fraction(rare, M), hidden)


def drawn_clients(M: int, n: int, m: int) -> Impossibility:
    """Return the figures where each client's point is drawn, x_2 with probability 4 epsilon."""
    M, n, m = checked_system(M, n, m)
    rare = Fraction(M - m, 2 * M)
    return Impossibility(M, n, m, rare / 4, rare, binomial_tail(M, rare, M - m)[1])


def alike_clients(M: int, n: int, m: int) -> Impossibility:
    """Return the figures where every sample of every client is drawn from P.

    Examples
    --------
    >>> alike_clients(2, 2, 1).hidden_probability
    Fraction(207, 256)
    """
    M, n, m = checked_system(M, n, m)
    rare = Fraction(M - m, 2 * M)
    free = (1 - rare) ** n
    return Impossibility(M, n, m, rare / 4, rare, 1 - binomial_tail(M, free, m)[0])
