"""The on-chip memory of kernels as a page: for each memory its tiles, over the operations for which they live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from pypto.runtime.diagnostics.pages import Html, page, table

_WIDTH, _HEIGHT, _LEFT, _TOP = 760, 240, 90, 14
_COLOURS = ("#a9d3f5", "#f6c89f", "#b9e3b4", "#e6b8e0", "#f3e08f", "#b8c4f0", "#f2b3b3", "#a8e0dc")
_STYLE = """
svg { display: block; margin: 6px 0 2px; }
svg text { font: 11px system-ui, "DejaVu Sans", sans-serif; }
rect.tile { stroke: #4a5462; stroke-width: 0.6; }
rect.tile:hover { stroke-width: 2; }
.bar { position: relative; width: 300px; height: 12px; margin-top: 4px; }
.bar { background: #f4f6f8; border: 1px solid #d5dae1; }
.bar div { position: absolute; top: 0; height: 100%; background: #6fa8dc; }
"""


def memory_page(report: Mapping[str, Any]) -> str:
    """The page for what `pypto.codegen.memory_report.memory_report` returns."""
    body = [
        f"<h1>On-chip memory of {escape(report['entry'])}</h1>",
        f'<p class="quiet">{escape(report["backend_type"])}. A box is a tile: from left to right it reaches from the '
        "operation that makes it to the last one that uses it, and it is as high as it is large.</p>",
        table(("Kernel", "Core", "Memory", "Peak bytes", "Limit", "Used"), list(_summary(report))),
    ]
    for kernel in report["kernels"]:
        body.append(
            f'<h2 id="{escape(kernel["kernel"])}">{escape(kernel["kernel"])} ({str(kernel["core"]).upper()})</h2>'
        )
        if not kernel["memories"]:
            body.append('<p class="quiet">No tiles.</p>')
        body += [_memory(kernel, memory) for memory in kernel["memories"]]
        if kernel.get("placed"):
            body.append(_placed(kernel["placed"], {m["memory"]: m["limit"] for m in kernel["memories"]}))
    return page(f"On-chip memory of {report['entry']}", "\n".join(body), style=_STYLE)


def _summary(report: Mapping[str, Any]) -> list[list[object]]:
    return [
        [
            kernel["kernel"],
            str(kernel["core"]).upper(),
            memory["memory"],
            memory["peak"],
            memory["limit"],
            _used(memory),
        ]
        for kernel in report["kernels"]
        for memory in kernel["memories"]
    ]


def _used(memory: Mapping[str, Any]) -> str:
    return f"{100 * memory['peak'] / memory['limit']:.1f} %"


def _memory(kernel: Mapping[str, Any], memory: Mapping[str, Any]) -> str:
    buffers = memory["buffers"]
    offsets = _offsets(buffers)
    whole = max(o + b["bytes"] for o, b in zip(offsets, buffers, strict=True))
    # A memory that is hardly used is shown in part, so that its tiles can be seen.
    shown = memory["limit"] if whole * 3 > memory["limit"] else whole * 3 // 2
    steps = max(kernel["steps"], 1)
    parts = [
        f'<svg class="memory" data-kernel="{escape(kernel["kernel"])}" data-memory="{escape(memory["memory"])}" '
        f'width="{_LEFT + _WIDTH + 10}" height="{_TOP + _HEIGHT + 24}" role="img">',
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_WIDTH}" height="{_HEIGHT}" fill="#f4f6f8" stroke="#d5dae1"/>',
        f'<text x="{_LEFT - 6}" y="{_TOP + 9}" text-anchor="end">{_size(shown)}</text>',
        f'<text x="{_LEFT - 6}" y="{_TOP + _HEIGHT}" text-anchor="end">0</text>',
        f'<text x="{_LEFT}" y="{_TOP + _HEIGHT + 16}">operation 1</text>',
        f'<text x="{_LEFT + _WIDTH}" y="{_TOP + _HEIGHT + 16}" text-anchor="end">operation {steps}</text>',
    ]
    for number, (offset, buffer) in enumerate(zip(offsets, buffers, strict=True)):
        x = _LEFT + _WIDTH * (buffer["first"] - 1) / steps
        width = max(_WIDTH * (buffer["last"] - buffer["first"] + 1) / steps, 2)
        height = _HEIGHT * buffer["bytes"] / shown
        y = _TOP + _HEIGHT - _HEIGHT * offset / shown - height
        parts.append(
            f'<rect class="tile" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'fill="{_COLOURS[number % len(_COLOURS)]}" data-tile="{escape(buffer["name"])}">'
            f"<title>{escape(_described(buffer))}</title></rect>"
        )
        name = escape(buffer["name"])
        if height > 11 and width > 7 * len(name):
            parts.append(f'<text x="{x + 4:.1f}" y="{y + height / 2 + 4:.1f}" pointer-events="none">{name}</text>')
    parts.append("</svg>")
    caption = f"{memory['memory']}: {_size(memory['peak'])} of {_size(memory['limit'])} at most ({_used(memory)})"
    rows = [
        [b["name"], "×".join(map(str, b["shape"])), b["dtype"], b["bytes"], b["first"], b["last"], _place(b)]
        for b in buffers
    ]
    columns = ("Tile", "Shape", "Type", "Bytes", "Made at", "Last used at", "Line")
    return "\n".join([*parts, table(columns, rows, caption=caption)])


def _placed(placed: Sequence[Mapping[str, Any]], limits: Mapping[str, int]) -> str:
    """Every tile at the address that ptoas gave it; tiles below each other share that memory in turn."""
    rows: list[list[object]] = []
    for tile in placed:
        end = tile["address"] + tile["bytes"]
        limit = max(limits.get(tile["memory"], end), end, 1)
        left, width = 100 * tile["address"] / limit, max(100 * tile["bytes"] / limit, 0.3)
        bar = Html(f'<div class="bar"><div style="left:{left:.2f}%;width:{width:.2f}%"></div></div>')
        shape = "×".join(map(str, tile["shape"]))
        rows.append([tile["memory"], tile["dtype"], shape, tile["address"], tile["bytes"], bar])
    rows.sort(key=lambda row: str(row[0]))
    columns = ("Memory", "Type", "Shape", "Address", "Bytes", "Place in the memory")
    return table(columns, rows, caption="Addresses in the code that ptoas made")


def _offsets(buffers: Sequence[Mapping[str, Any]]) -> list[int]:
    """Where each tile is drawn: at the lowest place that is free while it lives."""
    offsets: list[int] = []
    for at, buffer in enumerate(buffers):
        meets = sorted(
            (offsets[other], offsets[other] + buffers[other]["bytes"])
            for other in range(at)
            if buffers[other]["first"] <= buffer["last"] and buffer["first"] <= buffers[other]["last"]
        )
        lowest = 0
        for begin, end in meets:
            if begin - lowest >= buffer["bytes"]:
                break
            lowest = max(lowest, end)
        offsets.append(lowest)
    return offsets


def _described(buffer: Mapping[str, Any]) -> str:
    shape = ", ".join(map(str, buffer["shape"]))
    place = _place(buffer)
    return f"{buffer['name']} [{shape}] {buffer['dtype']}, {_size(buffer['bytes'])}" + (f", {place}" if place else "")


def _place(buffer: Mapping[str, Any]) -> str:
    return f"{buffer['function']}, line {buffer['line']}" if buffer.get("function") else ""


def _size(nbytes: int) -> str:
    return f"{nbytes / 1024:.4g} KiB" if nbytes >= 1024 else f"{nbytes} bytes"
