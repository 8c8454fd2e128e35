"""Writing ``report/`` of a program's output directory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from pypto.build.errors import BuildError
from pypto.build.layout import BINARY_MANIFEST, chips_of, read_config, write_file
from pypto.build.profile import CompileProfile
from pypto.build.report.memory_page import memory_page
from pypto.build.report.passes import OWN_DUMP, PASSES_FOLDER
from pypto.build.report.placement import placements
from pypto.codegen.memory_report import memory_report
from pypto.ir.nodes import Program
from pypto.runtime.diagnostics.pages import Html, link, page, table

REPORT_FOLDER = "report"
PTOAS_DUMPS = "ptoas_dump"


def clear_reports(directory: Path) -> None:
    """Remove what an earlier compilation into the directory left for people, so that what is there is of the next one.

    Raises:
        BuildError: the directory cannot be written.
    """
    try:
        for path in (directory / PASSES_FOLDER).glob("*.py"):
            if OWN_DUMP.fullmatch(path.name):
                path.unlink()
        for path in (directory / REPORT_FOLDER).glob("compile.json"):
            path.unlink()
        if (directory / PTOAS_DUMPS).is_dir():
            shutil.rmtree(directory / PTOAS_DUMPS)
    except OSError as error:
        raise BuildError(f"output directory {directory} cannot be written: {error}") from None


def write_report(directory: Path, program: Program, profile: CompileProfile | None) -> None:
    """Write the report of a compilation: memory, times if they were measured, and a page that links all there is.

    Args:
        directory: its output directory, generated at least.
        program: what code was generated from.
        profile: what was measured so far, for ``compile.json``; ``None`` to leave that out.

    Raises:
        OSError: the directory cannot be written.
    """
    config = read_config(directory)
    chips = chips_of(config)
    for chip, each in zip(chips, program.chips, strict=True):
        write_report(directory / chip, each, None)

    def write(name: str, text: str) -> None:
        write_file(directory, f"{REPORT_FOLDER}/{name}", text.encode())

    memory = None
    if not chips:
        memory = memory_report(program, config["backend_type"])
        _add_placements(directory, config, memory)
        write("memory.json", json.dumps(memory, indent=1) + "\n")
        write("memory.html", memory_page(memory))
    times = None
    if profile is not None:
        times = profile.record()
        write("compile.json", json.dumps(times, indent=1) + "\n")
    write("index.html", _index(directory, config, memory, times))


def _add_placements(directory: Path, config: Mapping[str, Any], memory: Mapping[str, Any]) -> None:
    """Tell the addresses of tiles where ptoas has chosen them."""
    codes = {kernel["name"]: directory / kernel["cpp"] for kernel in config["kernels"] if "cpp" in kernel}
    for kernel in memory["kernels"]:
        code = codes.get(kernel["kernel"])
        if code is not None and code.is_file():
            kernel["placed"] = placements(code.read_text(encoding="utf-8"))


def _index(
    directory: Path,
    config: Mapping[str, Any],
    memory: Mapping[str, Any] | None,
    times: Mapping[str, Any] | None,
) -> str:
    entry = config["entry"]
    state = "READY" if (directory / BINARY_MANIFEST).is_file() else "GENERATED"
    files: list[tuple[Html, str]] = [
        (link(f"../{chip}/{REPORT_FOLDER}/index.html", chip), "the report of a chip") for chip in chips_of(config)
    ]
    if memory is not None:
        files.append((link("memory.html", "memory.html"), "on-chip memory of each kernel"))
        files.append((link("memory.json", "memory.json"), "the same as data"))
    if times is not None:
        files.append((link("compile.json", "compile.json"), "where the time of the compilation went"))
    dumps = sorted(path.name for path in (directory / PASSES_FOLDER).glob("*.py"))
    files += [(link(f"../{PASSES_FOLDER}/{name}", name), "the program after this pass") for name in dumps]
    for path in sorted((directory / PTOAS_DUMPS).glob("*/*")):
        name = path.relative_to(directory).as_posix()
        files.append((link(f"../{name}", name), "what ptoas takes or makes"))
    runs = sorted((directory / "run").glob("run_*/index.html"))
    files += [(link(f"../{p.relative_to(directory).as_posix()}", p.parent.name), "diagnostics of a run") for p in runs]
    body = [
        f"<h1>{escape(entry)}</h1>",
        f'<p class="quiet">{state}, for {escape(config["backend_type"])} ({escape(config["execution_mode"])}), '
        f"run by {escape(config['runtime'])}.</p>",
        table(("File", "What it shows"), files),
    ]
    if memory is not None:
        columns = ("Id", "Kernel", "Core", "Operations", "Code", "On-chip memory")
        body += ["<h2>Kernels</h2>", table(columns, _kernels(directory, config, memory))]
    if times is not None:
        rows = [[stage["stage"], stage["name"], stage["ms"]] for stage in times["stages"]]
        body += ["<h2>Times</h2>", table(("Stage", "Of", "ms"), rows, caption="Tools run at the same time.")]
    return page(f"Report of {entry}", "\n".join(body))


def _kernels(directory: Path, config: Mapping[str, Any], memory: Mapping[str, Any]) -> list[list[object]]:
    use = {
        kernel["kernel"]: ", ".join(f"{m['memory']} {100 * m['peak'] / m['limit']:.1f} %" for m in kernel["memories"])
        for kernel in memory["kernels"]
    }
    rows: list[list[object]] = []
    for kernel in config["kernels"]:
        # What ptoas makes is there once the binaries are.
        there = [part for part in ("pto", "cpp", "source") if part in kernel and (directory / kernel[part]).is_file()]
        code = Html(", ".join(link(f"../{kernel[part]}", part) for part in there))
        name = kernel["name"]
        rows.append([kernel["id"], name, kernel["core"].upper(), len(kernel["ops"]), code, use.get(name, "")])
    return rows
