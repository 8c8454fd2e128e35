"""``jit`` and its variants: decorators that mark functions to be compiled from their source."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from pypto.ir.nodes import FunctionKind
from pypto.jit.function import HostFunction, JITFunction
from pypto.language.annotations import Level
from pypto.language.errors import OutsideKernelError
from pypto.language.source import KernelSource

if TYPE_CHECKING:
    from pypto.jit.extern import ExternFunction

Marked = TypeVar("Marked", bound=KernelSource)


class IncoreFunction(KernelSource):
    """A device kernel: entries call it, Python does not."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function, FunctionKind.INCORE)

    def __call__(self, *_arguments: Any, **_named: Any) -> NoReturn:
        raise OutsideKernelError(
            f"{self.qualname} is a device kernel: call it inside a @pl.jit function, and call that one from Python"
        )


class SplicedFunction(KernelSource):
    """A function whose body becomes part of its callers; Python does not call it."""

    def __call__(self, *_arguments: Any, **_named: Any) -> NoReturn:
        raise OutsideKernelError(
            f"{self.qualname} is part of kernels: call it inside a @pl.jit function, and call that one from Python"
        )


class Jit:
    """The decorator ``jit``; its variants are its attributes."""

    @overload
    def __call__(self, function: Callable[..., Any], /) -> JITFunction: ...
    @overload
    def __call__(self, /, **options: Any) -> Callable[[Callable[..., Any]], JITFunction]: ...
    def __call__(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Mark an entry: a function that submits device kernels and is called from Python."""
        return _mark("jit", JITFunction, function, options)

    @overload
    def incore(self, function: Callable[..., Any], /) -> IncoreFunction: ...
    @overload
    def incore(self, /, **options: Any) -> Callable[[Callable[..., Any]], IncoreFunction]: ...
    def incore(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Mark a device kernel: a function that runs on one core. ``level`` may say so: ``pl.Level.CORE_GROUP``."""
        level = options.pop("level", Level.CORE_GROUP)
        if level is not Level.CORE_GROUP:
            raise ValueError(f"@pl.jit.incore: level must be pl.Level.CORE_GROUP, not {level!r}")
        return _mark("jit.incore", IncoreFunction, function, options)

    @overload
    def inline(self, function: Callable[..., Any], /) -> SplicedFunction: ...
    @overload
    def inline(self, /, **options: Any) -> Callable[[Callable[..., Any]], SplicedFunction]: ...
    def inline(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Mark a function that is spliced into its callers: entries, scopes and device kernels."""
        return _mark("jit.inline", lambda f: SplicedFunction(f, FunctionKind.INLINE), function, options)

    @overload
    def opaque(self, function: Callable[..., Any], /) -> SplicedFunction: ...
    @overload
    def opaque(self, /, **options: Any) -> Callable[[Callable[..., Any]], SplicedFunction]: ...
    def opaque(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Mark a part of an entry with loops and scopes of its own; entries call it outside of scopes."""
        return _mark("jit.opaque", lambda f: SplicedFunction(f, FunctionKind.OPAQUE), function, options)

    @overload
    def host(self, function: Callable[..., Any], /) -> HostFunction: ...
    @overload
    def host(self, /, **options: Any) -> Callable[[Callable[..., Any]], HostFunction]: ...
    def host(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Mark the HOST entry of a distributed program: it calls functions under ``@pl.jit``, each on one rank."""
        return _mark("jit.host", HostFunction, function, options)

    def extern(
        self,
        *,
        core_type: str,
        source: str | os.PathLike[str] | None = None,
        aic_source: str | os.PathLike[str] | None = None,
        aiv_source: str | os.PathLike[str] | None = None,
        include_dirs: Sequence[str | os.PathLike[str]] | None = None,
        dual_aiv_dispatch: bool = False,
    ) -> Callable[[Callable[..., Any]], ExternFunction]:
        """Mark a stub for a device kernel that is written in C++; see `pypto.jit.extern.ExternFunction`.

        Args:
            core_type: ``aic``, ``aiv`` or ``mixed``; a mixed kernel is one task on each, the AIC's first.
            source: the C++ file, relative to the file of the stub; for ``mixed`` it is compiled for both cores.
            aic_source, aiv_source: one file for each core, for ``mixed``.
            include_dirs: folders for its includes, in order, relative to the file of the stub.
            dual_aiv_dispatch: let two vector cores run the vector code for each call.
        """
        from pypto.jit.extern import extern

        return extern(core_type, source, aic_source, aiv_source, include_dirs, dual_aiv_dispatch)


jit = Jit()


def _mark(
    name: str,
    kind: Callable[[Callable[..., Any]], Marked],
    function: Callable[..., Any] | None,
    options: Mapping[str, Any],
) -> Any:
    if options:
        raise TypeError(
            f"@pl.{name} takes no option {next(iter(options))!r}; compile options travel in RunConfig, "
            "as f(..., config=RunConfig(...))"
        )
    if function is None:
        return lambda decorated: kind(decorated)
    return kind(function)
