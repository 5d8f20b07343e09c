"""Bounds on runs in which steps change, either in phases or from round to round.

Each phase has its own function W, with coefficients for every state, and W is at least the function
of the next phase. A phase of many rounds has one function for all of them. If each phase is one
round, the coefficients follow a backward recursion from the last round. A single program finds the
functions of all phases, and each phase is coupled only to its neighbours.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, groupby, pairwise, permutations
from typing import Any, ClassVar

import numpy as np

from fltheory import validation
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray
from fltheory.worst_case.checker import phases_checker
from fltheory.worst_case.checker.phases_checker import PhasesProof
from fltheory.worst_case.correlated import bound as one_phase
from fltheory.worst_case.correlated.program import (
    CorrelatedSolution,
    DifferenceForm,
    OnOffProgram,
    least_of,
    states_of,
)
from fltheory.worst_case.proof.proof_file import ProofChecker, ProofFile, first_accepted
from fltheory.worst_case.rounds.client_class import ClientClass, exact
from fltheory.worst_case.rounds.one_round import AveragingRound
from fltheory.worst_case.semidefinite import Block, IntArray

_BITS_OF_BOUND = 80
# The first limit is on the number of rounds times the numbers of clients present, for programs in
# which each round has its own coefficients. The second is on the number of phases times the same,
# for programs that are solved in a minute.
_SINGLE, _MOST = 400, 2000


@dataclass(frozen=True)
class StepPhase:
    """A run of rounds with the same step.

    Attributes
    ----------
    rounds : int
    client_lr : Fraction
    rate : Fraction
        The factor by which W shrinks in a round; it is 1 from the first measured round on.
    measured : bool
        Whether these rounds are among those whose mean is bounded.
    """

    rounds: int
    client_lr: Fraction
    rate: Fraction = Fraction(1)
    measured: bool = True

    @property
    def power(self) -> float:
        """The factor by which W shrinks over all rounds of the phase."""
        return float(self.rate) ** self.rounds

    @property
    def times(self) -> float:
        """How many times one round's additive term remains at the end of the phase."""
        return (1 - self.power) / (1 - float(self.rate)) if self.rate < 1 else float(self.rounds)


@dataclass(frozen=True)
class PhasedBound:
    """A bound on a run in phases for every client loss, as the solver found it.

    The mean of ``E||x_t - x*||^2`` over measured rounds, or ``E||x_T - x*||^2`` if no round is
    measured, is at most ``start ||x_0 - x*||^2 + heterogeneity h + noise sigma^2``.

    Attributes
    ----------
    start, heterogeneity, noise : float
    round : AveragingRound
        The step of this round is not used.
    client_class : ClientClass
    phases : tuple of StepPhase
    distance : float
        The distance for which the bound is minimised.
    solved : SolvedPhases
    """

    start: float
    heterogeneity: float
    noise: float
    round: AveragingRound
    client_class: ClientClass
    phases: tuple[StepPhase, ...]
    distance: float
    solved: SolvedPhases

    @property
    def value(self) -> float:
        """The bound for the given distance, dissimilarity and noise."""
        return self.after(sum(phase.rounds for phase in self.phases), self.distance)

    def after(self, rounds: int, distance: float) -> float:
        """Bound the measured quantity after all rounds, from ``distance = ||x_0 - x*||``.

        Raises
        ------
        ValueError
            If the number of rounds is different.
        """
        own, clients = sum(phase.rounds for phase in self.phases), self.client_class
        if rounds != own:
            raise ValueError(f"rounds must be the {own} of the phases, got {rounds}")
        return (
            self.start * distance**2
            + self.heterogeneity * float(clients.dissimilarity**2)
            + self.noise * float(clients.sigma**2)
        )


@dataclass(frozen=True, eq=False)
class SolvedPhases(ReadOnlyArrays):
    """The solver's result, for a unit of gradients at x* (divided by L).

    Attributes
    ----------
    program : PhasesProgram
    unit : Fraction
    unknowns : array
    """

    program: PhasesProgram
    unit: Fraction
    unknowns: FloatArray


class PhaseProgram(OnOffProgram):
    """One phase's part of the program: its unknowns, its round and the link to the next phase.

    In a phase of one round, W after the round is the next phase's W. Blocks and rows of a round
    have columns for this phase's unknowns, followed by columns for the next phase's unknowns.
    """

    single = False
    """Whether the phase is one round."""

    following: PhaseProgram | None = None
    """The next phase's program; None at the end."""

    end_square = 0.0
    """What is to be at least ``||z||^2`` times this at the end."""

    @property
    def theta(self) -> float:
        """The factor on W in this program's units."""
        return self.scale * self.mu

    def end(self, name: str) -> int:
        """Return the index of an end among the unknowns."""
        return self._of_ends[name]

    @property
    def margin(self) -> int:
        """The index of the least eigenvalue among the unknowns."""
        return self._margin

    def used(self, first: bool) -> Iterator[int]:
        """Yield the indices of the unknowns in use, except the margin."""
        yield from range(int(self._of_constants[0]))
        if self.noisy:
            yield from map(int, self._of_constants[1:])
        yield from (self._of_ends[name] for name in self.end_factors(first))

    def end_factors(self, first: bool) -> Mapping[str, tuple[str, bool, bool]]:
        """Return each end's factor, and whether the end is at the start and in every round."""
        ends = {"floor": ("h", False, True)}
        ends |= {} if self.single else {"below": ("h", False, False)}
        ends |= {"start": ("start", True, False), "once": ("h", True, False)} if first else {}
        if self.noisy:
            ends |= {"noise": ("noise", False, True)}
            ends |= {} if self.single else {"noise_below": ("noise", False, False)}
            ends |= {"noise_once": ("noise", True, False)} if first else {}
        return ends

    def solution(self, unknowns: FloatArray) -> CorrelatedSolution:
        """Return the solution with these unknowns."""
        return self._solution(0.0, unknowns)

    # ------------------------------------------------------------ a round

    @property
    def _ratio(self) -> float:
        return self.theta / self.following.theta if self.following else 0.0

    @property
    def _n_following(self) -> int:
        return self.following.n_unknowns if self.following else 0

    def _decrease(self, state: int) -> tuple[FloatArray, list[FloatArray]]:
        if not self.single:
            return super()._decrease(state)
        now, rate = self._now_forms[state], 1.0 if self.rate is None else self.rate
        size, K = self._size(self.cells[state]), self.steps
        mean = np.zeros((self.n_unknowns, size, size))
        owns = [np.zeros((self.n_unknowns, K + 1, K + 1)) for _ in now.differences]
        free, place = self._free[state], self._of_function[state]
        mean[place] = rate * now.mean[free]
        for own, part in zip(owns, now.differences, strict=True):
            own[place] = rate * part[free]
        return mean, owns

    def round_blocks(self) -> Iterator[Block]:
        """Yield the blocks of a round, in all states."""
        for state in range(len(self.states)):
            if not self.single:
                yield from self._inequality(state)
                yield from self._fluctuations(state) if self.noisy else ()
                continue
            yield from map(_beside, self._inequality(state), self._after_blocks(state))
            if self.noisy:
                yield from map(self._turned, self._fluctuations(state))

    def _after_blocks(self, state: int) -> Iterator[Block]:
        """Yield ``-E W`` after the round, in the order of the blocks of its inequality."""
        found = self._expected(self.cells[state], self._next(state), True)
        cells = zip(self.cells[state], found.differences, strict=True)
        for part in [found.mean, *(own for cell, own in cells if cell.size > 1)]:
            # The coefficient of ||z||^2 comes first.
            fixed = -self.end_square / self.scale * part[:, 0].sum(axis=0)
            columns = np.zeros((self._n_following, *fixed.shape))
            if self.following is not None:
                fixed = np.zeros_like(fixed)
                others = zip(self.following._free, self.following._of_function, strict=True)
                for other, (free, place) in enumerate(others):
                    columns[place] -= self._ratio / self.scale * part[other, free]
            yield columns, fixed

    def _turned(self, block: Block) -> Block:
        """Return a noise block in which W after the round is the next phase's W."""
        columns, fixed = block
        first = [place.start for place in self._of_function]
        moved, columns = columns[first], columns.copy()
        columns[first] = 0
        others = np.zeros((self._n_following, *fixed.shape))
        if self.following is None:
            fixed = fixed + self.end_square * moved.sum(axis=0)
        else:
            others[[place.start for place in self.following._of_function]] = self._ratio * moved
        return np.concatenate([columns, others]), fixed

    def multiplier_rows(self) -> Iterator[FloatArray]:
        """Yield the rows of the multipliers."""
        pairs = list(permutations(range(self.steps + 1), 2))
        for cells in self._pair_rows:
            for rows in cells:
                yield from (rows[pair] for pair in pairs)

    def noise_rows(self) -> Iterator[FloatArray]:
        """Yield the rows of the noise inequality of a round, for every state."""
        for state in range(len(self.states)) if self.noisy else ():
            row = next(self._noise_rows(state))[0]
            if not self.single:
                yield row
                continue
            _, chance, after = self._next(state)
            others, here = np.zeros(self._n_following), np.zeros(len(self.states))
            np.add.at(here, after, chance / self.scale)
            row[self._of_constants] += here
            if self.following is not None:
                others[self.following._of_constants] = -self._ratio * here
            yield np.concatenate([row, others])

    # ------------------------------------------------------------ before the next phase

    def link_blocks(self) -> Iterator[Block]:
        """Yield the blocks of ``W + below h`` minus the next phase's W, in all states."""
        for state, cells in enumerate(self.cells):
            form, other = self._now_forms[state], self.following
            own = self._of_function[state], form, self._free[state]
            mine = self._ends(cells, [own], {"below": 1.0}, 0.0 if other else -self.end_square)
            if other is None:
                yield from mine
                continue
            less = DifferenceForm(
                -self._ratio * form.mean, tuple(-self._ratio * part for part in form.differences)
            )
            theirs = other._of_function[state], less, other._free[state]
            yield from map(_beside, mine, other._ends(cells, [theirs], {}, 0.0))

    def link_rows(self) -> Iterator[FloatArray]:
        """Yield each state's noise constant plus ``noise_below``, minus the next phase's."""
        for state in range(len(self.states)) if self.noisy else ():
            row, others = np.zeros(self.n_unknowns), np.zeros(self._n_following)
            row[self._of_constants[state]] = row[self._of_ends["noise_below"]] = 1
            if self.following is not None:
                others[self.following._of_constants[state]] = -self._ratio
            yield np.concatenate([row, others])

    def first_blocks(self) -> Iterator[Block]:
        """Yield the blocks of ``start ||z||^2 + once h - E W`` for the stationary distribution."""
        for columns, fixed in self._start():
            columns[self._of_ends["below"]] = 0
            yield columns, fixed

    def first_rows(self) -> Iterator[FloatArray]:
        """Yield ``noise_once - E constant``."""
        if self.noisy:
            row = self._start_row()
            row[self._of_ends["noise_below"]] = 0
            yield row


def _beside(one: Block, other: Block) -> Block:
    return np.concatenate([one[0], other[0]]), one[1] + other[1]


class PhasesProgram:
    """The programs of all phases, combined into one.

    Parameters
    ----------
    programs : sequence of PhaseProgram
    phases : sequence of StepPhase
    far, share : float
        ``||x_0 - x*||^2`` and ``h / (h + sigma^2)``, in the programs' units.
    """

    def __init__(
        self,
        programs: Sequence[PhaseProgram],
        phases: Sequence[StepPhase],
        far: float,
        share: float,
    ) -> None:
        self.programs, self.phases = programs, phases
        self.n_measured = sum(phase.rounds for phase in phases if phase.measured)
        starts = np.cumsum([0, *(own.n_unknowns for own in programs)])
        self._margin = int(starts[-1])
        self._places: list[IntArray] = []
        for own, start in zip(programs, starts, strict=False):
            places = start + np.arange(own.n_unknowns)
            places[own.margin] = self._margin
            self._places.append(places)
        self.parts = {name: np.zeros(self._margin + 1) for name in ("start", "h", "noise")}
        self._count_ends()
        weights = {"start": far, "h": share, "noise": 1 - share}
        costs = [weights[name] * part for name, part in self.parts.items()]
        self._costs = np.sum(costs, axis=0)

    def _count_ends(self) -> None:
        """Set each end's contribution to the bound: to the start, or times h, or times sigma^2."""
        left = 1.0 / max(self.n_measured, 1)
        numbered = list(zip(self.programs, self.phases, self._places, strict=True))
        for own, phase, places in reversed(numbered):
            for end, (name, at_first, each) in own.end_factors(own is self.programs[0]).items():
                factor = phase.power if at_first else phase.times if each else 1.0
                self.parts[name][places[own.end(end)]] = left * factor / own.theta
            left *= phase.power

    def _both(self) -> Iterator[tuple[PhaseProgram, IntArray]]:
        """Yield the phases with the indices of their own and of the next phase's unknowns."""
        nexts = [*self._places[1:], np.zeros(0, dtype=np.int64)]
        for own, places, others in zip(self.programs, self._places, nexts, strict=True):
            yield own, np.concatenate([places, others])

    def _blocks(self) -> Iterator[tuple[Block, IntArray]]:
        for own, places in self._both():
            for block in own.round_blocks():
                yield block, places[: len(block[0])]
            for block in () if own.single else own.link_blocks():
                yield block, places[: len(block[0])]
        yield from ((block, self._places[0]) for block in self.programs[0].first_blocks())

    def _rows(self) -> tuple[list[FloatArray], list[FloatArray]]:
        """Return the rows that must not be negative, for multipliers and for noise."""
        multipliers: list[FloatArray] = []
        noise: list[FloatArray] = []
        for own, places in self._both():
            multipliers += [self._row(row, places) for row in own.multiplier_rows()]
            rows = [*own.noise_rows(), *(() if own.single else own.link_rows())]
            noise += [self._row(row, places) for row in rows]
        first = self.programs[0].first_rows()
        return multipliers, [*noise, *(self._row(row, self._places[0]) for row in first)]

    def _row(self, values: FloatArray, places: IntArray) -> FloatArray:
        row = np.zeros(self._margin + 1)
        np.add.at(row, places[: len(values)], values)
        return row

    def solve(
        self, share: float | None = None, known: FloatArray | None = None
    ) -> FloatArray | None:
        """Return the unknowns of the smallest bound, or of most slack just above a known bound."""
        used = np.zeros(self._margin + 1, dtype=bool)
        for own, at in zip(self.programs, self._places, strict=True):
            used[at[list(own.used(own is self.programs[0]))]] = True
        costs, fixed = self._costs, np.zeros(self._margin + 1)
        ends = np.flatnonzero(np.sum(list(self.parts.values()), axis=0))
        multipliers, noise = self._rows()
        rows = np.array(multipliers + noise)
        blocks, places = zip(*self._blocks(), strict=True)
        margin = None
        if share is not None and known is not None:
            # Each end gets an equal part of the margin above the smallest bound.
            room = share * float(costs @ known) / len(ends)
            fixed[ends] = known[ends] + room / np.maximum(costs[ends], 1e-300)
            used[ends], margin = False, self._margin
        limits = rows, np.zeros(len(rows))
        found = least_of(
            costs, used, fixed, limits, blocks, places=places, margin=margin, inner=len(noise)
        )
        return None if found is None else found[1]

    def solutions(self, unknowns: FloatArray) -> list[CorrelatedSolution]:
        """Return each phase's solution."""
        pairs = zip(self.programs, self._places, strict=True)
        return [own.solution(unknowns[places]) for own, places in pairs]


def best_phased_bound(
    a_round: AveragingRound,
    client_class: ClientClass,
    phases: Sequence[StepPhase],
    *,
    distance: Any = 1,
) -> PhasedBound:
    """Return the smallest bound on a run in phases from ``distance = ||x_0 - x*||``.

    Raises
    ------
    ValueError
        If the class, the clients or the phases are not covered.
    ArithmeticError
        If no bound is found, for example because steps are too large.

    Examples
    --------
    Two hundred rounds with a long step are followed by two hundred with a shorter one. The
    mean is over the latter.

    >>> from fltheory.algorithms import Unbiased
    >>> from fltheory.participation import MarkovOnOff
    >>> process = MarkovOnOff([0.5] * 4, 0.9)
    >>> unbiased = Unbiased([0.25] * 4, client_lr=1.0, local_steps=1, availability=[0.5] * 4)
    >>> a_round = AveragingRound.of(unbiased, process)
    >>> fast = StepPhase(200, Fraction("0.2"), Fraction("0.98"), measured=False)
    >>> found = best_phased_bound(
    ...     a_round, ClientClass(1, "0.1"), [fast, StepPhase(200, Fraction("0.05"))], distance=10
    ... )
    >>> round(found.value, 1)
    8.5
    """
    one_phase.check_covered(a_round, client_class)
    _check(phases)
    far = float(exact("distance", distance))
    request = tuple(phases), far
    for solved in _solved(a_round, client_class, *request):
        start, h, noise = (float(part @ solved.unknowns) for part in solved.program.parts.values())
        over = float(solved.unit * client_class.L) ** 2
        return PhasedBound(start, h / over, noise / over, a_round, client_class, *request, solved)
    raise ArithmeticError("no finite bound was found: try smaller steps, or rates nearer 1")


def scheduled_bound(
    played: Sequence[AveragingRound], client_class: ClientClass, distance: Any, last: bool
) -> PhasedBound:
    """Return the smallest bound on a run in which rounds differ only in their step size.

    Parameters
    ----------
    played : sequence of AveragingRound
        The rounds, from the first to the last.
    client_class : ClientClass
    distance : number
        ``||x_0 - x*||``.
    last : bool
        Whether to bound ``E||x_T - x*||^2`` instead of the mean over all rounds.

    Raises
    ------
    ValueError
        If rounds differ in anything else, or if there are too many rounds.
    ArithmeticError
        If no bound is found.
    """
    first = played[0]
    if any(replace(own, client_lr=first.client_lr) != first for own in played):
        raise ValueError("algorithm must be the same in all rounds, except for client_lr")
    steps = [own.client_lr for own in played]
    states = len(states_of(first))
    groups = [(lr, len(list(rounds))) for lr, rounds in groupby(steps)]
    if last or len(played) * states <= _SINGLE:
        groups = [(lr, 1) for lr in steps]
    if len(groups) * states > _MOST:
        raise ValueError(
            f"the number of rounds with different steps must be at most {_MOST // states} with "
            f"{states} numbers of clients present, got {len(groups)}"
        )
    phases = [StepPhase(count, lr, measured=not last) for lr, count in groups]
    return best_phased_bound(first, client_class, phases, distance=distance)


def best_two_phases(
    a_round: AveragingRound,
    client_class: ClientClass,
    *,
    rounds: int,
    distance: Any,
    evaluations: int = 60,
) -> PhasedBound:
    """Return the best bound on the mean over a second phase that follows an unmeasured first phase.

    The search is over both steps and the first phase's length and rate, and starts with the round's
    own step for the first phase. The returned bound can be proved, but only a local search suggests
    that no other phases are better.

    Parameters
    ----------
    a_round : AveragingRound
        A round with the step size from which the search starts.
    client_class : ClientClass
    rounds : int
        Total number of rounds of both phases, at least 4.
    distance : number
        ``||x_0 - x*||``.
    evaluations : int
        Number of pairs of phases tried.

    Raises
    ------
    ArithmeticError
        If none of the phases tried has a bound.
    """
    from scipy.optimize import minimize

    rounds = validation.whole_number("rounds", rounds, at_least=4)
    lr = float(a_round.client_lr)
    speed = 2 * float(client_class.mu) * a_round.local_steps * float(a_round.server_lr)
    found: list[PhasedBound] = []

    def phases(point: FloatArray) -> list[StepPhase]:
        steps = [Fraction(f"{lr * math.exp(log):.3g}") for log in point[:2]]
        count = min(max(round(rounds / (1 + math.exp(-point[2]))), 2), rounds - 2)
        # The rate lies between 1 and the rate of quadratics with curvature mu.
        away = min(speed * float(steps[0]), 0.9) / (1 + math.exp(-point[3]))
        # The checker reads rates with six digits.
        rate = 1 - max(round(Fraction(f"{away:.3g}"), 6), Fraction(1, 10**6))
        return [StepPhase(count, steps[0], rate, False), StepPhase(rounds - count, steps[1])]

    def log_value(point: FloatArray) -> float:
        try:
            tried = best_phased_bound(a_round, client_class, phases(point), distance=distance)
        except ArithmeticError:
            return 100.0
        found.append(tried)
        return math.log(tried.value)

    first = np.array([0.0, -0.3, 0.0, 2.0])
    simplex = np.vstack([first, first + np.diag([0.7, -0.7, -0.7, 1.0])])
    options: Any = {"maxfev": evaluations, "xatol": 0.05, "fatol": 1e-3, "initial_simplex": simplex}
    minimize(log_value, first, method="Nelder-Mead", options=options)
    if not found:
        raise ArithmeticError("no two phases that were tried have a finite bound")
    return min(found, key=lambda bound: bound.value)


def _check(phases: Sequence[StepPhase]) -> None:
    if not phases:
        raise ValueError("phases must not be empty")
    measured = False
    for phase in phases:
        validation.whole_number("rounds", phase.rounds, at_least=1)
        exact("client_lr", phase.client_lr, above=0)
        measured |= phase.measured
        if not 0 < phase.rate <= 1:
            raise ValueError(f"rate must be above 0 and at most 1, got {phase.rate}")
        if phase.rate.denominator > phases_checker.LARGEST_DENOMINATOR:
            raise ValueError(
                "rate must have a denominator of at most "
                f"{phases_checker.LARGEST_DENOMINATOR}, got {phase.rate}"
            )
        if measured and phase.rate != 1:
            raise ValueError(f"rate must be 1 from the first measured round on, got {phase.rate}")


def _solved(
    a_round: AveragingRound, clients: ClientClass, phases: tuple[StepPhase, ...], distance: float
) -> Iterator[SolvedPhases]:
    """Yield solutions, trying one unit after another."""
    h = float(clients.dissimilarity / clients.L) ** 2
    sigma = float(clients.sigma / clients.L) ** 2
    rounds = [replace(a_round, client_lr=phase.client_lr) for phase in phases]
    guess = one_phase.guess_of(rounds[-1], clients)
    for factor in one_phase.UNITS:
        unit = Fraction(2) ** round(-math.log2(guess) / 2) * factor
        programs = []
        for played, phase in zip(rounds, phases, strict=True):
            step, mu = float(clients.L * played.client_lr), float(clients.mu / clients.L)
            own = PhaseProgram(played, mu, step, "distance", None, sigma > 0, float(unit))
            # With a rate, nothing is measured.
            own.rate = None if phase.measured else float(phase.rate)
            own.single = phase.rounds == 1
            programs.append(own)
        for own, following in pairwise(programs):
            own.following = following
        if not any(phase.measured for phase in phases):
            programs[-1].end_square = programs[-1].theta
        far = distance**2 * float(unit) ** 2 / (h + sigma)
        whole = PhasesProgram(programs, phases, far, h / (h + sigma))
        unknowns = whole.solve()
        if unknowns is not None:
            yield SolvedPhases(whole, unit, unknowns)


def phases_certificate(bound: PhasedBound, margin: float = 1e-6) -> PhasesCertificate:
    """Return a proof in fractions of a bound that is larger by at most a factor of 1 + margin.

    Raises
    ------
    ValueError
        If the margin is not above 0.
    ArithmeticError
        If no proof is found that the checker accepts.
    """
    share = float(exact("margin", margin, above=0))
    others = _solved(bound.round, bound.client_class, bound.phases, bound.distance)

    def texts() -> Iterator[str]:
        for solved in chain([bound.solved], others):
            widest = solved.program.solve(share, solved.unknowns)
            if widest is not None:
                yield from (_text(bound, solved, widest, bits) for bits in one_phase.BITS)

    return first_accepted(PhasesCertificate, texts(), margin)


def _text(bound: PhasedBound, solved: SolvedPhases, widest: FloatArray, bits: int) -> str:
    """Return a certificate's JSON; its bound is the total of its phases."""
    phases = []
    for phase, found in zip(bound.phases, solved.program.solutions(widest), strict=True):
        played = replace(bound.round, client_lr=phase.client_lr)
        request = one_phase.Request(played, bound.client_class, "distance", None, None, 0.0)
        own = json.loads(one_phase.proof_text(request, solved.unit, found, bits))
        phases.append(
            {
                "rounds": phase.rounds,
                "rate": str(phase.rate),
                "measured": phase.measured,
                "proof": own,
            }
        )
    measured = any(phase.measured for phase in bound.phases)
    document = {
        "kind": phases_checker.KIND,
        "version": phases_checker.VERSION,
        "claim": phases_checker.CLAIMS[measured],
        "bound": dict.fromkeys(phases_checker.COEFFICIENTS.split(), "0"),
        "phases": phases,
    }
    totals = phases_checker.parsed(json.dumps(document)).totals
    # Powers of rates have many digits.
    unit = 2**_BITS_OF_BOUND
    document["bound"] = {
        name: str(Fraction(math.ceil(value * unit), unit)) for name, value in totals.items()
    }
    return json.dumps(document, indent=1) + "\n"


@dataclass(frozen=True)
class PhasesCertificate(ProofFile[PhasesProof]):
    """A proof, as JSON, of a bound on a run in phases.

    Attributes
    ----------
    text : str
    """

    checker: ClassVar[ProofChecker] = phases_checker

    @property
    def lines(self) -> tuple[str, ...]:
        """The certificate's content: the claim, its phases, and the clients."""
        proof = self.proof
        bound = {name: f"{float(value):.6g}" for name, value in proof.bound.items()}
        noisy = proof.phases[0].proof.noisy
        right = f"{bound['start']} ||x_0 - x*||^2 + {bound['heterogeneity']} h" + (
            f" + {bound['noise']} sigma^2" if noisy else ""
        )
        rounds = sum(phase.rounds for phase in proof.phases)
        left = f"E||x_t - x*||^2 after {rounds} rounds"
        if proof.n_measured:
            left = f"the mean of E||x_t - x*||^2 over the {proof.n_measured} measured rounds"
        steps = "; then ".join(
            f"{phase.rounds} rounds with eta_c = {phase.proof.client_lr}"
            f"{', measured' if phase.measured else ''}"
            for phase in proof.phases
        )
        return (
            f"{left} <= {right}, h = sum alpha_i ||grad F_i(x*)||^2",
            *one_phase.who_lines(proof.phases[0].proof, steps),
        )
