"""Estimates of each client's availability and correlation from who has been present so far."""

from __future__ import annotations

from array_api_compat import array_namespace

from fltheory.algorithms.contract import Array, State


def first_counts(like: Array, n_clients: int) -> State:
    """Return the counts before the first round, for as many replicas as ``like`` has rows.

    ``present`` and ``absent`` count rounds, ``stayed`` and ``waited`` the rounds that repeat
    presence and absence; ``last`` is 1 for clients present in the last round. All are
    (replicas, n_clients).
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

    It is the matrix's trace less one. Each row has the prior of pi_hat, (n, m), so that
    rounds count as independent until transitions say otherwise.
    """
    was_present = counts["present"] - counts["last"]
    seen = counts["present"] + counts["absent"]
    xp = array_namespace(seen)
    was_absent = counts["absent"] - xp.where(seen > 0, 1 - counts["last"], xp.zeros_like(seen))
    stays = (counts["stayed"] + prior[0]) / (was_present + sum(prior))
    waits = (counts["waited"] + prior[1]) / (was_absent + sum(prior))
    return stays + waits - 1
