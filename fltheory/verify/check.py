"""Check one statement on one setting."""

from __future__ import annotations

from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Verdict
from fltheory.learnability.system import LearningSetting
from fltheory.theorems.registry import statement_of


def check(
    theorem: Statement | str,
    setting: Setting | LearningSetting,
    *,
    replicas: int = 2000,
    seed: int = 0,
    error_probability: float = 1e-9,
) -> Verdict:
    """Check whether a statement applies on a setting, and whether its bound holds there.

    The truth is computed by the exact engine where a round is affine, and sampled elsewhere.
    Hypotheses that depend on the trajectory are evaluated on it.

    Parameters
    ----------
    theorem : Statement, or str
        From `fltheory.theorems.get`, or one of your own; or the id of a printed one.
    setting : Setting, or LearningSetting for a statement on learnability
    replicas, seed : int
        For sampling, where it is needed.
    error_probability : float
        Allowed for all sampled intervals of this check together.

    Returns
    -------
    Verdict

    Raises
    ------
    ValueError
        If the theorem is not about such a setting at all (e.g. another algorithm), or
        there is none of this id.

    Examples
    --------
    >>> from fltheory import theorems
    >>> theorem = theorems.get("sa-fl/5", reading="derived")
    >>> check(theorem, theorem.regimes["q = 0"].setting).outcome.name
    'HOLDS'
    """
    return statement_of(theorem).verdict(setting, Sampling(replicas, seed, error_probability))
