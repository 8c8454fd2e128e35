"""Errors of compilers name hand-written files where the user has them, not where they were packed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pypto.build.layout import read_config
from pypto.language.source import SourceClosure
from pypto.runtime.kernel_compiler import CompilerOutputError
from pypto.toolchain.errors import ToolError


@contextmanager
def errors_at_sources(generated: Path, closure: SourceClosure) -> Iterator[None]:
    """Let errors of a build of ``generated`` name the files that were packed into it."""
    try:
        yield
    except ToolError as error:
        raise error.renamed(_places(generated, closure)) from None
    except CompilerOutputError as error:
        text = str(error)
        for inside, outside in _places(generated, closure).items():
            text = text.replace(inside, outside)
        raise CompilerOutputError(text) from None


def _places(generated: Path, closure: SourceClosure) -> dict[str, str]:
    """The user's folder by the folder that stands for it in a private root."""
    sources = [part.code.source for function in closure.functions for part in function.kernel.parts()]
    if not sources:
        return {}
    places = {}
    for kernel in read_config(generated)["kernels"]:
        folder = f"extern/{kernel['name']}/"
        inside = kernel["source"].removeprefix(folder)
        ends = {source.removesuffix(inside) for source in sources if source.endswith(f"/{inside}")}
        # Two functions may have packed files of equal names; then the packed name has to do.
        if kernel["source"].startswith(folder) and len(ends) == 1:
            places[f"w/{folder}"] = ends.pop()
    return places
