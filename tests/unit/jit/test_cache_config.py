"""Cache configuration: defaults, precedence, environment."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

import pypto
from pypto.jit.config import CacheConfig, capture_policy, configure_cache


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("PYPTO_CACHE", "PYPTO_CACHE_DIR", "PYPTO_CACHE_READONLY"):
        monkeypatch.delenv(name, raising=False)
    configure_cache(None)
    yield
    configure_cache(None)


def test_cfg_05_08_10_14_20_24_defaults() -> None:
    config = pypto.CacheConfig()
    assert dataclasses.asdict(config) == {
        "enabled": False,
        "root": None,
        "readonly": False,
        "extra_source_paths": (),
        "extra_fingerprint": None,
    }


def test_cfg_07_immutable() -> None:
    config = CacheConfig()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.enabled = True  # type: ignore[misc]
    assert config.enabled is False


def test_the_default_policy_is_off_with_the_root_in_the_home_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    policy = capture_policy()
    assert policy.enabled is False
    assert policy.root == tmp_path / ".cache" / "pypto" / "jit"


def test_without_a_home_folder_only_the_default_root_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nobody)
    assert capture_policy().enabled is False
    assert capture_policy(CacheConfig(enabled=True, root=tmp_path)).root == tmp_path
    with pytest.raises(ValueError, match=r"this user has none: set HOME or PYPTO_CACHE_DIR, or name CacheConfig\.root"):
        capture_policy(CacheConfig(enabled=True))


def test_cfg_67_relative_paths_are_resolved_at_capture(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = CacheConfig(enabled=True, root=Path("cache"), extra_source_paths=("kernels",))
    monkeypatch.chdir(tmp_path)
    policy = capture_policy(config)
    monkeypatch.chdir("/")
    assert policy.root == tmp_path / "cache"
    assert policy.extra_source_paths == (tmp_path / "kernels",)


def test_cnt_02_cfg_12_66_a_folder_above_is_that_of_the_link_before_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """CNT-02, CNT-03: what `link/..` is, the file system says; the text alone does not."""
    (tmp_path / "elsewhere/deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("elsewhere/deep")
    monkeypatch.chdir(tmp_path)
    policy = capture_policy(CacheConfig(root="link/../cache", extra_source_paths=("link/../sources",)))
    assert policy.root == tmp_path / "elsewhere/cache"
    assert [str(path) for path in policy.extra_source_paths] == [f"{tmp_path}/link/../sources"]
    monkeypatch.setenv("PYPTO_CACHE_DIR", "link/..")
    assert capture_policy().root == tmp_path / "elsewhere"
    monkeypatch.delenv("PYPTO_CACHE_DIR")
    monkeypatch.setenv("HOME", "home")
    assert capture_policy().root == tmp_path / "home/.cache/pypto/jit"


def test_cfg_28_29_30_levels_win_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYPTO_CACHE", "1")
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path / "environment"))
    monkeypatch.setenv("PYPTO_CACHE_READONLY", "1")
    environment = capture_policy()
    assert (environment.enabled, environment.root, environment.readonly) == (True, tmp_path / "environment", True)

    configure_cache(CacheConfig(enabled=True, root=tmp_path / "process"))
    process = capture_policy()
    assert (process.root, process.readonly) == (tmp_path / "process", False)

    call = capture_policy(CacheConfig(root=tmp_path / "call"))
    assert (call.enabled, call.root, call.readonly) == (False, tmp_path / "call", False)
    bare = capture_policy(CacheConfig(enabled=True))
    assert (bare.enabled, bare.root, bare.readonly) == (True, Path.home() / ".cache/pypto/jit", False)

    configure_cache(None)
    assert capture_policy() == environment


@pytest.mark.parametrize("name", ["PYPTO_CACHE", "PYPTO_CACHE_READONLY"])
@pytest.mark.parametrize("text", ["true", "yes", "2", "on", ""])
def test_cfg_36_37_64_booleans_are_0_or_1(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(ValueError, match=f"{name} is 0 or 1, got {text!r}"):
        capture_policy()


def test_cfg_63_the_environment_is_read_only_where_it_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPTO_CACHE", "maybe")
    configure_cache(CacheConfig())
    assert capture_policy().enabled is False
    configure_cache(None)
    with pytest.raises(ValueError, match="PYPTO_CACHE"):
        capture_policy()


def test_cfg_65_a_directory_alone_does_not_enable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path))
    assert capture_policy().enabled is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"enabled": 1}, "CacheConfig.enabled is a bool, got 1"),
        ({"root": 3}, "CacheConfig.root is a path or None, got 3"),
        ({"extra_source_paths": "kernels"}, r"is a tuple of paths, got one path 'kernels'; write \('kernels',\)"),
        ({"extra_fingerprint": b"x"}, "CacheConfig.extra_fingerprint is a str or None"),
    ],
)
def test_wrong_types_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        CacheConfig(**arguments)  # type: ignore[arg-type]


def test_an_empty_root_is_refused() -> None:
    with pytest.raises(ValueError, match=r"CacheConfig\.root is empty; name a folder"):
        CacheConfig(enabled=True, root="")
