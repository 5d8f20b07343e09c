"""The mean share that each of several independent clients has of the weight that is there."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.validation import FloatArray

# Gauss's rule is exact up to degree 47; exp(-60) = 9e-27 of the integrand is left after the last
# panel.
_NODES = 24
_FIRST_PANEL = 2.0**-6
_NOTHING_LEFT = 60.0


def mean_shares(availability: ArrayLike, weights: ArrayLike = 1.0) -> FloatArray:
    """Return ``E[w_k 1{k there} / sum_h w_h 1{h there}]``, (N,), for clients there independently.

    As ``1/x`` is the integral of ``exp(-t x)``, the share is an integral over t of a product of
    one factor a client, all of them positive. It takes time in proportion to N. The shares add up
    to the probability that anybody is there.

    Parameters
    ----------
    availability : array, (N,)
        Probabilities, in [0, 1].
    weights : array, (N,), or float
        Above 0.

    Examples
    --------
    >>> mean_shares([1.0, 0.5]).round(12).tolist()
    [0.75, 0.25]
    >>> mean_shares([1.0, 0.5], [1.0, 2.0]).round(12).tolist()
    [0.666666666667, 0.333333333333]
    """
    pi = validation.real_array("availability", availability, shape="(N,)")
    if pi.ndim != 1 or ((pi < 0) | (pi > 1)).any():
        raise ValueError(f"availability must be probabilities of shape (N,), got {pi!r}")
    w = validation.real_array("weights", weights, shape=f"({pi.size},)")
    if w.ndim and w.shape != pi.shape:
        raise ValueError(f"weights must have shape {pi.shape}, got {w.shape}")
    if (w <= 0).any():
        raise ValueError(f"weights must be above 0, got {w.min():g}")
    shares = np.zeros(pi.size)
    there = np.flatnonzero(pi)
    if there.size:
        shares[there] = _shares(pi[there], np.broadcast_to(w, pi.shape)[there])
    return shares


def _shares(pi: FloatArray, w: FloatArray) -> FloatArray:
    # Beyond the first panels the integrand falls like exp(-t sum w pi); where all may be away,
    # a tail is left that falls like exp(-t min w). Panels that double follow both.
    nodes, node_weights = np.polynomial.legendre.leggauss(_NODES)
    first, last = _FIRST_PANEL / float(w @ pi), _NOTHING_LEFT / float(w.min())
    panels = max(1, math.ceil(math.log2(last / first)))
    edges = np.concatenate([[0.0], first * 2.0 ** np.arange(panels + 1)])
    total = np.zeros(pi.size)
    for low, high in pairwise(edges):
        t = low + (high - low) / 2 * (nodes + 1)
        decay = np.exp(-np.outer(t, w))
        with np.errstate(divide="ignore"):
            # 1 - pi (1 - exp(-w t)) may be 0 in floats where a client is always there.
            logs = np.where(pi == 1, -np.outer(t, w), np.log1p(pi * np.expm1(-np.outer(t, w))))
        # All factors but the client's own.
        others = np.exp(logs.sum(axis=1, keepdims=True) - logs)
        total += (high - low) / 2 * (node_weights @ (decay * others))
    return np.asarray(w * pi * total)
