"""The steps of a proof as data: what each claims, from what, and by which certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import partial, wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeAlias

import sympy as sp
from sympy.core.relational import Equality, GreaterThan, LessThan, Relational

Given = ParamSpec("Given")
Substitution: TypeAlias = Mapping[sp.Symbol, sp.Expr]


@dataclass(frozen=True)
class Equal:
    """``left = right``, once symbols are replaced.

    Attributes
    ----------
    left, right : sympy expression
    under : mapping
        Substitutions made on both sides, e.g. ``eta_c = 2 etabar/(K mu)``.
    domain : tuple of sympy relations
        Where a difference is looked for, beyond the assumptions on symbols.
    """

    left: sp.Expr
    right: sp.Expr
    under: Substitution = field(default_factory=dict)
    domain: tuple[Relational, ...] = ()


@dataclass(frozen=True)
class Implied:
    """An inequality that others give, on a domain.

    The certificate is a list of multipliers, one for each given inequality, all nonnegative,
    such that the gap of the claimed inequality (its larger side less the smaller) is the
    multipliers times the gaps of the given ones, plus a rest that is nonnegative. It is
    checked, not trusted.

    Attributes
    ----------
    claimed : sympy relation
        ``<=`` or ``>=``.
    given : tuple of sympy relations
    domain : tuple of sympy relations
        Where it is claimed, beyond the assumptions on symbols.
    multipliers : tuple of sympy expressions
        Empty where inequalities are given and no certificate is known.
    under : mapping
        Substitutions made throughout.
    """

    claimed: Relational
    given: tuple[Relational, ...] = ()
    domain: tuple[Relational, ...] = ()
    multipliers: tuple[sp.Expr, ...] = ()
    under: Substitution = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.claimed, LessThan | GreaterThan):
            raise ValueError(f"claimed must be a relation <= or >=, got {self.claimed}")
        for condition in (*self.given, *self.domain):
            if not isinstance(condition, Relational) or isinstance(condition, Equality):
                raise ValueError(f"given and domain must contain inequalities, got {condition}")
        if self.multipliers and len(self.multipliers) != len(self.given):
            raise ValueError(
                f"multipliers must have one entry for each of the {len(self.given)} given "
                f"inequalities, got {len(self.multipliers)}"
            )


@dataclass(frozen=True)
class FiniteLimit:
    """An expression's limit is finite as variables go to infinity, one after the other."""

    expression: sp.Expr
    variables: tuple[sp.Symbol, ...]


Claim: TypeAlias = Equal | Implied | FiniteLimit


@dataclass(frozen=True)
class Step:
    """One step of a proof.

    Attributes
    ----------
    label : str
        Where it stands, e.g. ``"(80) to (81)"``.
    text : str
        Its content, in words or formulas.
    claim : Equal, Implied or FiniteLimit
    """

    label: str
    text: str
    claim: Claim


@dataclass(frozen=True)
class Derivation:
    """The last steps of a proof, down to what the statement says.

    Attributes
    ----------
    steps : tuple of Step
        Each is checked on its own: one that fails does not spoil those after it.
    taken : tuple of str
        Lemmas and facts from elsewhere, taken without a check, and why.
    meanings : mapping
        Symbols of the steps that the statement itself does not use.
    """

    steps: tuple[Step, ...]
    taken: tuple[str, ...] = field(default_factory=tuple)
    meanings: Mapping[sp.Symbol, str] = field(default_factory=dict)


class _Deferred(Derivation):
    """A derivation whose steps are worked out when they are first asked for."""

    def __init__(self, written: Callable[[], Derivation]) -> None:
        object.__setattr__(self, "_written", written)

    def __getattr__(self, name: str) -> Any:
        """Fill in the fields; only a name that is not there yet comes here."""
        if name.startswith("_"):
            raise AttributeError(name)
        derivation = self._written()
        for item in fields(Derivation):
            object.__setattr__(self, item.name, getattr(derivation, item.name))
        return object.__getattribute__(self, name)


def deferred(write: Callable[Given, Derivation]) -> Callable[Given, Derivation]:
    """Return ``write`` with its work put off until somebody looks into the derivation.

    The algebra of all proofs together takes longer than listing the statements.
    """

    @wraps(write)
    def later(*args: Given.args, **kwargs: Given.kwargs) -> Derivation:
        return _Deferred(partial(write, *args, **kwargs))

    return later


@deferred
def written_in(module: str, name: str) -> Derivation:
    """Return the derivation of this name in a module, which is imported when it is looked into."""
    found: Derivation = getattr(import_module(module), name)
    return found


class StepOutcome(Enum):
    """The outcome of a check of one step."""

    FOLLOWS = "it follows, checked symbolically"
    DIFFERS = "the two sides are not equal"
    FAILS = "it does not follow: a counterexample satisfies everything that is given"
    UNSHOWN = "it is neither proved nor refuted"


@dataclass(frozen=True)
class StepResult:
    """The outcome of one step, with what shows it.

    Attributes
    ----------
    step : Step
    outcome : StepOutcome
    difference : sympy expression, optional
        Left side less right side, for an equality; the larger side less the smaller at the
        counterexample, for an inequality; the limit, for a limit.
    point : mapping, optional
        Rational values at which the difference is not zero, the inequality fails, or the
        limit is infinite.
    """

    step: Step
    outcome: StepOutcome
    difference: sp.Expr | None = None
    point: Mapping[sp.Symbol, sp.Rational] | None = None
