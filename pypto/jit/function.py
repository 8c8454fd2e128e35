"""The object that ``@pl.jit`` makes of a function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from pypto.build.errors import BuildError
from pypto.ir.nodes import FunctionKind
from pypto.language.errors import about_the_kernel
from pypto.language.signature import Signature
from pypto.language.source import KernelSource, SourceClosure

if TYPE_CHECKING:
    from pypto.build.specialize import Specialization
    from pypto.ir.nodes import Program
    from pypto.jit.repeated import RepeatedCalls
    from pypto.runtime.compiled import CompiledKernel
    from pypto.runtime.config import RunConfig


class JITFunction(KernelSource):
    """An entry that is compiled when it is needed. Its body is parsed, never run.

    Samples are arrays, or objects with ``shape`` and ``dtype`` only. A parameter whose annotation is complete needs
    none; dynamic dimensions and scalars never do, and scalars never select what is compiled.

    Attributes:
        latest_digest: the latest source closure and its digest, so that equal requests do not digest it again.
        specializations: those made already, by what of the samples selects them.
        repeated: calls that were made already; ``None`` before the first.
    """

    def __init__(self, function: Callable[..., Any], kind: FunctionKind = FunctionKind.ORCHESTRATION) -> None:
        super().__init__(function, kind)
        self.latest_digest: tuple[SourceClosure, str] | None = None
        self.specializations: dict[Hashable, Specialization] = {}
        self.repeated: RepeatedCalls | None = None

    @functools.cached_property
    def signature(self) -> Signature:
        """Parameters as annotated.

        Raises:
            CompileError: a parameter without a usable annotation.
        """
        return Signature.of(self)

    @about_the_kernel
    def specialize(self, *samples: Any, config: RunConfig | None = None, **named: Any) -> Program:
        """The typed IR for these samples, before any pass. Always made anew; no cache is looked at.

        Raises:
            CompileError: the kernel is wrong, with its place.
            TypeError: samples that do not fit (`SampleError` for their shapes and dtypes).
        """
        from pypto.build.generate import specialized_program
        from pypto.jit.request import capture

        request = capture(self, samples, named, config)
        return specialized_program(request.closure, request.specialization)

    @about_the_kernel
    def lower(self, *samples: Any, config: RunConfig | None = None, **named: Any) -> Program:
        """The IR that code is generated from, after all passes; otherwise as `specialize`."""
        from pypto.build.generate import lowered_program
        from pypto.jit.request import capture

        request = capture(self, samples, named, config)
        return lowered_program(request.closure, request.specialization)

    @about_the_kernel
    def compile(self, *samples: Any, config: RunConfig | None = None, **named: Any) -> CompiledKernel:
        """The compiled kernel for these samples. Runs nothing, and promises generated code only.

        Raises:
            CompileError: the kernel is wrong, with its place. The request may be repeated.
            TypeError: samples that do not fit (`SampleError` for their shapes and dtypes).
        """
        from pypto.jit.flow import obtain
        from pypto.jit.request import capture

        return obtain(capture(self, samples, named, config))

    @about_the_kernel
    def warmup(self, *samples: Any, config: RunConfig | None = None, **named: Any) -> CompiledKernel:
        """Compile, and build every binary: a later call runs no tool. Starts no device and runs no kernel.

        Raises:
            ToolchainNotInstalled: tools are needed and none are installed.
            ToolError: a tool failed. Otherwise as `compile`.
        """
        kernel = self.compile(*samples, config=config, **named)
        _refuse_codegen_only(config)
        kernel.ensure_ready()
        return kernel

    def __call__(self, *args: Any, config: RunConfig | None = None, **named: Any) -> object:
        """Build what is missing and run; returns the entry's returned outputs.

        Raises:
            KernelRunError: the run failed. Otherwise as `warmup`.
        """
        if named:
            from pypto.jit.binding import bind_call

            args = tuple(bind_call(self.signature, args, named))
        repeated = self.repeated
        if repeated is not None:
            result = repeated.run(args, config)
            if result is not repeated.UNKNOWN:
                return result
        return self._call(args, config)

    @about_the_kernel
    def _call(self, args: tuple[Any, ...], config: RunConfig | None) -> object:
        from pypto.jit.binding import bind_call
        from pypto.jit.flow import obtain
        from pypto.jit.repeated import RepeatedCalls
        from pypto.jit.request import capture

        values = bind_call(self.signature, args, {})
        request = capture(self, values, {}, config)
        kernel = obtain(request)
        _refuse_codegen_only(config)
        result = kernel(*values, config=config)
        if self.repeated is None:
            self.repeated = RepeatedCalls(self)
        self.repeated.remember(request, kernel, args, values, config)
        return result


class HostFunction(JITFunction):
    """The HOST entry of a distributed program; compiled and called as any other entry.

    A call needs ``RunConfig(distributed_config=DistributedConfig(device_ids=[...]))``: one device for each rank.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function, FunctionKind.HOST)

    def compile(self, *samples: Any, config: RunConfig | None = None, **named: Any) -> CompiledKernel:
        """As of any entry; what is compiled runs on the ranks of ``config`` when a call names no others."""
        kernel = super().compile(*samples, config=config, **named)
        if config is None or config.distributed_config is None:
            return kernel
        from pypto.runtime.compiled import KernelOnRanks

        return KernelOnRanks(kernel, config)


def _refuse_codegen_only(config: RunConfig | None) -> None:
    if config is not None and config.codegen_only:
        raise BuildError("RunConfig.codegen_only makes no binaries: use f.compile(..., config=config)")
