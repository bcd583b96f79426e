"""Pictures as SVG text: the same records give the same bytes on every machine.

Colours are chosen to be read on white and on dark pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from benchmarks.evidence.ranks import cliques

Array = NDArray[np.float64]

_INK, _OURS, _GREY, _BACK = "#222222", "#0b5fa5", "#777777", "#ffffff"
_FONT = 'font-family="Helvetica, Arial, sans-serif"'


def critical_difference_diagram(
    labels: Sequence[str], ranks: Array, difference: float, ours: Sequence[bool]
) -> str:
    """Return the diagram of average ranks: bars join what Nemenyi's test does not tell apart."""
    order = np.argsort(ranks, kind="stable")
    k = len(order)
    low, high = 1.0, float(max(k, 2))
    width, left, right, top, step = 820, 210, 210, 74, 20
    joined = cliques(ranks, difference)
    bars = 10 * len(joined) + 14
    rows = -(-k // 2)
    height = top + bars + step * rows + 16

    def at(rank: float) -> float:
        return left + (width - left - right) * (rank - low) / (high - low)

    parts = [_line(at(low), top, at(high), top, _INK, 1.4)]
    for tick in range(int(low), int(high) + 1):
        parts.append(_line(at(tick), top - 6, at(tick), top, _INK, 1.0))
        if k <= 14 or tick % 2 == 1:
            parts.append(_text(at(tick), top - 11, str(tick), "middle"))
    shown = min(difference, high - low)
    parts.append(_line(at(low), 26, at(low + shown), 26, _INK, 2.0))
    parts += [_line(at(x), 21, at(x), 31, _INK, 1.2) for x in (low, low + shown)]
    parts.append(_text(at(low), 15, f"critical difference {difference:.2f}", "start"))
    for place, method in enumerate(order):
        rank, first = float(ranks[method]), place < rows
        y = top + bars + step * (place if first else k - 1 - place)
        edge = left - 14 if first else width - right + 14
        colour = _OURS if ours[method] else _INK
        parts.append(
            f'<polyline points="{at(rank):.1f},{top} {at(rank):.1f},{y:.1f} {edge:.1f},{y:.1f}" '
            f'fill="none" stroke="{colour}" stroke-width="1.1"/>'
        )
        name = f"{labels[method]}  {rank:.2f}" if first else f"{rank:.2f}  {labels[method]}"
        shift = -5 if first else 5
        anchor = "end" if first else "start"
        parts.append(_text(edge + shift, y + 4, name, anchor, colour, ours[method]))
    ordered = np.sort(ranks)
    for i, (a, b) in enumerate(joined):
        y = top + 9 + 10 * i
        parts.append(_line(at(ordered[a]) - 4, y, at(ordered[b]) + 4, y, _INK, 4.0))
    return _svg(width, height, parts, "Average ranks with the critical difference of Nemenyi")


def scatter(
    labels: Sequence[str],
    x: Array,
    y: Array,
    ours: Sequence[bool],
    *,
    x_title: str,
    y_title: str,
) -> str:
    """Return points with names on two logarithmic axes, and a line along the best of them.

    The line joins the points that no other is at most as large as in both values.
    """
    width, height, left, right, top, bottom = 820, 470, 70, 30, 20, 56
    lx, ly = np.log10(x), np.log10(y)
    x_low, x_high = float(np.floor(lx.min() - 0.15)), float(np.ceil(lx.max() + 0.35))
    y_low, y_high = float(ly.min() - 0.06), float(ly.max() + 0.06)

    def at(a: float, b: float) -> tuple[float, float]:
        across = left + (width - left - right) * (a - x_low) / (x_high - x_low)
        return across, top + (height - top - bottom) * (y_high - b) / (y_high - y_low)

    parts = []
    for power in range(int(x_low), int(x_high) + 1):
        px, _ = at(power, y_low)
        parts.append(_line(px, top, px, height - bottom, "#dddddd", 1.0))
        parts.append(_text(px, height - bottom + 18, _number(10.0**power), "middle"))
    for value in _ticks(10**y_low, 10**y_high):
        _, py = at(x_low, float(np.log10(value)))
        parts.append(_line(left, py, width - right, py, "#dddddd", 1.0))
        parts.append(_text(left - 8, py + 4, _number(value), "end"))
    points = [at(float(a), float(b)) for a, b in zip(lx, ly, strict=True)]
    front = " ".join(f"{points[i][0]:.1f},{points[i][1]:.1f}" for i in pareto(x, y))
    parts.append(f'<polyline points="{front}" fill="none" stroke="#bbbbbb" stroke-width="1.6"/>')
    taken = [(px - 6, py - 6, px + 6, py + 6) for px, py in points]
    names = []
    for i in np.argsort(-ly, kind="stable"):
        px, py = points[i]
        colour = _OURS if ours[i] else _GREY
        box, shift = _place(
            px, py, 7.4 * len(labels[i]), taken, (left, top, width, height - bottom)
        )
        taken.append(box)
        level, before = py + 4 + shift, box[2] < px
        if abs(shift) > 9:
            parts.append(_line(px, py, box[2] if before else box[0], level - 4, colour, 0.7))
        parts.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="5" fill="{colour}"/>')
        place, anchor = (box[2] - 2, "end") if before else (box[0] + 2, "start")
        names.append(_text(place, level, labels[i], anchor, _OURS if ours[i] else _INK, ours[i]))
    parts += names
    parts.append(_text((left + width - right) / 2, height - 14, x_title, "middle"))
    parts.append(
        f'<text x="16" y="{height / 2:.0f}" {_FONT} font-size="13" fill="{_INK}" '
        f'text-anchor="middle" transform="rotate(-90 16 {height / 2:.0f})">{escape(y_title)}</text>'
    )
    return _svg(width, height, parts, f"{y_title} against {x_title}")


def pareto(x: Array, y: Array) -> list[int]:
    """Return the places of points that no other one betters in both values, by the first."""
    front: list[int] = []
    for i in np.lexsort((y, x)):
        if not front or y[i] < y[front[-1]]:
            front.append(int(i))
    return front


Box = tuple[float, float, float, float]


def _place(px: float, py: float, long: float, taken: Sequence[Box], room: Box) -> tuple[Box, float]:
    """Return the nearest free box for a name next to a point, and how far down it is."""
    tried = sorted(
        (abs(shift) + (10.0 if before else 0.0), shift, before)
        for shift in range(-96, 97, 3)
        for before in (False, True)
    )
    for _, shift, before in tried:
        begin = px - 8 - long if before else px + 8
        box = (begin, py + shift - 7.0, begin + long, py + shift + 7.0)
        inside = box[0] > room[0] and box[1] > room[1] and box[2] < room[2] and box[3] < room[3]
        if inside and not any(
            box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken
        ):
            return box, float(shift)
    return (px + 8, py - 7.0, px + 8 + long, py + 7.0), 0.0


def _ticks(low: float, high: float) -> list[float]:
    some = [m * 10.0**p for p in range(-3, 5) for m in (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0)]
    return [round(t, 6) for t in some if low <= t <= high]


def _number(value: float) -> str:
    return f"{value:g}"


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width:g}"/>'
    )


def _text(
    x: float, y: float, words: str, anchor: str, colour: str = _INK, bold: bool = False
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" {_FONT} font-size="13" fill="{colour}" '
        f'text-anchor="{anchor}"{weight} xml:space="preserve">{escape(words)}</text>'
    )


def _svg(width: float, height: float, parts: Sequence[str], title: str) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" role="img">'
    )
    back = f'<rect width="100%" height="100%" fill="{_BACK}"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", back, *parts, "</svg>", ""])
