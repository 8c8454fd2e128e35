"""A machine of its own for each launcher test: private PATH, HOME and workspace, and programs that only pretend."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bazel_setup import stamp

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = ROOT / "tools/bazel"
SETUP = ROOT / "tools/bazel_setup"

FAKE_BAZEL = """\
#!/bin/sh
if [ "$1" = --version ]; then
    echo "$0 skip=$BAZELISK_SKIP_WRAPPER" >> '{log}'
    {version}
fi
for last; do
    [ "$last" = graph ] && {{ echo "graph: $*" >> '{log}'; echo '{graph}' >&2; exit {graph_code}; }}
done
echo "ran $0"
echo "pid $$"
echo "skip=$BAZELISK_SKIP_WRAPPER real=$BAZEL_REAL asked=$PYPTO_BAZEL_ASKED"
for argument; do echo "argument <$argument>"; done
exit {code}
"""


class World:
    """Everything `tools/bazel` can see, below one temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.bin = folder / "bin"
        self.workspace = folder / "workspace"
        self.log = folder / "asked.log"
        for made in (self.home, self.bin, self.workspace / "sub"):
            made.mkdir(parents=True)
        self.log.touch()
        (self.workspace / "MODULE.bazel").write_text('module(name = "w")\n')
        (self.workspace / ".bazelrc").write_text("try-import %workspace%/.bazelrc.modules\n")
        # The shebang of tools/bazel needs exactly this from PATH.
        (self.bin / "python3").symlink_to(sys.executable)

    @property
    def env(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": str(self.bin)}

    @property
    def cache(self) -> Path:
        return self.home / ".cache/pypto/bazel"

    @property
    def prefix(self) -> Path:
        return Path(stamp.default_prefix(str(self.cache)))

    def script(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def bazel(
        self,
        where: str | Path = "bazel",
        version: str | None = "7.7.1",
        *,
        code: int = 0,
        graph: str = "",
        graph_code: int = 0,
    ) -> Path:
        """A program that answers `--version` (None: it fails) and tells how it was run otherwise."""
        answer = f"echo 'bazel {version}'; exit 0" if version else "echo 'could not download Bazel' >&2; exit 1"
        text = FAKE_BAZEL.format(log=self.log, version=answer, code=code, graph=graph, graph_code=graph_code)
        return self.script(self.bin / where, text)

    def own_bazel(self) -> Path:
        """A finished private prefix with a pretended Bazel."""
        launcher = self.bazel(self.prefix / "bin/bazel")
        (self.prefix / "overrides.bazelrc").write_text("common --override_module=a=/b\n")
        record = {"recipe": stamp.RECIPE, "prefix": str(self.prefix), "suite": stamp.SUITE}
        (self.prefix / "complete.json").write_text(json.dumps(record))
        return launcher

    def apt(self, *, update: str = "", candidate: str | None = "7.7.1+ds-8") -> None:
        """apt's programs: an archive that answers `update` with that trouble, or carries that Bazel."""
        trouble = self.home.parent / "trouble"
        trouble.write_text(update)
        self.script(
            self.bin / "apt-get",
            "#!/bin/sh\n"
            'case "$1" in\n'
            "  indextargets) echo 'https://mirror.invalid/debian/ Debian|Debian|Packages' ;;\n"
            f"  update) while read -r line; do echo \"$line\" >&2; bad=100; done < '{trouble}'; exit ${{bad:-0}} ;;\n"
            "  *) echo 'E: not in this test' >&2; exit 100 ;;\n"
            "esac\n",
        )
        stanza = f"echo 'Package: bazel-bootstrap'; echo 'Version: {candidate}'" if candidate else "exit 100"
        self.script(self.bin / "apt-cache", f"#!/bin/sh\n{stanza}\n")
        self.script(self.bin / "apt-config", "#!/bin/sh\n")
        self.script(self.bin / "dpkg-deb", "#!/bin/sh\nexit 1\n")

    def run(
        self, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        return self._run([str(LAUNCHER), *arguments], env, cwd)

    def setup(self, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return self._run([sys.executable, str(SETUP), *arguments], env, None)

    def _run(
        self, argv: list[str], env: Mapping[str, str] | None, cwd: Path | None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv,
            env={**self.env, **(env or {})},
            cwd=cwd or self.workspace,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def asked(self) -> list[str]:
        """The questions the pretended programs were asked, as they logged them."""
        return self.log.read_text().splitlines()
