"""Explains which tools a build would use: ``doctor PLAN``. Fetches nothing; exits with 1 if no kernel can be built."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

# The extensions' names, what a set is called in a descriptor, and the variable that names an installation.
SETS = {
    "cann": ("cann", "ASCEND_HOME_PATH"),
    "gcc": ("gcc", ""),
    "pto_isa": ("isa", "PTO_ISA_ROOT"),
    "ptoas": ("ptoas", "PTOAS_ROOT"),
}


def load_probe(path: Path) -> ModuleType:
    """The program that repository rules use for local installations."""
    spec = importlib.util.spec_from_file_location("probe", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["probe"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def examine(choice: Mapping[str, Any], linux_x86_64: bool, probe: ModuleType) -> tuple[bool, list[str]]:
    """Whether a tool set resolves, and lines that say why."""
    kind, fields, name = choice["kind"], choice["fields"], choice["tool_set"]
    if kind == "none":
        return False, [
            "there is none: CANN is proprietary and cannot be downloaded",
            f'say where it is in MODULE.bazel: {name}.local(path = "/usr/local/Ascend/ascend-toolkit/latest")',
        ]
    if kind == "wrap":
        return True, [f"the target {fields['toolchain']}"]
    if kind == "download":
        origin = ", ".join(fields.get("urls", [])) or f"version {choice['locked']}, pinned in pypto/toolchain/lock.json"
        if not linux_x86_64 and name in ("gcc", "ptoas"):
            return False, [
                f"{origin}: runs on x86_64 Linux only, and this platform is another one",
                "for remote execution on such machines: --extra_execution_platforms=@pypto//toolchains:linux_x86_64",
            ]
        return True, [f"{origin}; fetched when a build needs it"]
    set_name, variable = SETS[name]
    path = fields.get("path") or (os.environ.get(variable, "") if variable else "")
    with tempfile.TemporaryDirectory() as scratch:
        try:
            found = probe.PROBES[set_name](Path(scratch), path, fields.get("revision", ""))
        except probe.NotFound as error:
            return False, str(error).splitlines()
    return True, [f"{found.tools.version} in {path or found.folder}"]


def main() -> int:
    runfiles = Path(os.environ["RUNFILES_DIR"])
    plan = json.loads(Path(sys.argv[1]).read_bytes())
    probe = load_probe(runfiles / plan["probe"])
    resolved = {}
    for path in plan["choices"]:
        choice = json.loads((runfiles / path).read_bytes())
        name = choice["tool_set"]
        resolved[name], lines = examine(choice, plan["linux_x86_64"], probe)
        state = "resolves" if resolved[name] else "does not resolve"
        print(f"{name}: {state} ({choice['kind']}, decided by {choice['decided_by']})")
        print(*(f"    {line}" for line in lines), sep="\n")
    mode = plan["execution_mode"]
    needed = [name for name in SETS if name != "cann" or mode == "device"]
    missing = [name for name in needed if not resolved[name]]
    verdict = f"cannot be built, for want of {', '.join(missing)}" if missing else "can be built"
    print(f"\nkernels for {mode}: {verdict}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
