"""Random bodies of kernels over the names of `kernel_texts.PARAMETERS`; most of them are correct."""

from __future__ import annotations

import random

FIRST = "v = a * 2\nk = 0\nc = n\nt = pl.load(a, [0, 0], [64, 64])\nu = b * 1\ni = n + 1\n"
LAST = "\nout[:] = t + u"


def body(seed: int) -> str:
    """The body for a seed: loops, conditions, rebinding, scalar and tile arithmetic."""
    return FIRST + "\n".join(_statements(random.Random(seed), 0)) + LAST


def body_with_ends(seed: int) -> str:
    """A body in which some loops have ``while``, ``break`` and ``continue``."""
    r = random.Random(seed)
    lines = _statements(r, 0)
    for start in [number for number, line in enumerate(lines) if line.lstrip().startswith("for ")][::-1]:
        inner = " " * (len(lines[start]) - len(lines[start].lstrip()) + 4)
        end = next((n for n in range(start + 1, len(lines)) if not lines[n].startswith(inner)), len(lines))
        places = [n for n in range(start + 1, end) if lines[n][len(inner)] not in " e"]
        at = r.choice([*places, end])
        lines[at:at] = [f"{inner}if {_condition(r)}:", f"{inner}    {r.choice(['break', 'continue'])}"]
        if r.random() < 0.3:
            outer = inner[4:]
            lines[start : start + 1] = [f"{outer}w{start} = 0", f"{outer}while w{start} < {r.choice(['n', '4'])}:"]
            lines.insert(start + 2, f"{inner}w{start} += 1")
    return FIRST + "\n".join(lines) + LAST


def _scalar(r: random.Random, depth: int = 0) -> str:
    kind = r.random()
    if depth > 2 or kind < 0.5:
        return r.choice(["n", "i", "k", "3", "16", "1", "c"])
    left, right = _scalar(r, depth + 1), _scalar(r, depth + 1)
    if kind < 0.85:
        return f"({left} {r.choice(['+', '-', '*', '//', '%'])} {right})"
    if kind < 0.95:
        return f"pl.{r.choice(['min', 'max'])}({left}, {right})"
    return f"({left} if {_condition(r, depth + 1)} else {right})"


def _condition(r: random.Random, depth: int = 0) -> str:
    if depth > 1 or r.random() < 0.8:
        return f"{_scalar(r, 2)} {r.choice(['<', '==', '>=', '!='])} {_scalar(r, depth + 1)}"
    return f"({_condition(r, depth + 1)} {r.choice(['and', 'or'])} not {_condition(r, depth + 1)})"


def _number(r: random.Random) -> str:
    return r.choice(["x", "0.5", "2", "x * 2.0", "-x", "pl.cast(n, pl.FP32)", "pl.const(1, pl.FP32)"])


def _tile(r: random.Random, depth: int = 0) -> str:
    kind = r.random()
    if depth > 2 or kind < 0.3:
        return r.choice(["t", "u", "a", "b", "v"])
    inner = _tile(r, depth + 1)
    if kind < 0.5:
        return f"({inner} {r.choice('+-*')} {_tile(r, depth + 1)})"
    if kind < 0.6:
        return f"({inner} {r.choice('+-*/')} {_number(r)})"
    if kind < 0.65:
        return f"({_number(r)} {r.choice('+-*')} {inner})"
    if kind < 0.75:
        return f"pl.{r.choice(['abs', 'neg', 'relu'])}({inner})"
    if kind < 0.83:
        column = f"pl.row_{r.choice(['max', 'sum', 'min'])}({_tile(r, depth + 1)})"
        return f"pl.row_expand_{r.choice(['add', 'sub', 'mul', 'max', 'min'])}({inner}, {column})"
    if kind < 0.9:
        row = f"pl.col_{r.choice(['max', 'sum', 'min'])}({_tile(r, depth + 1)})"
        return f"pl.col_expand_{r.choice(['add', 'sub', 'mul'])}({inner}, {row})"
    if kind < 0.93:
        return f"pl.cast(pl.cast({inner}, pl.FP16), pl.FP32)"
    if kind < 0.96:
        return f"pl.transpose({inner}, 0, 1)"
    return f"pl.maximum({inner}, {_number(r)})"


def _statements(r: random.Random, depth: int) -> list[str]:
    lines: list[str] = []
    for _ in range(r.randrange(1, 4)):
        kind = r.random()
        if kind < 0.4:
            lines.append(f"{r.choice('tuv')} = {_tile(r)}")
        elif kind < 0.55:
            lines.append(f"{r.choice('ikc')} = {_scalar(r)}")
        elif kind < 0.6:
            lines.append(f"{r.choice('kc')} += {_scalar(r)}")
        elif kind < 0.65:
            lines.append(f"{r.choice('tuv')} *= {_tile(r, 2)}")
        elif kind < 0.72:
            lines.append(f"out[:] = {_tile(r)}")
        elif kind < 0.76:
            lines.append(f"out[0:16, :] = {r.choice('tuv')}[{r.choice(['0:16', '16:32'])}, :]")
        elif depth < 3 and kind < 0.87:
            lines.append(f"for {r.choice('jmp')} in pl.range({r.choice(['n', '4', 'pl.min(k, 5)', '0, n, 2'])}):")
            lines += [f"    {line}" for line in _statements(r, depth + 1)]
        elif depth < 3:
            lines.append(f"if {_condition(r)}:")
            lines += [f"    {line}" for line in _statements(r, depth + 1)]
            if r.random() < 0.6:
                lines.append("else:")
                lines += [f"    {line}" for line in _statements(r, depth + 1)]
    return lines or ["pass"]
