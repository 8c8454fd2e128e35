"""A machine that differs in all that must not matter: user, home, umask, clock, time zone, folders, and no network.

The world is a mount namespace of this machine, in which Bazel runs as a user without rights. The clock of its actions
is moved with libfaketime, which the loader puts into every process that starts in the sandbox. (In Bazel's own server,
threads that wait for a time would spin.)
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bazel_setup import stamp
from bazel_setup.common import cache_folder
from bazel_setup.packages import Apt, FetchError, download

NOBODY = 65534
DAYS = 400

NO_NETWORK = ("unshare", "--net")
# Bazel's client and server talk over the loopback device, which is down in a new network.
LOOPBACK = """\
import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 0x41))  # SIOCSIFFLAGS: up and running
"""

_ENTER = f"""\
{LOOPBACK}
import os, subprocess, sys
world, prefix, hidden, *command = sys.argv[1:]
def run(*words): subprocess.run(words, check=True)
if hidden:
    os.makedirs(world + "/prefix", exist_ok=True)
    run("mount", "--bind", prefix, world + "/prefix")
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", hidden)
    os.makedirs(prefix)
    run("mount", "--move", world + "/prefix", prefix)
run("mount", "--bind", world + "/etc", "/etc")
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
os.umask(0o077)
os.execve(command[0], command, {{
    "HOME": world + "/home", "PATH": "/usr/bin:/bin", "TZ": "Asia/Kathmandu", "LC_ALL": "C",
    "PYPTO_TOOLCHAIN_FILES": world + "/files",
}})
"""


class Unavailable(Exception):
    """This machine cannot have such a world; the text says why."""


class OtherWorld:
    """Bazel in another world.

    Args:
        folder: an existing folder that every user may enter; checkout, home and output base lie below it.
        checkout: what is copied there.

    Raises:
        Unavailable: see the text.
    """

    def __init__(self, folder: Path, checkout: Path) -> None:
        if os.getuid() != 0:
            raise Unavailable("only root can become another user and mount")
        self.prefix = Path(stamp.default_prefix(cache_folder(os.environ)))
        if not stamp.is_complete(str(self.prefix)):
            raise Unavailable("the Bazel of this machine is not the one that tools/bazel sets up")
        probe = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True)
        if probe.returncode:
            raise Unavailable(f"no mount namespace: {probe.stderr.decode().strip()}")
        self.folder = folder
        self.checkout = folder / "some where else"
        shutil.copytree(checkout, self.checkout, symlinks=True)
        (self.checkout / "clock").mkdir()
        (self.checkout / "clock/BUILD.bazel").write_text(
            'genrule(name = "clock", outs = ["now"], cmd = "date +%s > $@")\n'
        )
        downloads = Path(cache_folder(os.environ)).parent / "downloads"
        shutil.copytree(downloads, folder / "files")
        shutil.copytree("/etc", folder / "etc", symlinks=True)
        (folder / "home").mkdir()
        self._move_the_clock(folder / "apt")
        for name in ("home", self.checkout.name, "files"):
            subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", folder / name], check=True)

    def build(self, *arguments: str) -> str:
        """Build with the clock moved."""
        preload = f"--sandbox_add_mount_pair={self.folder}/ld.so.preload:/etc/ld.so.preload"
        return self.run("build", "--color=no", "--curses=no", preload, *arguments)

    def run(self, *arguments: str) -> str:
        """What a Bazel command wrote; it must succeed."""
        done = self._bazel(*arguments)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def close(self) -> None:
        """Stop the server, and make the folders removable."""
        self._bazel("clean", "--expunge")

    def _bazel(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        hidden = next((str(path) for path in reversed(self.prefix.parents) if not path.stat().st_mode & 0o001), "")
        command = [self.prefix / "bin/bazel", *arguments]
        return subprocess.run(
            [*NO_NETWORK, "--mount", sys.executable, "-c", _ENTER, self.folder, self.prefix, hidden, *command],
            cwd=self.checkout,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _move_the_clock(self, scratch: Path) -> None:
        try:
            apt = Apt(scratch, "amd64", "bookworm")
            apt.open()
            (package,) = download(apt, apt.newest(["libfaketime"]), scratch / "debs")
        except FetchError as failure:
            raise Unavailable(f"no libfaketime: {failure}") from None
        subprocess.run(["dpkg-deb", "-x", package, scratch / "root"], check=True)
        (library,) = (scratch / "root").rglob("libfaketimeMT.so.1")
        etc = self.folder / "etc"
        # In /etc, since the sandbox hides /tmp.
        shutil.copy2(library, etc / library.name)
        (self.folder / "ld.so.preload").write_text(f"/etc/{library.name}\n")
        (etc / "ld.so.preload").touch()  # where the sandbox puts it
        (etc / "faketimerc").write_text(f"+{DAYS}d\n")
