"""The lint of environment inputs: the tree passes it, and every spelling of a read is seen."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import check_environment_inputs
from check_environment_inputs import (
    CLASSES,
    REGISTRY,
    Registry,
    RegistryError,
    check,
    main,
    read_registry,
)
from environment_cpp import cpp_reads
from environment_python import python_reads
from environment_shell import shell_reads

ROOT = Path(__file__).parents[2]
KNOWN = json.loads((ROOT / REGISTRY).read_text())["variables"]


def names(source: str) -> list[str | None]:
    return [read.name for read in python_reads(textwrap.dedent(source), "x.py")]


def test_env_13_14_42_the_tree_is_clean() -> None:
    """ENV-01, ENV-13 (as a step of tools/test), ENV-14: no part of pypto is imported; ENV-42."""
    program = (
        "import sys; sys.argv[1:] = []; import check_environment_inputs as c; code = c.main([]);"
        "print(code, [m for m in sys.modules if m.split('.')[0] in ('pypto', 'numpy')])"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("0 []\n", "")


READS = {
    "subscript": "import os\nos.environ['X']",
    "get": "import os\nos.environ.get('X', 1)",
    "get by keyword": "import os\nos.getenv(key='X', default=None)",
    "getenv": "import os\nos.getenv('X')",
    "setdefault": "import os\nos.environ.setdefault('X', '1')",
    "pop": "import os\nos.environ.pop('X', None)",
    "membership": "import os\n'X' in os.environ",
    "no membership": "import os\nif 'X' not in os.environ: pass",
    "dunder": "import os\nos.environ.__getitem__('X')",
    "bytes": "import os\nos.environb[b'X'], ",
    "getenvb": "import os\nos.getenvb(b'X')",
    "added to": "import os\nos.environ['X'] += ':y'",
    "import as": "import os as o\no.environ['X']",
    "import of a submodule": "import os.path\nos.getenv('X')",
    "from import": "from os import environ\nenviron['X']",
    "from import as": "from os import environ as e, getenv as g\ng('X')",
    "from import star": "from os import *\ngetenv('X')",
    "posix": "import posix\nposix.environ['X']",
    "alias of the function": "import os\ng = os.getenv\ng('X')",
    "alias of the mapping": "import os\ne = os.environ\ne.get('X')",
    "alias of an alias": "import os\no = os\ne = o.environ\nf = e\nf['X']",
    "alias of one of two": "import os\ne = {} if 1 else os.environ\ne['X']",
    "alias that may be another": "import os\ne = {}\nif 1:\n    e = os.environ\ne['X']",
    "alias by a walrus": "import os\nif (e := os.environ)['X']: pass",
    "alias as a tuple": "import os\na, b = 1, os.environ\nb['X']",
    "import in a function": "def f():\n    from os import environ as e\n    return e['X']",
    "alias from around a function": "import os\ndef f():\n    e = os.environ\n    def g():\n        return e['X']",
    "import_module": "import importlib\nimportlib.import_module('os').environ['X']",
    "dunder import": "__import__('os').getenv('X')",
    "getattr": "import os\ngetattr(os, 'environ')['X']",
    "constant": "import os\nNAME = 'X'\nos.getenv(NAME)",
    "annotated constant": "import os\nNAME: str = 'X'\nos.getenv(NAME)",
    "constant in a function": "import os\nNAME = 'X'\ndef f():\n    return os.environ[NAME]",
    "constant defined later": "import os\ndef f():\n    return os.environ[NAME]\nNAME = 'X'",
    "in a lambda": "import os\nf = lambda: os.getenv('X')",
    "in a comprehension": "import os\n[os.getenv('X') for _ in (1, 2)]",
    "in a decorator": "import os\n@print(os.getenv('X'))\ndef f(): pass",
    "in a class": "import os\nclass A:\n    x = os.getenv('X')",
    "as an argument": "import os\nprint(os.getenv('X'))",
    "as a default": "import os\ndef f(x=os.getenv('X')): pass",
    "in a default of a lambda": "import os\nf = lambda x=os.getenv('X'): x",
    "in an f-string": "import os\nf'{os.environ[\"X\"]}'",
    "as a base": "import os\nclass A(os.environ['X']): pass",
    "in async code": "import os\nasync def f():\n    async with os.environ['X']: pass",
    "in a match": "import os\nmatch os.getenv('X'):\n    case None: pass",
    "chained": "import os\n(os.environ.get('X') or '').split()",
    "starlark": "def _impl(repository_ctx):\n    repository_ctx.os.environ.get('X')",
    "starlark getenv": "def _impl(module_ctx):\n    return module_ctx.getenv('X')",
}


@pytest.mark.parametrize("source", READS.values(), ids=READS.keys())
def test_env_19_22_23_24_25_reads_of_a_literal(source: str) -> None:
    assert names(source) == ["X"]


DYNAMIC = {
    "computed name": "import os\ndef f(n):\n    return os.environ[n]",
    "getenv of a name": "import os\ndef f(n):\n    return os.getenv(n)",
    "f-string": "import os\nos.getenv(f'{1}X')",
    "star": "import os\nos.getenv(*['X'])",
    "dict": "import os\ndict(os.environ)",
    "copy": "import os\nos.environ.copy()",
    "iteration": "import os\nfor name in os.environ: pass",
    "items": "import os\nos.environ.items()",
    "keys": "import os\nlist(os.environ.keys())",
    "spread": "import os\nf(**os.environ)",
    "spread in a dictionary": "import os\n{**os.environ, 'Y': '1'}",
    "union": "import os\nos.environ | {}",
    "argument": "import os\nf(os.environ)",
    "returned": "import os\ndef f():\n    return os.environ",
    "default": "import os\ndef f(e=os.environ): pass",
    "attribute": "import os\nclass A:\n    def f(self):\n        self.e = os.environ",
    "function handed on": "import os\nlist(map(os.getenv, 'ab'))",
    "imported and handed on": "from os import environ as e\nprint(e)",
    "expandvars": "import os.path\nos.path.expandvars('$X')",
    "expandvars imported": "from os.path import expandvars\nexpandvars('$X')",
    "constant assigned twice": "import os\nNAME = 'X'\nNAME = 'Y'\nos.getenv(NAME)",
    "constant assigned in if": "import os\nNAME = 'X'\nif 1:\n    NAME = 'X'\nos.getenv(NAME)",
    "constant only in if": "import os\nif 1:\n    NAME = 'X'\nos.getenv(NAME)",
    "constant in a loop": "import os\nfor _ in 'a':\n    NAME = 'X'\nos.getenv(NAME)",
    "constant as a loop variable": "import os\nNAME = 'X'\nfor NAME in 'ab': pass\nos.getenv(NAME)",
    "constant in try": "import os\ntry:\n    NAME = 'X'\nfinally: pass\nos.getenv(NAME)",
    "constant in with": "import os\nwith open('x') as f:\n    NAME = 'X'\nos.getenv(NAME)",
    "constant in while": "import os\nwhile 1:\n    NAME = 'X'\nos.getenv(NAME)",
    "constant in match": "import os\nmatch 1:\n    case 1:\n        NAME = 'X'\nos.getenv(NAME)",
    "constant written by a function": "import os\nNAME = 'X'\ndef f():\n    global NAME\n    NAME = 'Y'\n"
    "os.getenv(NAME)",
    "constant only written by a function": "import os\ndef f():\n    global NAME\n    NAME = 'X'\n"
    "def g():\n    return os.getenv(NAME)",
    "constant added to": "import os\nNAME = 'X'\nNAME += 'Y'\nos.getenv(NAME)",
    "constant deleted": "import os\nNAME = 'X'\ndel NAME\nos.getenv(NAME)",
    "constant by a walrus": "import os\nprint(NAME := 'X')\nos.getenv(NAME)",
    "constant that is imported": "import os\nfrom m import NAME\nos.getenv(NAME)",
    "constant and import": "import os\nNAME = 'X'\nfrom m import NAME\nos.getenv(NAME)",
    "constant hidden by a parameter": "import os\nNAME = 'X'\ndef f(NAME):\n    return os.getenv(NAME)",
    "constant hidden by a local": "import os\nNAME = 'X'\ndef f():\n    NAME = g()\n    return os.getenv(NAME)",
    "name of a class": "import os\nclass A:\n    NAME = 'X'\n    x = os.getenv(NAME)",
    "starlark": "def _impl(ctx):\n    return ctx.os.environ",
}


@pytest.mark.parametrize("source", DYNAMIC.values(), ids=DYNAMIC.keys())
def test_env_26_27_28_29_dynamic_reads(source: str) -> None:
    assert names(source) == [None]


NO_READS = {
    "written": "import os\nos.environ['X'] = '1'",
    "deleted": "import os\ndel os.environ['X']",
    "updated": "import os\nos.environ.update({'X': '1'})",
    "cleared": "import os\nos.environ.clear()",
    "putenv": "import os\nos.putenv('X', '1'); os.unsetenv('X')",
    "only an alias": "import os\ne = os.environ",
    "hidden by a parameter": "from os import environ\ndef f(environ):\n    return environ['X']",
    "hidden by a local": "from os import getenv\ndef f():\n    getenv = print\n    return getenv('X')",
    "alias of another function": "import os\ndef f():\n    e = os.environ\ndef g(e):\n    return e['X']",
    "alias of a class": "import os\nclass A:\n    e = os.environ\n    def f(self):\n        return e['X']",
    "another module": "from m import environ, getenv\nenviron['X'], getenv('X')",
    "another object": "def f(os):\n    return os.path.join('a')",
    "a dictionary": "environ = {}\nenviron['X']",
    "in text": "'os.environ[\"X\"]'  # os.getenv('X')",
}


@pytest.mark.parametrize("source", NO_READS.values(), ids=NO_READS.keys())
def test_env_27_45_what_is_no_read(source: str) -> None:
    assert names(source) == []


def test_copies_are_looked_into() -> None:
    """ENV-33: the exception for a copy does not hide the literal names that are read from it."""
    assert names("import os\nenv = dict(os.environ)\nenv.get('X'), env['Y']\nprint(env)") == [None, "X", "Y"]
    assert names("import os\ndef f(n):\n    env = os.environ.copy()\n    return env[n], env.pop('X')") == [None, "X"]
    assert names("import os\nenv = {**os.environ, 'X': '1'}\nenv['X']") == [None]


CPP = {
    "plain": ('int f() { return getenv("X") != 0; }', ["X"]),
    "std": ('auto v = std::getenv("X");', ["X"]),
    "global": ('auto v = ::getenv( "X" );', ["X"]),
    "secure": ('auto v = secure_getenv("X");', ["X"]),
    "over lines": ('auto v = getenv(\n  // name\n  "X");', ["X"]),
    "adjacent literals": ('getenv("X" "_" "Y")', ["X_Y"]),
    "escaped": (r'getenv("X\x59")', ["XY"]),
    "raw": ('getenv(R"n(X)n")', ["X"]),
    "name": ("getenv(name)", [None]),
    "expression": ('getenv(("X" + y))', [None]),
    "choice": ('getenv(a ? "X" : "Y")', [None]),
    "pointer": ("auto f = &getenv;", [None]),
    "macro": ("#define ENV getenv\n", [None]),
    "table": ("extern char** environ;", [None]),
    "comment": ('// getenv("X")\n/* getenv("X")\n */ int x;', []),
    "continued comment": ('// a \\\ngetenv("X")\nint x;', []),
    "string": (r'"getenv(\"X\")"; f(" // "); getenv("Y");', ["Y"]),
    "raw string": ('R"(getenv("X"))"', []),
    "character": ("'\"'; getenv(\"X\"); '\"'", ["X"]),
    "separated digits": ("int i = 1'000; getenv(\"X\"); int j = 1'000;", ["X"]),
    "member": ('object.getenv("X"); pointer->getenv("X");', []),
    "other names": ('my_getenv("X"); getenvs("X");', []),
    "written": ('setenv("X", "1", 1); unsetenv("X"); putenv(x);', []),
}


@pytest.mark.parametrize(("source", "expected"), CPP.values(), ids=CPP.keys())
def test_env_20_21_44_46_cpp(source: str, expected: list[str | None]) -> None:
    assert [read.name for read in cpp_reads(source)] == expected


def test_functions_and_lines_of_reads() -> None:
    """ENV-31: an exception is for one function of one file."""
    python = "import os\nclass A:\n    def f(self):\n        def g(n):\n            return os.getenv(n)\nos.getenv(A)"
    assert [(r.line, r.function) for r in python_reads(python, "x")] == [(5, "A.f.g"), (6, "<module>")]
    cpp = (
        "namespace n {\nstruct S {\n  S() : a(1) {\n    if (x) { getenv(a); }\n  }\n};\n"
        "template <class T>\nauto N::f(T t) const -> int {\n  return g([&](int i) { return getenv(t); });\n}\n}\n"
        'auto v = getenv("X");'
    )
    assert [(r.line, r.function.split(".")[-1]) for r in cpp_reads(cpp)] == [(4, "S"), (9, "f"), (12, "<module>")]


def test_shell() -> None:
    text = (
        '#!/bin/sh\n# $A\necho "${B:-$C} \\$D" \'$E\' it\\\'s $1 $$ $@\nF=1\necho "$F"\nG="${G:-x}"; echo $G\n'
        "for i in 1 2; do echo $i; done\nenv\n"
    )
    assert [read.name for read in shell_reads(text)] == ["B", "C", "G", None]


FILES = {
    "pypto/a.py": ("import os\nos.getenv('X')", 2),
    "pypto/runtime/native/include/a.h": ('inline const char* f() {\n  return getenv("X");\n}', 2),
    "pypto/native/a.cpp": ('auto v = getenv("X");', 1),
    "rules/a.bzl": ("def f(ctx):\n    return ctx.os.environ['X']", 2),
    "rules/b.py": ("from os import environ\n\nenviron['X']", 3),
    "toolchains/BUILD.bazel": ("x(ctx.getenv('X'))", 1),
    "tools/run": ("#!/usr/bin/env python3\nimport os\nos.environ['X']", 3),
    "tools/a.sh": ("echo $X", 1),
    "pypto/toolchain/compat/stdfloat/stdfloat": ('getenv("X")', 1),
}


@pytest.mark.parametrize("name", FILES)
def test_env_15_16_17_18_43_48_every_folder_and_kind_of_file(tmp_path: Path, name: str) -> None:
    """The folders of this project; a read that is not listed is named with file, line and variable."""
    text, line = FILES[name]
    write(tmp_path, name, text)
    (complaint,) = check(tmp_path, Registry(frozenset(), frozenset()))
    assert complaint.startswith(f"{name}:{line}: X is read and not listed")
    assert check(tmp_path, Registry(frozenset({"X", "PATH"}), frozenset())) == []


def test_env_31_33_34_exceptions(tmp_path: Path) -> None:
    write(tmp_path, "pypto/a.py", "import os\ndef f(n):\n    return os.environ[n]\ndef g(n):\n    return os.environ[n]")
    both = {("pypto/a.py", "f"), ("pypto/a.py", "g")}
    assert check(tmp_path, Registry(frozenset(), frozenset(both))) == []
    (one,) = check(tmp_path, Registry(frozenset(), frozenset({("pypto/a.py", "f")})))
    assert one.startswith("pypto/a.py:5: g reads variables")
    other = frozenset({("pypto/a.py", "g"), ("pypto/b.py", "f")})
    elsewhere, unused = check(tmp_path, Registry(frozenset(), other))
    assert elsewhere.startswith("pypto/a.py:3: f reads")
    assert unused.startswith("pypto/b.py: the exception for f is not needed")
    write(tmp_path, "pypto/a.py", "import os\ndef f(n):\n    return os.environ[n], os.getenv('NEW')\ndef g(n): pass")
    complaints = check(tmp_path, Registry(frozenset(), frozenset(both)))
    assert [c.split(": ")[1] for c in complaints] == ["NEW is read and not listed in pypto/_environment.json",
                                                     "the exception for g is not needed; remove it from "
                                                     "pypto/_environment.json"]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "data"),
    [("pypto/a.py", b"def f(:"), ("pypto/b.py", b"\xff"), ("pypto/c.weird", b""), ("rules/d.bzl", b"x = ")],
)
def test_env_47_nothing_is_skipped_silently(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_bytes(data)
    (complaint,) = check(tmp_path, Registry(frozenset(), frozenset()))
    assert complaint.startswith(f"{name}: cannot be checked")


ENTRY = {"class": "semantic", "reason": "why"}
READ = {"file": "pypto/a.py", "function": "f", "reason": "why"}
GOOD = {"schema": 1, "variables": {"X": ENTRY}, "dynamic_reads": [READ]}


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({**GOOD, "schema": 2}, "unknown schema"),
        ({**GOOD, "more": 1}, "exactly the fields"),
        ({**GOOD, "variables": {"X": {"class": "semantic"}}}, "X has a class, a reason"),
        ({**GOOD, "variables": {"X": {**ENTRY, "reason": " "}}}, "X has no reason"),
        ({**GOOD, "variables": {"X": {**ENTRY, "class": "other"}}}, "X has the class 'other'"),
        ({**GOOD, "dynamic_reads": [{**READ, "reason": ""}]}, "needs a reason"),
        ({**GOOD, "dynamic_reads": [{"file": "a", "function": "f"}]}, "exactly the fields file"),
        ({**GOOD, "dynamic_reads": [READ, READ]}, "two exceptions for f"),
        ([], "exactly the fields"),
    ],
)
def test_env_02_03_32_41_the_registry_is_checked(tmp_path: Path, record: object, text: str) -> None:
    path = tmp_path / "registry.json"
    path.write_text(json.dumps(record))
    with pytest.raises(RegistryError, match=re.escape(text)):
        read_registry(path)
    path.write_text(json.dumps(GOOD))
    assert read_registry(path) == Registry(frozenset({"X"}), frozenset({("pypto/a.py", "f")}))


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 1
    assert "cannot be read" in capsys.readouterr().err
    write(tmp_path, REGISTRY, json.dumps({**GOOD, "dynamic_reads": []}))
    assert main([str(tmp_path)]) == 0
    write(tmp_path, "tools/a.py", "import os\nos.getenv('Y')")
    assert main([str(tmp_path)]) == 1
    assert "tools/a.py:2: Y" in capsys.readouterr().err


def test_env_35_36_37_38_49_inputs_of_tools_are_listed() -> None:
    wanted = ["PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH",
              "GCC_EXEC_PREFIX", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "LANG", "LC_ALL", "TZ"]  # fmt: skip
    assert [name for name in wanted if name not in KNOWN] == []
    assert {entry["class"] for entry in KNOWN.values()} <= set(CLASSES)


def test_env_08_12_no_variable_asks_for_fresh_work() -> None:
    """Diagnostics are asked for in a call's settings, and such a call never looks at the cache; see the JIT's tests."""
    assert [name for name, entry in KNOWN.items() if entry["class"] == "fresh_request"] == []


def test_env_11_lim_10_14_the_registry_is_for_audits() -> None:
    """No code reads it, so no key is made by walking through it; its own content counts as package data."""
    readers = [path for path in (ROOT / "pypto").rglob("*.py") if "_environment.json" in path.read_text()]
    assert [path.relative_to(ROOT).as_posix() for path in readers] == ["pypto/_identity/package.py"]


def test_env_13_the_hook_of_pre_commit() -> None:
    """ENV-13: the hook runs the check from the root of the checkout, whatever is committed."""
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    (entry,) = re.findall(r"^ +entry: python3 (.+)$", hooks, re.MULTILINE)
    for line in ("- repo: local", "language: system", "always_run: true", "pass_filenames: false"):
        assert line in hooks
    assert subprocess.run([sys.executable, *entry.split()], cwd=ROOT, check=False).returncode == 0


def test_env_30_it_runs_on_the_oldest_python() -> None:
    """3.11 is this project's oldest; what a newer one brought must not be used."""
    for path in Path(__file__).parent.glob("*environment_*.py"):
        ast.parse(path.read_text(), feature_version=(3, 11))


def test_lim_01_04_08_09_limits_are_stated() -> None:
    """Also CNT-32, REP-06, REP-08, LIM-05, LIM-07, IDB-15."""
    stated = " ".join((check_environment_inputs.__doc__ or "").split())
    assert "programs that are started read variables of their own" in stated
    assert "reflection" in stated
    guide = " ".join((ROOT / "docs/guide/identity.md").read_text().split())
    for sentence in (
        "is what an installation says about itself, not a proof of its bytes",
        "is no snapshot",
        "may have two keys in the host world",
        "must not change while a process lives",
        "choose a new epoch, clear the cache or turn it off",
    ):
        assert sentence in guide


def test_flags_of_bazel_are_those_of_the_registry() -> None:
    """Each setting that changes a key has a flag of its own, and each flag has such a setting."""
    build = (ROOT / "rules/BUILD.bazel").read_text()
    flags = {f"//rules:{name}" for name in re.findall(r'_flag\(\s*name = "(\w+)"', build)}
    registered = {name: entry["flag"] for name, entry in KNOWN.items() if "flag" in entry}
    assert len(set(registered.values())) == len(registered)
    assert all(KNOWN[name]["class"] == "semantic" for name in registered)
    own = {name for name, entry in KNOWN.items() if entry["class"] == "semantic" and name.startswith("PYPTO_")}
    assert own == set(registered)
    # Two are compile options, which are in the specialization and not in the environment; the others change no byte.
    options = {"//rules:execution_mode", "//rules:backend_type"}
    others = options | {"//rules:persistent_workers", "//rules:kernel_test_python"}
    assert flags - others == set(registered.values())


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)
