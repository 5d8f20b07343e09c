"""Files of problems of weights: what is there, what has a default, and what is no field."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fltheory.weights.sizes_file import read_trade_off

WHOLE = "availability = [0.5, 0.25]\na = [1.0, 2.0]\nb = 3.0\nbias = 4.0\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "problem.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_targets_are_equal_and_the_total_is_one_unless_the_file_says_so(tmp_path: Path) -> None:
    found = read_trade_off(written(tmp_path, WHOLE))
    np.testing.assert_array_equal(found.availability, [0.5, 0.25])
    np.testing.assert_array_equal(found.target_weights, [0.5, 0.5])
    assert (found.b, found.bias, found.total) == (3.0, 4.0, 1.0)
    more = read_trade_off(written(tmp_path, WHOLE + "target_weights = [0.75, 0.25]\ntotal = 2.0\n"))
    np.testing.assert_array_equal(more.target_weights, [0.75, 0.25])
    assert more.total == 2.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file must have availability, a, b, bias, got nothing"),
        ("b = 1.0\na = [1.0]\n", "the file must have availability, bias, got b, a"),
        (WHOLE.replace("bias", "bais"), "the file has bias, got 'bais'"),
        (WHOLE + "totals = 1.0\n", "the file has total, got 'totals'"),
        (
            WHOLE + "colour = 1.0\n",
            "the file has availability, a, b, bias, target_weights, total, got 'colour'",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        read_trade_off(written(tmp_path, text))
