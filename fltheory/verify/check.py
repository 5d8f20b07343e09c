"""Check a statement on a setting, follow both of its sides, and check a kept witness again.

A curve is what a figure of a statement shows: the bound, the exact truth, the sampled mean with its
interval, and the verdict at every value. It runs over rounds, a parameter, cases or the claim's own
variable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from fltheory import theorems as registry
from fltheory.argument_kinds import checks_kinds
from fltheory.claims.curves import BoundCurve, Drawing
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.engines.setting_file import read_witness
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Outcome, Verdict
from fltheory.learnability.system import LearningSetting
from fltheory.theorems.registry import statement_of
from fltheory.validation import FloatArray


def check(
    theorem: Statement | str,
    setting: Setting | LearningSetting,
    *,
    replicas: int = 2000,
    seed: int = 0,
    error_probability: float = 1e-9,
) -> Verdict:
    """Check whether a statement applies on a setting, and whether its bound holds there.

    The truth is computed by the exact engine if a round is affine, and sampled otherwise.
    Hypotheses that depend on the trajectory are evaluated on it.

    Parameters
    ----------
    theorem : Statement, or str
        A statement from `fltheory.theorems.get` or of your own, or the id of a printed one.
    setting : Setting, or LearningSetting for a statement on learnability
    replicas, seed : int
        Sample size and random seed, if sampling is needed.
    error_probability : float
        The probability that at least one sampled interval of this check is wrong.

    Returns
    -------
    Verdict

    Raises
    ------
    ValueError
        If the theorem does not cover such a setting at all (e.g. because it is about a different
        algorithm), or if the id does not exist.

    Examples
    --------
    >>> from fltheory import theorems
    >>> theorem = theorems.get("sa-fl/5", reading="derived")
    >>> check(theorem, theorem.regimes["q = 0"].setting).outcome.name
    'HOLDS'
    """
    return statement_of(theorem).verdict(setting, Sampling(replicas, seed, error_probability))


VERDICT_ERROR_PROBABILITY = 1e-9


@checks_kinds
def curve(
    statement: Statement,
    shown: Setting | LearningSetting | Mapping[str, Any] | Callable[[float], Any],
    values: Sequence[float] | FloatArray | None = None,
    *,
    variable: str | None = None,
    bound: bool = True,
    points: int = 25,
    replicas: int = 400,
    seed: int = 0,
    sampled_rounds: int | None = None,
    parts: Mapping[str, sp.Expr] | None = None,
) -> BoundCurve:
    """Follow a statement's two sides: over rounds, a parameter, cases, or its own variable.

    *Over the rounds of one run*: this is done for an inequality if a setting is given. Only the
    number of rounds changes; the step sizes stay those of the setting. Numbers of rounds to which
    the theorem does not apply are left out. If the truth of the whole run can only be sampled,
    verdicts are based on that sample. The truth of the first rounds is still computed, as far as
    they can be enumerated.

    *Over its own variable*: this is done for a claimed order, direction or decay if a setting is
    given. There is one verdict for all values. A claimed order is drawn as a line through the truth
    at the beginning of the last decade, over which slopes are fitted. For a `DecayClaim`, the slope
    is fitted over all values, and the line starts at the first value. For a claimed direction, the
    line is the previous truth, which the next truth is claimed to pass. If there are several
    orders, the one that decides the verdict is followed.

    *Over a parameter*: this is done if a function and ``values`` are given. *Over cases*: this is
    done for named cases, such as choices of weights.

    Parameters
    ----------
    statement : Statement
    shown : setting or learning problem, callable, or mapping of str to them
        The setting to evaluate it on; a callable makes the setting at each of ``values``.
    values : sequence of float, optional
        Values of the parameter, for a callable.
    variable : str, optional
        The axis label for the rounds or the parameter, with mathematics between dollar signs. The
        default is the statement's own T or R.
    bound : bool
        If False, only the quantity is followed, for comparison, over the rounds of a run to which
        the theorem need not apply. There is then no verdict.
    points : int
        How many different numbers of rounds to look at, at least 2, evenly spaced on a logarithmic
        scale.
    replicas, seed : int
        Sample size and random seed. With 0 replicas, nothing is sampled if the truth can be
        computed. A claim that needs no run is sampled if its quantity defines how.
    sampled_rounds : int, optional
        If the truth can be computed, sample only this many of the first rounds.
    parts : mapping of str to sympy expression, optional
        Terms of the bound to follow as well.

    Raises
    ------
    ValueError
        If the statement is not of the required kind, a number is out of range, there are no values,
        or the theorem does not cover such a setting at all.

    Examples
    --------
    >>> from fltheory import theorems
    >>> theorem = theorems.get("sa-fl/5", reading="derived")
    >>> followed = curve(theorem, theorem.regimes["q small"].setting, points=3, replicas=0)
    >>> followed.verdict, followed.values.tolist()
    ('HOLDS', [1.0, 17.0, 300.0])

    Another algorithm's run, for comparison:

    >>> other = theorems.get("scaffold/strongly-convex").regimes["uniform sampling"].setting
    >>> curve(theorem, other, bound=False, points=2, replicas=0).verdict
    'no claim'

    Over its own variable, and over cases:

    >>> claim = theorems.get("fedar/average-inactivity")
    >>> followed = curve(claim, claim.regimes["in rotation"].setting, replicas=0)
    >>> followed.verdict, followed.values.tolist()
    ('UNDECIDED', [1.0, 2.0, 4.0, 8.0])
    >>> claim = theorems.get("pac/1")
    >>> cases = {name: regime.setting for name, regime in claim.regimes.items()}
    >>> followed = curve(claim, cases)
    >>> followed.labels[0], followed.verdict
    ('two clients with one sample', 'HOLDS in 5 cases, INAPPLICABLE in 1 case')
    """
    sampling = Sampling(replicas or Sampling.replicas, seed, VERDICT_ERROR_PROBABILITY)
    drawing = Drawing(sampling, replicas, variable, points, sampled_rounds, parts)
    if isinstance(shown, Mapping):
        if not shown:
            raise ValueError("shown must contain at least one case, got none")
        places = np.arange(float(len(shown)))
        cases = statement.curve_over(list(shown.values()), places, replace(drawing, variable=""))
        return replace(cases, labels=tuple(shown))
    if callable(shown):
        if values is None or len(values) == 0:
            raise ValueError("values must hold at least one value, got none")
        if variable is None:
            raise ValueError("variable must name the parameter of the values, got none")
        settings = [shown(value) for value in values]
        return statement.curve_over(settings, np.asarray(values, dtype=np.float64), drawing)
    if values is not None:
        raise ValueError("shown must be a function of values if values are given, got a setting")
    return statement.curve(shown, drawing) if bound else statement.curve_of_quantity(shown, drawing)


@dataclass(frozen=True)
class KeptWitness:
    """A setting that was kept because it refutes a statement, and its verdict now.

    Attributes
    ----------
    setting : Setting
    verdict : Verdict
    """

    setting: Setting
    verdict: Verdict

    @property
    def refutes(self) -> bool:
        """Whether the statement is still refuted on the setting."""
        return self.verdict.outcome is Outcome.REFUTED


def read_kept_witness(path: Path) -> KeptWitness:
    """Read a setting file that names the statement it refutes, and check that statement.

    Raises
    ------
    ValueError
        If the file is not a setting, does not say which statement it refutes, or names one that is
        neither registered nor loaded.
    """
    setting, refutes = read_witness(path)
    if refutes is None:
        raise ValueError(
            f"{path} must have a table [refutes] with a theorem and a reading to be checked as a "
            "witness, got a setting alone: fltheory compare checks every statement on it"
        )
    statement = registry.get(refutes.theorem, refutes.reading)
    return KeptWitness(setting, check(statement, setting))
