"""Theorems, i.e. inequalities along a run of an algorithm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import sympy as sp

from fltheory import validation
from fltheory.claims.comparison import Comparison
from fltheory.claims.curves import (
    BoundCurve,
    CurveSample,
    Drawing,
    Parts,
    along,
    at_values,
    judged_curve,
    left_side,
    parts_of,
    plain_curve,
    quantity_label,
    sampled_run,
)
from fltheory.claims.statement import Inequality, of_runs
from fltheory.engines import Setting
from fltheory.engines.enclosure.enclosed import NotEnclosedError
from fltheory.engines.observables import Observable
from fltheory.engines.trajectory import FIELDS
from fltheory.evidence.enclosed_check import (
    AFFORDABLE,
    EnclosedSides,
    enclosed_along,
    enclosed_run,
)
from fltheory.evidence.evaluation import (
    check_hypothesis,
    constants_of,
    evaluate,
    theorem_values,
)
from fltheory.evidence.truths import (
    Sampling,
    Truth,
    beginning,
    exact_beginning,
    shorter,
    truth,
)
from fltheory.evidence.verdict import Grade, Verdict
from fltheory.grammar.family import SearchSpace
from fltheory.grammar.fields import Check, must_be
from fltheory.grammar.quantities import BoundedQuantity, RoundSymbol
from fltheory.grammar.refutation import Repair
from fltheory.learnability.system import LearningSetting
from fltheory.validation import FloatArray

_POINTS = 24
_NAMES_OF_ROUNDS = ("T", "R")


@dataclass(frozen=True, kw_only=True)
class Theorem(Inequality):
    """One reading of a theorem, which says that ``quantity <= bound`` if all hypotheses hold.

    Attributes
    ----------
    id, reading, title, source : str
        The name, the reading, a one-line summary, and the place in the paper.
    quantity : BoundedQuantity
    bound : sympy expression
    hypotheses : tuple of Hypothesis
    domain : callable
        Returns the setting in the paper's terms, by default unchanged. It raises ValueError if the
        theorem does not cover such a setting at all.
    definitions : mapping
        Symbols that abbreviate expressions in other symbols.
    round_symbols : tuple of RoundSymbol
        Symbols whose values depend on the trajectory.
    observe : callable
        Returns the observables that the round symbols need.
    regimes : mapping
        Named settings on which the theorem is checked.
    note : str
        How the reading differs from the others, and at which equation.
    kind : StatementKind
        The statement's rank in its paper: theorem, lemma, remark, ...
    refutations : tuple of Refutation
        The faults of a refuted statement, with the reason, weight and remedy of each.
    repair : Repair or None
        The changes that turn the printed statement into this repaired reading.
    symbols : tuple of Symbol
        Symbols in the statement's texts that appear in none of its formulas.
    read_as : mapping
        Symbols that mean something else in this reading, each mapped to a symbol that gives the
        meaning.
    tightest : mapping
        Like ``read_as``, for constants that a paper leaves open: symbols whose values minimise the
        bound. A true statement must also hold with these values.
    derivation : Derivation, optional
        The last steps of the proof of this reading.
    family : Family, optional
        The settings in which to search for a refutation and over which to map the theorem.
    search_space : SearchSpace, optional
        Settings that have their own search, if the theorem is about such settings.

    Examples
    --------
    Gradient descent on x^2/2, with a bound that is below the truth:

    >>> from fltheory.algorithms import FedAvg
    >>> from fltheory.participation import UniformSubset
    >>> from fltheory.problems import QuadraticProblem
    >>> from fltheory.theorems import Hypothesis, RoundRange, symbol
    >>> from fltheory.verify import check
    >>> eta = symbol("eta", "step size", number="client_lr", positive=True)
    >>> R = symbol("R", "rounds", number="rounds", positive=True, integer=True)
    >>> D = symbol("D", "||x_0||^2", number="squared_distance", positive=True)
    >>> descent = Theorem(
    ...     id="own/descent",
    ...     reading="printed",
    ...     title="Gradient descent",
    ...     source="a textbook",
    ...     quantity=BoundedQuantity("squared_distance", "last", RoundRange(0, 0), "||x_R||^2", ""),
    ...     bound=(1 - eta) ** R * D,
    ...     hypotheses=(Hypothesis("a short step", sp.Le(eta, 1), "there"),),
    ... )
    >>> bowl, alone = QuadraticProblem([[1.0]], [[0.0]]), UniformSubset(1, 1)
    >>> check(descent, Setting(FedAvg(0.5, 1), bowl, alone, 5, [1.0])).outcome.name
    'HOLDS'
    >>> check(descent, Setting(FedAvg(1.5, 1), bowl, alone, 5, [1.0])).outcome.name
    'INAPPLICABLE'
    """

    quantity: BoundedQuantity
    round_symbols: tuple[RoundSymbol, ...] = ()
    observe: Callable[[Setting], Sequence[Observable]] = lambda setting: ()
    repair: Repair[Theorem] | None = None
    search_space: SearchSpace | None = None

    noun: ClassVar[str] = "theorem"
    checks: ClassVar[Mapping[str, Check]] = {
        "quantity": must_be(BoundedQuantity),
        "round_symbols": partial(validation.tuple_of, kind=RoundSymbol),
    }

    def compared(self, setting: Setting, sampling: Sampling) -> Comparison:
        """Evaluate both sides and the hypotheses on a setting."""
        # This comes first, because no truth is needed for a setting that the theorem is not about.
        values = self._values(setting)
        return self._compared(truth(setting, self.observe(setting), sampling), setting, values)

    def compared_with(self, run: Truth, setting: Setting) -> Comparison:
        """Evaluate both sides and the hypotheses on a given run."""
        return self._compared(run, setting, self._values(setting))

    def _values(self, setting: Setting) -> dict[sp.Symbol, Any]:
        return theorem_values(self, constants_of(self.constants, setting))

    def _compared(self, run: Truth, setting: Setting, values: dict[sp.Symbol, Any]) -> Comparison:
        left, error = left_side(self.quantity, run, setting)
        lower, upper = run.interval(self.quantity.field)
        ends = self.quantity.ends(lower, upper, setting)
        return Comparison(
            truth=left,
            bound=float(evaluate(self.bound, values)),
            evidence=run.evidence(error, ends=ends),
            hypotheses=tuple(
                check_hypothesis(hypothesis, values, self.round_symbols, run)
                for hypothesis in self.hypotheses
            ),
        )

    def enclosed(self, setting: Setting, most: float = AFFORDABLE) -> EnclosedSides:
        """Return both sides enclosed; NotEnclosedError says what cannot be enclosed."""
        return enclosed_along(self, setting, most)

    def verdict_and_curve(
        self, setting: Setting | LearningSetting, sampling: Sampling
    ) -> tuple[Verdict, BoundCurve | None]:
        """Return the verdict, and both sides for runs of 1 up to the setting's number of rounds."""
        return self.verdict(setting, sampling), over_rounds(self, of_runs(self, setting), sampling)

    @property
    def bound_on_run(self) -> tuple[BoundedQuantity, sp.Expr] | None:
        """The quantity and its bound, after substituting definitions."""
        definitions: dict[Any, Any] = dict(self.definitions)
        return self.quantity, self.bound.subs(definitions)

    def fields_of_run(self) -> frozenset[str]:
        """Return the names of the quantities of a run that the theorem uses."""
        return frozenset([self.quantity.field, *(symbol.field for symbol in self.round_symbols)])

    def drawn_in(self, settings: Sequence[Setting], draws: int, seed: int) -> CurveSample | None:
        """Sample the quantity on a run in each setting."""
        runs = [sampled_run(self, one, draws, seed) for one in settings]
        return at_values(self.quantity, runs, settings)

    def curve(self, setting: Setting | LearningSetting, drawing: Drawing) -> BoundCurve:
        """Compute truth and bound round by round along one run."""
        setting = of_runs(self, setting)
        settings = _spoken_of(self, setting, drawing.points)
        if not settings:
            raise ValueError(f"setting must be one that {self.id} is about, got {setting!r}")
        whole = _Truths.of(self, setting, drawing, len(settings), drawing.sampled_rounds)
        judged = [beginning(whole.judged, one.rounds) for one in settings]
        values = [one.rounds for one in settings]
        drawn = None if whole.drawn is None else along(self.quantity, whole.drawn, settings)
        name = drawing.variable or _name_of_rounds(self)
        curve = _theorem_curve(self, name, values, settings, judged, drawn, drawing.parts)
        if whole.judged.sampling is None:
            return curve
        return replace(curve, truth=_beginning(self, setting, settings))

    def curve_of_quantity(self, setting: Setting | LearningSetting, drawing: Drawing) -> BoundCurve:
        """Compute the quantity round by round along a run, even if the theorem does not apply."""
        setting = of_runs(self, setting)
        settings = _shorter_settings(self, setting, drawing.points)
        observe = () if self.quantity.field in FIELDS else tuple(self.observe(setting))
        run = truth(setting, observe, drawing.sampling)
        sides: dict[str, Any]
        if run.sampling is None:
            drawn = drawing.run_of(self, setting)
            known = [left_side(self.quantity, beginning(run, one.rounds), one) for one in settings]
            values, errors = np.array(known).T
            sides = {"truth": values, "truth_error": errors}
        else:
            drawn = run
            sides = {"truth": _beginning(self, setting, settings)}
        if drawn is not None:
            sides |= along(self.quantity, drawn, settings).fields()
        return BoundCurve(
            self.name,
            drawing.variable or _name_of_rounds(self),
            quantity_label(self.quantity),
            np.array([float(one.rounds) for one in settings]),
            np.full(len(settings), np.nan),
            **sides,
        )

    def curve_over(
        self, settings: Sequence[Any], values: FloatArray, drawing: Drawing
    ) -> BoundCurve:
        """Compute truth and bound as one parameter varies."""
        runs = [_Truths.of(self, one, drawing, len(values)) for one in settings]
        samples = [run.drawn for run in runs if run.drawn is not None]
        drawn = None
        if len(samples) == len(runs):
            drawn = at_values(self.quantity, samples, settings)
        truths = [run.judged for run in runs]
        name = drawing.variable or ""
        return _theorem_curve(self, name, values, settings, truths, drawn, drawing.parts)


def over_rounds(theorem: Theorem, setting: Setting, sampling: Sampling) -> BoundCurve:
    """Return both sides of a theorem for runs of 1 up to the setting's number of rounds.

    A shorter run is the beginning of the longer one, with the same hyper-parameters. Numbers of
    rounds are equally spaced on a logarithmic scale. Numbers for which the quantity covers no
    rounds, or which the theorem does not cover, are left out.
    """
    try:
        run = Truth(enclosed_run(theorem, setting), Grade.EXACT, None)
    except NotEnclosedError:
        run = truth(setting, theorem.observe(setting), sampling)
    settings = _spoken_of(theorem, setting, _POINTS)
    comparisons = []
    for one in settings:
        left, error = left_side(theorem.quantity, beginning(run, one.rounds), one)
        values = theorem_values(theorem, constants_of(theorem.constants, one))
        bound = float(evaluate(theorem.bound, values))
        comparisons.append(Comparison(left, bound, run.evidence(error), ()))
    return plain_curve("rounds", [one.rounds for one in settings], comparisons)


def _name_of_rounds(theorem: Theorem) -> str:
    names = {str(symbol) for symbol in theorem.meanings}
    return f"${next((name for name in _NAMES_OF_ROUNDS if name in names), 'R')}$"


def _shorter_settings(theorem: Theorem, setting: Setting, points: int) -> list[Setting]:
    """Return settings with fewer rounds, for which the quantity covers at least one round."""
    points = validation.whole_number("points", points, at_least=2)
    spread = np.geomspace(1, setting.rounds, min(points, setting.rounds))
    grid = np.unique(np.round(spread).astype(int))
    counted = [r for r in grid if theorem.quantity.rounds.of(np.zeros(r + 1)).size]
    return [replace(setting, rounds=int(r)) for r in counted]


def _spoken_of(theorem: Theorem, setting: Setting, points: int) -> list[Setting]:
    """Return the `_shorter_settings` on which the theorem's symbols have values."""
    found = []
    for one in _shorter_settings(theorem, setting, points):
        with suppress(ValueError):
            constants_of(theorem.constants, one)
            found.append(one)
    return found


@dataclass(frozen=True, eq=False)
class _Truths:
    """The run on which the verdict is based and the sample to plot, if there is one."""

    judged: Truth
    drawn: Truth | None

    @classmethod
    def of(
        cls,
        theorem: Theorem,
        setting: Setting,
        drawing: Drawing,
        values: int,
        rounds: int | None = None,
    ) -> _Truths:
        """Compute or else sample the run; if a sample decides the verdict, it is also plotted."""
        share = replace(
            drawing.sampling, error_probability=drawing.sampling.error_probability / values
        )
        run = truth(setting, theorem.observe(setting), share)
        if run.sampling is not None:
            return cls(run, run)
        return cls(run, drawing.run_of(theorem, setting, rounds))


def _beginning(
    theorem: Theorem, setting: Setting, settings: Sequence[Setting]
) -> FloatArray | None:
    """Return the quantity for the rounds that an enumeration of histories reaches, then NaN."""
    if theorem.quantity.field not in FIELDS:
        return None
    run = exact_beginning(setting)
    if run is None or run.rounds < settings[0].rounds:
        return None
    return np.array(
        [
            theorem.quantity.of(shorter(run, one.rounds), one)
            if one.rounds <= run.rounds
            else np.nan
            for one in settings
        ]
    )


def _theorem_curve(
    theorem: Theorem,
    variable: str,
    values: Sequence[float] | FloatArray,
    settings: Sequence[Setting],
    truths: Sequence[Truth],
    drawn: CurveSample | None,
    parts: Parts | None,
) -> BoundCurve:
    return judged_curve(
        theorem.name,
        theorem.quantity,
        variable,
        values,
        [theorem.compared_with(t, s) for t, s in zip(truths, settings, strict=True)],
        drawn,
        computed=all(truth.sampling is None for truth in truths),
        parts=parts_of(theorem, settings, parts),
    )
