#!/usr/bin/env python3
"""The long forms of the store's fault tests; CI runs short forms of the same functions.

  python tests/fault/campaign.py mutations --count 1000000   markers, trees and bundles that are not what was published
  python tests/fault/campaign.py syscalls                    every system call fails, or is the last one (needs strace)
  python tests/fault/campaign.py power-loss --samples 2000   what was not synced is lost, kept or torn (needs strace)
  python tests/fault/campaign.py races --processes 64        processes that race, die and fork

Each prints one JSON object per part; the exit status is 1 when something did not hold.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

OPERATIONS = ("publish", "hit", "materialize", "import", "jit", "jit-promotion")
HERE = Path(__file__).resolve().parent
for place in (HERE, *(HERE.parent / "unit" / part for part in ("artifact_cache", "bundle", "jit")), HERE.parents[1]):
    sys.path.insert(0, str(place))

import injection  # noqa: E402
import jit_build  # noqa: E402
import mutations  # noqa: E402
import power_loss  # noqa: E402
import races  # noqa: E402
from bundle_samples import make_bundle  # noqa: E402


def in_parts(jobs: int, part: Callable[[int], dict[str, Any]]) -> list[dict[str, Any]]:
    """Results of `jobs` processes that share the work."""
    folder = Path(tempfile.mkdtemp())
    try:
        return races.run_together(jobs, folder, part, limit=24 * 3600)
    finally:
        shutil.rmtree(folder)


def run_mutations(arguments: argparse.Namespace) -> None:
    def part(index: int) -> dict[str, Any]:
        share = -(-arguments.count // arguments.jobs)
        seed = arguments.seed * 1000 + index
        counts = {}
        with mutations.Entry() as entry:
            counts["markers"] = mutations.mutate_markers(entry, share, seed)
        with mutations.Entry() as entry:
            counts["trees"] = mutations.mutate_trees(entry, share // 20, seed)
        counts["bundles"] = mutations.mutate_bundles(share // 20, seed)
        return counts

    with mutations.Entry() as entry:
        print(json.dumps({"flips and truncations": mutations.flips_and_truncations(entry)}), flush=True)
    total: Counter[str] = Counter()
    for counts in in_parts(arguments.jobs, part):
        total.update(counts)
    print(json.dumps(dict(total)))


def run_syscalls(arguments: argparse.Namespace) -> None:
    bundle_folder = Path(tempfile.mkdtemp())
    bundle = make_bundle(bundle_folder / "bundle", bundle_folder / "in", kernels=1)
    scenarios = {
        "publish": injection.Publish,
        "hit": injection.Hit,
        "materialize": injection.Materialize,
        "import": lambda: injection.Import(bundle),
        "jit": jit_build.JitBuild,
        "jit-promotion": lambda: jit_build.JitBuild(found=True),
    }
    wrong = 0
    for name in arguments.operation or scenarios:
        scenario = scenarios[name]()

        def part(index: int, scenario: injection.Scenario = scenario) -> dict[str, Any]:
            tally = injection.run(scenario, sample=arguments.sample, seed=arguments.seed, part=(index, arguments.jobs))
            return vars(tally)

        results = in_parts(arguments.jobs, part)
        outcomes: Counter[str] = Counter()
        for result in results:
            outcomes.update(result["outcomes"])
        problems = [problem for result in results for problem in result["problems"]]
        points = sum(result["points"] for result in results)
        report = {"operation": name, "calls": results[0]["calls"], "points": points, "outcomes": dict(outcomes)}
        print(json.dumps({**report, "problems": problems}), flush=True)
        wrong += len(problems)
    shutil.rmtree(bundle_folder)
    if wrong:
        sys.exit(1)


def run_power_loss(arguments: argparse.Namespace) -> None:
    print(json.dumps(power_loss.replay(power_loss.record(), samples=arguments.samples, seed=arguments.seed)))


def run_races(arguments: argparse.Namespace) -> None:
    parts: dict[str, Callable[[Path], Any]] = {
        "one key": lambda folder: races.one_key(folder, arguments.processes),
        "100 keys": lambda folder: races.many_keys(folder, arguments.processes),
        "takeover": races.takeover,
        "fork": lambda folder: races.fork_in_builder(folder, "fork"),
        "subprocess": lambda folder: races.fork_in_builder(folder, "subprocess"),
        "import": lambda folder: races.importers(folder, max(2, arguments.processes // 2)),
    }
    for name, run in parts.items():
        folder = Path(tempfile.mkdtemp())
        try:
            print(json.dumps({name: run(folder)}), flush=True)
        finally:
            shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="PART")

    def command(name: str, run: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
        added = commands.add_parser(name)
        added.set_defaults(run=run)
        added.add_argument(
            "--seed", type=int, default=int(time.time()), help="of the random choices (default: the time)"
        )
        added.add_argument("--jobs", type=int, default=2, help="processes that share the work")
        return added

    command("mutations", run_mutations).add_argument("--count", type=int, default=1_000_000)
    syscalls = command("syscalls", run_syscalls)
    syscalls.add_argument("--operation", action="append", choices=OPERATIONS)
    syscalls.add_argument("--sample", type=int, help="so many points instead of all")
    command("power-loss", run_power_loss).add_argument("--samples", type=int, default=2000)
    command("races", run_races).add_argument("--processes", type=int, default=64)
    arguments = parser.parse_args()
    print(json.dumps({"seed": arguments.seed}), flush=True)
    arguments.run(arguments)


if __name__ == "__main__":
    main()
