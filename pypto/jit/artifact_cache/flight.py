"""Overlapping equal requests of one process share one operation."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from typing import Any


class _Flight:
    def __init__(self) -> None:
        self.leader = threading.get_ident()
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None


class SingleFlight:
    """Runs an operation once for all callers that ask for it while it runs; keeps nothing afterwards."""

    def __init__(self) -> None:
        self._reset()
        # In a forked child the leaders do not exist, so nobody would ever finish their operations.
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[Hashable, _Flight] = {}

    def run(self, key: Hashable, operation: Callable[[], Any]) -> Any:
        """The result of `operation`, or of the equal operation in progress; its error reaches every caller.

        Raises:
            RuntimeError: the operation asks for itself on the same thread.
        """
        with self._lock:
            flight = self._flights.get(key)
            leads = flight is None
            if flight is None:
                flight = self._flights[key] = _Flight()
            elif flight.leader == threading.get_ident():
                raise RuntimeError("a builder must not ask for the artifact that it is building")
        if not leads:
            flight.done.wait()
            if flight.error is not None:
                raise flight.error
            return flight.result
        try:
            flight.result = operation()
            return flight.result
        except BaseException as error:
            flight.error = error
            raise
        finally:
            with self._lock:
                # A forked child has a new table that does not hold this operation.
                if self._flights.get(key) is flight:
                    del self._flights[key]
            flight.done.set()

    def pending(self) -> int:
        """Number of operations in progress."""
        with self._lock:
            return len(self._flights)
