"""Calls like earlier ones of the same function: what every request looks at is compared with what it was then.

A call is answered here only if a request made now would find the same object of this process: the same arguments by
shape and type, the same settings, and nothing changed of what a request reads besides: the values of outside names, the
environment, the working directory, the process's cache configuration and bundles, and the toolchain.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pypto.jit.config import CacheConfig, process_default
from pypto.jit.flow import find_object
from pypto.jit.request import Request, capture
from pypto.jit.sealed import chosen_bundles
from pypto.jit.stats import count_object_hit
from pypto.language.watch import SourceWatch
from pypto.runtime.compiled import CompiledKernel, Origin
from pypto.runtime.prepared import PreparedCall, can_prepare, facts
from pypto.toolchain.selection import Selected, is_selected, selected

if TYPE_CHECKING:
    from pathlib import Path

    from pypto.jit.function import JITFunction
    from pypto.runtime.config import RunConfig
    from pypto.runtime.program import CompiledProgram

_CALLS = 64


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


def _environment() -> Any:
    """The dictionary behind ``os.environ``: to read its variables one by one would take longer than the whole call."""
    return getattr(os.environ, "_data", None)


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """What requests read of the process; ``tools`` only if the request needs tools."""

    environment: dict[bytes, bytes]
    folder: str
    default: CacheConfig | None
    bundles: tuple[Path, ...] | None
    tools: Selected | None

    def hold(self) -> bool:
        """Whether nothing changed."""
        return (
            _environment() == self.environment
            and process_default() is self.default
            and chosen_bundles() is self.bundles
            and (self.tools is None or is_selected(self.tools))
            and os.getcwd() == self.folder
        )


@dataclass(frozen=True, slots=True)
class _Call:
    config: RunConfig | None
    surroundings: _Surroundings
    watch: SourceWatch
    program: CompiledProgram
    prepared: PreparedCall
    defaults: tuple[object, ...]
    disabled: bool


class RepeatedCalls:
    """The calls of one function that were made already. Safe to use from several threads."""

    UNKNOWN: Final = _Unknown()

    def __init__(self, function: JITFunction) -> None:
        self._function = function
        self._calls: dict[Hashable, _Call] = {}
        self._configs: dict[RunConfig, RunConfig] = {}

    def run(self, args: tuple[Any, ...], config: RunConfig | None) -> object:
        """The result of a call; counts it. ``UNKNOWN``, and nothing done, if it needs a request of its own.

        Raises:
            KernelRunError: the run failed.
        """
        name = facts(args)
        call = self._calls.get((id(config), name))
        if call is None or call.config is not config:
            call = self._calls.get((id(self._equal(config)), name))
            if call is None:
                return self.UNKNOWN
        try:
            if not (call.surroundings.hold() and call.watch.unchanged()):
                return self.UNKNOWN
        except OSError:
            return self.UNKNOWN
        if call.defaults:
            args += call.defaults
        frame = call.prepared.fill(call.program, args)
        if frame is None:
            return self.UNKNOWN
        count_object_hit(disabled=call.disabled)
        return call.prepared.run(call.program, frame, args)

    def remember(
        self,
        request: Request,
        kernel: CompiledKernel,
        args: Sequence[object],
        values: Sequence[object],
        config: RunConfig | None,
    ) -> None:
        """Take note of a call that was made, if calls like it can be answered here.

        Args:
            values: the arguments in parameter order, of which ``args`` were given by position.
        """
        try:
            call = self._call(request, kernel, args, values, config)
        except Exception:
            call = None  # the same passed a moment ago: something changed since, and the next call says what
        if call is not None:
            if len(self._calls) >= _CALLS:
                self._calls.clear()
                self._configs.clear()
            self._calls[id(config), facts(args)] = call
            if config is not None:
                with contextlib.suppress(TypeError):  # it holds something that cannot be compared this way
                    self._configs.setdefault(config, config)

    def _equal(self, config: RunConfig | None) -> RunConfig | None:
        """The settings of an earlier call that equal these, where a program makes them anew for each call."""
        try:
            return None if config is None else self._configs.get(config, config)
        except TypeError:
            return config

    def _call(
        self,
        request: Request,
        kernel: CompiledKernel,
        args: Sequence[object],
        values: Sequence[object],
        config: RunConfig | None,
    ) -> _Call | None:
        if request.distributed or request.forced or request.policy.extra_source_paths or not kernel.reusable:
            return None
        if type(request.config.cache_config) not in (type(None), CacheConfig):
            return None
        tools = None if kernel.origin is Origin.BUNDLE else selected()
        if tools is None and kernel.origin is not Origin.BUNDLE:
            return None
        program = kernel.load()
        if not can_prepare(program.config.params, values):
            return None
        watch = SourceWatch.of(request.closure)
        if watch is None:
            return None
        prepared = program.prepare(values, config)
        environment = _environment()
        if prepared is None or not isinstance(environment, dict):
            return None
        surroundings = _Surroundings(dict(environment), os.getcwd(), process_default(), chosen_bundles(), tools)
        # What is compared later must be what this object is found with.
        found = find_object(capture(self._function, values, {}, config))
        if found is not kernel or not (surroundings.hold() and watch.unchanged()):
            return None
        disabled = not request.policy.enabled
        return _Call(config, surroundings, watch, program, prepared, tuple(values[len(args) :]), disabled)
