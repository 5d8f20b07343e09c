"""Search for a setting that meets every hypothesis of a theorem and breaks its bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from fltheory.engines import Setting
from fltheory.progress import Progress
from fltheory.theorems import PointClaim, RateClaim, Statement, Theorem
from fltheory.verify.extremal_instances import is_about_safari
from fltheory.verify.family_search import FamilySearch, FamilyWitness
from fltheory.verify.instance_search import InstanceSearch
from fltheory.verify.setting_search import FoundSetting, SettingSearch
from fltheory.verify.witness import Witness

Found = Witness | FamilyWitness | FoundSetting

DEFAULT_BUDGET = 10_000
DEFAULT_BUDGET_IN_FAMILY = 500
DEFAULT_BUDGET_AROUND_SETTINGS = 1000


@dataclass(frozen=True)
class Falsification:
    """What a search found.

    Attributes
    ----------
    theorem, reading : str
    witness : Witness, FamilyWitness, FoundSetting or None
        Meets every hypothesis and breaks the bound; None if none was found. A Witness is in
        fractions and can be certified.
    settings_tried, settings_applicable : int
        How many settings were evaluated, and on how many all hypotheses held.
    best_ratio : float
        The largest truth/bound where all hypotheses held; -inf if they never did.
    best : Witness, FamilyWitness, FoundSetting or None
        Where that was.
    """

    theorem: str
    reading: str
    witness: Found | None
    settings_tried: int
    settings_applicable: int
    best_ratio: float
    best: Found | None


class _Search(Protocol):
    """A search that keeps count and the best."""

    @property
    def tried(self) -> int: ...

    @property
    def applicable(self) -> int: ...

    @property
    def best_ratio(self) -> float: ...

    @property
    def best(self) -> Found | None: ...

    def attempts(self) -> Iterator[int]:
        """Try settings until the budget is spent; yield how many so far."""
        ...

    def simplified(self) -> Found | None:
        """Return a refutation, made simple, if there is one."""
        ...


def falsify(
    theorem: Statement,
    budget: int | None = None,
    seed: int = 0,
    *,
    settings: Mapping[str, Setting] | None = None,
    progress: Progress | None = None,
) -> Falsification:
    """Look for a setting that meets every hypothesis of a theorem and breaks its bound.

    *With a family*, the theorem is searched in it: random settings, then changes of the best.

    *About SAFARI*, half of the budget goes to random settings of low-dimensional extremal
    instances (one or two coordinates, equal or grouped clients, scales from 1e-4 to 1e4, q
    near 0 and 1, small and excessive step sizes), the rest to changes of the best ones.
    Equations between step sizes are solved for eta_c. Settings are evaluated by the hundred;
    what seems to refute is checked by the exact engine.

    *About anything else*, the search goes out from given settings and changes their numbers,
    whatever they are made of: one by one, or several by one factor, on from the best.

    A witness is then made small and its numbers round, as long as it remains one.

    Parameters
    ----------
    theorem : Theorem or PointClaim
        Registered, or one of your own.
    budget : int, optional
        Settings to try, the simplification not counted: 500 in a family, 10,000 about SAFARI,
        else 1,000.
    seed : int
    settings : mapping, optional
        Settings to go out from, by name; those of the theorem's regimes by default. Given,
        they are what is searched, whatever the theorem is about.
    progress : callable, optional
        Called with (settings tried, budget, best ratio so far).

    Raises
    ------
    ValueError
        For a claimed order, which no single setting can refute, a claim about learning, a budget
        below 1, or no setting to go out from.
    """
    if isinstance(theorem, RateClaim):
        raise ValueError(
            f"theorem must be an inequality to be refuted by one setting, got {theorem.id}, "
            "a claimed order: see falsify_rate"
        )
    if not isinstance(theorem, Theorem | PointClaim):
        raise ValueError(
            f"theorem must be about runs of an algorithm to be searched, got {theorem.id}"
        )
    search: _Search
    if settings is None and theorem.family is not None:
        budget = DEFAULT_BUDGET_IN_FAMILY if budget is None else budget
        search = FamilySearch(theorem, theorem.family, budget, seed)
    elif settings is None and isinstance(theorem, Theorem) and is_about_safari(theorem):
        budget = DEFAULT_BUDGET if budget is None else budget
        search = InstanceSearch(theorem, budget, seed)
    else:
        budget = DEFAULT_BUDGET_AROUND_SETTINGS if budget is None else budget
        search = SettingSearch(theorem, _starts(theorem, settings), budget, seed)
    for tried in search.attempts():
        if progress is not None:
            progress(tried, budget, f"best truth/bound {search.best_ratio:.3g}")
    return Falsification(
        theorem.id,
        theorem.reading,
        search.simplified(),
        search.tried,
        search.applicable,
        search.best_ratio,
        search.best,
    )


def _starts(
    theorem: Theorem | PointClaim, settings: Mapping[str, Setting] | None
) -> dict[str, Setting]:
    """Return the settings to go out from: those given, else those of the theorem's regimes."""
    if settings is None:
        settings = {name: regime.setting for name, regime in theorem.regimes.items()}
    if not settings:
        raise ValueError(f"settings must be given for {theorem.id}, which has no regimes, got none")
    return dict(settings)
