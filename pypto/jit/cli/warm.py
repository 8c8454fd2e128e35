"""``warm``: prepare every kernel that a warmup file lists."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pypto.build.errors import BuildError
from pypto.jit.cli.output import Progress, print_json, print_table
from pypto.jit.cli.warmup_file import WarmupRequest, load_warmup
from pypto.jit.flow import obtain
from pypto.jit.request import Request
from pypto.jit.stats import CacheStats, cache_stats
from pypto.language.errors import CompileError
from pypto.runtime.compiled import Origin


@dataclass(frozen=True)
class WarmResult:
    """What came of one request.

    Attributes:
        kernel: name of the kernel.
        variant: what it was compiled for.
        result: ``shared`` (other processes find it), ``private`` (this process alone has it), ``bundle`` or ``failed``.
        how: ``ready hit``, ``generated hit``, ``object hit`` or ``built``.
        reason: why it is private, or why it failed.
        key: digest of its key.
        directory: where the artifact is.
        seconds: how long it took.
    """

    kernel: str
    variant: str
    result: str
    how: str | None
    reason: str | None
    key: str | None
    directory: str | None
    seconds: float


def warm(module: str, config: Path, *, as_json: bool) -> int:
    """Prepare everything; returns the exit status."""
    requests = load_warmup(module, config)
    progress = Progress(len(requests))
    results = []
    for request in requests:
        with progress.step(f"{request.kernel} for {_target(request.request)}"):
            results.append(_prepare(request))
    if as_json:
        print_json({"schema_version": 1, "results": [asdict(r) for r in results], "stats": asdict(cache_stats())})
    else:
        _print(results)
    return 1 if any(result.result == "failed" for result in results) else 0


def _prepare(wanted: WarmupRequest) -> WarmResult:
    from pypto.toolchain import ToolchainError

    request = wanted.request
    before, start = cache_stats(), time.perf_counter()
    kernel, failure = None, None
    try:
        kernel = obtain(request)
        kernel.ensure_ready()
    except (CompileError, BuildError, ToolchainError) as error:
        failure = str(error)
    except Exception as error:
        # Whatever it is, the others are still prepared.
        failure = f"{type(error).__name__}: {error}"
    seconds = round(time.perf_counter() - start, 3)
    after = cache_stats()
    if kernel is None or failure is not None:
        variant = str(request.specialization)
        return WarmResult(wanted.kernel, variant, "failed", None, failure, None, None, seconds)
    reason = _why_private(request, before, after) if kernel.origin is Origin.PRIVATE else None
    return WarmResult(
        wanted.kernel,
        str(request.specialization),
        kernel.origin.value,
        _how(before, after),
        reason,
        kernel.key,
        None if kernel.binary_dir is None else str(kernel.binary_dir),
        seconds,
    )


def _how(before: CacheStats, after: CacheStats) -> str:
    if after.generation_builds > before.generation_builds:
        return "built"
    for name in ("ready_hits", "generated_hits"):
        if getattr(after, name) > getattr(before, name):
            return name.removesuffix("s").replace("_", " ")
    return "object hit"


def _why_private(request: Request, before: CacheStats, after: CacheStats) -> str:
    if request.forced:
        return "diagnostics or an explicit output directory force a build"
    if not request.policy.enabled:
        return "the persistent cache is off"
    if after.bypasses > before.bypasses:
        return after.last_bypass_reason or "bypass"
    if after.invalid_entries > before.invalid_entries:
        return "the entry in the cache is damaged; see python -m pypto.jit verify"
    if request.policy.readonly:
        return "the cache is read-only"
    return "the cache cannot be written"


def _target(request: Request) -> str:
    options = request.specialization.options
    return f"{options.backend_type}, {options.execution_mode}"


def _print(results: Sequence[WarmResult]) -> None:
    rows = [
        (r.kernel, r.result, r.how or "-", f"{r.seconds:.2f} s", r.reason.splitlines()[0] if r.reason else "")
        for r in results
    ]
    print_table(("KERNEL", "RESULT", "HOW", "TIME", "REASON"), rows)
    for result in results:
        if result.result == "failed" and result.reason is not None and "\n" in result.reason:
            print(f"\n{result.kernel}: {result.reason}")
