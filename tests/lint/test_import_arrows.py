"""Imports point one way: the arrows of docs/architecture.md, read from syntax trees."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGE = _ROOT / "pypto"

# part -> parts it may import; every part may import itself.
ARROWS: dict[str, frozenset[str]] = {
    "__main__": frozenset(),
    "ir": frozenset(),
    "language": frozenset({"ir"}),
    "codegen": frozenset({"ir", "_identity.records"}),
    "build": frozenset(
        {
            "codegen",
            "language",
            "ir",
            "toolchain",
            "toolchain.host",
            "_identity",
            "runtime",
            "bundle",
            "jit.artifact_cache",
        }
    ),
    "jit": frozenset(
        {
            "language",
            "ir",
            "build",
            "bundle",
            "runtime",
            "runtime._artifact_runtime",
            "jit.artifact_cache",
            "_identity",
            "toolchain",
            "toolchain.host",
        }
    ),
    "jit.artifact_cache": frozenset({"_identity.records", "_identity.identity"}),
    "bundle": frozenset({"jit.artifact_cache", "_identity", "runtime"}),
    "runtime": frozenset({"_identity", "toolchain", "toolchain.host"}),
    # What joins compiled objects and the store's entries stands above both.
    "runtime._artifact_runtime": frozenset({"_identity", "build", "jit.artifact_cache", "runtime", "toolchain"}),
    "diagnostics": frozenset({"build", "ir", "jit", "language", "runtime", "toolchain"}),
    "_identity": frozenset({"toolchain"}),
    "toolchain": frozenset({"_identity.records", "toolchain.host"}),
    # The tools of this machine are found by what identifies them.
    "toolchain.host": frozenset({"_identity", "toolchain"}),
}
# (part, part): what one name needs beside the arrows.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("language", "jit"): "users write pl.jit, which is found on first use",
    ("ir", "build"): "users write ir.compile, which is found on first use",
    ("runtime", "build"): "users write runtime.run, which is found on first use",
}


def _part(module: str) -> str:
    """The part of the package that a module of it belongs to."""
    names = module.split(".")[1:]
    if names[:2] == ["jit", "artifact_cache"]:
        return "jit.artifact_cache"
    if names[:2] == ["runtime", "_artifact_runtime"]:
        return "runtime._artifact_runtime"
    if names[:2] == ["toolchain", "host"]:
        return "toolchain.host"
    if names[0:1] == ["_identity"] and names[1:2] in (["records"], ["identity"]):
        return ".".join(names[:2])
    return names[0] if names else "__init__"


def _files() -> list[Path]:
    return sorted(path for path in _PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)


def _module(path: Path) -> str:
    names = [*path.relative_to(_ROOT).with_suffix("").parts]
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def _is_module(name: str) -> bool:
    path = _ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of every module of ours that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield node.lineno, "." * node.level + (node.module or "")
            elif node.module is not None:
                inner = [f"{node.module}.{alias.name}" for alias in node.names]
                modules = [name for name in inner if name.split(".")[0] == "pypto" and _is_module(name)]
                yield from ((node.lineno, name) for name in modules)
                if len(modules) < len(inner):
                    yield node.lineno, node.module
        elif isinstance(node, ast.Call) and _names_module(node):
            constant = node.args[0]
            if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                yield node.lineno, constant.value


def _names_module(node: ast.Call) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in ("import_module", "__import__") and bool(node.args)


def _allowed(part: str, target: str) -> bool:
    part = "_identity" if part.startswith("_identity.") else part
    # The package itself holds the version and where it stands; it imports its parts on first use only.
    may = ARROWS[part] | {part, "__init__"}
    # A part that may be imported may be imported in all its files, but for the one that is a part of its own.
    whole = target.split(".")[0] if target.startswith("_identity.") else target
    return target in may or whole in may or (part, target) in EXCEPTIONS


@pytest.mark.parametrize("path", _files(), ids=lambda p: str(p.relative_to(_PACKAGE)))
def test_imports_follow_the_arrows(path: Path) -> None:
    part = _part(_module(path))
    wrong = []
    for line, name in _imports(path):
        if name.startswith("."):
            wrong.append(f"line {line}: relative import {name}")
        elif name.split(".")[0] == "pypto" and part != "__init__":
            target = _part(name)
            if not _allowed(part, target):
                wrong.append(f"line {line}: {part} imports {name}")
    assert wrong == []


def test_every_part_is_known() -> None:
    parts = {_part(_module(path)) for path in _files()} - {"__init__", "_identity.records", "_identity.identity"}
    assert parts == set(ARROWS)


@pytest.mark.parametrize("module", ["pypto", "pypto.language", "pypto.build", "pypto.bundle"])
def test_import_loads_no_numpy(module: str) -> None:
    program = (
        f"import sys, {module}\nprint(sorted(n for n in sys.modules if n.split('.')[0] in ('numpy', 'ml_dtypes')))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=_ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_language_loads_nothing_of_the_build() -> None:
    program = (
        "import sys, pypto.language as pl\npl.add, pl.Tensor, pl.FP32, pl.tensor.create\n"
        "print(sorted(n for n in sys.modules if n.startswith(('pypto.jit', 'pypto.build', 'pypto.runtime'))))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=_ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
