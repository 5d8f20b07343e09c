"""CA-Fed's greedy exclusion of clients: the function get of its Algorithm 1."""

from __future__ import annotations

from array_api_compat import array_namespace

from fltheory.algorithms.contract import Array


def kept_after_exclusion(
    kept: Array,
    alpha: Array,
    gap: Array,
    order_by: Array,
    *,
    threshold: float,
    kappa_bar: float,
) -> Array:
    """Return who is left once clients are tried for exclusion in descending ``order_by``.

    With ``q_k = alpha_k / pi_k`` for those kept and 0 for the others, the importance
    ``pi_k q_k / sum_h pi_h q_h`` is alpha conditioned on those kept: with S their share of
    alpha, the total variation from alpha is 1 - S, and

    ``epsilon = sum_kept alpha_k gap_k / S + kappa_bar^2 (1 - S)^2 max_k gap_k``.

    A client goes where this lowers epsilon by at least ``threshold``, and is then gone for
    those tried after it.

    Parameters
    ----------
    kept : array of bool, (replicas, N)
        Who is still kept.
    alpha : array, (1, N)
        Target weights.
    gap : array, (replicas, N)
        ``F_hat_k - F_hat_k^*``.
    order_by : array, (replicas, N)
        rho; of equals, the client of lower index is tried first.
    threshold : float
        tau.
    kappa_bar : float
        Its square weighs the bias.

    Notes
    -----
    Follows lines 16 to 27 of Algorithm 1; differs in three ways, where the lines as printed
    cannot be meant. ``q^+`` is q with the tried client's entry set to zero (the lines never
    say what it starts from, or that a refused trial is taken back). A client that alone is
    left stays, since no importance is defined without any. And where no gap is above zero
    nobody goes: in a first round, where all are zero, epsilon is 0 whoever is kept, and with
    tau = 0 the lines would exclude everybody.
    """
    xp = array_namespace(gap)
    order = xp.argsort(-order_by, axis=1, stable=True)
    weight = xp.take_along_axis(alpha + xp.zeros_like(gap), order, axis=1)
    weighted_gap = weight * xp.take_along_axis(gap, order, axis=1)
    largest = xp.max(gap, axis=1)
    is_in = xp.astype(xp.take_along_axis(kept, order, axis=1), gap.dtype)
    left = [is_in[:, place] for place in range(is_in.shape[1])]
    share = xp.sum(weight * is_in, axis=1)
    loss = xp.sum(weighted_gap * is_in, axis=1)
    count = xp.sum(is_in, axis=1)
    bias_factor = kappa_bar**2 * largest
    epsilon = loss / share + bias_factor * (1 - share) ** 2
    one, least_weight = xp.ones_like(share), xp.min(weight, axis=1)
    for place, inside in enumerate(left):
        may_go = (inside > 0) & (count > 1) & (largest > 0)
        # Whoever is left weighs at least that much; a difference can round to zero.
        other_share = xp.where(may_go, xp.maximum(share - weight[:, place], least_weight), one)
        other_loss = loss - weighted_gap[:, place]
        without = other_loss / other_share + bias_factor * (1 - other_share) ** 2
        goes = may_go & (epsilon - without >= threshold)
        left[place] = inside * ~goes
        share = xp.where(goes, other_share, share)
        loss = xp.where(goes, other_loss, loss)
        epsilon = xp.where(goes, without, epsilon)
        count = count - xp.astype(goes, gap.dtype)
    back = xp.argsort(order, axis=1, stable=True)
    return xp.take_along_axis(xp.stack(left, axis=1), back, axis=1) > 0
