"""Environment variables that act on host tools, and which of them the `content` inventory cannot model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pypto._identity.host.files import Unidentified

_LOADER_PREFIX = "LD_"
_LOADER = ("GLIBC_TUNABLES",)
_INTERPRETER_PREFIX = "PYTHON"
# Hash seeds reorder sets, on which no output depends; the others are notes of container images, which no Python reads.
_INTERPRETER_WITHOUT_EFFECT = (
    "PYTHONHASHSEED",
    "PYTHON_GET_PIP_SHA256",
    "PYTHON_GET_PIP_URL",
    "PYTHON_PIP_VERSION",
    "PYTHON_SETUPTOOLS_VERSION",
    "PYTHON_SHA256",
    "PYTHON_VERSION",
)
COMPILER_SEARCH = (
    "COMPILER_PATH",
    "CPATH",
    "CPLUS_INCLUDE_PATH",
    "C_INCLUDE_PATH",
    "GCC_EXEC_PREFIX",
    "LIBRARY_PATH",
    "OBJC_INCLUDE_PATH",
)
_COMPILER = (*COMPILER_SEARCH, "DEPENDENCIES_OUTPUT", "GCC_COMPARE_DEBUG", "SOURCE_DATE_EPOCH", "SUNPRO_DEPENDENCIES")
_SANITIZERS = ("ASAN_OPTIONS", "LSAN_OPTIONS", "MSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")
_LOCALE = ("LANG", "LANGUAGE")
_LOCALE_PREFIX = "LC_"


def loader_overrides(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables that the dynamic loader reads, and the locale, which every program may read."""
    return _chosen(
        variables,
        lambda name: name.startswith((_LOADER_PREFIX, _LOCALE_PREFIX)) or name in _LOADER or name in _LOCALE,
    )


def interpreter_overrides(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables that a Python interpreter or its loader reads."""
    own = _chosen(
        variables,
        lambda name: name.startswith(_INTERPRETER_PREFIX) and name not in _INTERPRETER_WITHOUT_EFFECT,
    )
    return dict(sorted((own | loader_overrides(variables)).items()))


def compiler_overrides(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables that a compiler, its helper programs or their loader read."""
    own = _chosen(variables, lambda name: name in _COMPILER or name in _SANITIZERS)
    return dict(sorted((own | loader_overrides(variables)).items()))


def execution_directory(variables: Mapping[str, str], folders: tuple[str, ...]) -> list[str] | None:
    """`folders` if `LD_LIBRARY_PATH` has a relative or an empty entry (between `:` or `;`), so that they decide; else
    None."""
    text = variables.get("LD_LIBRARY_PATH", "")
    if text and any(not entry.startswith("/") for entry in re.split("[:;]", text)):
        return list(folders)
    return None


def refuse_unmodelled(variables: Mapping[str, str], flags: tuple[str, ...]) -> None:
    """Check that nothing acts on the tools which an inventory of files cannot show.

    Raises:
        Unidentified: a loader, interpreter or compiler override, a relative library path, or a sanitizer build.
    """
    for flag in flags:
        if flag.startswith("-fsanitize"):
            raise Unidentified(f"a sanitizer build ({flag}) has no complete inventory under the content policy")
    modelled = {"LD_LIBRARY_PATH"} | {name for name in variables if name.startswith(_LOCALE_PREFIX)} | set(_LOCALE)
    unmodelled = {**interpreter_overrides(variables), **compiler_overrides(variables)}
    for name in sorted(unmodelled):
        if name not in modelled and name not in _HARMLESS and unmodelled[name]:
            raise Unidentified(f"{name} is set, whose effect the content policy cannot list")
    if execution_directory(variables, ()) is not None:
        raise Unidentified("LD_LIBRARY_PATH has a relative or an empty entry, which the content policy cannot list")


# These act by their value, which is recorded, and bring in no file that no inventory lists: PYTHONPATH's folders are
# listed where something was imported from them.
_HARMLESS = (
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONFAULTHANDLER",
    "PYTHONIOENCODING",
    "PYTHONNOUSERSITE",
    "PYTHONOPTIMIZE",
    "PYTHONPATH",
    "PYTHONPYCACHEPREFIX",
    "PYTHONSAFEPATH",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "PYTHONWARNINGS",
    "SOURCE_DATE_EPOCH",
)


def _chosen(variables: Mapping[str, str], wanted: Callable[[str], bool]) -> dict[str, str]:
    return {name: variables[name] for name in sorted(variables) if wanted(name)}
