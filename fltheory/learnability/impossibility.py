"""The two-point construction of SA-FL's Theorem 1, computed exactly for all learners at once.

A point x_2 has probability ``4 epsilon = (1 - omega)/2`` with ``omega = m/M``; mn of Mn samples are
selected, as many at x_1 as possible, and two targets agree at x_1 and differ at x_2. Among the Mn
samples, a binomial number ``s_hat`` lies at x_2. The selection hides x_2 if ``s_hat <=
(1-omega)Mn``; the paper's proof counts ``s_hat < (1-omega)Mn``.

If x_2 is hidden, the sample is the same for both targets, so a learner returns the same hypothesis
for both. This hypothesis is wrong at x_2 for at least one target. So the probabilities of an error
above epsilon, summed over both targets, are at least the probability of hiding. One learner attains
half of that probability on each target: it knows both targets, uses x_2's label if it sees that
label, and tosses a coin otherwise.

The module also computes the construction when clients are selected instead of samples.

The theorem is about a participation process, but its proof is about a selection of samples. A
process can only take or leave whole clients, with all n samples of each. The effect depends on how
the samples are distributed over clients, and three cases are treated here. *Split* clients hold one
point each, and those with x_2 are excluded. With as many of them as may be excluded, ``(1 -
omega)M``, x_2 has mass ``1 - omega`` and is certainly hidden, whatever n is.

*Drawn* clients also hold one point each, drawn for the whole client. The number of those at x_2 is
binomial over M clients, so n does not matter.

*Alike* clients draw each sample from the same P, which makes all Mn samples independent, as in the
proof. A client has no sample at x_2 only with probability ``(1 - 4 epsilon)^n``, and the
probability of hiding x_2 vanishes as n grows, while the proof's selection of samples hides it
almost certainly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from fltheory import validation
from fltheory.learnability.binomial import binomial_tail


@dataclass(frozen=True)
class Impossibility:
    """The numbers of the construction, as fractions.

    Attributes
    ----------
    M, n, m : int
        Number of clients, of samples per client, and of participants.
    epsilon : Fraction
        ``(1 - omega)/8``, the error that Theorem 1 says is exceeded.
    rare_probability : Fraction
        P(x_2), ``4 epsilon`` in the paper's construction.
    hidden_probability : Fraction
        Probability that no selected sample is at x_2.
    paper_event : Fraction or None
        ``P[s_hat < (1-omega)Mn]``, the part of ``hidden_probability`` that the proof counts, or
        None if the selection differs from that of the proof.
    """

    M: int
    n: int
    m: int
    epsilon: Fraction
    rare_probability: Fraction
    hidden_probability: Fraction
    paper_event: Fraction | None = None

    @property
    def minimax_probability(self) -> Fraction:
        """Minimum over all learners of ``P[error > epsilon]`` for the worse target."""
        return self._exceeding(self.hidden_probability / 2)

    @property
    def minimax_deterministic(self) -> Fraction:
        """Minimum over deterministic learners of ``P[error > epsilon]`` for the worse target."""
        return self._exceeding(self.hidden_probability)

    @property
    def minimax_expected_error(self) -> Fraction:
        """Minimum over all learners of the expected error for the worse target."""
        return self.rare_probability * self.hidden_probability / 2

    def minimax_failure_with_server(self, n_server: int) -> float:
        """Return `minimax_probability` if the server has ``n_server`` samples of P.

        Raises
        ------
        ValueError
            If the number of samples is negative.
        """
        validation.whole_number("n_server", n_server, at_least=0)
        unseen = (1.0 - float(self.rare_probability)) ** n_server
        return float(self.minimax_probability) * unseen

    def _exceeding(self, probability: Fraction) -> Fraction:
        return probability if self.rare_probability > self.epsilon else Fraction(0)


def impossibility(M: int, n: int, m: int) -> Impossibility:
    """Return the numbers of Theorem 1's construction; samples are selected as in its proof.

    Parameters
    ----------
    M, n, m : int
        Number of clients, of samples per client, and of participants; ``omega = m/M`` must be
        inside (0, 1).

    Raises
    ------
    ValueError
        If no such system has these numbers of clients or samples.

    Examples
    --------
    >>> found = impossibility(2, 1, 1)
    >>> found.epsilon, found.paper_event, found.hidden_probability, found.minimax_probability
    (Fraction(1, 16), Fraction(9, 16), Fraction(15, 16), Fraction(15, 32))
    """
    M, n, m = checked_system(M, n, m)
    rare = Fraction(M - m, 2 * M)
    below, hidden = binomial_tail(M * n, rare, (M - m) * n)
    return Impossibility(M, n, m, rare / 4, rare, hidden, below)


def checked_system(M: int, n: int, m: int) -> tuple[int, int, int]:
    """Return the three numbers if omega = m/M is inside (0, 1); raise ValueError otherwise."""
    M = validation.whole_number("M", M, at_least=2)
    n = validation.whole_number("n", n, at_least=1)
    m = validation.whole_number("m", m, at_least=1)
    if m >= M:
        raise ValueError(f"m must be below M = {M}, so that omega = m/M is inside (0, 1), got {m}")
    return M, n, m


def split_clients(M: int, n: int, m: int, rare_clients: int | None = None) -> Impossibility:
    """Return the numbers if some clients hold only x_2 and are excluded first.

    Parameters
    ----------
    M, n, m : int
        Number of clients, of samples per client, and of participants.
    rare_clients : int, optional
        Number of clients that hold x_2; by default as many as can be excluded, ``M - m``.

    Raises
    ------
    ValueError
        As in `impossibility`, or if ``rare_clients`` is not between 1 and M.
    """
    M, n, m = checked_system(M, n, m)
    rare = M - m if rare_clients is None else rare_clients
    rare = validation.whole_number("rare_clients", rare, at_least=1)
    if rare > M:
        raise ValueError(f"rare_clients must be at most M = {M}, got {rare}")
    hidden = Fraction(int(rare <= M - m))
    return Impossibility(M, n, m, Fraction(M - m, 8 * M), Fraction(rare, M), hidden)


def drawn_clients(M: int, n: int, m: int) -> Impossibility:
    """Return the numbers if each client's point is drawn, and is x_2 with probability 4 epsilon."""
    M, n, m = checked_system(M, n, m)
    rare = Fraction(M - m, 2 * M)
    return Impossibility(M, n, m, rare / 4, rare, binomial_tail(M, rare, M - m)[1])


def alike_clients(M: int, n: int, m: int) -> Impossibility:
    """Return the numbers if every sample of every client is drawn from P.

    Examples
    --------
    >>> alike_clients(2, 2, 1).hidden_probability
    Fraction(207, 256)
    """
    M, n, m = checked_system(M, n, m)
    rare = Fraction(M - m, 2 * M)
    free = (1 - rare) ** n
    return Impossibility(M, n, m, rare / 4, rare, 1 - binomial_tail(M, free, m)[0])
