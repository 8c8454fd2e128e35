"""Several tools at a time."""

from __future__ import annotations

import contextvars
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_all(work: Callable[[Item], Result], items: Sequence[Item], jobs: int | None) -> list[Result]:
    """``work`` of every item, at most ``jobs`` (default: usable CPUs) at a time; results in the order of the items.

    The error that is raised is that of the first item that failed, whichever failed first in time; items not yet
    started are then dropped, and the tools of the others ended.
    """
    workers = min(len(items), jobs or len(os.sched_getaffinity(0)))
    if workers <= 1:
        return [work(item) for item in items]
    from pypto.toolchain.cleanup import RunningTools, ended_by_sigterm

    tools = RunningTools()
    with (
        ended_by_sigterm(),
        ThreadPoolExecutor(workers, thread_name_prefix="pypto-build", initializer=tools.enter) as pool,
    ):
        # Each in a context of its own, which knows what the caller works for.
        futures = [pool.submit(contextvars.copy_context().run, work, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            tools.end()
            raise
