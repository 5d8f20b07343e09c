"""Symbols of papers, each declared in one line with everything known about it.

``L = symbol("L", "smoothness of every client", CURVATURE, "L", positive=True)`` is SymPy's symbol L
with its meaning, its unit, and its value on a setting. So a statement needs no tables besides its
formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

import sympy as sp

from fltheory import validation
from fltheory.grammar.units import Unit
from fltheory.numbers.of_setting import names_in, value_in, view_of

Number: TypeAlias = str | Callable[[Any], Any]

_PLACES = count()


class Symbol(sp.Symbol):
    """A SymPy symbol with a meaning, a unit and a number, made by `symbol`.

    The L of two papers are two symbols, although they would be equal in plain SymPy, because this
    information is part of a symbol's identity. The class has the name of SymPy's class, by which
    SymPy sorts symbols among other expressions, so that formulas are written in the same order as
    with plain symbols.
    """

    __slots__ = ("_told", "meaning", "number", "place", "unit")

    meaning: str
    unit: Unit | None
    number: Number | None
    place: int
    _told: str

    def __new__(  # noqa: D102
        cls,
        name: str,
        meaning: str = "",
        unit: Unit | None = None,
        number: Number | None = None,
        **assumptions: bool,
    ) -> Symbol:
        base: Any = sp.Symbol  # SymPy's constructors are untyped
        base._sanitize(assumptions, cls)
        made: Symbol = base.__xnew__(cls, name, **assumptions)
        made.meaning, made.unit, made.number = meaning, unit, number
        # Computed once, because SymPy needs it at every comparison.
        made._told = f"{meaning}, {unit}, {number}"
        made.place = next(_PLACES)
        return made

    def on(self, setting: Any) -> Any:
        """Return the symbol's value on a setting; ValueError if it has none."""
        if self.number is None:
            raise ValueError(f"symbol must have a number of a setting, got {self}")
        number = self.number
        return number(setting) if callable(number) else value_in(number, setting)

    def _hashable_content(self) -> tuple[Any, ...]:
        plain: Any = super()
        return (*plain._hashable_content(), self._told)

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, bool]]:
        plain: Any = super()
        (name,), assumptions = plain.__getnewargs_ex__()
        return (name, self.meaning, self.unit, self.number), assumptions


def symbol(
    name: str,
    meaning: str = "",
    unit: Unit | None = None,
    number: Number | None = None,
    **assumptions: bool,
) -> sp.Symbol:
    """Declare a symbol of a statement.

    Parameters
    ----------
    name : str
    meaning : str
        Its meaning; "" if a `RoundSymbol` gives it.
    unit : Unit, optional
        Units of a formula are checked if all its symbols have one.
    number : str or callable, optional
        Its value on a setting: a formula in the names below, such as
        ``"sqrt(squared_distance)"``, which certificates can check as well, or a function of the
        setting, which they cannot. None if a statement's definitions or the run determine it.
    **assumptions : bool
        SymPy's assumptions about it, as in `sympy.Symbol`.

    Raises
    ------
    ValueError
        If an argument has the wrong type, or ``number`` contains an unknown name.

    Notes
    -----
    A number is a formula with ``sqrt``, ``log``, ``Min`` and ``Max`` in these names of a setting's
    numbers:

    - problem: ``L``, ``mu``, ``sigma``, ``least_sigma``, ``server_sigma``, ``sigma_G``,
      ``n_clients``, and ``Gamma``, max_k F_k(x*) - F_k*;
    - start: ``squared_distance``, ||x_0 - x*||^2, and ``excess_loss``, F(x_0) - F*;
    - algorithm: ``client_lr``, ``server_lr``, ``assist_lr``, ``local_steps``, ``q``, ``cutoff``,
      ``option``, ``is_warm``, and ``rounds``;
    - participation: ``participants`` (expected in a round), ``least_availability`` and
      ``largest_availability`` (a client's probability to take part), ``distance_from_uniform``,
      ``has_memory`` (1 if rounds depend on the past, else 0), ``dependence``, and of chains
      ``chain_states``, ``chain_rate``, ``chain_factor``, ``cited_chain_factor``, ``chain_onset``;
    - aggregation weights: ``total_weight``, ``least_weight``, ``mean_weight``,
      ``mean_squared_weight``, ``weight_multiplier``, and of the biased objective
      ``biased_squared_distance``, ``biased_Gamma``, ``chi_square``, ``total_variation``,
      ``tightest_biased_excess``; FedAU's ``mean_absence``, ``mean_squared_absence``,
      ``mean_lasting_absence`` and ``harmonic_sum``;
    - step sizes that change: ``first_step``, ``step_decay``, ``step_sum``, ``step_square_sum``,
      ``inverse_square_sum``, ``delayed_square_sum``, ``delayed_log_sum``,
      ``cited_delayed_square_sum``, ``cited_delayed_log_sum``, ``run_square_sum``,
      ``run_unmixed_sum``, ``run_delay_sum``;
    - SCAFFOLD's ``control_gap``, and of a ball that models are projected onto ``radius``,
      ``start_distance``, ``reach_of_start``, ``reach_of_optima``, ``reach_of_minimisers``,
      ``largest_gradient``, ``largest_loss_change``.

    Examples
    --------
    >>> L = symbol("L", "smoothness of every client", number="L", positive=True)
    >>> L, (L**2).is_positive
    (L, True)
    """
    validation.text("name of a symbol", name)
    validation.instance_of(f"meaning of {name}", meaning, str, "text")
    validation.instance_of(f"unit of {name}", unit, (Unit, type(None)), "a Unit or None")
    if isinstance(number, str):
        try:
            names_in(number)
        except ValueError as error:
            raise ValueError(f"symbol {name}: {error}") from None
    elif number is not None:
        validation.is_callable(f"symbol {name}: number", number, arguments=1)
    return Symbol(name, meaning, unit, number, **assumptions)


def declared_in(formulas: Iterable[sp.Basic]) -> tuple[Symbol, ...]:
    """Return the declared symbols of formulas, in the order in which they were declared."""
    found = {one for formula in formulas for one in formula.free_symbols}
    return tuple(sorted((s for s in found if isinstance(s, Symbol)), key=lambda s: s.place))


def whole_setting(setting: Any) -> Any:
    """Return the setting unchanged: the ``domain`` of a statement about every setting."""
    return setting


@dataclass(frozen=True)
class NumbersOfSymbols:
    """The values of symbols on a setting, as a statement's ``constants``.

    Attributes
    ----------
    numbers : tuple of pairs
        Symbols and the functions that compute their values on a setting.
    domain : callable
        Returns the setting in the paper's terms; raises ValueError for one that it is not about.
    """

    numbers: tuple[tuple[sp.Symbol, Number], ...] = ()
    domain: Callable[[Any], Any] = whole_setting

    def __call__(self, setting: Any) -> dict[sp.Symbol, Any]:
        """Return the value of each symbol."""
        within = self.domain(setting)
        named = any(isinstance(number, str) for _, number in self.numbers)
        view: Any = view_of(within) if named else None
        return {
            one: number(within) if callable(number) else value_in(number, view)
            for one, number in self.numbers
        }
