"""A small memory between runs, so that a warm start asks no other program anything.

Purely an optimisation: a note that cannot be read or written is simply not there.
"""

from __future__ import annotations

import json
import os

LIMIT = 64
"""Notes kept; the oldest go first. One file stays small for ever."""


class Notes:
    """Text values by key, in one JSON file that is replaced as a whole."""

    def __init__(self, folder: str | None) -> None:
        self.path = os.path.join(folder, "notes.json") if folder else None

    def _read(self) -> dict[str, str]:
        if not self.path:
            return {}
        try:
            with open(self.path, encoding="utf-8") as file:
                data = json.load(file)
        except (OSError, ValueError):
            return {}
        if not isinstance(data, dict):
            return {}
        return {k: v for k, v in data.items() if isinstance(v, str)}

    def get(self, key: str) -> str | None:
        return self._read().get(key)

    def put(self, key: str, value: str) -> None:
        """Remember `value`. Of two writers at once the later wins, and the earlier asks again next time."""
        if not self.path:
            return
        data = self._read()
        data.pop(key, None)
        data[key] = value
        for old in list(data)[: max(0, len(data) - LIMIT)]:
            del data[old]
        part = f"{self.path}.{os.getpid()}"
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with open(part, "w", encoding="utf-8") as file:
                json.dump(data, file, indent=1)
            os.replace(part, self.path)
        except OSError:
            return
