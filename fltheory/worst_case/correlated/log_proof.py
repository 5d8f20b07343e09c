"""The averaging of a log's clients whose proved bound is least: weights, K and the step.

Clients are fitted as one or two groups of on-off chains that are alike in each. What is best is
searched with a few clients of each group; what is found is then proved for all of them.
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

# What is proved in a few seconds: numbers of clients present, of two groups and of one.
_MOST_STATES = {2: 30, 1: 61}
# So many of each group are searched with, and these numbers of local steps tried.
_SEARCHED = {2: 1, 1: 4}
_LOCAL_STEPS = {2: (1,), 1: (1, 2)}
_GRID = 6
# Two phases are tried in this number of ways, if there are enough rounds.
_PHASES, _FEWEST_ROUNDS = 40, 20
# More local steps, and weights of the rare, must be better by so much.
_BETTER = 0.99
_MARGINS = (1e-4, 1e-3)
_LARGEST = Fraction(999, 1000)


@dataclass(frozen=True)
class LogProof:
    """A bound proved for every client loss, where clients come and go as a log's do on average.

    Attributes
    ----------
    certificate : CorrelatedCertificate or PhasesCertificate
        A certificate for the mean of ``E||w_t - w*||^2`` over all rounds, or those of a second
        phase; L and the initial distance are 1.
    rounds : int
        Of the log.
    square : Fraction
        The certificate's bound for this number of rounds, for clients with the dissimilarity and
        noise assumed.
    condition : Fraction
        L/mu.
    shares : tuple of pairs of float
        The least and the largest availability in the log, of each group.
    """

    certificate: CorrelatedCertificate | PhasesCertificate
    rounds: int
    square: Fraction
    condition: Fraction
    shares: tuple[tuple[float, float], ...]

    @property
    def distance(self) -> float:
        """The bound on the root mean square of distances, rounded up, over the start's."""
        return math.nextafter(math.sqrt(math.nextafter(float(self.square), math.inf)), math.inf)

    @property
    def steps(self) -> tuple[tuple[int, Fraction], ...]:
        """How many rounds have which step; of two phases the second one's are measured."""
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
        """Return what it says as JSON has it."""
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
    """Return the least bound found that is proved for a log's clients and as many rounds.

    Parameters
    ----------
    log : AvailabilityLog
    importance : array, (N,)
        alpha, positive with sum one; in a group each counts as their mean does.
    training : Training
        Its noise and dissimilarity, Gamma. As clients are L-smooth, ``||grad F_k(w*)||^2 <= 2 L
        (F_k(w*) - F_k*)`` is at most ``2 L Gamma``.
    condition : float
        L/mu, above 1.

    Raises
    ------
    ValueError
        Naming the obstacle: clients never seen, too many clients, or L/mu above 1e10.
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
    # Of two local steps where all are always there the solver's bound is at times not proved.
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
    """Return a short fraction that is at least a number; the proof covers all that it allows."""
    whole = as_fraction(value)
    unit = Fraction(10) ** (math.floor(math.log10(value)) - 5) if value else Fraction(1)
    return math.ceil(whole / unit) * unit


def _root_above(square: Fraction) -> Fraction:
    """Return the least multiple of a millionth that is at least the root of a positive number."""
    return Fraction(math.isqrt(math.ceil(square * 10**12) - 1) + 1, 10**6)


def _parts(log: AvailabilityLog) -> list[ClientIndices]:
    """Return the clients in groups that are taken for alike: the rare apart, if so many can be."""
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
    """Return clients as one kind: their mean availability, and correlations as far as they vary."""
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
    """Return the least bounds that were found, the best first, searched with few of each group."""
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
        # The few stand for all, but a mean of few is biased in another way than one of many.
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
    """Return the bound of the best two phases that were found, if any, with few of each group."""
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
    """Return a round with other numbers of clients, each group with the same sum of weights."""
    if played.averaging == "present":
        return replace(played, groups=tuple(replace(own, weight=Fraction(1)) for own in groups))
    pairs = zip(played.groups, groups, strict=True)
    weights = [few.weight * few.n_clients / own.n_clients for few, own in pairs]
    return replace(played, groups=tuple(groups)).weighted(weights)


def _few(groups: Sequence[AvailabilityGroup]) -> tuple[AvailabilityGroup, ...]:
    """Return the groups with few clients each, which count as much together."""
    most, found = _SEARCHED[len(groups)], []
    for own in groups:
        count = min(own.n_clients, most)
        target = own.target_weight * own.n_clients / count
        found.append(
            replace(own, n_clients=count, target_weight=target, weight=target / own.availability)
        )
    return tuple(found)


def _variance(groups: Sequence[AvailabilityGroup]) -> float:
    """Return what the floor for small steps is in proportion to."""
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
    """Return the round with K and the step that are best, None if no bound is finite."""
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
    """Return the round with the best weight of the rare, if it is better than alpha/pi."""
    found = _least(played, (-2.0, 0.5), value, _with_weight_of_rare)
    return found if value(found) < _BETTER * value(played) else played


def _least(
    played: AveragingRound,
    ends: tuple[float, float],
    value: Callable[[AveragingRound], float],
    changed: Callable[[AveragingRound, Fraction], AveragingRound],
) -> AveragingRound:
    """Return the round changed by the best factor, whose logarithm is between ends."""
    from scipy.optimize import minimize_scalar

    def at(log_factor: float) -> AveragingRound:
        return changed(played, Fraction(f"{math.exp(log_factor):.2g}"))

    options: Any = {"xatol": 0.1, "maxiter": 10}
    found = minimize_scalar(
        lambda log: value(at(log)), bounds=ends, method="bounded", options=options
    )
    return min([played, at(float(found.x))], key=value)
