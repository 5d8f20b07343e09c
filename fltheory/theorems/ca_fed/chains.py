"""CA-Fed: what Section III says of the chain of availability, (5) and products of chains."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import sympy as sp

from fltheory.claims.at_point import PointClaim
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.engines.enclosure.enclosed import NotEnclosedError
from fltheory.exact_or_float import is_exact, largest, number
from fltheory.grammar.quantities import PointQuantity
from fltheory.grammar.refutation import StatementKind
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import PURE
from fltheory.participation.process import Process, process_of
from fltheory.theorems.ca_fed import regimes
from fltheory.theorems.ca_fed.statements import PAPER

_POWERS = 100
_ROUNDINGS = 64 * float(np.finfo(np.float64).eps)


def _chain(setting: Setting) -> Process:
    chain = process_of(setting.participation)
    if not chain.mixes:
        raise ValueError(f"participation must be a chain with a limit, got {chain!r}")
    return chain


def _cited(setting: Setting) -> Any:
    return _chain(setting).cited_factor.of_eigenbasis


def _smaller(setting: Setting) -> Any:
    return _chain(setting).mixing.factor


_CITED = "of [14], Lemma 1, by memory: see ca-fed/2"
_ANY = "|[P^t]_ij - pi_j| <= C_P lambda(P)^t for t >= T_P, any such number"
C_P = symbol("C_P", _CITED, PURE, _cited, positive=True)
any_C_P = symbol("C_P", _ANY, PURE, _smaller, positive=True)
of_P = symbol("P", "transition matrix of the chain, pi its stationary law", PURE, real=True)
lambda_P = symbol("lambda", "lambda(P) = (lambda_2(P) + 1)/2, lambda_2 a modulus", PURE, real=True)


def _slowest_mixing(setting: Setting) -> tuple[float, float]:
    """Return the largest ``|[P^t]_ij - pi_j| / lambda(P)^t`` over t = 0 .. 100 and states.

    Beyond, the quotient only falls: lambda_2/lambda(P) is below one, and at 0.99 it is 0.995.
    """
    chain = _chain(setting)
    if is_exact(chain.marginals):
        raise NotEnclosedError("powers of the chain's matrix are taken in floats")
    states = chain.states()
    if states is None or states.limit is None:
        raise ValueError(f"participation must be a chain with a limit, got {chain!r}")
    # P^t - 1 pi' is the t-th power of P - 1 pi': so no small difference is divided by lambda^t.
    away = states.backward(np.eye(states.limit.size)) - states.limit
    step, power = away / chain.mixing.rate, np.eye(states.limit.size) - states.limit
    most = float(np.abs(power).max())
    for t in range(_POWERS):
        power = step @ power if t else step
        most = max(most, float(np.abs(power).max()))
    return most, _ROUNDINGS * states.limit.size * _POWERS * most


def _rate_of_product(setting: Setting) -> tuple[float, float]:
    """Return how far lambda(P) of the product and the largest lambda(P_k) are apart, as a quotient.

    The eigenvalues of a Kronecker product are the products of those of its factors, 1 and
    lambda_k for each client.
    """
    chains = _chain(setting).client_chains
    if chains is None:
        raise ValueError(
            f"participation must be of independent clients, got {setting.participation!r}"
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
    reading="printed",
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
        "To the letter, with C_P and T_P = 0 as cited; the text of [14] is not at hand. Checked "
        "over t = 0 .. 100: after that both sides fall, the left one faster."
    ),
)
MIXING_ANY = replace(
    MIXING,
    reading="any C_P",
    bound=any_C_P,
    note=(
        "With the smaller constants that the reading 'any C_P' of Theorem 2 takes: sum_k "
        "max(pi_k, 1 - pi_k) for independent clients."
    ),
)
PRODUCT = PointClaim(
    id="ca-fed/product-chain",
    reading="printed",
    title="Of independent clients, the slowest one's chain is as slow as all together",
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
        "To the letter, lambda_2 being the second largest modulus: an eigenvalue of the product is "
        "a product of the clients' eigenvalues, none of which is above one in modulus."
    ),
)

STATEMENTS: tuple[Statement, ...] = (MIXING, MIXING_ANY, PRODUCT)
