"""Importing a kernel's module in a build: only the given roots, pypto and the standard library are importable."""

from __future__ import annotations

import importlib
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pypto.build.errors import BuildError

if TYPE_CHECKING:
    from pypto.language.source import KernelSource

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def load_entry(module: str, entry: str, import_roots: Sequence[Path]) -> KernelSource:
    """Import ``module`` and return its ``@pl.jit`` function ``entry``.

    Changes ``sys.path`` of the process for good, so it is for a process that runs one build step.

    Raises:
        BuildError: no such module or entry, an import of something a build does not offer, a module that fails while it
            is imported, or an entry that is not a ``@pl.jit`` function.
        CompileError: a kernel that is refused when it is decorated.
    """
    from pypto.ir.nodes import FunctionKind
    from pypto.language.errors import CompileError
    from pypto.language.source import KernelSource

    def is_entry(value: object) -> bool:
        return isinstance(value, KernelSource) and value.kind in (FunctionKind.ORCHESTRATION, FunctionKind.HOST)

    if _MODULE.fullmatch(module) is None:
        raise BuildError(f"--module is a dotted module name such as kernels.decode, got {module!r}")
    _confine_imports(import_roots)
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise BuildError(_missing_module(module, str(error.name), import_roots)) from None
    except CompileError:
        raise
    except Exception as error:
        raise BuildError(f"module {module} cannot be imported: {_described(error)}") from None
    found = getattr(loaded, entry, None)
    if isinstance(found, KernelSource) and is_entry(found):
        return found
    available = sorted(name for name, value in vars(loaded).items() if is_entry(value))
    listed = ", ".join(available) if available else "none"
    if found is None:
        raise BuildError(f"module {module} has no {entry!r}; its @pl.jit functions: {listed}")
    raise BuildError(f"{module}.{entry} is a {type(found).__name__}, not a @pl.jit function; those are: {listed}")


def _confine_imports(import_roots: Sequence[Path]) -> None:
    library = {os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
    standard = [
        path
        for path in sys.path
        if path
        and not {"site-packages", "dist-packages"} & set(Path(path).parts)
        and any(os.path.realpath(path) in (root, os.path.join(root, "lib-dynload")) for root in library)
    ]
    sys.path[:] = [os.path.abspath(root) for root in import_roots] + standard
    importlib.invalidate_caches()
    # The source tree is an input: a build writes nothing into it.
    sys.dont_write_bytecode = True


def _described(error: Exception) -> str:
    """The error with the innermost place in the user's own files."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, (ImportError, SyntaxError)):
        return text
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((package, "<frozen ", importlib.__path__[0]))
    ]
    return f"{text} ({own[-1].filename}:{own[-1].lineno})" if own else text


def _missing_module(module: str, missing: str, import_roots: Sequence[Path]) -> str:
    if module == missing or module.startswith(missing + "."):
        roots = ", ".join(map(str, import_roots)) or "none were given"
        return f"there is no module {missing!r} in the import roots ({roots}); --import-root names the folder above it"
    return (
        f"importing {module} needs {missing!r}, which a build does not offer: a kernel's module imports only pypto, "
        "the standard library and modules of the import roots. A module of kernels goes into the `deps` of "
        "pypto_kernel (or below an --import-root); golden functions and tests go into modules that no kernel imports"
    )
