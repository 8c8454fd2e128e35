"""The tasks of a run and who waited for whom, as a graph in DOT and SVG."""

from __future__ import annotations

from dataclasses import dataclass

from pypto.runtime.diagnostics.layered import Node, draw
from pypto.runtime.diagnostics.trace import RunTrace

MOST_NODES = 600
"""A drawing with more nodes than this shows one node for all tasks of a kernel at one place."""

_FILL = {"aic": "#f6c89f", "aiv": "#a9d3f5"}


@dataclass(frozen=True)
class Graph:
    """What is drawn: nodes in a fixed order, and pairs of their indices."""

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[tuple[int, int], ...]


def task_graph(trace: RunTrace) -> Graph:
    """One node for each task; dependencies that follow from others are left out."""
    index = {task.number: at for at, task in enumerate(trace.tasks)}
    edges = [(index[a], index[b]) for a, b in trace.edges if a in index and b in index]
    nodes = tuple(
        Node(task.label, task.core, _FILL[task.core], f"{task.label} ({task.core.upper()}) {task.line}".rstrip())
        for task in trace.tasks
    )
    return Graph(f"{trace.entry}: {len(nodes)} tasks", nodes, _reduced(len(nodes), edges))


def kernel_graph(trace: RunTrace) -> Graph:
    """One node for each kernel at one place of the entry, for runs of too many tasks to look at."""
    names: dict[tuple[str, str, str], int] = {}
    counts: list[int] = []
    node_of: dict[int, int] = {}
    for task in trace.tasks:
        at = names.setdefault((task.kernel, task.core, task.line), len(names))
        if at == len(counts):
            counts.append(0)
        counts[at] += 1
        node_of[task.number] = at
    pairs = {(node_of[a], node_of[b]) for a, b in trace.edges if a in node_of and b in node_of}
    nodes = tuple(
        Node(
            f"{name} ×{counts[at]}", core, _FILL[core], f"{counts[at]} tasks of {name} ({core.upper()}) {line}".rstrip()
        )
        for (name, core, line), at in names.items()
    )
    # A kernel whose tasks wait for each other, or for tasks submitted later in the text, would make a circle.
    forward = tuple(sorted((a, b) for a, b in pairs if a < b))
    return Graph(f"{trace.entry}: {len(trace.tasks)} tasks of {len(nodes)} kernels", nodes, forward)


def dot(trace: RunTrace) -> str:
    """All tasks and all dependencies in the language of Graphviz."""
    lines = [
        f"digraph {_quoted(trace.entry)} {{",
        "  rankdir=TB;",
        '  node [shape=box, style=filled, fontname="sans"];',
    ]
    for task in trace.tasks:
        tooltip = f"{task.core.upper()} {task.line}".rstrip()
        lines.append(
            f"  t{task.number} [label={_quoted(task.label)}, fillcolor={_quoted(_FILL[task.core])}, "
            f"tooltip={_quoted(tooltip)}];"
        )
    lines += [f"  t{source} -> t{target};" for source, target in trace.edges]
    return "\n".join([*lines, "}", ""])


def svg(trace: RunTrace) -> str:
    """A drawing that needs nothing else: tasks in layers, those that wait below those they wait for."""
    graph = task_graph(trace) if len(trace.tasks) <= MOST_NODES else kernel_graph(trace)
    legend = (("AIC: matrix core", _FILL["aic"]), ("AIV: vector core", _FILL["aiv"]))
    return draw(graph.title, graph.nodes, graph.edges, legend)


def _reduced(count: int, edges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The transitive reduction of edges that all lead to higher indices."""
    after: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        after[source].append(target)
    reaches = [0] * count  # bits: whoever is reached
    kept: list[tuple[int, int]] = []
    for source in range(count - 1, -1, -1):
        for target in sorted(set(after[source])):
            if reaches[source] >> target & 1:
                continue
            kept.append((source, target))
            reaches[source] |= reaches[target] | 1 << target
    return tuple(sorted(kept))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
