"""Recorded availability: shares by hand, its order kept, files read and refused."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from fltheory.participation import Trace

RECORDED = [[1, 0, 1], [1, 1, 0], [0, 1, 0], [1, 0, 1], [1, 0, 1]]


def test_probabilities_are_shares_of_rounds() -> None:
    trace = Trace(RECORDED)
    np.testing.assert_allclose(trace.marginals, [0.8, 0.4, 0.6], rtol=1e-15)
    together = [[0.8, 0.2, 0.6], [0.2, 0.4, 0.0], [0.6, 0.0, 0.6]]
    np.testing.assert_allclose(trace.pair_inclusions, together, rtol=1e-15)
    outcomes = {tuple(mask.astype(int).tolist()): share for share, mask in trace.outcomes()}
    assert outcomes == pytest.approx({(1, 0, 1): 0.6, (1, 1, 0): 0.2, (0, 1, 0): 0.2})
    assert trace.n_outcomes == 3
    assert trace.fixed_size is None
    assert not trace.independent
    assert Trace([[1, 1], [1, 1]]).independent
    assert Trace([[1, 0], [0, 1]]).fixed_size == 1
    assert repr(trace) == "Trace(5 rounds, 3 clients)"


def test_rounds_follow_in_their_order_and_begin_again() -> None:
    drawn = islice(Trace(RECORDED, start=3).masks(np.random.default_rng(0), 2), 7)
    expected = [RECORDED[index] for index in (3, 4, 0, 1, 2, 3, 4)]
    for masks, row in zip(drawn, expected, strict=True):
        np.testing.assert_array_equal(masks, [row, row])


def test_runs_begin_anywhere() -> None:
    """One of 4 rounds in 40 000 runs: counts within 8 deviations, a false alarm below 1e-12."""
    first = next(Trace(np.eye(4)).masks(np.random.default_rng(1), 40_000))
    assert np.abs(first.sum(axis=0) - 10_000).max() < 8 * np.sqrt(40_000 * 0.25 * 0.75)


def test_fitted_chains_have_the_shares_and_the_transitions() -> None:
    """Around the end, client 0 leaves once in 4 and comes once in 1, client 2 1/3 and 1/2."""
    fitted = Trace(RECORDED).as_on_off()
    np.testing.assert_allclose(fitted.marginals, [0.8, 0.4, 0.6], rtol=1e-15)
    np.testing.assert_allclose(fitted.stays, [3 / 4, 1 / 2, 2 / 3], rtol=1e-14)
    np.testing.assert_allclose(fitted.comes, [1.0, 1 / 3, 1 / 2], rtol=1e-14)
    assert Trace([[1, 1], [1, 0], [1, 0]]).as_on_off().correlation[0] == 0
    with pytest.raises(ValueError, match=r"correlation must be in \(-1, 1\), got -1 for client 1"):
        Trace([[1, 1], [1, 0]]).as_on_off()


def test_files_hold_the_same_record(tmp_path: Path) -> None:
    text, archive = tmp_path / "trace.csv", tmp_path / "trace.npz"
    text.write_text("\n".join(",".join(map(str, row)) for row in RECORDED) + "\n\n")
    np.savez(archive, masks=np.array(RECORDED, dtype=bool), other=np.eye(2))
    np.testing.assert_array_equal(Trace.from_csv(text).recorded, RECORDED)
    np.testing.assert_array_equal(Trace.from_npz(archive).recorded, RECORDED)
    assert Trace.from_npz(archive, "other", start=1).start == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,0\n1\n", r"path must have 2 entries in every line, got 1 in line 2"),
        ("1,0\n1,2\n", r"path must have entries 0 and 1, got '2' in line 2, column 2"),
        ("a,b\n1,0\n", r"path must have entries 0 and 1, got 'a' in line 1, column 1"),
        ("1,0\n\n1,\n", r"path must have entries 0 and 1, got '' in line 3, column 2"),
        ("", r"path must hold a line per round, got .*trace\.csv' without any"),
        (
            "1,0\n1,0\n",
            r"recorded must have every client participate at least "
            r"once, got client 1, who never does",
        ),
    ],
)
def test_bad_csv_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        Trace.from_csv(path)


def test_bad_npz_is_named(tmp_path: Path) -> None:
    path = tmp_path / "trace.npz"
    np.savez(path, seen=np.eye(2))
    with pytest.raises(ValueError, match="name must be one of seen, got 'masks'"):
        Trace.from_npz(path)
    for content in (b"", b"1,0\n", b"PK\x03\x04broken"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"path must be an NPZ file, got .*trace\.npz"):
            Trace.from_npz(path)
    array = tmp_path / "array.npy"
    np.save(array, np.eye(2))
    with pytest.raises(ValueError, match="path must be an NPZ file"):
        Trace.from_npz(array)
    for read in (Trace.from_npz, Trace.from_csv):
        with pytest.raises(ValueError, match="path must be an existing file"):
            read(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("recorded", "options", "message"),
    [
        ([[1, 0.5]], {}, r"recorded must be 0 or 1, got 0\.5 in row 0, column 1"),
        ([1, 0], {}, r"recorded must have shape \(rounds, N\), got \(2,\)"),
        ([[1], [1, 0]], {}, r"recorded must be a real array of shape \(rounds, N\)"),
        (
            [[1, 0], [1, 0]],
            {},
            r"recorded must have every client participate at least "
            r"once, got client 1, who never does",
        ),
        ([[1]], {"start": 1}, r"start must be a round below 1, got 1"),
    ],
)
def test_bad_records_are_named(recorded, options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Trace(recorded, **options)
