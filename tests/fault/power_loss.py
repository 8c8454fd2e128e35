"""Power loss in a traced publication: what was not synced is lost, kept or torn, in every combination that is tried.

The model is harsher than file systems are. Contents and mode of a file last only when the file is synced afterwards, an
entry of a folder only when that folder is synced afterwards; of everything else any part may be there.
"""

from __future__ import annotations

import copy
import random
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from artifact_samples import FILES, READY, Builder, sample_key
from tracing import fast_folder, run_traced

from pypto.jit.artifact_cache import ArtifactStore, BuildStatus, LookupStatus

KEY = sample_key()
_CALL = re.compile(r"^\d+ +([a-z0-9]+)\((.*)\) += (\d+)(?:<.*>)?$")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


@dataclass
class Node:
    """A file or folder of the model: what it holds, as far as it was applied."""

    folder: bool
    mode: int
    entries: dict[str, Node] = field(default_factory=dict)
    data: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True)
class Step:
    """One change to a node, or its sync."""

    kind: str  # link, rename, data, mode, sync
    node: int
    name: str = ""
    new: str = ""
    target: int = -1
    mode: int = 0
    data: bytes = b""


class Recording:
    """The changes below a folder, read from strace's lines."""

    def __init__(self, top: Path, lines: list[str]) -> None:
        self.top = str(top)
        self.kinds: list[tuple[bool, int]] = [(True, 0o755)]
        self.steps: list[Step] = []
        self._names: dict[tuple[int, str], int] = {}
        self._open: dict[int, int] = {}
        for line in lines:
            found = _CALL.match(line)
            if found is not None:
                self._read(found[1], found[2], int(found[3]))

    def _read(self, call: str, text: str, result: int) -> None:
        texts = [bytes.fromhex(item.replace("\\x", "")) for item in _TEXT.findall(text)]
        plain = _TEXT.sub('""', text).split(", ")
        if call in ("open", "openat", "mkdir", "mkdirat"):
            place = self._place(plain[0], texts[0].decode(), relative=call.endswith("at"))
            if call.startswith("open"):
                self._opened(place, plain, result)
            elif place is not None:
                self._link(place, True, int(plain[-1], 8))
            return
        if call == "fcntl" and "F_DUPFD" in text and int(plain[0]) in self._open:
            self._open[result] = self._open[int(plain[0])]
        if not plain[0].isdigit() or int(plain[0]) not in self._open:
            return
        node = self._open[int(plain[0])]
        if call == "close":
            del self._open[int(plain[0])]
        elif call == "write":
            self.steps.append(Step("data", node, data=texts[0][:result]))
        elif call == "fchmod":
            self.steps.append(Step("mode", node, mode=int(plain[1], 8)))
        elif call == "fsync":
            self.steps.append(Step("sync", node))
        elif call == "renameat2":
            old, new = (item.decode() for item in texts)
            target = self._names.pop((node, old))
            self._names[node, new] = target
            self.steps.append(Step("rename", node, old, new, target))
        elif call in ("unlinkat", "ftruncate", "linkat", "symlinkat"):
            raise AssertionError(f"a publication that makes {call} is not modelled")

    def _place(self, folder: str, path: str, *, relative: bool) -> tuple[int, str] | None:
        """Folder and name of a path below the top; ("", top) for the top itself."""
        if relative and folder.isdigit():
            node = self._open.get(int(folder))
            return None if node is None else (node, path)
        if path != self.top and not path.startswith(self.top + "/"):
            return None
        node = 0
        *folders, name = path[len(self.top) :].split("/")
        for part in folders[1:] if folders else []:
            node = self._names[node, part]
        return node, name

    def _opened(self, place: tuple[int, str] | None, plain: list[str], result: int) -> None:
        self._open.pop(result, None)
        if place is None:
            return
        if place[1] in ("", "."):
            self._open[result] = place[0]
        else:
            if "O_CREAT" in plain[2] and place not in self._names:
                self._link(place, False, int(plain[3], 8))
            self._open[result] = self._names[place]

    def _link(self, place: tuple[int, str], folder: bool, mode: int) -> None:
        self.kinds.append((folder, mode & ~0o022))
        self._names[place] = len(self.kinds) - 1
        self.steps.append(Step("link", place[0], place[1], target=len(self.kinds) - 1))

    def without_syncs_of(self, node: int) -> Recording:
        """This recording as it would be if nobody synced `node`."""
        changed = copy.copy(self)
        changed.steps = [step for step in self.steps if (step.kind, step.node) != ("sync", node)]
        return changed

    def after_crash(self, length: int, chance: random.Random | None, share: float) -> tuple[Node, tuple[int, ...]]:
        """The top folder when power fails after `length` steps, and which steps lasted.

        Each step that was not synced lasts with probability `share`; with `chance`, contents may be torn or zero.
        """
        nodes = [Node(folder, mode) for folder, mode in self.kinds]
        lasting = []
        for number, step in enumerate(self.steps[:length]):
            synced = any(later.kind == "sync" and later.node == step.node for later in self.steps[number:length])
            keep = synced or share == 1 or (chance is not None and chance.random() < share)
            if step.kind == "sync" or not keep:
                continue
            lasting.append(number)
            node = nodes[step.node]
            if step.kind == "link":
                node.entries[step.name] = nodes[step.target]
            elif step.kind == "rename":
                if synced or chance is None or chance.random() < 0.8:
                    node.entries.pop(step.name, None)
                node.entries[step.new] = nodes[step.target]
            elif step.kind == "mode":
                node.mode = step.mode
            else:
                data = step.data
                if not synced and chance is not None and chance.random() < 0.5:
                    cut = chance.randrange(len(data) + 1)
                    data = data[:cut] + chance.choice((b"", bytes(len(data) - cut)))
                node.data += data
        return nodes[0], tuple(lasting)


def record() -> Recording:
    """One publication into an empty root."""
    folder = fast_folder()
    try:
        (folder / "root").mkdir()

        def act() -> dict[str, str]:
            store = ArtifactStore(folder / "root", private_root=folder / "private")
            return {"status": store.get_or_build(KEY, READY, Builder()).status.value}

        outcome = run_traced(act, ["-xx", "-s", "1000000"])
        assert outcome.report == {"status": "published"}
        # Below the root only: the private build is no part of the promise.
        recording = Recording(folder / "root", outcome.lines)
    finally:
        shutil.rmtree(folder)
    return recording


def _write(node: Node, place: Path) -> None:
    for name, child in node.entries.items():
        target = place / name
        if child.folder:
            target.mkdir()
            _write(child, target)
            target.chmod(child.mode | 0o700)
        else:
            target.write_bytes(child.data)
            target.chmod(child.mode)


def replay(recording: Recording, *, samples: int, seed: int = 0) -> dict[str, int]:
    """Crash after every step, `samples` times each: counts of the states tried and found.

    Raises:
        AssertionError: a state is neither a MISS nor the complete artifact, or a publication that was reported is lost.
    """
    total = len(recording.steps)
    chance = random.Random(seed)
    counts = {"steps": total, "states": 0, "miss": 0, "hit": 0}
    seen: set[str] = set()
    for length in range(total + 1):
        trials: list[tuple[random.Random | None, float]] = [(None, 0.0), (None, 1.0)]
        trials += [(chance, chance.choice((0.1, 0.5, 0.9, 1.0))) for _ in range(samples)]
        for randomness, share in trials:
            top, lasting = recording.after_crash(length, randomness, share)
            state = repr((lasting, _fingerprint(top)))
            if state in seen and length < total:
                continue
            seen.add(state)
            status = _judge(top)
            assert length < total or status is LookupStatus.HIT, "a reported publication was lost"
            counts["states"] += 1
            counts[status.value] += 1
    return counts


def _fingerprint(node: Node) -> tuple[object, ...]:
    inner = tuple((name, _fingerprint(child)) for name, child in sorted(node.entries.items()))
    return (node.mode, bytes(node.data), inner)


def _judge(top: Node) -> LookupStatus:
    folder = fast_folder()
    try:
        (folder / "root").mkdir()
        _write(top, folder / "root")
        store = ArtifactStore(folder / "root", private_root=folder / "private")
        found = store.lookup(KEY, READY, load=True)
        assert found.status in (LookupStatus.MISS, LookupStatus.HIT), found
        if found.handle is not None:
            assert found.handle.payload == FILES
        again = store.get_or_build(KEY, READY, Builder())
        assert again.status is (BuildStatus.HIT if found.handle is not None else BuildStatus.PUBLISHED), again
    finally:
        shutil.rmtree(folder)
    return found.status
