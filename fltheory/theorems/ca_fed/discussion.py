"""CA-Fed: statements of Section III about chains and of Section VI about the choice of clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import sympy as sp

from fltheory.claims.at_point import PointClaim
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.engines.enclosure.enclosed import NotEnclosedError
from fltheory.engines.enclosure.exact_setting import exact_numbers
from fltheory.exact_or_float import ROUNDINGS, is_exact, largest, number
from fltheory.grammar.quantities import PointQuantity
from fltheory.grammar.refutation import Refutation, StatementKind, Weight
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import LOSS, PURE
from fltheory.numbers.of_setting import view_of
from fltheory.numbers.projected_averaging import ProjectedAveraging
from fltheory.participation import FiniteChain
from fltheory.participation.process import Process, process_of
from fltheory.theorems.ca_fed import regimes
from fltheory.theorems.ca_fed.statements import PAPER, N, of_ca_fed

# ------------------------------------------------------------ the chain of availability

_POWERS = 100


def _chain(setting: Setting) -> Process:
    chain = process_of(setting.participation)
    if not chain.mixes:
        raise ValueError(
            "participation must be a Markov chain that converges to a stationary distribution, got "
            f"{chain!r}"
        )
    return chain


def _cited(setting: Setting) -> Any:
    return _chain(setting).cited_factor.of_eigenbasis


def _smaller(setting: Setting) -> Any:
    return _chain(setting).mixing.factor


_CITED = "from [14], Lemma 1, quoted from memory: see ca-fed/2"
_ANY = "any number with |[P^t]_ij - pi_j| <= C_P lambda(P)^t for t >= T_P"
C_P = symbol("C_P", _CITED, PURE, _cited, positive=True)
any_C_P = symbol("C_P", _ANY, PURE, _smaller, positive=True)
of_P = symbol(
    "P", ("transition matrix of the chain, whose stationary distribution is pi"), PURE, real=True
)
lambda_P = symbol(
    "lambda",
    "lambda(P) = (lambda_2(P) + 1)/2, where lambda_2 is the second largest modulus",
    PURE,
    real=True,
)


def _slowest_mixing(setting: Setting) -> tuple[float, float]:
    """Return the largest ``|[P^t]_ij - pi_j| / lambda(P)^t`` over t = 0 .. 100 and states.

    Beyond t = 100 the quotient only decreases: lambda_2/lambda(P) is below one (0.995 if lambda_2
    is 0.99).
    """
    chain = _chain(setting)
    if is_exact(chain.marginals):
        raise NotEnclosedError("powers of the chain's matrix are computed in floats")
    states = chain.states()
    if states is None or states.limit is None:
        raise ValueError(
            "participation must be a Markov chain that converges to a stationary distribution, got "
            f"{chain!r}"
        )
    # P^t - 1 pi' is the t-th power of P - 1 pi', so that no small difference is divided by
    # lambda^t.
    away = states.backward(np.eye(states.limit.size)) - states.limit
    step, power = away / chain.mixing.rate, np.eye(states.limit.size) - states.limit
    most = float(np.abs(power).max())
    for t in range(_POWERS):
        power = step @ power if t else step
        most = max(most, float(np.abs(power).max()))
    return most, ROUNDINGS * states.limit.size * _POWERS * most


def _rate_of_product(setting: Setting) -> tuple[float, float]:
    """Return the quotient of lambda(P) of the product chain and the largest lambda(P_k).

    The eigenvalues of a Kronecker product are the products of its factors' eigenvalues, which are 1
    and lambda_k for each client.
    """
    chains = _chain(setting).client_chains
    if chains is None:
        raise ValueError(
            f"participation must be independent across clients, got {setting.participation!r}"
        )
    moduli = [abs(value) for value in chains.correlation]
    products = [
        number(np.prod(np.array(chosen)))
        for size in range(1, len(moduli) + 1)
        for chosen in combinations(moduli, size)
    ]
    whole, alone = (largest(products) + 1) / 2, (largest(moduli) + 1) / 2
    return largest([whole / alone, alone / whole]), 0.0


MIXING = PointClaim(
    id="ca-fed/mixing",
    title="The chain forgets its state geometrically, at the rate lambda(P)",
    source=f"{PAPER}, (5), cited from [14]",
    quantity=PointQuantity(
        _slowest_mixing,
        "max over t >= T_P, i, j of |[P^t]_ij - pi_j|/lambda(P)^t",
        PURE,
        r"\max_{t\geq T_P,i,j}\frac{|[P^t]_{ij}-\pi_j|}{\lambda(P)^t}",
    ),
    bound=C_P,
    hypotheses=(),
    symbols=(lambda_P, of_P),
    regimes={name: regimes.THEOREM_2[name] for name in ("independent", "nu = 0.9", "clusters")},
    kind=StatementKind.STEP,
    note=(
        "Checked to the letter, with C_P and T_P = 0 as cited. We did not have the text of [14]. "
        "The check covers t = 0 .. 100; after that, both sides fall, and the left one falls "
        "faster."
    ),
)
MIXING_ANY = replace(
    MIXING,
    reading="any C_P",
    bound=any_C_P,
    note=(
        "This reading has the smaller constants that the reading 'any C_P' of Theorem 2 uses: "
        "sum_k max(pi_k, 1 - pi_k) for independent clients."
    ),
)
PRODUCT = PointClaim(
    id="ca-fed/product-chain",
    title="If clients are independent, the chain of the slowest client is as slow as the joint "
    "chain",
    source=f"{PAPER}, Section III-D, lambda(P) = max_k lambda(P_k)",
    quantity=PointQuantity(
        _rate_of_product,
        "lambda(P)/max_k lambda(P_k), or its inverse, whichever is larger",
        PURE,
        r"\max\left(\frac{\lambda(P)}{\max_k\lambda(P_k)},"
        r"\frac{\max_k\lambda(P_k)}{\lambda(P)}\right)",
    ),
    bound=sp.Integer(1),
    hypotheses=(),
    symbols=(lambda_P, of_P),
    regimes={
        name: regimes.THEOREM_2[name]
        for name in ("independent", "nu = 0.9", "two clients", "rare majority")
    },
    kind=StatementKind.REMARK,
    note=(
        "Checked to the letter, with lambda_2 as the second largest modulus of an eigenvalue. An "
        "eigenvalue of the joint chain is a product of eigenvalues of the clients' chains, none "
        "of which exceeds one in modulus."
    ),
)


# ------------------------------------------------------------ the choice of clients
# The choice is that of Algorithm 1, with tau = 0, at the initial model, and with true losses,
# availability and eigenvalues in place of estimates. A rejected trial is undone, the last remaining
# client stays, and nobody is excluded if no loss is above its minimum.

# --- VI-A: how many clients are excluded
# -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Choice:
    """The order in which clients are tried, and the cost ``loss + kappa^2 bias`` of each set."""

    alpha: Sequence[Any]
    gaps: Sequence[Any]
    tried: Sequence[int]

    @classmethod
    def of(cls, of: ProjectedAveraging) -> _Choice:
        """Return a setting's choice: first by decreasing eigenvalue, then by availability."""
        alone = clients_alone(of.participation)
        clients = range(of.problem.n_clients)
        by_rate = sorted(clients, key=lambda k: -float(alone[k][1]))
        by_availability = sorted(clients, key=lambda k: float(alone[k][0]))
        gaps = of.problem.client_losses(of.x0)
        return cls(list(of.problem.alpha), list(gaps), [*by_rate, *by_availability])

    def costs(self, kept: frozenset[int]) -> tuple[Any, Any]:
        """Return ``sum_k p_k (F_k - F_k*)`` and ``d_TV^2 Gamma'`` of q_k = alpha_k/pi_k."""
        share = sum(self.alpha[k] for k in kept)
        loss = sum(self.alpha[k] * self.gaps[k] for k in kept) / share
        return loss, (1 - share) ** 2 * largest(self.gaps)

    def excluded(self, squared_kappa: Any) -> int:
        """Return the number of clients that Algorithm 1 excludes."""
        kept = frozenset(range(len(self.alpha)))
        loss, bias = self.costs(kept)
        for k in self.tried:
            if k not in kept or len(kept) == 1 or not largest(self.gaps) > 0:
                continue
            other_loss, other_bias = self.costs(kept - {k})
            if loss + squared_kappa * bias >= other_loss + squared_kappa * other_bias:
                kept, loss, bias = kept - {k}, other_loss, other_bias
        return len(self.alpha) - len(kept)

    def limits(self, kept: Sequence[int]) -> Iterator[Any]:
        """Yield, for each client of a set, the largest kappa^2 that excludes it, if positive."""
        if len(kept) > 1 and largest(self.gaps) > 0:
            loss, bias = self.costs(frozenset(kept))
            for k in kept:
                other_loss, other_bias = self.costs(frozenset(kept) - {k})
                limit = (loss - other_loss) / (other_bias - bias)
                if limit > 0:
                    yield limit

    def counts(self, from_the_last_first: bool = False) -> list[int]:
        """Return the numbers of excluded clients, for kappa^2 increasing through all cases.

        The number changes only at limits. So the limits are tried, and also a value between each
        two of them and one beyond the last. ``from_the_last_first`` starts beyond the limits of all
        first exclusions.
        """
        everybody = range(len(self.alpha))
        sets = [s for n in range(2, len(self.alpha) + 1) for s in combinations(everybody, n)]
        zero = 0 * self.gaps[0]
        found = sorted({limit for kept in sets for limit in self.limits(kept)} | {zero})
        if from_the_last_first:
            last = largest([zero, *self.limits(everybody)])
            found = [last, *(limit for limit in found if limit > last)]
        between = [(a + b) / 2 for a, b in pairwise(found)]
        beyond = 2 * found[-1] + 1
        if from_the_last_first:
            found = found[1:]
        return [self.excluded(value) for value in sorted([*found, *between, beyond])]


def clients_alone(participation: Process) -> list[tuple[Any, Any]]:
    """Return each client's availability and the second eigenvalue of its own transitions."""
    law = participation.law()
    states = range(participation.n_states or 0)
    places = [(s, chance, mask) for s in states for chance, mask in law.who(s)]
    rows = {s: dict(law.following(s)) for s in states}
    weight = dict(participation.exact_limit())
    found = []
    for k in range(participation.n_clients):
        there = [(s, chance) for s, chance, mask in places if mask[k]]
        share = {s: sum(chance for place, chance in there if place == s) for s in states}
        pi = sum(weight.get(s, 0) * share[s] for s in states)
        both = sum(
            weight.get(s, 0) * share[s] * ahead * share[then]
            for s in states
            for then, ahead in rows[s].items()
        )
        found.append((pi, (both / pi - pi) / (1 - pi) if 0 < pi < 1 else 0 * pi))
    return found


def _rise(setting: Setting) -> tuple[float, float]:
    """Return the largest ratio of numbers kept at a smaller and at a larger kappa^2."""
    kept = _kept(setting)
    worst = max(Fraction(max(kept[: n + 1]), later) for n, later in enumerate(kept))
    return _in_numbers_of(process_of(setting.participation), worst), 0.0


def _kept(setting: Setting, from_the_last_first: bool = False) -> list[int]:
    of = view_of(setting).averaging
    counts = _Choice.of(of).counts(from_the_last_first)
    return [of.problem.n_clients - count for count in counts]


def _excluded_in_the_end(setting: Setting) -> tuple[float, float]:
    share = Fraction(setting.problem.n_clients, _kept(setting)[-1])
    return _in_numbers_of(process_of(setting.participation), share), 0.0


def _excluded_beyond(setting: Setting) -> tuple[float, float]:
    share = Fraction(setting.problem.n_clients, min(_kept(setting, from_the_last_first=True)))
    return _in_numbers_of(process_of(setting.participation), share), 0.0


_KAPPA_BAR = symbol(
    "kappabar",
    "hyper-parameter of VI-A, whose square weighs the bias",
    PURE,
    real=True,
)
_KEPT = symbol("n", "number of the N clients that Algorithm 1 keeps", PURE, real=True)
_EPSILON = symbol(
    "epsilon",
    "cost of a set of clients in VI-A: their mean loss plus the bias; a client is excluded if "
    "this does not increase the cost",
    LOSS,
    real=True,
)

MORE_FOR_A_SMALL_KAPPA = PointClaim(
    id="ca-fed/vi-a",
    title="The larger kappabar, the fewer clients are excluded",
    source=f"{PAPER}, Section VI-A",
    quantity=PointQuantity(
        _rise,
        "max n(kappabar_1)/n(kappabar_2) over kappabar_1 < kappabar_2",
        PURE,
        r"\max_{\bar\kappa_1<\bar\kappa_2}\frac{n(\bar\kappa_1)}{n(\bar\kappa_2)}",
    ),
    bound=sp.Integer(1),
    hypotheses=(),
    domain=of_ca_fed,
    symbols=(_KAPPA_BAR, _EPSILON, _KEPT, N),
    regimes=regimes.EXCLUSION,
    kind=StatementKind.REMARK,
    note=(
        "The text says: 'A small value ... resulting in a larger number of clients excluded' and "
        "'tends to include more clients for a large value'. This is checked to the letter, for "
        "any two values of kappabar. We can try all values, because the choice changes at only "
        "finitely many of them."
    ),
)
MORE_FOR_A_SMALL_KAPPA_DERIVED = replace(
    MORE_FOR_A_SMALL_KAPPA,
    reading="derived",
    title="Nobody is excluded if kappabar is too large for any client to be excluded first",
    quantity=PointQuantity(
        _excluded_beyond,
        "max N/n(kappabar) over kappabar beyond all limits",
        PURE,
        r"\max_{\bar\kappa}\frac N{n(\bar\kappa)}",
    ),
    note=(
        "If nobody is excluded, d_TV is 0; if only client k is excluded, it is alpha_k. So client "
        "k can be excluded first only if kappabar is at most a limit that depends on k. Above the "
        "largest of these limits, nobody is excluded. Below it, kappabar also decides which "
        "clients follow the first, so the number of excluded clients may rise and fall as kappabar "
        "grows."
    ),
)
UNBIASED_IN_THE_LIMIT = replace(
    MORE_FOR_A_SMALL_KAPPA,
    id="ca-fed/vi-a-limit",
    title="As kappabar grows, CA-Fed becomes the unbiased baseline",
    quantity=PointQuantity(
        _excluded_in_the_end,
        "N/n(kappabar) for every large kappabar",
        PURE,
        r"\lim_{\bar\kappa\to\infty}\frac N{n(\bar\kappa)}",
    ),
    note=(
        "Checked to the letter: excluding client k from the full set costs alpha_k^2 Gamma' > 0. "
        "If F^* is estimated as in the text, Gamma' is 0 in the first round. With tau = 0, the "
        "lines of Algorithm 1 would then exclude everybody. That cannot be meant, so we exclude "
        "nobody in that case."
    ),
)

# --- VI-B: clusters ------------------------------------------------------------------------------


def _clusters(chain: Process) -> list[list[int]]:
    """Return groups of clients that are always present together."""
    states = chain.law()
    masks = np.array([m for s in range(chain.n_states or 0) for _, m in states.who(s)])
    groups: dict[bytes, list[int]] = {}
    for k, column in enumerate(masks.T):
        groups.setdefault(column.tobytes(), []).append(k)
    return list(groups.values())


def _of_clusters(setting: Setting) -> Setting:
    if not isinstance(process_of(setting.participation), FiniteChain):
        raise ValueError(
            "participation must be a FiniteChain for the remarks on clusters, "
            f"got {setting.participation!r}"
        )
    return setting


def _slowest_cluster(chain: Process) -> list[int]:
    alone = clients_alone(chain)
    return max(_clusters(chain), key=lambda group: abs(alone[group[0]][1]))


def _gain_of_a_part(setting: Setting) -> tuple[float, float]:
    """Return the largest lambda_2(P)/lambda_2(P') if a client of the slowest cluster is still kept.

    Clusters are independent, so lambda_2 is the largest of the clusters' second eigenvalues: see
    ca-fed/product-chain.
    """
    chain = process_of(setting.participation)
    rates = [abs(rate) for _, rate in clients_alone(chain)]
    slowest = _slowest_cluster(chain)
    others = [k for k in range(chain.n_clients) if k not in slowest]
    parts = [
        max(rates) / max(rates[k] for k in (*kept, left))
        for left in slowest
        for n in range(len(others) + 1)
        for kept in combinations(others, n)
    ]
    return _in_numbers_of(chain, max(parts)), 0.0


def _in_numbers_of(chain: Process, fraction: Fraction) -> Any:
    return exact_numbers(fraction).item() if is_exact(chain.marginals) else float(fraction)


def _tried_before(setting: Setting) -> tuple[float, float]:
    """Return how many clients of other clusters are tried before the slowest cluster's last one."""
    chain = process_of(setting.participation)
    alone, slowest = clients_alone(chain), _slowest_cluster(chain)
    tried = sorted(range(chain.n_clients), key=lambda k: -abs(alone[k][1]))
    last = max(tried.index(k) for k in slowest)
    return sum(k not in slowest for k in tried[:last]), 0.0


def _apart(setting: Setting) -> tuple[float, float]:
    """Return the largest difference of eigenvalues within a cluster."""
    chain = process_of(setting.participation)
    alone = clients_alone(chain)
    each = [[alone[k][1] for k in group] for group in _clusters(chain)]
    most = max(max(group) - min(group) for group in each)
    return _in_numbers_of(chain, most), 0.0


_CLUSTER = symbol("cbar", "the cluster with the largest |lambda_c|", PURE, real=True)
_RATE = symbol(
    "lambda_c", "second eigenvalue of the chain of cluster c, largest in modulus", PURE, real=True
)

ALL_OF_A_CLUSTER = PointClaim(
    id="ca-fed/vi-b",
    title="Only the exclusion of the whole slowest cluster makes the chain faster",
    source=f"{PAPER}, Section VI-B",
    quantity=PointQuantity(
        _gain_of_a_part,
        "max |lambda_2(P)|/|lambda_2(P')|, P' without some clients, but not all of cbar",
        PURE,
        r"\max\frac{|\lambda_2(P)|}{|\lambda_2(P')|}",
    ),
    bound=sp.Integer(1),
    hypotheses=(),
    domain=_of_clusters,
    symbols=(_CLUSTER, _RATE),
    regimes=regimes.CLUSTERS,
    kind=StatementKind.REMARK,
    note=(
        "Checked to the letter: as long as one client of the cluster is kept, the chain of the "
        "cluster remains. The text does not say that it is enough to remove one cluster. It is "
        "not enough if two clusters are equally slow."
    ),
)
ORDER_OF_CLUSTERS = replace(
    ALL_OF_A_CLUSTER,
    id="ca-fed/vi-b-order",
    title="CA-Fed tries the clients of the slowest cluster first",
    quantity=PointQuantity(
        _tried_before,
        "number of clients from other clusters that are tried before the last client of cbar",
        PURE,
    ),
    bound=sp.Integer(0),
    note=(
        "Checked to the letter. Clients are tried in the order of their own eigenvalues, the "
        "largest modulus first. With signed eigenvalues, like lambda_k in Section V-A, a cluster "
        "that alternates would be tried last."
    ),
)
EQUAL_ESTIMATES = replace(
    ALL_OF_A_CLUSTER,
    id="ca-fed/vi-b-estimates",
    title="Clients of one cluster have the same eigenvalue",
    quantity=PointQuantity(
        _apart,
        "max |lambda_i - lambda_j| within a cluster",
        PURE,
        r"\max_c\max_{i,j\in c}|\lambda_i-\lambda_j|",
    ),
    bound=sp.Integer(0),
    note=(
        "The text has 'similar eigenvalue estimates'. Here the eigenvalues are equal, and so are "
        "their estimates, which come from the same rounds and the same prior."
    ),
)


STATEMENTS: tuple[Statement, ...] = (
    MIXING,
    MIXING_ANY,
    PRODUCT,
    replace(
        MORE_FOR_A_SMALL_KAPPA,
        refutations=(
            Refutation(
                "The choice is greedy. A larger kappabar can keep a client that a smaller "
                "kappabar excludes. The presence of this client can then lead to the exclusion of "
                "two others.",
                Weight.WORDING,
                "'nobody is excluded above some kappabar' in place of 'the larger kappabar, the "
                "fewer clients are excluded'",
                "derived",
                ("five clients",),
                natural="five clients",
                answer="The text says 'tends to', which is true for most choices, and in the "
                "limit.",
            ),
        ),
    ),
    MORE_FOR_A_SMALL_KAPPA_DERIVED,
    UNBIASED_IN_THE_LIMIT,
    ALL_OF_A_CLUSTER,
    ORDER_OF_CLUSTERS,
    EQUAL_ESTIMATES,
)
