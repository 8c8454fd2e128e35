"""A real server of the Remote Execution API: a second checkout gets every action from its cache. Issue 6.

BuildGrid is installed through pip into an environment of its own, for these tests only.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from workspaces import Workspace, copy_checkout, tree

BUILDGRID = "buildgrid==0.4.4"

SERVER = """\
server:
  - !channel
    address: 127.0.0.1:{port}
    insecure-mode: true
authorization:
  method: none
storages:
  - !lru-storage &cas
    size: 2048M
caches:
  - !lru-action-cache &ac
    storage: *cas
    max-cached-refs: 4096
    allow-updates: true
instances:
  - name: ""
    services:
      - !action-cache
        cache: *ac
      - !cas
        storage: *cas
      - !bytestream
        storage: *cas
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cache that is empty."""
    folder = tmp_path_factory.mktemp("buildgrid")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    subprocess.run([folder / "venv/bin/pip", "install", "-q", BUILDGRID], check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "server.yml").write_text(SERVER.format(port=port))
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [folder / "venv/bin/bgd", "server", "start", folder / "server.yml"], stdout=log, stderr=subprocess.STDOUT
        )
    try:
        for _ in range(600):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.1)
        yield f"grpc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.mark.long
def test_a_second_checkout_has_only_remote_hits(server: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    runners, trees = [], []
    for name in ("first", "second"):
        folder = tmp_path_factory.mktemp(name)
        copy = copy_checkout(folder / "copy")
        workspace = Workspace(
            copy,
            launcher=copy / "tools/bazel",
            output_base=folder / "output",
            flags=(f"--remote_cache={server}", "--config=remote-cache"),
        )
        try:
            spawns = workspace.spawns("//kernels:decode_a2a3", "//kernels:add_a2a3")
            runners.append(Counter(s["runner"] for s in spawns if s["mnemonic"].startswith("Pypto")))
            trees.append(tree(workspace.output("kernels/decode_a2a3.bundle")))
        finally:
            workspace.remove()
    assert runners == [{"linux-sandbox": 12}, {"remote cache hit": 12}]
    assert trees[0] == trees[1]
