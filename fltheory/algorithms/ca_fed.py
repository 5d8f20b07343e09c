"""CA-Fed: inverse availability weights, excluding clients that seem to slow convergence down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.algorithms import ca_fed
from fltheory.algorithms.contract import CLIENTS, Algorithm, Array, Clients, State
from fltheory.algorithms.shared.client_constants import (
    check_one_each,
    checked_availability,
    checked_constants,
    checked_importance,
    on_backend,
)
from fltheory.algorithms.shared.step_sizes import checked_steps
from fltheory.algorithms.shared.update_bounds import UpdateBounds
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


def first_counts(like: Array, n_clients: int) -> State:
    """Return the counts before the first round, for as many replicas as ``like`` has rows.

    ``present`` and ``absent`` count a client's rounds of presence and absence. ``stayed`` and
    ``waited`` count those that follow a round of the same kind. ``last`` is 1 for clients present
    in the last round. All are (replicas, n_clients).
    """
    xp = array_namespace(like)
    zeros = xp.tile(xp.zeros_like(like[:, :1]), (1, n_clients))
    return dict.fromkeys(("present", "absent", "stayed", "waited", "last"), zeros)


def counted(counts: State, who: Array) -> State:
    """Return the counts after one more round, with ``who`` present."""
    xp = array_namespace(who)
    here = xp.astype(who, counts["present"].dtype)
    seen = counts["present"] + counts["absent"]
    was_away = xp.where(seen > 0, 1 - counts["last"], xp.zeros_like(seen))
    return {
        "present": counts["present"] + here,
        "absent": counts["absent"] + (1 - here),
        "stayed": counts["stayed"] + counts["last"] * here,
        "waited": counts["waited"] + was_away * (1 - here),
        "last": here,
    }


def estimated_availability(counts: State, prior: tuple[float, float]) -> Array:
    """Return pi_hat: ``(rounds present + n) / (rounds + n + m)`` for the prior (n, m)."""
    present, absent = counts["present"], counts["absent"]
    return (present + prior[0]) / (present + absent + sum(prior))


def estimated_correlation(counts: State, prior: tuple[float, float]) -> Array:
    """Return lambda_hat, the second eigenvalue of the estimated 2 by 2 transition matrix.

    It is the trace of the matrix minus one. Each row has the same prior (n, m) as pi_hat, so rounds
    are treated as independent until the observed transitions indicate otherwise.
    """
    was_present = counts["present"] - counts["last"]
    seen = counts["present"] + counts["absent"]
    xp = array_namespace(seen)
    was_absent = counts["absent"] - xp.where(seen > 0, 1 - counts["last"], xp.zeros_like(seen))
    stays = (counts["stayed"] + prior[0]) / (was_present + sum(prior))
    waits = (counts["waited"] + prior[1]) / (was_absent + sum(prior))
    return stays + waits - 1


def kept_after_exclusion(
    kept: Array,
    alpha: Array,
    gap: Array,
    order_by: Array,
    *,
    threshold: float,
    kappa_bar: float,
) -> Array:
    """Return the clients kept after trying exclusions in descending ``order_by``.

    With ``q_k = alpha_k / pi_k`` for kept clients and 0 for the others, the importance ``pi_k q_k /
    sum_h pi_h q_h`` is alpha conditioned on the kept clients. If S is their share of alpha, the
    total variation distance from alpha is 1 - S, and

    ``epsilon = sum_kept alpha_k gap_k / S + kappa_bar^2 (1 - S)^2 max_k gap_k``.

    A client is excluded if its exclusion lowers epsilon by at least ``threshold``, and it stays
    excluded in later trials.

    Parameters
    ----------
    kept : array of bool, (replicas, N)
        Clients kept so far.
    alpha : array, (1, N)
        Target weights.
    gap : array, (replicas, N)
        ``F_hat_k - F_hat_k^*``.
    order_by : array, (replicas, N)
        rho; among equal values, the client with the lower index is tried first.
    threshold : float
        tau.
    kappa_bar : float
        The bias is weighted by ``kappa_bar^2``.

    Notes
    -----
    Follows lines 16 to 27 of Algorithm 1, but differs in three ways, because the lines as printed
    cannot be what the authors intended. ``q^+`` is q with the tried client's entry set to zero (the
    lines never initialise it, nor undo a rejected trial). The last remaining client is kept, since
    the importance is undefined without clients. Finally, nobody is excluded if no gap is above
    zero. In the first round all gaps are zero, so epsilon is 0 for any set of kept clients, and
    with tau = 0 the printed lines would exclude everybody.
    """
    xp = array_namespace(gap)
    order = xp.argsort(-order_by, axis=1, stable=True)
    weight = xp.take_along_axis(alpha + xp.zeros_like(gap), order, axis=1)
    weighted_gap = weight * xp.take_along_axis(gap, order, axis=1)
    largest = xp.max(gap, axis=1, keepdims=True)
    is_in = xp.astype(xp.take_along_axis(kept, order, axis=1), gap.dtype)
    inside = (is_in > 0) & (largest > 0)
    own = [of * is_in for of in (weight, weighted_gap, xp.ones_like(weight))]
    # Kept clients have at least this weight; if there are none, the value is not used.
    least_weight = xp.min(weight, axis=1, keepdims=True)

    def epsilon(share: Array, loss: Array) -> Array:
        return loss / share + kappa_bar**2 * largest * (1 - share) ** 2

    # A client's trial depends on earlier exclusions. All clients are tried at once, given a guess
    # of who is excluded, and then again with the result as the guess, until the result equals the
    # guess. Then each trial agrees with the sequential one. Each pass settles at least one more
    # client, in order; in practice a few passes are enough.
    goes = xp.zeros_like(inside)
    while True:
        stays = 1 - xp.astype(goes, gap.dtype)
        share, loss, count = (_left_of_others(of, stays) for of in own)
        without = epsilon(xp.maximum(share, least_weight), loss)
        lower = epsilon(share + weight, loss + weighted_gap) - without
        tried = inside & (count > 0) & (lower >= threshold)
        if bool(xp.all(tried == goes)):
            break
        goes = tried
    back = xp.argsort(order, axis=1, stable=True)
    return xp.take_along_axis(is_in * stays, back, axis=1) > 0


def _left_of_others(own: Array, stays: Array) -> Array:
    """Return, for each position, the sum over kept clients before it and all clients after it.

    Nothing is subtracted from a total, so if all remaining gaps are zero, their sum is exactly
    zero, and ties are exact.
    """
    xp = array_namespace(own)
    nothing = xp.zeros_like(own[:, :1])
    before = xp.cumulative_sum(xp.concat([nothing, (own * stays)[:, :-1]], axis=1), axis=1)
    after = xp.concat([nothing, xp.flip(own[:, 1:], axis=1)], axis=1)
    return before + xp.flip(xp.cumulative_sum(after, axis=1), axis=1)


@dataclass(frozen=True, eq=False)
class CAFed(ReadOnlyArrays, Algorithm):
    """Correlation-aware federated averaging.

    In each round, the clients present report their losses, and the estimates are updated. Clients
    are then tried for exclusion, first in order of descending lambda_hat and then in order of
    ascending pi_hat. Finally, those present and not excluded train: ``x <- x + server_lr sum_k
    (alpha_k / pi_hat_k) (y_E^k - x)``.

    Parameters
    ----------
    target_weights : array, (N,)
        alpha, positive with sum 1.
    client_lr : float
        eta_t, the step size of local SGD, the same in all rounds.
    local_steps : int
        E, the local SGD steps in a round.
    server_lr : float
        eta_s, the factor on the weighted update.
    loss_smoothing : float
        beta of equation (15), in [0, 1]: the weight of the new report. With 0, the first report is
        never updated, and nobody is ever excluded unless ``known_minima`` are given.
    threshold : float
        tau >= 0: the amount by which an exclusion must lower epsilon_hat.
    kappa_bar : float
        The bias in epsilon_hat is weighted by ``kappa_bar^2`` (Section VI-A). 1 gives Algorithm 1,
        and a large value keeps everybody.
    availability, correlation : array, (N,), or float, optional
        pi and lambda from an oracle. Give both or neither; by default, they are estimated.
    known_minima : array, (N,), or float, optional
        F_k^* from an oracle; by default the smallest smoothed loss so far is used instead.
    prior : tuple of float
        (n_k, m_k), the parameters of the beta prior of pi_hat, the same for all clients, and
        of each row of the transition matrix behind lambda_hat.

    Raises
    ------
    ValueError
        If a parameter is out of range, the arrays do not fit together, or only one of
        ``availability`` and ``correlation`` is given.

    Notes
    -----
    Follows Algorithm 1 with the estimators of Section IV-B. It differs in that W is the whole
    space, so nothing is projected, and in the details listed under `kept_after_exclusion`. Where
    the paper does not say what to do, we chose the following:

    - F_hat_k starts at the client's first report (the paper does not give F_hat^(0)). A client that
      has not reported counts with a gap ``F_hat_k - F_hat_k^*`` of zero.
    - If minima are estimated, the gap is also zero at a client's first report, so nobody is
      excluded in the first round.
    - Gamma_hat is the largest gap over all clients, including those excluded or absent.
    - lambda_hat is the signed second eigenvalue, like lambda_k in Section V-A, and not its modulus.
    - Among clients with equal lambda or pi, the one with the lower index is tried first.
    - A round in which nobody is present changes only the availability estimates.

    Examples
    --------
    >>> CAFed([0.5, 0.5], client_lr=0.1, local_steps=5, server_lr=1.0).loss_smoothing
    0.2
    """

    target_weights: FloatArray
    client_lr: float
    local_steps: int
    server_lr: float
    loss_smoothing: float
    threshold: float
    kappa_bar: float
    availability: FloatArray | None
    correlation: FloatArray | None
    known_minima: FloatArray | None
    prior: tuple[float, float]

    def __init__(
        self,
        target_weights: ArrayLike,
        client_lr: float,
        local_steps: int,
        *,
        server_lr: float = 1.0,
        loss_smoothing: float = 0.2,
        threshold: float = 0.0,
        kappa_bar: float = 1.0,
        availability: ArrayLike | None = None,
        correlation: ArrayLike | None = None,
        known_minima: ArrayLike | None = None,
        prior: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        alpha = checked_importance(target_weights)
        if (availability is None) != (correlation is None):
            given = "correlation" if availability is None else "availability"
            raise ValueError(
                "availability and correlation must both be given or both be left out, got "
                f"{given} alone"
            )
        fields: dict[str, object] = {
            "target_weights": alpha,
            **checked_steps(client_lr, local_steps, server_lr),
            "loss_smoothing": validation.probability("loss_smoothing", loss_smoothing),
            "threshold": validation.nonnegative("threshold", threshold),
            "kappa_bar": validation.nonnegative("kappa_bar", kappa_bar),
            "availability": None,
            "correlation": None,
            "known_minima": None,
            "prior": _checked_prior(prior),
        }
        if availability is not None and correlation is not None:
            fields["availability"] = checked_availability("availability", availability, alpha.size)
            fields["correlation"] = checked_constants("correlation", correlation, alpha.size)
        if known_minima is not None:
            fields["known_minima"] = checked_constants("known_minima", known_minima, alpha.size)
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def update_bounds(self, n_clients: int, round_index: int) -> Mapping[str, UpdateBounds]:
        """Bound the weights by the smallest pi_hat that a client present in this round can have.

        Which clients are excluded depends on the model, so the sum of the weights is bounded by the
        sum over all clients.
        """
        pi = self.availability
        if pi is None:
            pi = np.full(n_clients, (1 + self.prior[0]) / (round_index + sum(self.prior)))
        largest = self.server_lr * self.target_weights / pi
        total = float(largest.sum())
        return {CLIENTS: UpdateBounds(self.local_steps, self.client_lr, largest, total)}

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the state before the first round.

        ``"loss"`` is F_hat, ``"minimum"`` is F_hat^*, ``"reported"`` is 1 for clients that have
        reported, and ``"kept"`` is 1 for those not excluded in the last round. Without an oracle,
        the counts of `first_counts` are added.
        """
        check_one_each("target_weights", self.target_weights, n_clients)
        xp = array_namespace(x0)
        zeros = xp.tile(xp.zeros_like(x0[:, :1]), (1, n_clients))
        state = {"x": x0, "loss": zeros, "minimum": zeros, "reported": zeros}
        state["kept"] = zeros + 1
        if self.availability is None:
            state |= ca_fed.first_counts(x0, n_clients)
        return state

    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round with ``who`` present (lines 3 to 14)."""
        x = state["x"]
        xp = array_namespace(x)
        losses = self._losses(state, clients.loss(x, who), who)
        counts, pi, correlation = self._availability(state, who)
        alpha = on_backend(self.target_weights, x)
        kept = self._kept(losses, alpha, pi, correlation)
        trains = who & kept
        weights = xp.astype(trains, x.dtype) * (alpha / pi)
        update = clients.summed_local_sgd(
            x, trains, weights, steps=self.local_steps, lr=self.client_lr
        )
        memory = {**losses, "kept": xp.astype(kept, x.dtype), **counts}
        return {"x": x + self.server_lr * update, **memory}

    def _losses(self, state: State, report: Array, who: Array) -> dict[str, Array]:
        """Return F_hat by equation (15) and F_hat^*, its minimum so far."""
        xp = array_namespace(report)
        known = state["reported"] > 0
        beta = self.loss_smoothing
        smoothed = xp.where(known, (1 - beta) * state["loss"] + beta * report, report)
        loss = xp.where(who, smoothed, state["loss"])
        lower = ~known | (loss < state["minimum"])
        return {
            "loss": loss,
            "minimum": xp.where(lower, loss, state["minimum"]),
            "reported": xp.astype(known | who, loss.dtype),
        }

    def _availability(self, state: State, who: Array) -> tuple[State, Array, Array]:
        """Return the new counts, pi_hat and lambda_hat, or the oracle's pi and lambda."""
        if self.availability is not None and self.correlation is not None:
            x = state["x"]
            return {}, on_backend(self.availability, x), on_backend(self.correlation, x)
        counts = ca_fed.counted(state, who)
        return (
            counts,
            ca_fed.estimated_availability(counts, self.prior),
            ca_fed.estimated_correlation(counts, self.prior),
        )

    def _kept(self, losses: State, alpha: Array, pi: Array, correlation: Array) -> Array:
        """Return the clients kept after both passes (lines 5 to 7)."""
        loss = losses["loss"]
        xp = array_namespace(loss)
        zeros = xp.zeros_like(loss)
        least = losses["minimum"]
        if self.known_minima is not None:
            least = on_backend(self.known_minima, loss)
        gap = xp.where(losses["reported"] > 0, loss - least, zeros)
        kept = zeros == 0
        for order_by in (correlation, -pi):
            kept = kept_after_exclusion(
                kept,
                alpha,
                gap,
                order_by + zeros,
                threshold=self.threshold,
                kappa_bar=self.kappa_bar,
            )
        return kept


def _checked_prior(prior: tuple[float, float]) -> tuple[float, float]:
    try:
        n, m = prior
    except (TypeError, ValueError) as error:
        raise ValueError(f"prior must be a pair (n, m), got {prior!r}") from error
    return validation.positive("prior", n), validation.positive("prior", m)
