"""Random kernels about numbers from memory: nested loops and branches whose bounds, conditions and places are read.

The same text runs in Python, with lists for tensors and tiles.
"""

from __future__ import annotations

import random
from typing import Any

COLUMNS = 16


class _Writer:
    """Writes the statements of one row; every name that a statement uses is known there."""

    def __init__(self, rng: random.Random, row: int) -> None:
        self.rng = rng
        self.row = row
        self.lines: list[str] = []
        self.made = 0

    def expression(self, names: list[str], depth: int = 2) -> str:
        kind = self.rng.randrange(8 if depth else 3)
        if kind < 2 and names:
            return self.rng.choice(names)
        if kind < 3:
            return str(self.rng.randrange(-5, 12))
        inner = self.expression(names, depth - 1)
        if kind == 3:
            return f"pl.read(table, [0, ({inner}) % {COLUMNS}])"
        if kind == 4:
            return f"w[0, ({inner}) % {COLUMNS}]"
        if kind == 5:
            return f"pl.read(out, [{self.row}, ({inner}) % {COLUMNS}])"
        return f"({inner} {self.rng.choice(['+', '-', '*', '//', '%'])} {self.second(names, depth)})"

    def second(self, names: list[str], depth: int) -> str:
        """The right side, which is no divisor of 0."""
        return (
            str(self.rng.choice([2, 3, 5]))
            if self.rng.random() < 0.5
            else f"(1 + ({self.expression(names, depth - 1)}) % 7)"
        )

    def value(self, names: list[str]) -> str:
        """A small number."""
        return f"({self.expression(names)}) % 17"

    def block(self, names: list[str], indent: int, size: int) -> None:
        known = list(names)
        for _ in range(self.rng.randrange(1, size + 1)):
            self.statement(known, names, indent)

    def statement(self, known: list[str], outer: list[str], indent: int) -> None:
        pad, kind = "    " * indent, self.rng.randrange(9)
        if kind < 2:
            self.made += 1
            name = f"v{self.row}_{self.made}"
            self.lines.append(f"{pad}{name} = {self.value(known)}")
            known.append(name)
        elif kind == 2 and known:
            # Names that begin with 0 are carried by loops and merged by branches.
            changed = [n for n in known if n.startswith("c")]
            if changed:
                self.lines.append(f"{pad}{self.rng.choice(changed)} = {self.value(known)}")
        elif kind < 5:
            self.lines.append(f"{pad}w[0, ({self.expression(known)}) % {COLUMNS}] = {self.value(known)}")
        elif kind == 5:
            place = f"[{self.row}, ({self.expression(known)}) % {COLUMNS}]"
            self.lines.append(f"{pad}pl.write(out, {place}, {self.value(known)})")
        elif kind < 8 and indent < 4:
            self.made += 1
            name = f"i{self.row}_{self.made}"
            self.lines.append(f"{pad}for {name} in pl.range(({self.expression(known)}) % 4):")
            self.block([*known, name], indent + 1, 3)
        elif indent < 4:
            self.lines.append(f"{pad}if {self.value(known)} > {self.value(known)}:")
            self.block(known, indent + 1, 3)
            if self.rng.random() < 0.5:
                self.lines.append(f"{pad}else:")
                self.block(known, indent + 1, 3)
        else:
            self.lines.append(f"{pad}w[0, 0] = {self.value(known)}")


def kernel_text(seed: int, rows: int) -> str:
    """A module with an entry ``main`` and an incore function that works on each row of ``out``."""
    rng = random.Random(seed)
    body: list[str] = []
    for row in range(rows):
        writer = _Writer(rng, row)
        carried = [f"c{row}_{i}" for i in range(2)]
        writer.lines += [f"    {name} = {rng.randrange(5)}" for name in carried]
        writer.lines.append("    w = pl.load(table, [0, 0], [1, 16])")
        writer.block([*carried, "n"], 1, 7)
        writer.lines += [f"    pl.write(out, [{row}, {i}], {name})" for i, name in enumerate(carried)]
        writer.lines.append(f"    pl.store(w, [{rows + row}, 0], out)")
        body += writer.lines
    types = "table: pl.Tensor[[1, 16], pl.INT32], n: pl.Scalar[pl.INT32], out: pl.InOut[pl.Tensor[[%d, 16], pl.INT32]]"
    head = types % (2 * rows)
    return (
        "import pypto.language as pl\n\n\n"
        f"@pl.jit.incore\ndef part({head}):\n" + "\n".join(body) + "\n\n\n"
        f"@pl.jit\ndef main({head}):\n    part(table, n, out)\n"
    )


class _Matrix:
    """Rows of numbers, indexed as tiles are."""

    def __init__(self, rows: list[list[int]]) -> None:
        self.rows = rows

    def __getitem__(self, place: tuple[int, int]) -> int:
        return self.rows[place[0]][place[1]]

    def __setitem__(self, place: tuple[int, int], value: int) -> None:
        self.rows[place[0]][place[1]] = value


class _Language:
    """What the kernels use of ``pl``, in Python."""

    range = range

    @staticmethod
    def read(matrix: _Matrix, place: list[int]) -> int:
        return matrix[place[0], place[1]]

    @staticmethod
    def write(matrix: _Matrix, place: list[int], value: int) -> None:
        matrix[place[0], place[1]] = value

    @staticmethod
    def load(matrix: _Matrix, place: list[int], shape: list[int]) -> _Matrix:
        return _Matrix([row[: shape[1]] for row in matrix.rows[place[0] : place[0] + shape[0]]])

    @staticmethod
    def store(tile: _Matrix, place: list[int], matrix: _Matrix) -> None:
        for i, row in enumerate(tile.rows):
            matrix.rows[place[0] + i][: len(row)] = row


def meaning(text: str, table: list[list[int]], n: int, out: list[list[int]]) -> list[list[int]]:
    """What the incore function of a text leaves in ``out``."""
    start = text.index("def part(")
    body = text[start : text.index("@pl.jit\n")]
    body = "def part(table, n, out):" + body[body.index("):\n") + 2 :]
    names: dict[str, Any] = {"pl": _Language}
    exec(compile(body, "<kernel in Python>", "exec"), names)
    result = _Matrix([list(row) for row in out])
    names["part"](_Matrix(table), n, result)
    return result.rows
