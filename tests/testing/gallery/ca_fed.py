"""CA-Fed (Rodio et al., INFOCOM 2023, Algorithm 1 with the estimators of Section IV-B)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.testing.gallery.fault import Fault, Implementation, descend

FAULTS = {
    "excluded train": Fault("excluded clients still train and count", r"exclu"),
    "renormalised": Fault(
        "the weights of the clients kept are divided by their share of alpha",
        r"share of alpha|normali|sum to",
    ),
    "least correlated first": Fault(
        "clients are tried in ascending lambda", r"lambda|correlat|order"
    ),
    "no second pass": Fault(
        "clients are tried only in order of lambda, and not also in order of availability",
        r"pass|availab|order",
    ),
    "most available first": Fault(
        "the second pass begins with the largest pi", r"order|availab|pass"
    ),
    "bias not squared": Fault(
        "the bias term is kappa^2 (1 - S) Gamma, without the square of 1 - S", r"bias|squar"
    ),
    "kappa not squared": Fault("the bias is multiplied by kappa_bar, not by its square", r"kappa"),
    "share not divided out": Fault(
        "the losses of the clients kept are not divided by their share", r"renormali|share|divi"
    ),
    "sum to one": Fault(
        "the weights alpha/pi of the clients kept are divided by their sum",
        r"normali|sum to|sum of",
    ),
    "correlation without prior": Fault(
        "lambda_hat is computed from bare frequencies, without the prior of pi_hat",
        r"correlation.*prior",
    ),
    "threshold ignored": Fault(
        "every exclusion that lowers epsilon is made, whatever the threshold", r"threshold"
    ),
    "smoothing reversed": Fault(
        "beta is the weight of the old loss, not of the new one", r"smoothing|beta"
    ),
    "losses not smoothed": Fault("the current loss is used without smoothing", r"smooth"),
    "losses of the new model": Fault(
        "clients report their losses after the local steps", r"before|after|server's model"
    ),
    "least raw loss": Fault(
        "F_hat* is the least loss reported, not the least smoothed one", r"minim|smooth"
    ),
    "no prior": Fault("pi_hat is the bare frequency, without the prior", r"prior"),
    "a round late": Fault("pi_hat does not count the current round", r"this round|current|round"),
    "multiplied": Fault("updates are multiplied by pi_hat", r"multipl|divi"),
    "largest gap of those kept": Fault(
        "Gamma_hat is the largest gap over the clients kept", r"gap|Gamma"
    ),
    "exclusion a round late": Fault(
        "the excluded clients are those chosen in the previous round, because exclusion comes "
        "after training",
        r"round before|previous|a round late",
    ),
    "excluded for good": Fault(
        "a client that was once excluded never comes back",
        r"again|anew|comes? back|return|every round",
    ),
}


def run(
    x0: np.ndarray,
    clients: Any,
    trace: np.ndarray,
    *,
    client_lr: float,
    local_steps: int,
    server_lr: float,
    target_weights: Any,
    loss_smoothing: float = 0.2,
    threshold: float = 0.0,
    kappa_bar: float = 1.0,
    availability: Any = None,
    correlation: Any = None,
    known_minima: Any = None,
    prior: tuple[float, float] = (1.0, 1.0),
    fault: str = "",
    ties: int | None = None,
) -> np.ndarray:
    """Return the server's models; ``ties`` draws in which order clients that tie are tried."""
    alpha = np.asarray(target_weights, dtype=float)
    n, x = alpha.size, np.array(x0)
    beta = {"smoothing reversed": 1 - loss_smoothing, "losses not smoothed": 1.0}.get(
        fault, loss_smoothing
    )
    loss, least, reported = np.zeros(n), np.full(n, np.inf), np.zeros(n, dtype=bool)
    gone, before = np.zeros(n, dtype=bool), np.ones(n, dtype=bool)
    models = [x]
    for t, who in enumerate(trace):
        for k in np.flatnonzero(who):
            at = descend(clients[k], x, client_lr, local_steps)
            report = clients[k].loss(at if fault == "losses of the new model" else x)
            loss[k] = (1 - beta) * loss[k] + beta * report if reported[k] else report
            least[k] = min(least[k], report if fault == "least raw loss" else loss[k])
        reported |= who
        known = trace[:t] if fault == "a round late" else trace[: t + 1]
        pi, lambdas = _estimates(known, n, (0.0, 0.0) if fault == "no prior" else prior)
        if fault == "correlation without prior":
            lambdas = _estimates(known, n, (0.0, 0.0))[1]
        if availability is not None:
            pi = np.broadcast_to(np.asarray(availability, dtype=float), (n,))
            lambdas = np.broadcast_to(np.asarray(correlation, dtype=float), (n,))
        floor = least if known_minima is None else np.broadcast_to(known_minima, (n,))
        gap = np.where(reported, loss - np.where(reported, floor, 0.0), 0.0)
        kept = np.ones(n, dtype=bool)
        if fault == "excluded for good":
            kept = ~gone
        by_lambda = lambdas if fault == "least correlated first" else -lambdas
        by_availability = -pi if fault == "most available first" else pi
        passes = [by_lambda] if fault == "no second pass" else [by_lambda, by_availability]
        for rank in passes:
            order = _order(rank, ties)
            kept = _tried(kept, alpha, gap, order, threshold, kappa_bar, fault)
        gone |= ~kept
        if fault == "exclusion a round late":
            kept, before = before, kept
        weights = alpha * pi if fault == "multiplied" else alpha / np.maximum(pi, 1e-9)
        if fault == "renormalised":
            weights = weights / alpha[kept].sum()
        elif fault == "sum to one":
            weights = weights / weights[kept].sum()
        move = np.zeros_like(x)
        for k in np.flatnonzero(who & (kept | (fault == "excluded train"))):
            move = move + weights[k] * (descend(clients[k], x, client_lr, local_steps) - x)
        x = x + server_lr * move
        models.append(x)
    return np.array(models)


def _estimates(
    seen: np.ndarray, n: int, prior: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return pi_hat and lambda_hat from who has been present."""
    a, b = prior
    rounds = len(seen)
    here = seen.sum(axis=0) if rounds else np.zeros(n)
    pi = (here + a) / max(rounds + a + b, 1e-300)
    before, after = seen[:-1], seen[1:]
    stays = ((before & after).sum(axis=0) + a) / np.maximum(before.sum(axis=0) + a + b, 1e-300)
    waits = ((~before & ~after).sum(axis=0) + b) / np.maximum((~before).sum(axis=0) + a + b, 1e-300)
    return pi, stays + waits - 1


def _order(rank: np.ndarray, ties: int | None) -> np.ndarray:
    """Return clients in ascending rank: by index where they tie, or in an order that is drawn."""
    if ties is None:
        return np.argsort(rank, kind="stable")
    drawn = np.random.default_rng(ties).permutation(rank.size)
    return np.lexsort((drawn, rank.round(9)))


def _tried(
    kept: np.ndarray,
    alpha: np.ndarray,
    gap: np.ndarray,
    order: np.ndarray,
    threshold: float,
    kappa_bar: float,
    fault: str,
) -> np.ndarray:
    """Return who is left after clients have been tried in this order."""

    def epsilon(those: np.ndarray) -> float:
        share = alpha[those].sum()
        largest = gap[those].max() if fault == "largest gap of those kept" else gap.max()
        mean = alpha[those] @ gap[those]
        if fault != "share not divided out":
            mean = mean / share
        bias = 1 - share if fault == "bias not squared" else (1 - share) ** 2
        factor = kappa_bar if fault == "kappa not squared" else kappa_bar**2
        return float(mean + factor * bias * largest)

    kept = kept.copy()
    if gap.max() <= 0:
        return kept
    for k in order:
        if not kept[k] or kept.sum() == 1:
            continue
        without = kept.copy()
        without[k] = False
        if epsilon(kept) - epsilon(without) >= (0.0 if fault == "threshold ignored" else threshold):
            kept = without
    return kept


def options(rng: np.random.Generator, n: int) -> dict[str, Any]:
    alpha = rng.uniform(0.5, 2.0, n)
    found: dict[str, Any] = {
        "target_weights": tuple((alpha / alpha.sum()).tolist()),
        "loss_smoothing": float(rng.uniform(0.2, 0.9)),
        "threshold": float(rng.choice([0.0, 0.02, 0.1])),
        "kappa_bar": float(rng.choice([0.3, 0.7, 1.0])),
        "prior": tuple(rng.uniform(0.5, 2.0, 2).tolist()),
    }
    if rng.random() < 0.3:
        found["availability"] = tuple(rng.uniform(0.3, 0.9, n).tolist())
        found["correlation"] = tuple(rng.uniform(-0.3, 0.9, n).tolist())
    if rng.random() < 0.5:
        found["known_minima"] = 0.0
    return found


CA_FED = Implementation(run, FAULTS, options)
