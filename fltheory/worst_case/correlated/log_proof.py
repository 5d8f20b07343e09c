"""Weights, K and step size with the smallest proved bound for the clients of a log.

Clients are fitted as one or two groups of identical on-off chains. The search uses a few clients of
each group; its result is then proved for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, get_args

import numpy as np

from fltheory.decimals import as_fraction, how_many
from fltheory.logs import AvailabilityLog
from fltheory.logs.transitions import fit_on_off
from fltheory.validation import ClientIndices, FloatArray
from fltheory.weights.client_weights import Training
from fltheory.worst_case.checker.correlated_checker import CorrelatedProof
from fltheory.worst_case.checker.phases_checker import PhasesProof
from fltheory.worst_case.correlated.bound import (
    CorrelatedBound,
    CorrelatedCertificate,
    best_correlated_bound,
    correlated_certificate,
)
from fltheory.worst_case.correlated.phases import (
    PhasedBound,
    PhasesCertificate,
    best_phased_bound,
    best_two_phases,
    phases_certificate,
)
from fltheory.worst_case.proof.proof_file import of_least_margin
from fltheory.worst_case.rounds.client_class import ClientClass, check_ratio
from fltheory.worst_case.rounds.one_round import AvailabilityGroup, Averaging, AveragingRound

# Limits for a proof in a few seconds on the numbers of clients present, for two groups and for one.
_MOST_STATES = {2: 30, 1: 61}
# The search uses this many clients of each group, and tries these numbers of local steps.
_SEARCHED = {2: 1, 1: 4}
_LOCAL_STEPS = {2: (1,), 1: (1, 2)}
_GRID = 6
# Two phases are tried in this number of ways, if there are enough rounds.
_PHASES, _FEWEST_ROUNDS = 40, 20
# More local steps, or other weights for rare clients, must be better by this factor.
_BETTER = 0.99
_MARGINS = (1e-4, 1e-3)
_LARGEST = Fraction(999, 1000)


@dataclass(frozen=True)
class LogProof:
    """A bound for every client loss, if clients come and go as they do on average in a log.

    Attributes
    ----------
    certificate : CorrelatedCertificate or PhasesCertificate
        A certificate for the mean of ``E||w_t - w*||^2`` over all rounds, or over the rounds of a
        second phase. L and the initial distance are 1.
    rounds : int
        Number of rounds in the log.
    square : Fraction
        The certificate's bound for this number of rounds and clients with the assumed dissimilarity
        and noise.
    condition : Fraction
        L/mu.
    shares : tuple of pairs of float
        The smallest and the largest availability in the log, for each group.
    """

    certificate: CorrelatedCertificate | PhasesCertificate
    rounds: int
    square: Fraction
    condition: Fraction
    shares: tuple[tuple[float, float], ...]

    @property
    def distance(self) -> float:
        """The bound on the root mean square distance, relative to the initial one, rounded up."""
        return math.nextafter(math.sqrt(math.nextafter(float(self.square), math.inf)), math.inf)

    @property
    def steps(self) -> tuple[tuple[int, Fraction], ...]:
        """Numbers of rounds and their steps. If there are two phases, the second is measured."""
        proof = self.certificate.proof
        if isinstance(proof, PhasesProof):
            return tuple((own.rounds, own.proof.client_lr) for own in proof.phases)
        return ((self.rounds, proof.client_lr),)

    @property
    def proof(self) -> CorrelatedProof:
        """The clients and the round, with the first step."""
        proof = self.certificate.proof
        return proof.phases[0].proof if isinstance(proof, PhasesProof) else proof

    @property
    def sentence(self) -> str:
        """The proved bound, the choices and the assumptions, in one line."""
        proof = self.proof
        who = [
            f"{own.n_clients} online for a share pi = {float(own.availability):g} of the "
            f"time{'' if low == high else f' ({low:.2g} to {high:.2g} in the log)'} with lambda "
            f"= {float(own.correlation):g}"
            for own, (low, high) in zip(proof.groups, self.shares, strict=True)
        ]
        noise = " and E||noise||^2 <= sigma^2" if proof.noisy else ""
        last = f"the last {self.steps[-1][0]} of " if len(self.steps) > 1 else ""
        lr = f"a step of {float(proof.client_lr):g}/L"
        if len(self.steps) > 1:
            lr += f" for {self.steps[0][0]} rounds and then of {float(self.steps[1][1]):g}/L"
        return (
            f"Proved for every loss: {self._algorithm}, with "
            f"{how_many(proof.local_steps, 'local step')} and {lr}, is at most "
            f"{_rounded_up(self.distance)} from the optimum (root mean square over {last}"
            f"{self.rounds} rounds), for every smooth, strongly convex loss with L/mu <= "
            f"{float(self.condition):g} and ||grad F_k(w*)||^2 <= 2 L Gamma{noise} (Gamma is the "
            f"dissimilarity, sigma the noise assumed), if clients come and go independently of "
            f"each other: {' and '.join(who)}."
        )

    @property
    def _algorithm(self) -> str:
        proof = self.proof
        if proof.averaging == "present":
            return "plain FedAvg"
        if all(own.weight * own.availability == own.target_weight for own in proof.groups):
            return "Unbiased (updates count by target weight / pi)"
        weights = " and ".join(f"{float(own.weight):.3g}" for own in proof.groups)
        return f"the sum of the present clients' updates, weighted by {weights}"

    def document(self) -> Mapping[str, Any]:
        """Return the result as a JSON object."""
        proof = self.proof
        return {
            "distance": self.distance,
            "rounds": self.rounds,
            "condition": float(self.condition),
            "averaging": proof.averaging,
            "local_steps": proof.local_steps,
            "steps": [{"rounds": count, "step": float(lr)} for count, lr in self.steps],
            "mean_over": self.steps[-1][0],
            "groups": [
                {
                    "clients": own.n_clients,
                    "availability": float(own.availability),
                    "correlation": float(own.correlation),
                    "weight": float(own.weight),
                }
                for own in proof.groups
            ],
        }


def _rounded_up(value: float) -> str:
    digits = 2 - math.floor(math.log10(value))
    return f"{math.ceil(value * 10**digits) / 10**digits:.3g}"


def log_proof(
    log: AvailabilityLog, importance: FloatArray, training: Training, condition: float
) -> LogProof:
    """Return the smallest bound found and proved for a log's clients and number of rounds.

    Parameters
    ----------
    log : AvailabilityLog
    importance : array, (N,)
        alpha, which is positive and sums to one. Each client of a group gets the mean of its group.
    training : Training
        The noise and the dissimilarity Gamma. As clients are L-smooth, the mean of
        ``||grad F_k(w*)||^2 <= 2 L (F_k(w*) - F_k*)`` is at most ``2 L Gamma``.
    condition : float
        L/mu, above 1.

    Raises
    ------
    ValueError
        If some clients were never seen, if there are too many clients, or if L/mu is above 1e10.
    ArithmeticError
        If nothing is proved.
    """
    parts = _parts(log)
    groups = _groups(log, importance, parts)
    shares = tuple((float(p.min()), float(p.max())) for p in map(log.marginals.take, parts))
    clients = ClientClass(
        1,
        1 / _six_digits_above(condition),
        sigma=_six_digits_above(training.noise),
        dissimilarity=_root_above(2 * as_fraction(training.dissimilarity)),
    )
    check_ratio(clients)
    # With two local steps and everybody always present, the solver's bound sometimes has no proof.
    for local_steps in dict.fromkeys((_LOCAL_STEPS[len(groups)], (1,))):
        found = _best_bounds(groups, clients, log.n_rounds, local_steps)
        for bound in found:
            made = of_least_margin(partial(_certificate, bound), _MARGINS)
            if made is not None:
                square = _square(made, clients, log.n_rounds)
                return LogProof(made, log.n_rounds, square, 1 / clients.mu, shares)
    raise ArithmeticError(
        "a solver found bounds, but with rounding errors too large to prove them at L/mu = "
        f"{condition:g}"
    )


def _certificate(
    bound: CorrelatedBound | PhasedBound, margin: float
) -> CorrelatedCertificate | PhasesCertificate:
    if isinstance(bound, PhasedBound):
        return phases_certificate(bound, margin)
    return correlated_certificate(bound, margin)


def _square(
    made: CorrelatedCertificate | PhasesCertificate, clients: ClientClass, rounds: int
) -> Fraction:
    """Return a certificate's bound after ``rounds`` rounds from a distance of 1."""
    bound, h, sigma = made.proof.bound, clients.dissimilarity**2, clients.sigma**2
    if isinstance(made, PhasesCertificate):
        return bound["start"] + bound["heterogeneity"] * h + bound["noise"] * sigma
    return made.mean_after(rounds, Fraction(1), h, sigma)


def _six_digits_above(value: float) -> Fraction:
    """Return a short fraction that is at least a number; proofs then cover a larger class."""
    whole = as_fraction(value)
    unit = Fraction(10) ** (math.floor(math.log10(value)) - 5) if value else Fraction(1)
    return math.ceil(whole / unit) * unit


def _root_above(square: Fraction) -> Fraction:
    """Return the square root of a positive number, rounded up to a multiple of a millionth."""
    return Fraction(math.isqrt(math.ceil(square * 10**12) - 1) + 1, 10**6)


def _parts(log: AvailabilityLog) -> list[ClientIndices]:
    """Return groups of clients treated as identical, with rare clients separate if possible."""
    never = np.flatnonzero(log.rounds_present == 0)
    if never.size:
        more = f" and {never.size - 1} more" if never.size > 1 else ""
        raise ValueError(
            f"{log.clients[int(never[0])]}{more} never came online, and with clients at pi = 0 "
            "the distance from the optimum has no bound: remove them from the log for a proof "
            "about the others"
        )
    if log.n_clients + 1 > _MOST_STATES[1]:
        raise ValueError(
            f"{log.n_clients} clients are too many for a proof in a few seconds: at most "
            f"{_MOST_STATES[1] - 1}"
        )
    rare = log.marginals < log.marginals.mean() / 2
    parts = [np.flatnonzero(rare), np.flatnonzero(~rare)]
    if rare.any() and math.prod(part.size + 1 for part in parts) <= _MOST_STATES[2]:
        return parts
    return [np.arange(log.n_clients)]


def _groups(
    log: AvailabilityLog, importance: FloatArray, parts: Sequence[ClientIndices]
) -> tuple[AvailabilityGroup, ...]:
    targets = [Fraction(f"{float(importance[part].mean()):.4g}") for part in parts]
    total = sum(part.size * target for part, target in zip(parts, targets, strict=True))
    return tuple(
        _group(log, part, target / total) for part, target in zip(parts, targets, strict=True)
    )


def _group(log: AvailabilityLog, part: ClientIndices, target: Fraction) -> AvailabilityGroup:
    """Return clients as one group, with mean availability and variance-weighted correlation."""
    fitted = fit_on_off(log)
    p, nu = fitted.availability[part], fitted.correlation[part]
    varies = p * (1 - p)
    share = Fraction(f"{p.mean():.3g}")
    remembered = float(varies @ nu / varies.sum()) if varies.any() and share < 1 else 0.0
    correlation = min(max(Fraction(f"{remembered:.3f}"), Fraction(0)), _LARGEST)
    return AvailabilityGroup(part.size, share, target, target / share, correlation)


def _best_bounds(
    groups: tuple[AvailabilityGroup, ...],
    clients: ClientClass,
    rounds: int,
    local_steps: Sequence[int],
) -> list[CorrelatedBound | PhasedBound]:
    """Return the smallest bounds found with a few clients of each group, the best first."""
    few = _few(groups)
    ratio = math.sqrt(_variance(groups) / _variance(few))
    searched = ClientClass(
        clients.L,
        clients.mu,
        sigma=Fraction(f"{float(clients.sigma) * ratio:.6g}"),
        dissimilarity=Fraction(f"{float(clients.dissimilarity) * ratio:.6g}"),
    )

    def value(played: AveragingRound) -> float:
        try:
            bound = best_correlated_bound(played, searched, rounds=rounds, distance=1)
        except ArithmeticError:
            return math.inf
        return bound.after(rounds, 1.0)

    found = []
    for averaging in get_args(Averaging):
        played = _stepped(few, averaging, local_steps, value)
        if played is None:
            continue
        if len(groups) > 1 and averaging == "weights":
            played = _reweighted(played, value)
        # A few clients represent all. This cannot be done for a mean, because a mean over a few
        # clients has a different bias from a mean over many.
        try:
            found.append(
                best_correlated_bound(_of_all(played, groups), clients, rounds=rounds, distance=1)
            )
        except ArithmeticError:
            continue
    if not found:
        raise ArithmeticError("no step that was tried has a finite bound")
    best = min(found, key=lambda bound: bound.after(rounds, 1.0))
    phased = _in_phases(best.round, few, clients, searched, rounds)
    return [phased, best] if phased and phased.value < best.after(rounds, 1.0) else [best]


def _in_phases(
    played: AveragingRound,
    few: Sequence[AvailabilityGroup],
    clients: ClientClass,
    searched: ClientClass,
    rounds: int,
) -> PhasedBound | None:
    """Return the bound of the best two phases found with a few clients of each group, if any."""
    if rounds < _FEWEST_ROUNDS:
        return None
    try:
        found = best_two_phases(
            _of_all(played, few), searched, rounds=rounds, distance=1, evaluations=_PHASES
        )
        return best_phased_bound(played, clients, found.phases)
    except ArithmeticError:
        return None


def _of_all(played: AveragingRound, groups: Sequence[AvailabilityGroup]) -> AveragingRound:
    """Return a round with different numbers of clients; each group keeps its sum of weights."""
    if played.averaging == "present":
        return replace(played, groups=tuple(replace(own, weight=Fraction(1)) for own in groups))
    pairs = zip(played.groups, groups, strict=True)
    weights = [few.weight * few.n_clients / own.n_clients for few, own in pairs]
    return replace(played, groups=tuple(groups)).weighted(weights)


def _few(groups: Sequence[AvailabilityGroup]) -> tuple[AvailabilityGroup, ...]:
    """Return the groups with a few clients each, but with the same sums of target weights."""
    most, found = _SEARCHED[len(groups)], []
    for own in groups:
        count = min(own.n_clients, most)
        target = own.target_weight * own.n_clients / count
        found.append(
            replace(own, n_clients=count, target_weight=target, weight=target / own.availability)
        )
    return tuple(found)


def _variance(groups: Sequence[AvailabilityGroup]) -> float:
    """Return a number to which the floor for small steps is proportional."""
    return sum(
        own.n_clients
        * float(own.target_weight**2 / own.availability)
        * (1 + 1e-6 - float(own.availability))
        * float((1 + own.correlation) / (1 - own.correlation))
        for own in groups
    )


def _stepped(
    groups: tuple[AvailabilityGroup, ...],
    averaging: Averaging,
    local_steps: Sequence[int],
    value: Callable[[AveragingRound], float],
) -> AveragingRound | None:
    """Return the round with the best K and step, or None if no bound is finite."""
    if averaging == "present":
        groups = tuple(replace(own, weight=Fraction(1)) for own in groups)
    plain = AveragingRound(groups, averaging, 1, Fraction(1), Fraction(1))
    least, found = math.inf, None
    for K in local_steps:
        for step in np.geomspace(1 / K, 0.003 / K, _GRID):
            played = replace(plain, local_steps=K, client_lr=Fraction(f"{step:.3g}"))
            here = value(played)
            if here < (least if found is None or found.local_steps == K else _BETTER * least):
                least, found = here, played
    return found and _least(found, (-1.2, 1.2), value, _with_longer_step)


def _with_longer_step(played: AveragingRound, factor: Fraction) -> AveragingRound:
    return replace(played, client_lr=Fraction(f"{float(played.client_lr * factor):.3g}"))


def _with_weight_of_rare(played: AveragingRound, factor: Fraction) -> AveragingRound:
    first, *others = [own.weight for own in played.groups]
    return played.weighted([first * factor, *others])


def _reweighted(played: AveragingRound, value: Callable[[AveragingRound], float]) -> AveragingRound:
    """Return the round with the best weight for rare clients, if it is better than alpha/pi."""
    found = _least(played, (-2.0, 0.5), value, _with_weight_of_rare)
    return found if value(found) < _BETTER * value(played) else played


def _least(
    played: AveragingRound,
    ends: tuple[float, float],
    value: Callable[[AveragingRound], float],
    changed: Callable[[AveragingRound, Fraction], AveragingRound],
) -> AveragingRound:
    """Return the round changed by the best factor, searching logarithms between the ends."""
    from scipy.optimize import minimize_scalar

    def at(log_factor: float) -> AveragingRound:
        return changed(played, Fraction(f"{math.exp(log_factor):.2g}"))

    options: Any = {"xatol": 0.1, "maxiter": 10}
    found = minimize_scalar(
        lambda log: value(at(log)), bounds=ends, method="bounded", options=options
    )
    return min([played, at(float(found.x))], key=value)
