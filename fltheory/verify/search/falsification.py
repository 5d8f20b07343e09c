"""Search for a setting that meets every hypothesis of a theorem and breaks its bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fltheory.argument_kinds import checks_kinds
from fltheory.claims.along_run import Theorem
from fltheory.claims.statement import Statement
from fltheory.grammar.refutation import Mend
from fltheory.long_work.progress import Progress, within
from fltheory.theorems.registry import statement_of
from fltheory.verify.safari.instances import InstanceSearch, about_safari, is_about_safari
from fltheory.verify.safari.natural_witness import BUDGET as NATURAL_BUDGET
from fltheory.verify.safari.natural_witness import NaturalWitness, natural_witnesses, preferred
from fltheory.verify.safari.witness import Witness
from fltheory.verify.search.family_search import FamilySearch, FamilyWitness
from fltheory.verify.search.search import Search
from fltheory.verify.search.setting_search import AnySetting, FoundSetting, SettingSearch

Found = Witness | FamilyWitness | FoundSetting

DEFAULT_BUDGET = 10_000
DEFAULT_BUDGET_IN_FAMILY = 500


@dataclass(frozen=True)
class Falsification:
    """The result of a search.

    Attributes
    ----------
    theorem, reading : str
    witness : Witness, FamilyWitness, FoundSetting or None
        A setting that meets every hypothesis and breaks the bound; None if none was found. A
        `Witness` is in fractions and can be certified.
    settings_tried, settings_applicable : int
        Number of settings evaluated, and number of those on which all hypotheses held.
    best_ratio : float
        The largest truth/bound among settings where all hypotheses held; -inf if there were none.
    best : Witness, FamilyWitness, FoundSetting or None
        The setting with this ratio.
    natural : tuple of NaturalWitness
        For each known fault of a refuted printed statement about SAFARI, the search for a witness
        with several clients, many rounds and moderate numbers.
    applicable_means, ratio_means : str
        Words for what applicable settings meet, and for the ratio, with this kind of claim.
    """

    theorem: str
    reading: str
    witness: Found | None
    settings_tried: int
    settings_applicable: int
    best_ratio: float
    best: Found | None
    natural: tuple[NaturalWitness, ...] = ()
    applicable_means: str = Statement.searched_where
    ratio_means: str = Statement.search_raises

    @property
    def effort(self) -> str:
        """A text on how many settings were tried and applied, and on the largest ratio."""
        tried = (
            f"{self.settings_tried} settings tried; {self.settings_applicable} of them "
            f"{self.applicable_means}"
        )
        if self.best is None:
            return tried
        remark = self.best.trial.remark if isinstance(self.best, FoundSetting) else ""
        where = f" ({remark})" if remark else ""
        return f"{tried}; largest {self.ratio_means} {self.best_ratio:.4g}{where}"

    def __str__(self) -> str:
        """Return the witness, or the effort of the search."""
        name = f"{self.theorem} ({self.reading})"
        if self.witness is None:
            return f"{name}: no refutation found; {self.effort}"
        lines = [f"{name}: REFUTED; {self.effort}", *(f"  {line}" for line in self.witness.lines)]
        for one in self.natural:
            lines.append(f"  this fault alone, fixed by {one.fault.about} [{one.fault.source}]:")
            lines.append(f"    {one.line}")
            if one.witness is not None and one.witness != self.witness:
                lines += [f"      {line}" for line in one.witness.lines]
        return "\n".join(lines)


@checks_kinds
def falsify(
    theorem: Statement | str,
    budget: int | None = None,
    seed: int = 0,
    *,
    settings: Mapping[str, AnySetting] | None = None,
    progress: Progress | None = None,
    first: bool = False,
) -> Falsification:
    """Search for a setting that meets every hypothesis of a theorem and violates its claim.

    *With a family*, its members are searched: random ones, then variations of the best.

    *About SAFARI*, half of the budget goes to random settings of low-dimensional extremal
    instances (one or two coordinates, equal or grouped clients, scales from 1e-4 to 1e4, q
    near 0 and 1, small and excessive step sizes), the rest to variations of the best ones.
    Equations between step sizes are solved for eta_c. Settings are evaluated hundreds at a time;
    the exact engine checks the candidates.

    *For anything else*, the search starts from given settings and changes their numbers: one by
    one, or several by one factor, continuing from the best. Each kind of claim decides what a
    setting shows: a claimed order is followed over its decades, and is refuted only if every
    hypothesis holds throughout, the bound decays as claimed and the truth ends above it. Claims on
    learnability are compared in fractions, and their orders are refuted only by a known limit.

    A witness is then simplified and its numbers rounded, as long as it remains a witness. If the
    faults of a printed statement about SAFARI are known one by one, natural settings are searched
    for each fault (see `natural_witnesses`), and if one is found it becomes the witness.

    Parameters
    ----------
    theorem : Statement, or str
        A registered statement or your own, or the id of a printed one.
    budget : int, optional
        Settings to try, not counting simplification and natural settings: 500 in a family, 10,000
        about SAFARI, 100 for a claimed order, otherwise 1,000.
    seed : int
    settings : mapping, optional
        Settings to start from, by name; those of the theorem's regimes by default. If given, the
        search starts from them, whatever the theorem is about.
    progress : callable, optional
        Called with (settings tried, budget, best ratio so far).
    first : bool
        Whether to stop at the first refutation and return it unsimplified, if you only want to know
        whether there is one.

    Raises
    ------
    ValueError
        If no setting can refute the statement (because our copy of the text lacks a hypothesis or
        its bound), the budget is below 1, or there is no setting to start from.

    Examples
    --------
    >>> found = falsify("sa-fl/5", budget=200)
    >>> found.settings_tried
    200
    """
    theorem = statement_of(theorem)
    theorem.check_searchable()
    search: Search[Any]
    safari: Theorem | None = None
    if settings is None and theorem.family is not None:
        budget = DEFAULT_BUDGET_IN_FAMILY if budget is None else budget
        search = FamilySearch(theorem, theorem.family, budget, seed)
    elif settings is None and is_about_safari(theorem):
        budget = DEFAULT_BUDGET if budget is None else budget
        safari = about_safari(theorem)
        search = InstanceSearch(safari, budget, seed)
    else:
        budget = theorem.search_budget if budget is None else budget
        search = SettingSearch(theorem, _starts(theorem, settings), budget, seed)
    for tried in search.attempts():
        if progress is not None:
            progress(tried, budget, f"best {theorem.search_raises} {search.best_ratio:.3g}")
        if first and search.refutation(simple=False) is not None:
            break
    witness = search.refutation(simple=not first)
    natural: tuple[NaturalWitness, ...] = ()
    if safari is not None and witness is not None and not first:
        natural = natural_witnesses(safari, min(budget, NATURAL_BUDGET), seed)
        witness = preferred(natural) or witness
    return Falsification(
        theorem.id,
        theorem.reading,
        witness,
        search.tried,
        search.applicable,
        search.best_ratio,
        search.best,
        natural,
        theorem.searched_where,
        theorem.search_raises,
    )


def _starts(theorem: Statement, settings: Mapping[str, AnySetting] | None) -> dict[str, AnySetting]:
    """Return the settings to start from: the given ones, else the theorem's regimes'."""
    if settings is None:
        settings = {name: regime.setting for name, regime in theorem.regimes.items()}
    if not settings:
        raise ValueError(
            f"settings must be given for {theorem.id}, which has no regimes, got none: a search "
            "starts from a setting, a regime or a family"
        )
    return dict(settings)


@dataclass(frozen=True)
class Survival:
    """Searches for a refutation of a repaired statement, and of it with one repair undone.

    Attributes
    ----------
    theorem : Statement
        The repaired statement.
    search : Falsification
        The search on the statement itself. Survival is evidence, not a proof.
    without : tuple of (Mend, Falsification)
        For each repair, the search on the statement with all repairs but that one.
    """

    theorem: Statement
    search: Falsification
    without: tuple[tuple[Mend, Falsification], ...]

    @property
    def needed(self) -> tuple[Mend, ...]:
        """Repairs without which the statement is refuted."""
        return tuple(mend for mend, found in self.without if found.witness is not None)


def survival(
    theorem: Statement,
    budget: int = DEFAULT_BUDGET,
    seed: int = 0,
    *,
    progress: Progress | None = None,
    first: bool = False,
) -> Survival:
    """Search for a refutation of a repaired statement, then with each repair dropped in turn.

    Parameters
    ----------
    theorem : Statement
        A statement in its ``repaired`` reading.
    budget, seed : int
        Budget and seed of each search; see `falsify`.
    progress : callable, optional
        Called with (settings tried in all, settings to try, what is searched).
    first : bool
        Whether each search stops at its first refutation, see `falsify`.

    Raises
    ------
    ValueError
        If the statement is not a repaired one.
    """
    if theorem.repair is None:
        raise ValueError(
            f"theorem must be a repaired reading, got {theorem.id} ({theorem.reading})"
        )
    mends = theorem.repair.mends
    searched = [theorem, *(theorem.repair.without(mend) for mend in mends)]
    results = list(_searches(searched, budget, seed, progress, first))
    return Survival(theorem, results[0], tuple(zip(mends, results[1:], strict=True)))


def _searches(
    theorems: Sequence[Statement],
    budget: int,
    seed: int,
    progress: Progress | None,
    first: bool,
) -> Iterator[Falsification]:
    for index, theorem in enumerate(theorems):
        part = within(progress, index * budget, budget * len(theorems), f"{theorem.reading}: ")
        yield falsify(theorem, budget, seed, progress=part, first=first)
