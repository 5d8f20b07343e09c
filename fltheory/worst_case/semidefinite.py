"""Semidefinite programs, solved by Clarabel.

A solver's own report is not trusted. A bound counts only once the checker has accepted its
multipliers in fractions, and a solver's failure proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

# Tolerances that are tried in order until the solver succeeds, and whether it scales the data
# first. When the solver makes no progress, scaling is usually the reason.
_ATTEMPTS = ((1e-11, True), (1e-11, False), (1e-9, False), (1e-7, True))
# Conditions of nearby points are nearly the same, so linear systems must be solved accurately. With
# the solver's defaults, optima were wrong by up to 4e-7.
_CARE = {
    "iterative_refinement_reltol": 1e-15,
    "iterative_refinement_abstol": 1e-15,
    "iterative_refinement_max_iter": 50,
}


IntArray: TypeAlias = NDArray[np.int64]
Block: TypeAlias = tuple[FloatArray, FloatArray]
"""A matrix that must be positive semidefinite: ``sum_k unknowns_k columns_k + fixed``.

The columns, (unknowns, n, n), and what is fixed, (n, n).
"""


@dataclass(frozen=True, eq=False)
class ProgramOptimum(ReadOnlyArrays):
    """A minimiser of a program's objective.

    Attributes
    ----------
    value : float
        Value of the objective.
    unknowns : array
    duals : list of arrays
        One matrix per block.
    """

    value: float
    unknowns: FloatArray
    duals: list[FloatArray]


def optimum(
    costs: FloatArray,
    *,
    equal: tuple[FloatArray, FloatArray],
    nonnegative: tuple[FloatArray, FloatArray],
    blocks: Sequence[Block],
    places: Sequence[IntArray] | None = None,
) -> ProgramOptimum | None:
    """Minimise ``costs @ unknowns`` as precisely as possible; return None if no point is found.

    Parameters
    ----------
    costs : array, (unknowns,)
    equal : tuple of arrays, (m, unknowns) and (m,)
        The matrix times the unknowns must equal the vector.
    nonnegative : tuple of arrays, (k, unknowns) and (k,)
        The matrix times the unknowns, plus the vector, must not be negative.
    blocks : sequence of Block
    places : sequence of arrays, optional
        The unknowns that each block's columns belong to. By default, these are all unknowns, in
        order.
    """
    (zero, values), (rows, offsets) = equal, nonnegative
    packed = [_packed(np.concatenate([columns, fixed[None]])) for columns, fixed in blocks]
    # The solver's own input format is used, because cvxpy took several times as long to produce it
    # as the solver takes.
    parts = [-part[:-1].T for part in packed]
    if places is not None:
        every = np.arange(len(costs))
        matrix = _spread([zero, -rows, *parts], [every, every, *places], len(costs))
    else:
        matrix = csc_array(np.vstack([zero, -rows, *parts]))
    bounds = np.concatenate([values, offsets, *(part[-1] for part in packed)])
    cones = [
        clarabel.ZeroConeT(len(zero)),
        clarabel.NonnegativeConeT(len(rows)),
        *(clarabel.PSDTriangleConeT(len(fixed)) for _, fixed in blocks),
    ]
    quadratic = csc_array((len(costs), len(costs)))
    found = _solved(quadratic, costs, matrix, bounds, cones)
    if found is None:
        return None
    ends = np.cumsum([part.shape[1] for part in packed])
    duals = np.split(np.array(found.z)[len(bounds) - ends[-1] :], ends[:-1])
    return ProgramOptimum(float(found.obj_val), np.array(found.x), [*map(_unpacked, duals)])


def _spread(parts: Sequence[FloatArray], places: Sequence[IntArray], count: int) -> Any:
    """Stack parts as one sparse matrix, with columns placed among all unknowns."""
    values, rows, columns, height = [], [], [], 0
    for part, own in zip(parts, places, strict=True):
        row, column = np.nonzero(part)
        values.append(part[row, column])
        rows.append(row + height)
        columns.append(own[column])
        height += len(part)
    found = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    return csc_array(found, shape=(height, count))


def _solved(*program: Any) -> Any:
    """Return the solver's first solution, or else the first approximate one, or else None."""
    nearly = None
    for attempt in _ATTEMPTS:
        found = clarabel.DefaultSolver(*program, _settings(*attempt)).solve()
        match str(found.status):
            case "Solved":
                return found
            case "PrimalInfeasible":
                break
            case "AlmostSolved":
                nearly = nearly or found
    return nearly


def _settings(precision: float, scaled: bool) -> clarabel.DefaultSettings:
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.equilibrate_enable = False, scaled
    tolerances = {f"tol_{name}": precision for name in ("gap_abs", "gap_rel", "feas")}
    for name, value in (tolerances | _CARE).items():
        setattr(settings, name, value)
    return settings


def _packed(matrices: FloatArray) -> FloatArray:
    """Return upper triangles, column by column, scaled to preserve matrix inner products."""
    column, row = np.tril_indices(matrices.shape[-1])
    symmetric = (matrices + matrices.transpose(0, 2, 1)) / 2
    return np.asarray(symmetric[:, row, column] * np.where(row == column, 1.0, np.sqrt(2)))


def _unpacked(triangle: FloatArray) -> FloatArray:
    """Return the matrix of which `_packed` made a row."""
    size = int(np.sqrt(2 * len(triangle)))
    column, row = np.tril_indices(size)
    matrix = np.zeros((size, size))
    matrix[row, column] = matrix[column, row] = triangle / np.where(row == column, 1.0, np.sqrt(2))
    return matrix
