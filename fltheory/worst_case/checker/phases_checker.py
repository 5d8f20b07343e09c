"""An independent checker of runs in phases in which clients come and go in bursts.

With `kernel.py` and `correlated_checker.py` in the same folder, this file is a separate program:
``python phases_checker.py FILE``. Steps may differ from phase to phase, and a phase may be a single
round. For each phase, a certificate contains the number of rounds, a rate, whether the rounds are
measured, and a proof for a round as `correlated_checker.py` reads it, with a function W of the
model and of the last round's participants. The checker shows in every state, with the phase's own
numbers,

    rate W_S - E[W_{S'}(x+) | S] - [measured] ||z||^2 + heterogeneity h + noise sigma^2 >= 0,
    W_S + below h + noise_below sigma^2 >= W_S of the next phase.

The function after the last phase is ``||z||^2`` if no round is measured, and zero otherwise. A
phase of one round needs no second inequality, because its W_{S'}(x+) is already the next phase's
function. Together with a bound on E W at the start, where S has the stationary distribution, this
bounds the mean of ``E||z_t||^2`` over all measured rounds, or ``E||z_T||^2`` itself. Measured
rounds, and all rounds after them, must have rate 1, so that measured terms are not scaled down.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from fltheory.worst_case.checker import correlated_checker, kernel
else:
    import correlated_checker
    import kernel

ProofError = kernel.ProofError
CorrelatedProof = correlated_checker.CorrelatedProof
Function = Sequence[correlated_checker.Value]

KIND, VERSION = "correlated rounds in phases for every client loss", 1
MOST_CHARACTERS = 40_000_000
MOST_ROUNDS, MOST_PHASES, LARGEST_DENOMINATOR = 100_000, 1_000, 10**6
COEFFICIENTS = "start heterogeneity noise"
_RIGHT = (
    "start ||x_0 - x*||^2 + heterogeneity h + noise sigma^2, h = sum alpha_i ||grad F_i(x*)||^2"
)
CLAIMS = {
    True: f"the mean of E||x_t - x*||^2 over the rounds t that are measured <= {_RIGHT}",
    False: f"E||x_T - x*||^2 after all rounds <= {_RIGHT}",
}
_ALIKE = "groups chain averaging local_steps L mu noisy"


@dataclass(frozen=True)
class Phase:
    """A run of equal rounds, with their number, rate and proof, and whether they are measured."""

    rounds: int
    rate: Fraction
    measured: bool
    proof: CorrelatedProof


@dataclass(frozen=True)
class PhasesProof:
    """A certificate as it was read; nothing in it has been checked yet."""

    phases: Sequence[Phase]
    bound: Mapping[str, Fraction]

    @property
    def n_measured(self) -> int:
        """Number of rounds over which the mean is taken, or 0 if the last model is bounded."""
        return sum(phase.rounds for phase in self.phases if phase.measured)

    @property
    def totals(self) -> Mapping[str, Fraction]:
        """The coefficients that the phases prove together, if the proof of each phase is valid."""
        first = self.phases[0].proof.bound
        distance, h, noise = (
            first[name] for name in ("start", "start_heterogeneity", "start_noise")
        )
        for phase in self.phases:
            own, power = phase.proof, phase.rate**phase.rounds
            times = (1 - power) / (1 - phase.rate) if phase.rate < 1 else Fraction(phase.rounds)
            distance *= power
            h = power * h + times * own.bound["heterogeneity"] + own.below
            noise = power * noise + times * own.bound["noise"] + own.noise_below
        share = Fraction(1, self.n_measured or 1)
        return {"start": share * distance, "heterogeneity": share * h, "noise": share * noise}


def parsed(text: str) -> PhasesProof:
    """Read a certificate.

    Raises
    ------
    ProofError
        If a field, which the message names, is missing, invalid or out of range.
    """
    top = kernel.document_of(
        text, "kind version claim bound phases", MOST_CHARACTERS, version=VERSION, kind=KIND
    )
    bound = kernel.fields_of("bound", top["bound"], COEFFICIENTS)
    proof = PhasesProof(
        kernel.list_of("phases", top["phases"], _phase),
        {name: kernel.fraction(f"bound.{name}", bound[name]) for name in COEFFICIENTS.split()},
    )
    rounds = sum(phase.rounds for phase in proof.phases)
    kernel.in_range(
        {
            "phases": 1 <= len(proof.phases) <= MOST_PHASES,
            "phases.rounds (all together)": rounds <= MOST_ROUNDS,
        }
    )
    first = proof.phases[0].proof
    alike = all(
        getattr(phase.proof, name) == getattr(first, name)
        for phase in proof.phases
        for name in _ALIKE.split()
    )
    once_measured = [phase.measured for phase in proof.phases]
    after = proof.phases[once_measured.index(True) :] if any(once_measured) else []
    kernel.in_range(
        {
            f"phases ({_ALIKE.replace(' ', ', ')} must be those of the first)": alike,
            "phases.rate (1 from the first measured round on)": all(own.rate == 1 for own in after),
            "claim": top["claim"] == CLAIMS[bool(after)],
        }
    )
    return proof


def _phase(place: str, found: Any) -> Phase:
    one = kernel.fields_of(place, found, "rounds rate measured proof")
    rounds = kernel.whole(f"{place}.rounds", one["rounds"])
    rate = kernel.fraction(f"{place}.rate", one["rate"])
    kernel.in_range(
        {
            f"{place}.rounds": 1 <= rounds <= MOST_ROUNDS,
            f"{place}.rate": 0 < rate <= 1 and rate.denominator <= LARGEST_DENOMINATOR,
            f"{place}.measured": type(one["measured"]) is bool,
        }
    )
    try:
        proof = correlated_checker.parsed(json.dumps(one["proof"]))
    except ProofError as error:
        raise ProofError(f"{place}.proof.{error}") from error
    if proof.measure != "distance":
        raise ProofError(f"{place}.proof.claim: must be that of a mean of distances")
    # A phase of one round has no such constants.
    kernel.in_range({f"{place}.proof.below": rounds > 1 or proof.below == proof.noise_below == 0})
    # With the measure "rate", nothing is measured in a round.
    proof = replace(
        proof,
        measure="distance" if one["measured"] else "rate",
        bound={**proof.bound, "rate": rate},
    )
    return Phase(rounds, rate, one["measured"], proof)


def check_phases(proof: PhasesProof) -> None:
    """Check that a certificate proves its claim.

    Raises
    ------
    ProofError
        If a check fails. The message names the first one that does.
    """
    functions = [phase.proof.function for phase in proof.phases]
    functions.append(_end(proof.phases[-1].proof, Fraction(int(not proof.n_measured))))
    for number, (phase, following) in enumerate(zip(proof.phases, functions[1:], strict=True)):
        try:
            if phase.rounds == 1:
                _check_rounds(phase.proof, following)
            else:
                _check_rounds(phase.proof, phase.proof.function)
                _check_link(phase.proof, following)
        except ProofError as error:
            raise ProofError(f"phase {number}: {error}") from error
    nothing = Fraction(0)
    first = replace(proof.phases[0].proof, below=nothing, noise_below=nothing)
    correlated_checker.Checker(first).check_start()
    for name, value in proof.totals.items():
        if value > proof.bound[name]:
            raise ProofError(f"bound.{name}: must be at least {float(value):.6g}")


def _end(proof: CorrelatedProof, square: Fraction) -> Function:
    """Return the function that is ``square ||z||^2`` in every state."""
    nothing, n = Fraction(0), len(proof.groups)
    form = [[nothing] * (2 * n) for _ in range(2 * n)]
    form[0][0] = square
    row = [nothing] * n
    return [correlated_checker.Value(form, row, row, nothing) for _ in proof.states]


def _check_rounds(proof: CorrelatedProof, following: Function) -> None:
    checker = correlated_checker.Checker(proof, following)
    for place in range(len(proof.states)):
        checker.check_round(place)
        if proof.noisy:
            checker.check_noise(place)


def _check_link(proof: CorrelatedProof, following: Function) -> None:
    """Check that a phase's function is at least the next phase's, apart from constants."""
    mine = correlated_checker.Checker(proof)
    others = correlated_checker.Checker(replace(proof, function=following))
    for place, state in enumerate(proof.states):
        sums = correlated_checker.Sums(proof, proof.cells(state))
        mine.add_now(sums, Fraction(1), place)
        others.add_now(sums, Fraction(-1), place)
        sums.add_h(proof.below)
        sums.check(f"state {state}, before the next phase")
        constants = proof.function[place].constant - following[place].constant
        if constants + proof.noise_below < 0:
            raise ProofError(f"state {state}: noise_below is too small")


def checked(text: str) -> str:
    """Check a certificate's text and return its claim."""
    proof = parsed(text)
    check_phases(proof)
    return kernel.with_numbers(CLAIMS[bool(proof.n_measured)], proof.bound)


if __name__ == "__main__":
    sys.exit(kernel.run(sys.argv[1:], "phases_checker.py", checked))
