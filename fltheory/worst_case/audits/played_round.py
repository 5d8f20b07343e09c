"""The round of an audit, from the given parameters and those that the statement determines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from itertools import chain, product
from typing import Any

import numpy as np
import sympy as sp

from fltheory import validation
from fltheory.decimals import as_fraction
from fltheory.engines import Setting
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import Hypothesis, Theorem
from fltheory.worst_case.audits.theorem_form import (
    NUMBERS,
    formulas_of,
    holds,
    names_in,
    values_in_numbers,
    with_values,
)
from fltheory.worst_case.checker.one_round import MOST_STEPS
from fltheory.worst_case.rounds.client_class import exact
from fltheory.worst_case.rounds.measure import AnyClass
from fltheory.worst_case.rounds.one_round import OneRound

_USUAL_PARTICIPANTS, _USUAL_LOCAL_STEPS = 4, 5
_MOST_PARTS, _MOST_HALVINGS = 4096, 40
_ON_ROUNDS = frozenset(("local_steps", "participants", "n_clients", "q"))
_ON_STEPS = _ON_ROUNDS | {"client_lr", "server_lr", "L", "mu"}


@dataclass(frozen=True)
class SafariRound:
    """The SAFARI round of an audit, in fractions, or a FedAvg round for a statement without q.

    Parameters
    ----------
    eligible, excluded : int
        Numbers of clients that can and cannot be drawn.
    participants, local_steps : int
        m and K. By default, they are 4 (or all eligible clients) and 5, unless the statement's
        hypotheses require one local step or full participation.
    q, client_lr, assist_lr : number
        By default, q is 1/2, or 1 for a statement without q (plain FedAvg). By default, the
        clients' step is the largest of 1/(8LK), 1/(9LK), .. that meets the theorem's hypotheses on
        the step, and the server's step follows from the theorem's coupling.

    Raises
    ------
    ValueError
        If a number is not a fraction, or is out of range.

    Examples
    --------
    >>> SafariRound(eligible=8, excluded=2, q="1/2").q
    Fraction(1, 2)
    """

    _: KW_ONLY
    eligible: int
    participants: int | None = None
    local_steps: int | None = None
    q: Any = None
    client_lr: Any = None
    excluded: int = 0
    assist_lr: Any = None

    def __post_init__(self) -> None:
        eligible = validation.whole_number("eligible", self.eligible, at_least=1)
        validation.whole_number("excluded", self.excluded, at_least=0)
        if self.local_steps is not None:
            _check_steps(self.local_steps)
        if self.participants is not None:
            drawn = validation.whole_number("participants", self.participants, at_least=1)
            if drawn > eligible:
                raise ValueError(
                    f"participants must be at most the {eligible} eligible, got {drawn}"
                )
        if self.q is not None:
            chance = exact("q", self.q)
            if chance > 1:
                raise ValueError(f"q must be at most 1, got {self.q!r}")
            object.__setattr__(self, "q", chance)
        for name in ("client_lr", "assist_lr"):
            step = getattr(self, name)
            if step is not None:
                object.__setattr__(self, name, exact(name, step, above=0))

    def coupled(self, theorem: Theorem, clients: AnyClass) -> OneRound:
        """Return the round, with values that the theorem allows for parameters that are not set.

        Raises
        ------
        ValueError
            If q is below 1 although the theorem has no server step, if none of the clients' steps
            tried meets its hypotheses, if it does not determine the server's step from the clients'
            step, or if it says nothing about such a round.
        """
        a_round = self._usual(theorem, clients)
        if self.client_lr is None:
            a_round = replace(a_round, client_lr=_largest_step(theorem, clients, a_round))
        if self.assist_lr is None and _server_steps(theorem):
            a_round = replace(a_round, assist_lr=_coupled_step(theorem, clients, a_round))
        _check_speaks_of(theorem, a_round)
        return a_round

    def _usual(self, theorem: Theorem, clients: AnyClass) -> OneRound:
        """Return the round, with the default m and K where the hypotheses allow them."""
        n_clients = self.eligible + self.excluded
        server_steps = _server_steps(theorem)
        q = self.q if self.q is not None else Fraction(1, 2) if server_steps else Fraction(1)
        if q < 1 and not server_steps:
            raise ValueError(f"q must be 1 for {theorem.id}, which has no server step, got {q}")
        usual = [min(_USUAL_PARTICIPANTS, self.eligible), self.eligible]
        drawn = usual if self.participants is None else [self.participants]
        steps = [_USUAL_LOCAL_STEPS, 1] if self.local_steps is None else [self.local_steps]
        rounds = [
            OneRound(
                n_clients=n_clients,
                excluded_share=Fraction(self.excluded, n_clients),
                participants=participants,
                local_steps=local_steps,
                client_lr=self.client_lr or Fraction(1),
                server_lr=Fraction(1),
                assist_lr=self.assist_lr or Fraction(int(server_steps)),
                q=q,
            )
            for local_steps, participants in product(steps, drawn)
        ]
        asked = [h for h in theorem.hypotheses if names_in(theorem, h.condition) <= _ON_ROUNDS]
        # The first of those choices that meet the most hypotheses.
        return max(rounds, key=lambda one: -len(_failing(theorem, asked, clients, one)))


def _check_speaks_of(theorem: Theorem, a_round: OneRound) -> None:
    """Refuse a round that a theorem says nothing about, even if its bound has a value there.

    The bound of a theorem on independently available clients may also have a value for uniformly
    drawn clients. Only the theorem's ``domain`` says which settings it covers.
    """
    eligible, excluded = int(a_round.n_eligible or 0), int(a_round.n_excluded or 0)
    n_clients = eligible + excluded
    optima = np.arange(2.0 * n_clients).reshape(n_clients, 2)
    problem = QuadraticProblem(np.diag([0.5, 1.0]), optima, sigma=1.0, server_sigma=1.0)
    drawn = UniformSubset(n_clients, a_round.participants, excluded=range(eligible, n_clients))
    try:
        theorem.constants(Setting(a_round.algorithm, problem, drawn, 2, [1.0, 1.0]))
    except ValueError as error:
        raise ValueError(
            f"theorem must be about {type(a_round.algorithm).__name__} with uniformly drawn "
            f"clients to be proved here, but {theorem.id} is not: {error}"
        ) from error


def _check_steps(local_steps: int) -> None:
    """Refuse more local steps than the checker accepts, before a long search for a proof."""
    steps = validation.whole_number("local_steps", local_steps, at_least=1)
    if steps > MOST_STEPS:
        raise ValueError(
            f"local_steps must be at most {MOST_STEPS}, which is what the checker of proofs takes, "
            f"got {steps}"
        )


def _server_steps(theorem: Theorem) -> bool:
    """Whether a statement is about rounds in which the server takes a step on its own data."""
    names = {str(s) for formula in formulas_of(theorem).values() for s in formula.free_symbols}
    return not names.isdisjoint(("q", "assist_lr"))


def _failing(
    theorem: Theorem, hypotheses: Iterable[Hypothesis], clients: AnyClass, a_round: OneRound
) -> list[Hypothesis]:
    return [item for item in hypotheses if holds(theorem, item, clients, a_round) is False]


def _largest_step(theorem: Theorem, clients: AnyClass, a_round: OneRound) -> Fraction:
    """Return the largest of 1/(8LK), 1/(9LK), .. that meets the hypotheses on only this step."""
    asked = [
        hypothesis
        for hypothesis in theorem.hypotheses
        if "client_lr" in (names := names_in(theorem, hypothesis.condition)) and names <= _ON_STEPS
    ]
    # All other numbers are substituted once, since thousands of steps are tried.
    length = sp.Dummy("client_lr", positive=True)
    values = values_in_numbers(clients, a_round) | {NUMBERS["client_lr"]: length}
    conditions = [
        with_values(theorem, hypothesis.condition, values, unknown={length})
        for hypothesis in asked
        if hypothesis.is_known
    ]
    # At first, every denominator is tried, to find the largest possible step; then steps are
    # halved.
    parts = chain(range(8, _MOST_PARTS), (_MOST_PARTS * 2**k for k in range(_MOST_HALVINGS)))
    for part in parts:
        step = 1 / (part * clients.L * a_round.local_steps)
        tried = {length: sp.Rational(step.numerator, step.denominator)}
        if not any(condition.subs(tried) == sp.false for condition in conditions):
            return step
    names_asked = ", ".join(repr(item.name) for item in asked)
    raise ValueError(
        f"client_lr must be given for {theorem.id}: no step of 1/(8LK) or below meets {names_asked}"
    )


def _coupled_step(theorem: Theorem, clients: AnyClass, a_round: OneRound) -> Fraction:
    """Return the server's step, which some equation in the hypotheses ties to the clients' step."""
    own = next((s for s, name in theorem.quantities.items() if name == "assist_lr"), None)
    values = values_in_numbers(clients, a_round)
    del values[NUMBERS["assist_lr"]]
    for hypothesis in theorem.hypotheses:
        if isinstance(hypothesis.condition, sp.Eq) and own in hypothesis.condition.free_symbols:
            steps = sp.solve(with_values(theorem, hypothesis.condition, values), own)
            if len(steps) == 1:
                return as_fraction(steps[0])
    raise ValueError(f"assist_lr must be given, {theorem.id} does not tie it to client_lr")
