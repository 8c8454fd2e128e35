#!/usr/bin/env python3
"""How long Bazel takes for many small kernels, against what the tools alone take.

    python tests/benchmarks/bazel_speed.py [--kernels 100] [--targets 10000] [--folder DIR] [--output FILE]

Makes a workspace with that many kernels below DIR (default: a temporary folder; removed at the end) and prints a table:
the tools alone (every command of ptoas and g++ of a sample of the kernels, as many at once as there are cores), a cold
build with and without persistent workers, a build with nothing to do, one edit, and the analysis of `--targets` kernel
targets. The floor is taken before and after the builds, and the load of the machine is printed with it: on a machine
that does other things, floors and builds both suffer, and the times of the processor (of Bazel's server and all that it
starts) say more than those that were waited. Nothing fails for being slow.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests/bazel"), str(_ROOT / "tools")]

from many_kernels import kernel, project, ran  # noqa: E402
from workspaces import Workspace  # noqa: E402

from pypto.build.assemble import assemble  # noqa: E402
from pypto.build.compile_ import compile_  # noqa: E402
from pypto.toolchain import current  # noqa: E402
from pypto.toolchain.tools import PrivateRoot  # noqa: E402

_CORES = len(os.sched_getaffinity(0))
_SAMPLE = 10
_LARGE = """\
load("@pypto//rules:defs.bzl", "pypto_kernel")
[
    pypto_kernel(
        name = "large_%d" % i,
        src = "//:kernel_0.py",
        backend_type = "Ascend910B",
        entry = "kernel_0",
        module = "kernel_0",
    )
    for i in range({count})
]
"""


@contextlib.contextmanager
def timed_commands() -> Iterator[list[tuple[float, float]]]:
    """When every command of a tool began and ended, so that nothing of pypto's own is in it."""
    spans: list[tuple[float, float]] = []
    plain = PrivateRoot.run

    def timed(self: PrivateRoot, *arguments: Any, **named: Any) -> str:
        started = time.perf_counter()
        try:
            return plain(self, *arguments, **named)
        finally:
            spans.append((started, time.perf_counter()))

    PrivateRoot.run = timed  # type: ignore[method-assign]
    try:
        yield spans
    finally:
        PrivateRoot.run = plain  # type: ignore[method-assign]


def one_alone(generated: Sequence[Path], scratch: Path) -> float:
    """Median seconds in which a command of ptoas or g++ ran for a kernel that has all cores to itself."""
    found = []
    for folder in generated:
        with timed_commands() as spans:
            assemble(folder, current(), scratch / "assembled", jobs=_CORES)
            compile_(folder, scratch / "assembled", current(), scratch / "ready", jobs=_CORES)
        shutil.rmtree(scratch)
        total, end = 0.0, 0.0
        for started, ended in sorted(spans):
            total += max(0.0, ended - max(started, end))
            end = max(end, ended)
        found.append(total)
    return statistics.median(found)


def tools_alone(generated: Sequence[Path], scratch: Path) -> tuple[float, float]:
    """Seconds per kernel of the commands of ptoas and g++: waited with all cores busy, and of the processor."""
    toolchain = current()

    def one(item: tuple[int, Path]) -> None:
        number, folder = item
        assemble(folder, toolchain, scratch / f"{number}.assembled", jobs=1)
        compile_(folder, scratch / f"{number}.assembled", toolchain, scratch / f"{number}.ready", jobs=1)

    before = os.times()
    with timed_commands() as spans, ThreadPoolExecutor(_CORES) as pool:
        list(pool.map(one, enumerate(generated)))
    after = os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    shutil.rmtree(scratch)
    return sum(ended - started for started, ended in spans) / len(generated) / _CORES, processor / len(generated)


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def processor(workspace: Workspace) -> float:
    """Seconds of the processor that the Bazel server and all that it started have taken, running workers included."""
    listed = workspace.run("info", "server_pid", stdout_only=True).succeeded()
    server = int(listed.output.split()[-1])
    children: dict[int, list[int]] = {}
    taken: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(") ")[2].split()
            pid = int(path.parent.name)
            children.setdefault(int(fields[1]), []).append(pid)
            taken[pid] = sum(map(int, fields[11:15]))  # its own time, and that of children that ended
    total, todo = 0, [server]
    while todo:
        pid = todo.pop()
        total += taken.get(pid, 0)
        todo += children.get(pid, [])
    return total / os.sysconf("SC_CLK_TCK")


def measure(workspace: Workspace, count: int, targets: int) -> dict[str, Any]:
    """Every figure, by name; times in seconds."""
    found: dict[str, Any] = {"cores": _CORES, "kernels": count, "load_average": os.getloadavg()[0]}
    everything = "//:all"

    def build(*flags: str) -> float:
        return seconds(lambda: workspace.build(*flags, everything))

    workspace.build("--nobuild", everything)  # fetches the tools
    workspace.build("--output_groups=generated", *(f"//:kernel_{number}" for number in range(min(_SAMPLE, count))))
    sample = [workspace.output(f"kernel_{number}.pypto/generated") for number in range(min(_SAMPLE, count))]
    copies = workspace.folder.parent / "sample"
    addends = (f"{number / 1024}" for number in itertools.count(1))  # each a number of its own in FP32
    kept = [Path(shutil.copytree(path, copies / str(number))) for number, path in enumerate(sample)]
    scratch = workspace.folder.parent / "scratch"
    floors = [tools_alone(kept, scratch)]
    for name, flags in (("cold", ()), ("cold_workers", ("--config=worker",))):
        workspace.run("clean").succeeded()
        before = processor(workspace)
        found[name] = build(*flags)
        found[f"{name}_cpu"] = processor(workspace) - before
        floors.append(tools_alone(kept, scratch))
    for name, flags in (("", ()), ("_workers", ("--config=worker",))):
        build(*flags)
        found[f"no_op{name}"] = statistics.median(build(*flags) for _ in range(5))
        edits = []
        for number in range(min(3, count)):
            (workspace.folder / f"kernel_{number}.py").write_text(kernel(number, next(addends)))
            edits.append(build(*flags))
        found[f"one_edit{name}"] = statistics.median(edits)
        (workspace.folder / "kernel_0.py").write_text(kernel(0, next(addends)))
        found["actions_of_one_edit"] = dict(sorted(ran(workspace, *flags, everything).items()))
    found["one_alone"] = one_alone(kept[:3], scratch)
    found["tools_per_kernel"] = statistics.median(floor for floor, _ in floors)
    found["tools_cpu_per_kernel"] = statistics.median(cpu for _, cpu in floors)
    found["tools_of_all"] = found["tools_per_kernel"] * count
    found["tools_cpu_of_all"] = found["tools_cpu_per_kernel"] * count
    for name in ("cold", "cold_workers"):
        found[f"{name}_cpu_overhead"] = found[f"{name}_cpu"] / found["tools_cpu_of_all"] - 1
    found["overhead"] = found["cold"] / found["tools_of_all"] - 1
    found["overhead_workers"] = found["cold_workers"] / found["tools_of_all"] - 1
    if targets:
        large = workspace.folder / "large"
        large.mkdir()
        with open(workspace.folder / "BUILD.bazel", "a") as build:
            build.write('exports_files(["kernel_0.py"])\n')
        (large / "BUILD.bazel").write_text(_LARGE.format(count=targets))
        found["targets"] = targets
        found["analysis"] = seconds(lambda: workspace.build("--nobuild", "//large:all"))
        found["analysis_again"] = seconds(lambda: workspace.build("--nobuild", "//large:all"))
    found["load_average_after"] = os.getloadavg()[0]
    return found


def table(found: dict[str, Any]) -> str:
    """The figures as a Markdown table."""
    count = found["kernels"]
    rows = [
        (f"ptoas and g++ of {count} kernels alone, on {found['cores']} cores", found["tools_of_all"]),
        ("    of one kernel, on all cores", found["tools_per_kernel"]),
        ("    of one kernel, processor time", found["tools_cpu_per_kernel"]),
        (f"cold build of {count} kernels ({found['overhead']:+.0%})", found["cold"]),
        (f"cold build in workers ({found['overhead_workers']:+.0%})", found["cold_workers"]),
        ("processor time: the tools alone", found["tools_cpu_of_all"]),
        (f"processor time: cold build ({found['cold_cpu_overhead']:+.0%})", found["cold_cpu"]),
        (f"processor time: in workers ({found['cold_workers_cpu_overhead']:+.0%})", found["cold_workers_cpu"]),
        ("nothing to do, warm server", found["no_op"]),
        ("nothing to do, workers", found["no_op_workers"]),
        ("ptoas and g++ of one kernel, with all cores to itself", found["one_alone"]),
        ("one kernel edited", found["one_edit"]),
        ("one kernel edited, workers", found["one_edit_workers"]),
    ]
    if "analysis" in found:
        rows.append((f"analysis of {found['targets']} kernel targets", found["analysis"]))
        rows.append(("    again", found["analysis_again"]))
    lines = ["| what | seconds |", "| --- | ---: |", *(f"| {name} | {value:.2f} |" for name, value in rows)]
    lines.append("")
    actions = ", ".join(f"{name} {times}" for name, times in found["actions_of_one_edit"].items())
    lines.append(
        f"load {found['load_average']:.1f} to {found['load_average_after']:.1f}; actions of one edit: {actions}"
    )
    return "\n".join(lines)


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--kernels", type=int, default=100, help="how many kernels (default: 100)")
    ask.add_argument("--targets", type=int, default=10000, help="kernel targets to analyse (default: 10000; 0: none)")
    ask.add_argument("--folder", type=Path, help="folder to work in (default: a temporary one)")
    ask.add_argument("--output", type=Path, help="file for the figures as JSON")
    given = ask.parse_args()
    base = Path(tempfile.mkdtemp(prefix="pypto-bazel-speed-", dir=given.folder))
    workspace = project(base / "many", given.kernels)
    try:
        found = measure(workspace, given.kernels, given.targets)
    finally:
        workspace.remove()
        shutil.rmtree(base, ignore_errors=True)
    print(table(found))
    if given.output:
        given.output.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
