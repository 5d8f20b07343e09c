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
    largest = xp.max(gap, axis=1, keepdims=True)
    is_in = xp.astype(xp.take_along_axis(kept, order, axis=1), gap.dtype)
    inside = (is_in > 0) & (largest > 0)
    own = [of * is_in for of in (weight, weighted_gap, xp.ones_like(weight))]
    # Whoever is left weighs at least that much; where nobody is, nothing is decided by it.
    least_weight = xp.min(weight, axis=1, keepdims=True)

    def epsilon(share: Array, loss: Array) -> Array:
        return loss / share + kappa_bar**2 * largest * (1 - share) ** 2

    # A client's trial depends on those who went before it. All are tried at once, given a guess of
    # who goes, and again with what came out, until it is the guess: then each trial is the one
    # that comes in its turn. Each time at least one more of them is, counted from the first; in
    # practice a few times are enough.
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
    """Return what those before each place who stay, and all after it, have together.

    Nothing is subtracted from a total: where no gap is left, their sum is zero to the last bit,
    and a tie is a tie.
    """
    xp = array_namespace(own)
    nothing = xp.zeros_like(own[:, :1])
    before = xp.cumulative_sum(xp.concat([nothing, (own * stays)[:, :-1]], axis=1), axis=1)
    after = xp.concat([nothing, xp.flip(own[:, 1:], axis=1)], axis=1)
    return before + xp.flip(xp.cumulative_sum(after, axis=1), axis=1)
