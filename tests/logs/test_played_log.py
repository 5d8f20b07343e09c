"""A log as participation."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from fltheory.logs import AvailabilityLog
from fltheory.logs import played_log as module
from fltheory.logs.played_log import PlayedLog
from fltheory.participation import Trace

RNG = np.random.default_rng(3)
THERE = RNG.random((40, 5)) < [0.9, 0.5, 0.2, 0.5, 0.0]
LOG = AvailabilityLog.from_masks(THERE)


@pytest.mark.parametrize("block", [1, 7, 40, 1024])
def test_rounds_are_the_logs(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    whole = list(PlayedLog(LOG).masks(RNG, 3))
    np.testing.assert_array_equal(whole, np.repeat(THERE[:, None], 3, axis=1))
    later = [who[0] for who in PlayedLog(LOG, first_round=33).masks(RNG, 1)]
    np.testing.assert_array_equal(later, THERE[33:])
    again = PlayedLog(LOG, first_round=33, repeat=True).masks(RNG, 1)
    np.testing.assert_array_equal(
        [who[0] for who in islice(again, 90)],
        np.concatenate([THERE[33:], THERE, THERE, THERE])[:90],
    )


def test_how_many_rounds_are_left() -> None:
    assert PlayedLog(LOG, first_round=39).rounds_left == 1
    assert PlayedLog(LOG, first_round=39, repeat=True).rounds_left == np.inf
    for first in (-1, 40):
        with pytest.raises(ValueError, match=rf"first_round must be .*, got {first}$"):
            PlayedLog(LOG, first_round=first)


def test_shares_are_a_traces_and_of_the_whole_log() -> None:
    """`Trace` refuses the client that is never there, and is the source for the others."""
    played, trace = PlayedLog(LOG, first_round=12), Trace(THERE[:, :4])
    np.testing.assert_allclose(played.marginals, [*trace.marginals, 0])
    np.testing.assert_allclose(played.pair_inclusions[:4, :4], trace.pair_inclusions)
    assert not played.pair_inclusions[4].any()
    np.testing.assert_allclose(played.correlation, [*trace.as_on_off().correlation, 0])
    assert played.n_outcomes == trace.n_outcomes
    ours = {tuple(who[:4].tolist()): share for share, who in played.outcomes()}
    assert ours == {tuple(who.tolist()): share for share, who in trace.outcomes()}
    assert played.fixed_size is None
    assert not played.independent


def test_nothing_but_one_round_over_and_over_is_independent() -> None:
    same = PlayedLog(AvailabilityLog.from_masks([[1, 0, 1]] * 3))
    assert (same.independent, same.fixed_size, same.n_outcomes) == (True, 2, 1)
    turns = PlayedLog(AvailabilityLog.from_masks([[1, 0], [0, 1]]))
    assert (turns.independent, turns.fixed_size, turns.n_outcomes) == (False, 1, 2)
