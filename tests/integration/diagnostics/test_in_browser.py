"""A person can look at what is kept: a real browser shows the pages and pictures, offline and without complaint."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import diagnosed_kernels as kernels
from chromium import Browser
from kept_kernels import Kept

# The colours that the timeline's canvas shows.
PIXELS = "(c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data)(document.getElementById('view'))"


def colours(png: bytes) -> set[bytes]:
    """The colours of the pixels of a PNG without alpha or with it, 8 bits for each."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, data, width, depth = 8, b"", 0, 0
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, depth = struct.unpack(">I", body[:4])[0], {2: 3, 6: 4}[body[9]]
        elif kind == b"IDAT":
            data += body
        at += 12 + length
    raw, stride = zlib.decompress(data), 1 + width * depth
    # Unfiltered rows are enough to tell a picture from an empty one.
    return {raw[row + 1 + i : row + 4 + i] for row in range(0, len(raw), stride) for i in range(0, stride - 4, depth)}


def test_the_timeline(browser: Browser, kept: Kept) -> None:
    browser.open(kept.run / "timeline.html")
    assert browser.evaluate("document.title") == "Timeline of joined"
    assert "tasks 3, dependencies 2" in browser.evaluate("document.getElementById('facts').textContent")
    names = "[...document.querySelectorAll('#kernels tbody tr')].map(r => r.cells[0].textContent).sort()"
    assert browser.evaluate(names) == ["join", "scale", "square"]
    assert browser.evaluate("timeline.slices.filter(s => s.args.task !== undefined).length") == 3
    assert browser.evaluate("timeline.flows.map(([a, b]) => [a.name, b.name]).sort()") == [
        ["scale", "join"],
        ["square", "join"],
    ]
    # Bars of several colours were painted.
    seen = "new Set(Array.from({length: d.length / 4}, (_, i) => d.slice(4 * i, 4 * i + 3).join())).size"
    assert browser.evaluate(f"(d => {seen})({PIXELS})") > 4


def test_a_click_tells_whom_a_task_waits_for(browser: Browser, kept: Kept) -> None:
    browser.open(kept.run / "timeline.html")
    place = browser.evaluate(
        "(() => { const b = document.getElementById('view').getBoundingClientRect(),"
        " p = timeline.place(timeline.slices.find(s => s.name === 'join')); return [b.left + p.x, b.top + p.y]; })()"
    )
    browser.click(*place)
    selected = "document.getElementById('selected').innerText"
    text = browser.evaluate(selected)
    assert "join #2" in text
    assert "diagnosed_kernels.py:" in text
    assert "scale #0" in text and "square #1" in text
    browser.click_on("#selected button")
    assert "Waited for by" in browser.evaluate(selected)
    assert browser.evaluate("document.querySelector('#selected td').textContent") == "scale #0"


def test_the_timeline_zooms_and_finds(browser: Browser, kept: Kept) -> None:
    browser.open(kept.run / "timeline.html", "#task=1")
    assert "square #1" in browser.evaluate("document.getElementById('selected').innerText")
    width = "timeline.place(timeline.slices.find(s => s.name === 'join')).x"
    before = browser.evaluate(width)
    browser.click_on("#nearer")
    assert browser.evaluate(width) != before
    browser.click_on("#fit")
    assert browser.evaluate(width) == before
    pixels = f"({PIXELS}).reduce((a, b) => (a * 31 + b) % 1000003, 0)"
    plain = browser.evaluate(pixels)
    browser.click_on("#kernels tbody tr")
    assert browser.evaluate(pixels) != plain


def test_the_graph(browser: Browser, kept: Kept) -> None:
    browser.open(kept.run / "dependencies.svg")
    labels = "[...document.querySelectorAll('g.node')].map(n => n.dataset.label)"
    assert browser.evaluate(labels) == ["scale #0", "square #1", "join #2"]
    boxes = browser.evaluate(
        "[...document.querySelectorAll('g.node rect')].map(r => { const b = r.getBoundingClientRect();"
        " return [b.left, b.top, b.width, b.height]; })"
    )
    assert all(width > 20 and height > 10 for _, _, width, height in boxes)
    assert boxes[0][1] == boxes[1][1] < boxes[2][1]
    assert browser.evaluate("document.querySelectorAll('path.edge').length") == 2
    assert len(colours(browser.screenshot())) > 3


def test_the_memory_map(browser: Browser, kept: Kept) -> None:
    browser.open(kept.folder / "report/memory.html")
    report = json.loads((kept.folder / "report/memory.json").read_text())
    drawn = browser.evaluate(
        "[...document.querySelectorAll('svg.memory')].map(s => [s.dataset.kernel, s.dataset.memory,"
        " [...s.querySelectorAll('rect.tile')].map(r => r.getBoundingClientRect().height > 1)])"
    )
    assert drawn == [
        [kernel["kernel"], memory["memory"], [True] * len(memory["buffers"])]
        for kernel in report["kernels"]
        for memory in kernel["memories"]
    ]
    assert f"FP32, {kernels.R * kernels.C * 4 // 1024} KiB" in browser.evaluate(
        "document.querySelector('rect.tile title').textContent"
    )
    placed = sum(len(kernel["placed"]) for kernel in report["kernels"])
    bars = "[...document.querySelectorAll('.bar div')].map(b => b.getBoundingClientRect().width > 1)"
    assert browser.evaluate(bars) == [True] * placed


def test_every_link_of_the_reports_leads_to_a_file(browser: Browser, kept: Kept) -> None:
    seen: set[Path] = set()
    pages = [kept.folder / "report/index.html", kept.run / "index.html"]
    for page in pages:
        browser.open(page)
        links = browser.evaluate("[...document.querySelectorAll('a')].map(a => decodeURI(new URL(a.href).pathname))")
        assert links
        for link in links:
            assert Path(link).is_file(), link
            seen.add(Path(link))
    assert {path.name for path in seen} >= {
        "memory.html",
        "compile.json",
        "09_after_Verify.py",
        "02_before_InferMemScope.mlir",
        "timeline.html",
        "dependencies.svg",
        "scope_stats.json",
        "scale.pto",
        "scale.cpp",
    }
