"""Run by `python -c` in the interpreter that a launcher selects: says what it loaded before any program, as JSON.

Only its text is used, so it must run under any supported interpreter and import no package of a wheel. It cannot see
what a hook loads only for other programs than `-c`.
"""

import sys

_LOADED = sorted(sys.modules)
_SEARCH_PATH = list(sys.path)

import importlib.machinery  # noqa: E402
import importlib.util  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402

_ALWAYS = ("sitecustomize", "usercustomize")


def _inside(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def _modules() -> list[list[object]]:
    """Modules outside the standard library: (name, file or None, whether it is a namespace without a file)."""
    library = os.path.dirname(os.path.realpath(os.__file__))
    found: list[list[object]] = []
    for name in _LOADED:
        module = sys.modules.get(name)
        if module is None or name == "__main__" or name in sys.builtin_module_names:
            continue
        spec = getattr(module, "__spec__", None)
        origin = getattr(spec, "origin", None)
        if origin in ("built-in", "frozen") and name not in _ALWAYS:
            continue
        file = getattr(module, "__file__", None) or (origin if getattr(spec, "has_location", False) else None)
        if file is None:
            # Some modules of the standard library make others.
            if name.partition(".")[0] not in sys.stdlib_module_names:
                found.append([name, None, hasattr(module, "__path__")])
            continue
        real = os.path.realpath(file)
        parts = os.path.relpath(real, library).split(os.sep)
        if name not in _ALWAYS and _inside(real, library) and parts[0] not in ("site-packages", "dist-packages"):
            continue
        found.append([name, os.path.abspath(file), False])
    return found


def _packages(script_folder: str, names: list[str]) -> dict[str, object]:
    """Origin and search path of each package, found as the launcher's program would find it; nothing is imported."""
    sys.path[:] = _program_path(script_folder)
    found: dict[str, object] = {}
    for name in names:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            spec = None
            found[name] = {"origin": None, "search": None, "loader": "broken"}
            continue
        if spec is None:
            found[name] = None
            continue
        search = spec.submodule_search_locations
        found[name] = {
            "origin": spec.origin,
            "search": None if search is None else [os.path.abspath(item) for item in search],
            "loader": type(spec.loader).__name__,
        }
    return found


def _program_path(script_folder: str) -> list[str]:
    # `-c` stands with the working directory (an empty entry) where a program has its own folder.
    if getattr(sys.flags, "safe_path", False):
        return list(_SEARCH_PATH)
    rest = _SEARCH_PATH[1:] if _SEARCH_PATH[:1] == [""] else _SEARCH_PATH
    return [script_folder, *rest]


def _site_folders() -> list[str]:
    site = sys.modules.get("site")
    if site is None:
        return []
    folders = list(site.getsitepackages()) if hasattr(site, "getsitepackages") else []
    if getattr(site, "ENABLE_USER_SITE", False) and hasattr(site, "getusersitepackages"):
        folders.append(site.getusersitepackages())
    return folders


def _main() -> None:
    script_folder, names = sys.argv[1], sys.argv[2:]
    modules = _modules()
    packages = _packages(script_folder, names)
    path = _program_path(script_folder)
    answer = {
        "version": sys.version,
        "implementation": sys.implementation.name,
        "cache_tag": sys.implementation.cache_tag,
        "extensions": importlib.machinery.EXTENSION_SUFFIXES[0],
        "executable": os.path.realpath(sys.executable),
        "environment": os.path.join(sys.prefix, "pyvenv.cfg") if sys.prefix != sys.base_prefix else None,
        "path": [os.path.abspath(item) for item in path],
        "sites": [os.path.abspath(item) for item in _site_folders()],
        "modules": modules,
        "packages": packages,
    }
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


_main()
