"""The steps of proofs as data: claims, premises and certificates."""

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
    """An equality ``left = right`` after substitutions.

    Attributes
    ----------
    left, right : sympy expression
    under : mapping
        Substitutions made on both sides, e.g. ``eta_c = 2 etabar/(K mu)``.
    domain : tuple of sympy relations
        Domain in which to search for a difference, besides the assumptions on symbols.
    """

    left: sp.Expr
    right: sp.Expr
    under: Substitution = field(default_factory=dict)
    domain: tuple[Relational, ...] = ()


@dataclass(frozen=True)
class Implied:
    """An inequality that follows from others on a domain.

    The certificate is a list of nonnegative multipliers, one for each given inequality, such that
    the gap of the claimed inequality (its larger side minus the smaller) is the sum of the
    multipliers times the gaps of the given ones, plus a nonnegative rest. It is checked, not
    trusted.

    Attributes
    ----------
    claimed : sympy relation
        ``<=`` or ``>=``.
    given : tuple of sympy relations
    domain : tuple of sympy relations
        Domain on which it is claimed, besides the assumptions on symbols.
    multipliers : tuple of sympy expressions
        Empty if no certificate is known for the given inequalities.
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
    """The claim that an expression's limit is finite as variables go to infinity one by one."""

    expression: sp.Expr
    variables: tuple[sp.Symbol, ...]


Claim: TypeAlias = Equal | Implied | FiniteLimit


@dataclass(frozen=True)
class Step:
    """One step of a proof.

    Attributes
    ----------
    label : str
        Its place in the proof, e.g. ``"(80) to (81)"``.
    text : str
        The step's content, in words or formulas.
    claim : Equal, Implied or FiniteLimit
    """

    label: str
    text: str
    claim: Claim


@dataclass(frozen=True)
class Derivation:
    """The last steps of a proof, ending with the statement.

    Attributes
    ----------
    steps : tuple of Step
        Each is checked separately: a step that fails does not affect later ones.
    taken : tuple of str
        Lemmas and facts from elsewhere that are assumed without a check, with reasons.
    meanings : mapping
        The meanings of symbols in the steps that the statement itself does not use.
    """

    steps: tuple[Step, ...]
    taken: tuple[str, ...] = field(default_factory=tuple)
    meanings: Mapping[sp.Symbol, str] = field(default_factory=dict)


class _Deferred(Derivation):
    """A derivation whose steps are computed on first use."""

    def __init__(self, written: Callable[[], Derivation]) -> None:
        object.__setattr__(self, "_written", written)

    def __getattr__(self, name: str) -> Any:
        """Compute all fields; Python calls this only for missing attributes."""
        if name.startswith("_"):
            raise AttributeError(name)
        derivation = self._written()
        for item in fields(Derivation):
            object.__setattr__(self, item.name, getattr(derivation, item.name))
        return object.__getattribute__(self, name)


def deferred(write: Callable[Given, Derivation]) -> Callable[Given, Derivation]:
    """Return ``write`` with its work deferred until the derivation is used.

    The algebra of all proofs takes longer than listing the statements.
    """

    @wraps(write)
    def later(*args: Given.args, **kwargs: Given.kwargs) -> Derivation:
        return _Deferred(partial(write, *args, **kwargs))

    return later


@deferred
def written_in(module: str, name: str) -> Derivation:
    """Return the derivation with this name in a module; the module is imported on first use."""
    found: Derivation = getattr(import_module(module), name)
    return found


class StepOutcome(Enum):
    """The possible outcomes of checking a step."""

    FOLLOWS = "it follows, checked symbolically"
    DIFFERS = "the two sides are not equal"
    FAILS = "it does not follow: a counterexample satisfies everything that is given"
    UNSHOWN = "it is neither proved nor refuted"


@dataclass(frozen=True)
class StepResult:
    """The outcome of one step, with its evidence.

    Attributes
    ----------
    step : Step
    outcome : StepOutcome
    difference : sympy expression, optional
        For an equality, left side minus right side; for an inequality, the larger side minus the
        smaller at the counterexample; for a limit, the limit.
    point : mapping, optional
        Rational values at which the difference is nonzero, the inequality fails, or the limit is
        infinite.
    """

    step: Step
    outcome: StepOutcome
    difference: sp.Expr | None = None
    point: Mapping[sp.Symbol, sp.Rational] | None = None
