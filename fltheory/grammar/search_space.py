"""Search spaces that a statement brings along."""

from __future__ import annotations

from enum import Enum


class SearchSpace(Enum):
    """Settings that have a search of their own; without one, regimes are where a search begins."""

    SAFARI = "low-dimensional extremal instances of SAFARI"
    SAFARI_ONE_NOISE_LEVEL = (
        "low-dimensional extremal instances of SAFARI, one sigma bounding the noise of clients "
        "and of the server"
    )
