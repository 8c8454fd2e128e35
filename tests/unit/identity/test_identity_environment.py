"""The registry of environment inputs (ENV), first form."""

from __future__ import annotations

import ast
import json
from pathlib import Path

ROOT = Path(__file__).parents[3]
REGISTRY = json.loads((ROOT / "pypto/_environment.json").read_text())
CLASSES = {"semantic", "tool_resolution", "fresh_request", "nonsemantic"}


def test_every_entry_has_one_class_and_a_reason() -> None:
    """ENV-01, ENV-02, ENV-03, ENV-41."""
    assert set(REGISTRY) == {"schema", "variables", "dynamic_reads"}
    for name, entry in REGISTRY["variables"].items():
        assert set(entry) - {"flag"} == {"class", "reason"}, name
        assert entry["class"] in CLASSES, name
        assert entry["reason"].strip(), name
    assert list(REGISTRY["variables"]) == sorted(REGISTRY["variables"])


def test_inputs_of_compilers_and_loaders_are_listed() -> None:
    """ENV-35 to ENV-38, ENV-49."""
    for name in (
        "PATH",
        "CPATH",
        "CPLUS_INCLUDE_PATH",
        "LIBRARY_PATH",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LANG",
        "LC_ALL",
    ):
        assert name in REGISTRY["variables"]


def test_dynamic_reads_name_a_function_that_exists() -> None:
    """ENV-31, ENV-32."""
    for read in REGISTRY["dynamic_reads"]:
        assert set(read) == {"file", "function", "reason"}
        assert read["reason"].strip()
        tree = ast.parse((ROOT / read["file"]).read_text())
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert read["function"] in names, read


def test_variables_read_by_the_package_are_listed() -> None:
    """ENV-19, ENV-24 in their simplest form: literal names and module constants."""
    found = set()
    for file in sorted((ROOT / "pypto").rglob("*.py")):
        tree = ast.parse(file.read_text())
        constants = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            text = ast.unparse(node) if isinstance(node, (ast.Call, ast.Subscript)) else ""
            if not text.startswith(("os.environ.get(", "os.getenv(", "os.environ[")):
                continue
            argument = node.args[0] if isinstance(node, ast.Call) else node.slice  # type: ignore[attr-defined]
            value = argument.value if isinstance(argument, ast.Constant) else constants.get(getattr(argument, "id", ""))
            if isinstance(value, str):
                found.add(value)
    assert "PYPTO_CACHE_DIR" in found
    assert found <= set(REGISTRY["variables"])
