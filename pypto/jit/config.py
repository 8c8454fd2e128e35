"""Cache configuration: where compiled artifacts are kept between processes, and which level of configuration wins."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path

from pypto._identity.policy import DEFAULT_SETTINGS, IdentitySettings
from pypto.runtime.forks import ForkSafeLock


@dataclass(frozen=True)
class CacheConfig:
    """Policy of the persistent cache. Immutable.

    Attributes:
        enabled: turns persistent lookup and publication on.
        root: cache root; ``None`` means ``~/.cache/pypto/jit``. A relative path is resolved when a request is captured.
        readonly: write nothing below the root, neither entries nor locks.
        extra_source_paths: files, or folders whose Python sources are read recursively; hashed at every request.
        extra_fingerprint: an application version or configuration mark that takes part in the identity.
    """

    enabled: bool = False
    root: str | os.PathLike[str] | None = None
    readonly: bool = False
    extra_source_paths: tuple[str | os.PathLike[str], ...] = ()
    extra_fingerprint: str | None = None

    def __post_init__(self) -> None:
        for name in ("enabled", "readonly"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"CacheConfig.{name} is a bool, got {getattr(self, name)!r}")
        if self.root is not None and not isinstance(self.root, (str, os.PathLike)):
            raise TypeError(f"CacheConfig.root is a path or None, got {self.root!r}")
        if self.root == "":
            raise ValueError("CacheConfig.root is empty; name a folder ('.' is the working directory), or None")
        if isinstance(self.extra_source_paths, (str, os.PathLike)):
            raise TypeError(
                f"CacheConfig.extra_source_paths is a tuple of paths, got one path {self.extra_source_paths!r}; "
                f"write ({str(self.extra_source_paths)!r},)"
            )
        object.__setattr__(self, "extra_source_paths", tuple(self.extra_source_paths))
        for path in self.extra_source_paths:
            if not isinstance(path, (str, os.PathLike)):
                raise TypeError(f"CacheConfig.extra_source_paths holds paths, got {path!r}")
        if self.extra_fingerprint is not None and not isinstance(self.extra_fingerprint, str):
            raise TypeError(f"CacheConfig.extra_fingerprint is a str or None, got {self.extra_fingerprint!r}")


@dataclass(frozen=True)
class CachePolicy:
    """What one request captured from its configuration; every path is absolute and never resolved again.

    Attributes:
        identity: which evidence identities rest on; entries made under different settings never meet.
    """

    enabled: bool
    root: Path
    readonly: bool
    extra_source_paths: tuple[Path, ...]
    extra_fingerprint: str | None
    identity: IdentitySettings = DEFAULT_SETTINGS


_lock = ForkSafeLock()
_process_default: CacheConfig | None = None


def configure_cache(config: CacheConfig | None) -> None:
    """Set the process default, or with ``None`` go back to the environment and then the built-in defaults.

    Requests in progress keep the policy they captured; statistics and files stay as they are.
    """
    if config is not None and not isinstance(config, CacheConfig):
        raise TypeError(f"configure_cache takes a CacheConfig or None, got {config!r}")
    global _process_default
    with _lock:
        _process_default = config


def process_default() -> CacheConfig | None:
    """What `configure_cache` set last."""
    return _process_default


def capture_policy(per_call: CacheConfig | None = None) -> CachePolicy:
    """Resolve the policy of one request: the call's own config, else the process default, else the environment.

    Levels are never merged. The identity's variables (``PYPTO_CACHE_IDENTITY``, ``PYPTO_CACHE_STRICT`` and
    ``PYPTO_CACHE_EPOCH``) hold for an enabled cache whatever level enabled it.

    Raises:
        ValueError: a Boolean variable that is neither ``0`` nor ``1``, if the environment is the level that decides; a
            variable of the identity with an illegal value; or no root is named and there is no home folder.
    """
    with _lock:
        config = per_call if per_call is not None else _process_default
    if config is None:
        config = _environment_config()
    return CachePolicy(
        enabled=config.enabled,
        root=_canonical(config.root) if config.root is not None else _default_root(config.enabled),
        readonly=config.readonly,
        extra_source_paths=tuple(_absolute(path) for path in config.extra_source_paths),
        extra_fingerprint=config.extra_fingerprint,
        identity=IdentitySettings.from_environment() if config.enabled else DEFAULT_SETTINGS,
    )


def _default_root(enabled: bool) -> Path:
    try:
        return _canonical(Path.home() / ".cache" / "pypto" / "jit")
    except RuntimeError:
        if not enabled:
            # Nothing is kept there: it is only where private output must not be.
            return Path(os.devnull)
        raise ValueError(
            "the cache root ~/.cache/pypto/jit needs a home folder, and this user has none: set HOME or "
            "PYPTO_CACHE_DIR, or name CacheConfig.root"
        ) from None


def _canonical(path: str | os.PathLike[str]) -> Path:
    """An absolute path without `..`, which only the file system can resolve: the folder before it may be a link."""
    absolute = _absolute(path)
    return Path(os.path.realpath(absolute)) if ".." in absolute.parts else absolute


def _absolute(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    return _joined("/" if os.path.isabs(text) else os.getcwd(), text)


@functools.lru_cache(maxsize=64)
def _joined(folder: str, path: str) -> Path:
    return Path(os.path.join(folder, path))


def _environment_config() -> CacheConfig:
    return CacheConfig(
        enabled=_environment_bool("PYPTO_CACHE"),
        root=os.environ.get("PYPTO_CACHE_DIR") or None,
        readonly=_environment_bool("PYPTO_CACHE_READONLY"),
    )


def _environment_bool(name: str) -> bool:
    text = os.environ.get(name)
    if text is None or text == "0":
        return False
    if text == "1":
        return True
    raise ValueError(f"environment variable {name} is 0 or 1, got {text!r}")
