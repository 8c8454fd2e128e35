"""The settings that say which evidence an identity rests on: `PYPTO_CACHE_IDENTITY`, `_STRICT` and `_EPOCH`.

They are captured here and nowhere else, and they are part of every component's record, so that entries made under
different settings never meet. Bazel sets them by flags of the same names; the registry of environment
inputs maps one to the other.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

POLICIES = ("build", "content")


@dataclass(frozen=True)
class IdentitySettings:
    """Which evidence counts.

    Attributes:
        policy: `build` trusts what was recorded and published about the tools, `content` reads their bytes.
        strict: lets `build`, too, read the bytes of tools that only report or record a version.
        epoch: a name of the user's for a separate set of entries; None and the empty text are the same.

    Raises:
        ValueError: an unknown policy.
    """

    policy: str = "build"
    strict: bool = False
    epoch: str | None = None

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ValueError(f"the identity policy is build or content, got {self.policy!r}")
        if type(self.strict) is not bool:
            raise TypeError(f"strict is a bool, got {self.strict!r}")
        if self.epoch is not None and type(self.epoch) is not str:
            raise TypeError(f"the epoch is a text or None, got {self.epoch!r}")
        object.__setattr__(self, "epoch", self.epoch or None)

    @property
    def reads_content(self) -> bool:
        """Whether every byte of the tools is read."""
        return self.strict or self.policy == "content"

    def record(self) -> dict[str, Any]:
        """The settings as plain data: part of the record of every component."""
        return {"policy": self.policy, "strict": self.strict, "epoch": self.epoch}

    @classmethod
    def from_environment(cls) -> IdentitySettings:
        """The settings that the environment variables give.

        Raises:
            ValueError: a variable with a value that it does not take; names the variable.
        """
        policy = os.environ.get("PYPTO_CACHE_IDENTITY", "build")
        if policy not in POLICIES:
            raise ValueError(f"environment variable PYPTO_CACHE_IDENTITY is build or content, got {policy!r}")
        strict = os.environ.get("PYPTO_CACHE_STRICT", "0")
        if strict not in ("0", "1"):
            raise ValueError(f"environment variable PYPTO_CACHE_STRICT is 0 or 1, got {strict!r}")
        return cls(policy, strict == "1", os.environ.get("PYPTO_CACHE_EPOCH"))


DEFAULT_SETTINGS = IdentitySettings()
