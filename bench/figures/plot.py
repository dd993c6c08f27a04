"""Plots as SVG, without a library: bars with their ranges and goals, and lines over logarithmic axes. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 210, 50, 50
BAR_HEIGHT, BAR_LEFT = 26, 330
COLOURS = ("#1b6ca8", "#c8553d", "#588b8b", "#8a5a83", "#d19c1d", "#555555")
INK, GRID = "#222222", "#dddddd"


class Bar(NamedTuple):
    """One figure: its median, also as a text, its range, and a goal if there is one."""

    label: str
    text: str
    median: float
    least: float
    most: float
    goal: float | None = None


Points = Sequence[tuple[float, float]]


def bars(title: str, found: Sequence[Bar]) -> str:
    """Horizontal bars; thin lines are ranges, dashed ones goals."""
    longest = max([1e-9, *(each.most for each in found), *(each.goal or 0 for each in found)])
    scale = (WIDTH - BAR_LEFT - 80) / longest
    height = TOP + BAR_HEIGHT * len(found) + 16
    parts = [_text(20, 28, title, "start", 16)]
    for number, each in enumerate(found):
        top = TOP + number * BAR_HEIGHT
        middle = top + BAR_HEIGHT / 2
        end = BAR_LEFT + each.median * scale
        parts.append(_text(BAR_LEFT - 8, middle + 4, each.label, "end"))
        parts.append(
            f'<rect x="{BAR_LEFT}" y="{top + 4}" width="{max(1, end - BAR_LEFT):.1f}" height="{BAR_HEIGHT - 8}" '
            f'fill="{COLOURS[0]}"/>'
        )
        parts.append(_line((BAR_LEFT + each.least * scale, middle), (BAR_LEFT + each.most * scale, middle), INK))
        if each.goal is not None:
            at = BAR_LEFT + each.goal * scale
            parts.append(_line((at, top + 1), (at, top + BAR_HEIGHT - 1), COLOURS[1], dashed=True))
        parts.append(_text(BAR_LEFT + each.most * scale + 8, middle + 4, each.text, "start"))
    return _svg(height, parts)


def lines(title: str, axes: tuple[str, str], series: Mapping[str, Points]) -> str:
    """A line for each series; both axes are logarithmic, so that values have to be above 0."""
    points = [(x, max(y, 1e-3)) for each in series.values() for x, y in each]
    x_axis, y_axis = (_Axis.over([point[which] for point in points]) for which in (0, 1))
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [_text(20, 28, title, "start", 16)]

    def place(x: float, y: float) -> tuple[float, float]:
        return LEFT + x_axis.share(x) * (right - LEFT), bottom - y_axis.share(max(y, 1e-3)) * (bottom - TOP)

    for tick in y_axis.ticks():
        _, y = place(x_axis.low, tick)
        parts += [_line((LEFT, y), (right, y), GRID), _text(LEFT - 6, y + 4, f"{tick:,g}", "end")]
    for tick in x_axis.ticks():
        x, _ = place(tick, y_axis.low)
        parts += [_line((x, TOP), (x, bottom), GRID), _text(x, bottom + 18, f"{tick:,g}", "middle")]
    parts.append(_text((LEFT + right) / 2, HEIGHT - 10, axes[0], "middle"))
    parts.append(_text(LEFT, TOP - 8, axes[1], "start"))
    for number, (name, found) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        placed = [place(x, y) for x, y in sorted(found)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
        parts.append(f'<rect x="{right + 14}" y="{TOP + number * 20}" width="12" height="12" fill="{colour}"/>')
        parts.append(_text(right + 32, TOP + number * 20 + 11, name, "start"))
    return _svg(HEIGHT, parts)


class _Axis(NamedTuple):
    low: float
    high: float

    @classmethod
    def over(cls, values: Sequence[float]) -> _Axis:
        """From a power of ten to another."""
        low, high = (10.0 ** math.floor(math.log10(min(values))), 10.0 ** math.ceil(math.log10(max(values))))
        return cls(low, high if high > low else low * 10)

    def share(self, value: float) -> float:
        """Return where a value is, from 0 to 1."""
        return math.log10(value / self.low) / math.log10(self.high / self.low)

    def ticks(self) -> list[float]:
        """Powers of ten."""
        first, last = round(math.log10(self.low)), round(math.log10(self.high))
        return [10.0**power for power in range(first, last + 1)]


def _line(start: tuple[float, float], end: tuple[float, float], colour: str, *, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="3 2" stroke-width="2"' if dashed else ""
    (x1, y1), (x2, y2) = start, end
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dash}/>'


def _text(x: float, y: float, text: str, anchor: str, size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{INK}">{escape(text)}</text>'


def _svg(height: float, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
        f'height="{height:.0f}" font-family="sans-serif">'
    )
    return "\n".join((head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>", ""))
