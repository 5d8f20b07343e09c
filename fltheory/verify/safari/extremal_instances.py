"""Low-dimensional extremal instances of SAFARI, drawn, changed and simplified at random.

An instance is a handful of numbers ("genes"), all with few digits, so that each is a fraction
that can be printed and certified.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

import numpy as np
import sympy as sp

from fltheory.claims.along_run import Theorem
from fltheory.claims.statement import Statement
from fltheory.grammar.family import SearchSpace
from fltheory.theorems.sa_fl import statements as sa_fl
from fltheory.verify.safari.witness import Witness

Genes = Mapping[str, Any]
Number = Fraction


@dataclass(frozen=True)
class Layout:
    """Where the clients' optima lie, as multiples of the spread, and who takes part."""

    optima: tuple[int, ...]
    participants: int
    excluded: tuple[int, ...] = ()


LAYOUTS = (
    Layout((0,), 1),
    Layout((1, -1), 1, (0,)),
    Layout((1, -1), 1),
    Layout((1, -1), 2),
    Layout((3, -1, -1, -1), 1, (0,)),
    Layout((3, -1, -1, -1), 3),
    Layout((-3, 1, 1, 1), 1, (1, 2)),
)
_SPACES = (SearchSpace.SAFARI, SearchSpace.SAFARI_ONE_NOISE_LEVEL)
_STEPS = (1, 2, 5, 20)
_DIGITS = 2
_COUPLED = (sa_fl.L, sa_fl.mu, sa_fl.eta_s, sa_fl.K)
_LONGEST = 3000
_ROUND_LENGTHS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)


def is_about_safari(statement: Statement) -> bool:
    """Tell whether a statement says that its settings are the instances here."""
    return statement.search_space in _SPACES


def about_safari(statement: Statement) -> Theorem:
    """Return the theorem on SAFARI that a statement is.

    Raises
    ------
    ValueError
        For any other statement.
    """
    if not is_about_safari(statement):
        raise ValueError(f"theorem must be an inequality about SAFARI, got {statement.id}")
    return cast("Theorem", statement)


def rounded(value: float, digits: int = _DIGITS) -> Number:
    """Return ``value`` to a number of significant digits, as a fraction."""
    return Fraction(f"{value:.{digits - 1}e}")


def _power(rng: np.random.Generator, low: float, high: float) -> Number:
    return rounded(10 ** rng.uniform(low, high))


def _draw_q(rng: np.random.Generator) -> Number:
    """Draw inside (0, 1): at its ends one kind of round never happens."""
    kind = rng.integers(3)
    if kind == 0:
        return rounded(rng.uniform(0.01, 0.99))
    small = _power(rng, -4, -0.5)
    return small if kind == 1 else 1 - small


def _sometimes(
    draw: Callable[[np.random.Generator], Number], chance: float
) -> Callable[[np.random.Generator], Number]:
    return lambda rng: draw(rng) if rng.random() < chance else Fraction(0)


_DRAWS: Mapping[str, Callable[[np.random.Generator], Any]] = {
    "layout": lambda rng: int(rng.integers(len(LAYOUTS))),
    "dim": lambda rng: int(rng.integers(1, 3)),
    "grouped_axis": lambda rng: int(rng.integers(2)),
    "start_axis": lambda rng: int(rng.integers(2)),
    "smoothness": lambda rng: _power(rng, -4, 4),
    "condition": lambda rng: _power(rng, 0, 2),
    "spread": lambda rng: _power(rng, -4, 4),
    "start": lambda rng: _power(rng, -3, 3) * int(rng.choice((-1, 1))),
    "sigma": _sometimes(lambda rng: _power(rng, -2, 1), 0.3),
    "server_sigma": _sometimes(lambda rng: _power(rng, -2, 1), 0.3),
    "q": _draw_q,
    "local_steps": lambda rng: int(rng.choice(_STEPS)),
    "step": lambda rng: _power(rng, rng.choice((-4, -0.5)), 0.6),
    "detuning": lambda rng: _power(rng, -2, 2),
    "rounds": lambda rng: int(_LONGEST ** (rng.uniform() ** 1.5)),
}


def drawn(rng: np.random.Generator) -> Genes:
    """Draw an instance."""
    return {name: draw(rng) for name, draw in _DRAWS.items()}


def changed(genes: Genes, rng: np.random.Generator) -> Genes:
    """Change one or two genes: numbers by a factor or anew, choices anew."""
    names = rng.choice(list(_DRAWS), size=int(rng.integers(1, 3)), replace=False)
    return {**genes, **{str(name): _changed(str(name), genes, rng) for name in names}}


def _changed(name: str, genes: Genes, rng: np.random.Generator) -> Any:
    value = genes[name]
    if not isinstance(value, Fraction) or value == 0 or rng.random() < 0.3:
        return _DRAWS[name](rng)
    factor = 10 ** rng.normal(0, 0.3)
    if name == "q" and value > Fraction(1, 2):
        return 1 - rounded(float(1 - value) * factor)
    return rounded(float(value) * factor)


def niche_of(genes: Genes) -> tuple[int, ...]:
    """Return what kind of instance it is: layout, and the decades of its main numbers."""
    decades = [float(genes["step"]), float(genes["smoothness"]), 10.0 * genes["rounds"]]
    likely = 1 if genes["q"] > Fraction(1, 10) else 0
    return (genes["layout"], likely, *(int(np.floor(np.log10(size))) for size in decades))


def simpler(name: str, value: Any) -> Sequence[Any]:
    """Return values that may stand for ``value``, the simplest first, itself last."""
    if name == "rounds":
        return [r for r in _ROUND_LENGTHS if r < value] + [value]
    if name == "local_steps":
        return sorted({1, 2, value})[: [1, 2, value].index(value) + 1]
    if not isinstance(value, Fraction):
        return sorted({0, value}) if name != "dim" else sorted({1, value})
    if value == 0:
        return [value]
    sign = 1 if value > 0 else -1
    size = abs(value)
    decade = Fraction(10) ** int(np.floor(np.log10(float(size))))
    options = [Fraction(0)] if name in {"sigma", "server_sigma"} else []
    options += [
        sign * Fraction(1),
        sign * decade,
        sign * 10 * decade,
        sign * rounded(float(size), 1),
    ]
    options += [Fraction(1, 2)] if name == "q" else []
    return list(dict.fromkeys([*options, value]))


@lru_cache(maxsize=1024)
def _solved_for_client_step(coupling: sp.Eq) -> Callable[..., Number] | None:
    """Return eta_c as a function of fractions; None where the equation has no rational one.

    Numerator and denominator have whole coefficients, so that no float enters.
    """
    solutions = sp.solve(coupling, sa_fl.eta_c)
    if len(solutions) != 1 or not solutions[0].is_rational_function(*_COUPLED):
        return None
    numerator, denominator = sp.fraction(sp.together(solutions[0]))
    above, below = (
        sp.lambdify(_COUPLED, sp.Poly(part, *_COUPLED).as_expr(), modules=[])
        for part in (numerator, denominator)
    )
    return lambda *values: Fraction(above(*values)) / Fraction(below(*values))


def coupling_of(theorem: Theorem) -> sp.Eq | None:
    """Return the theorem's equation between step sizes, if it has one."""
    conditions = (hypothesis.condition for hypothesis in theorem.hypotheses)
    return next((c for c in conditions if isinstance(c, sp.Eq) and c.has(sa_fl.eta_c)), None)


def decoded(coupling: sp.Eq | None, genes: Genes) -> Witness | None:
    """Return the instance with eta_c from a coupling of step sizes; None where it makes none.

    Lengths are multiples of the spread, noises of ``smoothness * spread``, and the step is
    that of the server times the smoothness. The groups' optima lie on one axis and the start
    on another or the same, so that all norms are fractions.
    """
    layout, dim = genes.get("clients") or LAYOUTS[genes["layout"]], genes["dim"]
    L, spread = genes["smoothness"], genes["spread"]
    mu = L if dim == 1 else L / genes["condition"]
    q, assist_lr, steps = genes["q"], genes["step"] / L, genes["local_steps"]
    if not 0 < q < 1 or mu > L:
        return None
    client_lr = _client_lr(coupling, genes["detuning"], L, mu, assist_lr, Fraction(steps))
    if client_lr is None or client_lr <= 0:
        return None
    return Witness(
        curvatures=(L,) if dim == 1 else (L, mu),
        optima=tuple(
            _on_axis(multiple * spread, genes["grouped_axis"], dim) for multiple in layout.optima
        ),
        x0=_on_axis(genes["start"] * spread, genes["start_axis"], dim),
        sigma=genes["sigma"] * L * spread,
        server_sigma=genes["server_sigma"] * L * spread,
        participants=layout.participants,
        excluded=layout.excluded,
        q=q,
        client_lr=client_lr,
        assist_lr=assist_lr,
        local_steps=steps,
        rounds=genes["rounds"],
    )


def _client_lr(
    coupling: sp.Eq | None, detuning: Number, L: Number, mu: Number, assist_lr: Number, K: Number
) -> Number | None:
    """Solve the equation between step sizes; without one, detune eta_c = 2 eta_s / K."""
    if coupling is None:
        return detuning * 2 * assist_lr / K
    solved = _solved_for_client_step(coupling)
    try:
        return None if solved is None else solved(L, mu, assist_lr, K)
    except ZeroDivisionError:
        return None


def _on_axis(value: Number, axis: int, dim: int) -> tuple[Number, ...]:
    return tuple(value if index == axis % dim else Fraction(0) for index in range(dim))
