"""Drawing a graph without circles in layers, as SVG: no tools, the same text every time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

_HEIGHT, _GAP_X, _GAP_Y, _MARGIN, _TOP = 30, 24, 46, 20, 64
_CHARACTER = 7.4  # width of a letter of the font below
_SWEEPS = 6


@dataclass(frozen=True)
class Node:
    """A box: its text, a class and a colour, and what is shown when it is pointed at."""

    label: str
    kind: str
    fill: str
    tooltip: str

    @property
    def width(self) -> float:
        return round(len(self.label) * _CHARACTER + 20, 1)


def draw(title: str, nodes: Sequence[Node], edges: Sequence[tuple[int, int]], legend: Sequence[tuple[str, str]]) -> str:
    """The drawing; every edge leads from a lower index to a higher one."""
    layers = _ordered(len(nodes), edges)
    places, width, height = _placed(nodes, layers)
    width = max(width, len(title) * 9 + 2 * _MARGIN, 420)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L8 4L0 8z" fill="#666"/></marker></defs>',
        f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>',
        f'<text x="{_MARGIN}" y="24" font-size="15" font-weight="bold">{escape(title)}</text>',
    ]
    x = float(_MARGIN)
    for name, fill in legend:
        parts.append(f'<rect x="{x:g}" y="36" width="12" height="12" fill="{fill}" stroke="#666"/>')
        parts.append(f'<text x="{x + 18:g}" y="46">{escape(name)}</text>')
        x += 40 + len(name) * _CHARACTER
    parts.append('<g class="edges" fill="none" stroke="#666">')
    for source, target in edges:
        (x0, y0), (x1, y1) = places[source], places[target]
        y0, bend = y0 + _HEIGHT, (y1 - y0 - _HEIGHT) / 2
        parts.append(
            f'<path class="edge" data-from="{source}" data-to="{target}" marker-end="url(#arrow)" '
            f'd="M{x0:g} {y0:g}C{x0:g} {y0 + bend:g} {x1:g} {y1 - bend:g} {x1:g} {y1:g}"/>'
        )
    parts.append('</g><g class="nodes">')
    for index, node in enumerate(nodes):
        x, y = places[index]
        parts.append(
            f'<g class="node {node.kind}" data-node="{index}" data-label={quoteattr(node.label)}>'
            f"<title>{escape(node.tooltip)}</title>"
            f'<rect x="{x - node.width / 2:g}" y="{y:g}" width="{node.width:g}" height="{_HEIGHT}" rx="4" '
            f'fill="{node.fill}" stroke="#555"/>'
            f'<text x="{x:g}" y="{y + 19:g}" text-anchor="middle">{escape(node.label)}</text></g>'
        )
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _ordered(count: int, edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Layers from top to bottom, each from left to right, so that edges lead down and cross little."""
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        before[target].append(source)
        after[source].append(target)
    depth = [0] * count
    for index in range(count):
        depth[index] = max((depth[other] + 1 for other in before[index]), default=0)
    layers: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for index in range(count):
        layers[depth[index]].append(index)
    position = [float(at) for at in range(count)]
    for layer in layers:
        _number(layer, position)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        neighbours = before if down else after
        for layer in layers if down else reversed(layers):
            wish = {
                index: sum(position[n] for n in neighbours[index]) / len(neighbours[index])
                if neighbours[index]
                else position[index]
                for index in layer
            }
            layer.sort(key=lambda index: (wish[index], index))
            _number(layer, position)
    return layers


def _number(layer: Sequence[int], position: list[float]) -> None:
    # Relative to the layer's length, so that places of layers of different lengths compare.
    for at, index in enumerate(layer):
        position[index] = (at + 0.5) / len(layer)


def _placed(
    nodes: Sequence[Node], layers: Sequence[Sequence[int]]
) -> tuple[dict[int, tuple[float, float]], float, float]:
    """Upper middle of each node, and the size of the drawing."""
    widths = [sum(nodes[index].width for index in layer) + _GAP_X * (len(layer) - 1) for layer in layers]
    whole = max(widths, default=0.0)
    places: dict[int, tuple[float, float]] = {}
    y = float(_TOP)
    for layer, width in zip(layers, widths, strict=True):
        x = _MARGIN + (whole - width) / 2
        for index in layer:
            places[index] = (round(x + nodes[index].width / 2, 1), y)
            x += nodes[index].width + _GAP_X
        y += _HEIGHT + _GAP_Y
    return places, whole + 2 * _MARGIN, y - _GAP_Y + _MARGIN
