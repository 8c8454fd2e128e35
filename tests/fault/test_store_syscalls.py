"""Every system call may fail or be the last one, and power may fail; the long forms are in `campaign.py`."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import injection
import power_loss
import pytest

CAMPAIGN = Path(__file__).with_name("campaign.py")

pytestmark = pytest.mark.usefixtures("strace")


@pytest.mark.parametrize(
    ("operation", "sample"), [("publish", 400), ("hit", 120), ("materialize", 120), ("import", 160)]
)
def test_system_calls(operation: str, sample: int) -> None:
    """PUB-18 to PUB-24, PUB-33 to PUB-37, STO-54: MISS or complete HIT, locks free, the build kept, the failure named.

    In processes of their own: forking one that has run many tests takes several times as long.
    """
    command = [sys.executable, CAMPAIGN, "syscalls", "--operation", operation, "--sample", str(sample), "--seed", "7"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == ""
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["problems"] == []
    assert report["points"] == sample
    assert sum(number for outcome, number in report["outcomes"].items() if outcome.startswith("killed")) > 0
    assert len(report["outcomes"]) > 2


def test_kill_in_front_of_every_call_of_a_publication() -> None:
    """PUB-22 to PUB-24: in front of each call is also right behind the one before it."""
    scenario = injection.Publish()
    tally = injection.Tally()
    calls = injection.trace_calls(scenario)
    # A call that changes nothing leaves what the one before it left.
    changing = {"openat", "mkdir", "mkdirat", "flock", "write", "fchmod", "chmod", "fsync", "renameat2"}
    after = [call for before, call in pairwise(calls) if before.name in changing]
    for call in after:
        injection.inject(scenario, injection.Point(call, "signal=KILL"), tally)
    assert tally.problems == []
    assert tally.points == len(after) > 50
    assert set(tally.outcomes) == {"killed, then miss", "killed, then hit"}


def test_power_loss() -> None:
    """PUB-12 to PUB-15, PUB-47: at every step, with what was not synced lost, kept or torn."""
    counts = power_loss.replay(power_loss.record(), samples=40)
    assert counts["states"] == counts["miss"] + counts["hit"] > 200
    assert min(counts["miss"], counts["hit"]) > 10


def test_every_sync_is_needed() -> None:
    """The replay fails when any folder or file of the entry that holds something, or the slot, is not synced."""
    recording = power_loss.record()
    staging = next(step.target for step in recording.steps if step.name.startswith(".tmp."))
    slot = next(step.node for step in recording.steps if step.name.startswith(".tmp."))
    empty = next(step.target for step in recording.steps if step.name == "empty")
    needed = {step.node for step in recording.steps if step.node >= staging} - {empty} | {slot}
    assert len(needed) == 7  # slot, staging, two folders, two files, marker
    for node in sorted(needed):
        with pytest.raises(AssertionError):
            power_loss.replay(recording.without_syncs_of(node), samples=40)
