"""Programs with known optima: eigenvalues of random matrices, a line, and no point at all."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.worst_case.semidefinite import optimum

FREE = (np.zeros((0, 1)), np.zeros(0))
ANY = np.zeros((0, 1))


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_largest_shift_is_the_least_eigenvalue(size: int) -> None:
    """Its dual is the projection on the eigenvector: symmetric, of trace 1."""
    matrix = np.random.default_rng(size).normal(size=(size, size))
    matrix = matrix + matrix.T
    shift = (-np.eye(size)[None], matrix)
    found = optimum(np.array([-1.0]), equal=(ANY, np.zeros(0)), nonnegative=FREE, blocks=[shift])
    values, vectors = np.linalg.eigh(matrix)
    assert found is not None
    assert found.unknowns == pytest.approx([values[0]], abs=1e-9)
    assert found.duals[0] == pytest.approx(np.outer(vectors[:, 0], vectors[:, 0]), abs=1e-6)


def test_several_blocks_lines_and_signs() -> None:
    """x = 2 y, y <= 3, x <= 5 by a block of one, y <= sqrt(2) by one of two."""
    line, most = np.array([[1.0, -2.0]]), (np.array([[0.0, -1.0]]), np.array([3.0]))
    of_one = (np.array([[[-1.0]], [[0.0]]]), np.array([[5.0]]))
    turned = np.array([[0.0, 1.0], [1.0, 0.0]])
    of_two = (np.array([0 * turned, turned]), np.diag([2.0, 1.0]))
    for blocks, expected in (([of_one], 2.5), ([of_one, of_two], np.sqrt(2))):
        found = optimum(
            np.array([-1.0, 0.0]),
            equal=(line, np.zeros(len(line))),
            nonnegative=most,
            blocks=blocks,
        )
        assert found is not None
        assert found.unknowns == pytest.approx([2 * expected, expected], abs=1e-8)
        assert [len(dual) for dual in found.duals] == [len(fixed) for _, fixed in blocks]
        assert found.value == pytest.approx(-2 * expected, abs=1e-8)


def test_no_point_is_none() -> None:
    """x is at most -1 by the block, and not negative."""
    sign = (np.eye(1), np.zeros(1))
    block = (np.array([[[-1.0]]]), np.array([[-1.0]]))
    assert (
        optimum(np.array([1.0]), equal=(ANY, np.zeros(0)), nonnegative=sign, blocks=[block]) is None
    )
