"""Word-sized pictures of truth and bound as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from markupsafe import Markup

from fltheory.claims.curves import BoundCurve

_WIDTH, _HEIGHT, _MARGIN = 120, 32, 3
_LEAST_SPAN = math.log(2.0)


def sparkline(curve: BoundCurve) -> Markup:
    """Return a curve as an SVG element with logarithmic axes; empty with fewer than 2 points.

    The truth is a solid line with its interval as a band, and the bound is a dashed line. A cross
    marks the first point at which the truth is above the bound. Values that are not positive are on
    the lower edge, and infinite values on the upper edge. The style sheet sets the colours.
    """
    if len(curve.values) < 2:
        return Markup("")
    scale = _PictureScale(curve)
    band = _polygon(scale, curve) if any(_is_wide(curve)) else Markup("")
    broken = _first_broken(curve)
    mark = Markup("") if broken is None else _cross(scale.point(broken, curve.judged[broken]))
    return Markup(
        '<svg class="spark" viewBox="0 0 {} {}" width="{}" height="{}" role="img" '
        'aria-label="{}">{}<polyline class="bound" points="{}"/>'
        '<polyline class="truth" points="{}"/>{}</svg>'
    ).format(
        _WIDTH,
        _HEIGHT,
        _WIDTH,
        _HEIGHT,
        description(curve),
        band,
        scale.line(curve.bound),
        scale.line(curve.judged),
        mark,
    )


def description(curve: BoundCurve) -> str:
    """Return a description of the sparkline in words."""
    broken = _first_broken(curve)
    place = "" if broken is None else f"{curve.variable} {curve.values[broken]:.0f}"
    where = place and f"; truth above bound at {place}"
    return (
        f"{curve.variable} {curve.values[0]:.0f} to {curve.values[-1]:.0f}: "
        f"truth {curve.judged[0]:.3g} to {curve.judged[-1]:.3g}, "
        f"bound {curve.bound[0]:.3g} to {curve.bound[-1]:.3g}{where}"
    )


def _first_broken(curve: BoundCurve) -> int | None:
    sides = zip(curve.judged, curve.judged_error, curve.bound, strict=True)
    above = (i for i, (truth, error, bound) in enumerate(sides) if truth - error > bound)
    return next(above, None)


def _is_wide(curve: BoundCurve) -> Iterator[bool]:
    """Yield, for each point, whether its interval is wide enough to be seen."""
    for truth, error in zip(curve.judged, curve.judged_error, strict=True):
        yield math.isfinite(error) and error > 0.01 * abs(truth)


class _PictureScale:
    """The positions of values in the picture."""

    def __init__(self, curve: BoundCurve) -> None:
        # A variable that may be zero (e.g. a growth) may have no logarithm.
        place = math.log if min(curve.values) > 0 else float
        self.across = [place(value) for value in curve.values]
        heights = [math.log(v) for v in (*curve.judged, *curve.bound) if 0 < v < math.inf]
        low, high = (min(heights), max(heights)) if heights else (0.0, 0.0)
        spare = max(0.0, _LEAST_SPAN - (high - low)) / 2
        self.low, self.high = low - spare, high + spare

    def point(self, index: int, value: float) -> tuple[float, float]:
        first, last = self.across[0], self.across[-1]
        x = (self.across[index] - first) / (last - first)
        y = (self._height(value) - self.low) / (self.high - self.low)
        return (
            _MARGIN + x * (_WIDTH - 2 * _MARGIN),
            _HEIGHT - _MARGIN - y * (_HEIGHT - 2 * _MARGIN),
        )

    def _height(self, value: float) -> float:
        if value <= 0:
            return self.low
        return min(max(math.log(value), self.low), self.high) if value < math.inf else self.high

    def line(self, values: Iterable[float]) -> str:
        points = (self.point(i, v) for i, v in enumerate(values) if not math.isnan(v))
        return " ".join(_shown(point) for point in points)


def _polygon(scale: _PictureScale, curve: BoundCurve) -> Markup:
    sides = list(zip(curve.judged, curve.judged_error, strict=True))
    upper = [scale.point(i, truth + error) for i, (truth, error) in enumerate(sides)]
    lower = [scale.point(i, truth - error) for i, (truth, error) in enumerate(sides)]
    points = " ".join(_shown(point) for point in (*upper, *reversed(lower)))
    return Markup('<polygon class="band" points="{}"/>').format(points)


def _cross(point: tuple[float, float]) -> Markup:
    x, y = point
    arms = f"M{x - 3:.1f} {y - 3:.1f}l6 6m0-6l-6 6"
    return Markup('<path class="broken" d="{}"/>').format(arms)


def _shown(point: tuple[float, float]) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"
