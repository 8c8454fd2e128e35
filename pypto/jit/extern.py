"""Device kernels that are written in C++ and called like those in Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from pypto.ir.nodes import CoreType, ExternSource, FunctionKind
from pypto.language.errors import OutsideKernelError
from pypto.language.source import ExternPart, KernelSource

Pathname = str | os.PathLike[str]

_CORES = {"aic": (CoreType.AIC,), "aiv": (CoreType.AIV,), "mixed": (CoreType.AIC, CoreType.AIV)}


class ExternFunction(KernelSource):
    """A stub whose code is hand-written C++. Entries call it; its body is ``...``, its annotations say what it takes.

    The code defines ``extern "C" void kernel_entry(__gm__ int64_t* args)``: one 64-bit slot for each parameter in order
    (a tensor is its address, a float stands in the low half), then the run-time dimensions and, of views, the strides.
    With ``dual_aiv_dispatch`` both vector cores beside a matrix core run the vector code for each call; it asks
    ``get_subblockid()`` which of the two it is, and each writes a part of the outputs.
    The source and every local file that it includes take part in the source digest and are read at every request.
    """

    def __init__(
        self, function: Callable[..., Any], options: Mapping[str, str | bool], parts: Sequence[ExternPart]
    ) -> None:
        super().__init__(function, FunctionKind.INCORE, options)
        here = os.path.dirname(os.path.abspath(self.filename))

        def absolute(code: ExternSource) -> ExternSource:
            folders = tuple(os.path.join(here, folder) for folder in code.include_dirs)
            return replace(code, source=os.path.join(here, code.source), include_dirs=folders)

        self._parts = tuple(ExternPart(part.suffix, part.core, absolute(part.code)) for part in parts)

    def parts(self) -> tuple[ExternPart, ...]:
        return self._parts

    def captured(self) -> dict[str, Any]:
        return {f"extern.{part.core.value}": self._content(part) for part in self._parts}

    def __call__(self, *_arguments: Any, **_named: Any) -> NoReturn:
        raise OutsideKernelError(
            f"{self.qualname} is a device kernel: call it inside a @pl.jit function, and call that one from Python"
        )

    def _content(self, part: ExternPart) -> tuple[Any, ...]:
        """Every file of the code with its bytes as Latin-1 text, which has a character for each."""
        from pypto.runtime._artifact_sources import UnsupportedArtifactInput, package_extern

        code = part.code
        try:
            try:
                package = package_extern(code.source, code.include_dirs)
            except UnsupportedArtifactInput:
                # Never shared, so this only has to tell apart what one process asks for.
                with open(code.source, "rb") as file:
                    return ("not packed", file.read().decode("latin-1"))
        except OSError as error:
            raise self.text.error(
                f"{self.name}: the source {error.filename} cannot be read: {error.strerror}", self.text.name
            ) from None
        files = tuple((name, data.decode("latin-1")) for name, data in package.files.items())
        return ("packed", package.source, package.include_dirs, files)


def extern(
    core_type: str,
    source: Pathname | None,
    aic_source: Pathname | None,
    aiv_source: Pathname | None,
    include_dirs: Sequence[Pathname] | None,
    dual_aiv_dispatch: bool,
) -> Callable[[Callable[..., Any]], ExternFunction]:
    """The decorator for these options.

    Raises:
        TypeError, ValueError: options that do not fit together.
    """
    if core_type not in _CORES:
        raise ValueError(f"@pl.jit.extern: core_type is 'aic', 'aiv' or 'mixed', got {core_type!r}")
    if not isinstance(dual_aiv_dispatch, bool):
        raise TypeError(f"@pl.jit.extern: dual_aiv_dispatch is True or False, got {dual_aiv_dispatch!r}")
    for name, path in (("source", source), ("aic_source", aic_source), ("aiv_source", aiv_source)):
        if path is not None:
            _check_path(name, path)
    if dual_aiv_dispatch and core_type == "aic":
        raise ValueError("@pl.jit.extern: dual_aiv_dispatch is for vector code; core_type='aic' has none")
    if isinstance(include_dirs, (str, os.PathLike)):
        raise TypeError(f"@pl.jit.extern: include_dirs is a list of folders, got one path {os.fspath(include_dirs)!r}")
    for folder in include_dirs or ():
        _check_path("include_dirs", folder)
    folders = tuple(os.fspath(folder) for folder in include_dirs or ())
    sources = _sources(core_type, source, aic_source, aiv_source)
    parts = []
    for core in _CORES[core_type]:
        suffix = f"_{core.value}" if core_type == "mixed" else ""
        code = ExternSource(sources[core], folders)
        if dual_aiv_dispatch and core is CoreType.AIV:
            parts += [ExternPart(f"{suffix}_{lane}", core, replace(code, lane=lane, lanes=2)) for lane in (0, 1)]
        else:
            parts.append(ExternPart(suffix, core, code))
    options: dict[str, str | bool] = {"core_type": core_type}
    if dual_aiv_dispatch:
        options["dual_aiv_dispatch"] = True
    return lambda function: ExternFunction(function, options, parts)


def _check_path(name: str, path: object) -> None:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"@pl.jit.extern: {name} takes paths, got {path!r}")


def _sources(
    core_type: str, source: Pathname | None, aic_source: Pathname | None, aiv_source: Pathname | None
) -> dict[CoreType, str]:
    separate = {CoreType.AIC: aic_source, CoreType.AIV: aiv_source}
    if core_type == "mixed" and source is None and aic_source is not None and aiv_source is not None:
        return {core: os.fspath(path) for core, path in separate.items() if path is not None}
    if source is None or aic_source is not None or aiv_source is not None:
        both = " or aic_source= and aiv_source=" if core_type == "mixed" else ""
        raise TypeError(f"@pl.jit.extern(core_type={core_type!r}) takes source={both}")
    return dict.fromkeys(separate, os.fspath(source))
