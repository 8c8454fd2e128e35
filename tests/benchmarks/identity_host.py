#!/usr/bin/env python3
"""What it costs to identify the tools of this machine, by component, in fresh processes.

    python tests/benchmarks/identity_host.py [--processes N]

Takes g++ and git from PATH; in place of ptoas it takes g++ once more (a standalone program is one Build-ID or one
`--version`, whichever it is). PTO-ISA is a small checkout. Processes of both policies take turns; the smallest and the
median figure of each are printed, in milliseconds. `again` is a second request of the same process. The floor is one
start of g++ by the same means, since GCC must be asked. Nothing here fails for being slow.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def measure(policy: str, checkout: str, pin: str) -> dict[str, float]:
    """One capture in this process, and a second one."""
    from pypto._identity.host.device import device_inputs
    from pypto._identity.host.identity import HostIdentities
    from pypto._identity.host.probes import ProcessProbes
    from pypto._identity.host.pto_isa import pto_isa_inputs
    from pypto._identity.host.ptoas import ptoas_inputs
    from pypto._identity.host.python import pypto_inputs
    from pypto._identity.host.runtime import runtime_inputs
    from pypto._identity.host.selection import PtoIsa, capture_selection
    from pypto._identity.policy import IdentitySettings

    settings = IdentitySettings(policy)
    selection = capture_selection(pto_isa=PtoIsa(checkout, pin))
    probes = ProcessProbes({**selection.tool_variables(), "LC_ALL": "C"}, selection.project_root)
    took = {}
    for name, make in (
        ("pypto", lambda: pypto_inputs(selection, settings, probes)),
        ("runtime", lambda: runtime_inputs(selection, settings)),
        ("pto_isa", lambda: pto_isa_inputs(selection, settings)),
        ("ptoas", lambda: ptoas_inputs(selection, settings, probes)),
        ("device_toolchain", lambda: device_inputs(selection, settings, probes)),
    ):
        at = time.perf_counter()
        record, reason = make().record(name, {})
        took[name] = _since(at)
        assert record is not None, f"{name}: {reason}"
    took["in all"] = sum(took.values())
    identities = HostIdentities()
    identity = identities.identity(selection, settings)
    assert identity.usable, identity.explain()
    at = time.perf_counter()
    identities.identity(selection, settings)
    took["again"] = _since(at)
    at = time.perf_counter()
    probes([[selection.find("g++"), "-v"]])
    took["floor: one start of g++"] = _since(at)
    return took


def _since(at: float) -> float:
    return (time.perf_counter() - at) * 1000


def compare(processes: int) -> dict[str, list[dict[str, float]]]:
    """Figures of fresh processes, by policy."""
    gxx = shutil.which("g++")
    if gxx is None or shutil.which("git") is None:
        sys.exit("identity_host.py: error: g++ and git are needed on PATH")
    figures: dict[str, list[dict[str, float]]] = {"build": [], "content": []}
    with tempfile.TemporaryDirectory(prefix="pypto-benchmark-") as folder:
        checkout = Path(folder, "isa")
        checkout.mkdir()
        (checkout / "a.h").write_text("#pragma once\n")
        git = ["git", "-C", str(checkout), "-c", "user.name=x", "-c", "user.email=x@example.com"]
        for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
            subprocess.run([*git, *arguments], check=True, capture_output=True)
        pin = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
        Path(folder, "bin").mkdir()
        Path(folder, "bin/ptoas").symlink_to(gxx)
        environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"}
        for _ in range(processes):
            for policy, found in figures.items():
                done = subprocess.run(
                    [sys.executable, __file__, "--measure", policy, str(checkout), pin],
                    env=environment, check=True, capture_output=True, text=True,
                )  # fmt: skip
                found.append(json.loads(done.stdout))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=10, help="processes for each policy (default: 10)")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*options.measure)))
        return
    figures = compare(options.processes)
    print(f"{'milliseconds':26}" + "".join(f"{policy:>12} min{'median':>10}" for policy in figures))
    for row in figures["build"][0]:
        cells = ([found[row] for found in several] for several in figures.values())
        print(f"{row:26}" + "".join(f"{min(cell):16.2f}{statistics.median(cell):10.2f}" for cell in cells))


if __name__ == "__main__":
    main()
