"""CANN: its device compiler and linker, and the build that its info file reports."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass

from pypto._identity.host.files import Unidentified, is_elf, is_executable, program_record, read_small
from pypto._identity.host.probes import Probes
from pypto._identity.host.records import CannRecord

INFO_FILE = "ascend_toolkit_install.info"
# Where the programs are in a layout that is recognised, and where else they were seen.
_FOLDER = "bin"
_OTHER_FOLDERS = ("compiler/ccec_compiler/bin", "ccec_compiler/bin", "compiler/bin")
_FIELDS = ("innerversion", "version")


@dataclass(frozen=True)
class Cann:
    """An installation.

    Attributes:
        build: (field, value) that the info file reports, or None.
        build_reason: why there is no build.
    """

    root: str
    compiler: str
    linker: str
    build: tuple[str, str] | None
    build_reason: str | None

    def record(self, version: str, *, whole: bool = False) -> CannRecord:
        """Its evidence under `build`.

        Raises:
            Unidentified: it reports no build.
        """
        if self.build is None:
            raise Unidentified(f"CANN reports no build version: {self.build_reason}")
        return {
            "compiler": program_record(self.compiler, whole=whole),
            "compiler_version": version,
            "linker": program_record(self.linker, whole=whole),
            "field": self.build[0],
            "build": self.build[1],
        }


def identify_cann(root: str) -> Cann:
    """The installation in `root` (an absolute path).

    Raises:
        Unidentified: compiler or linker is missing, or is no executable ELF file.
    """
    folder = next((f for f in (_FOLDER, *_OTHER_FOLDERS) if os.path.lexists(os.path.join(root, f, "ccec"))), _FOLDER)
    programs = []
    for name, what in (("ccec", "the CCEC compiler"), ("ld.lld", "the device linker")):
        path = os.path.join(root, folder, name)
        if not os.path.exists(path):
            raise Unidentified(f"{what} is missing: {path}")
        if not is_elf(path):
            raise Unidentified(f"{what} {path} is a start-up script, no ELF file")
        if not is_executable(path):
            raise Unidentified(f"{what} {path} is not executable")
        programs.append(path)
    if folder == _FOLDER:
        build, reason = build_version(root)
    else:
        build, reason = None, f"{root} has a layout that is not recognised"
    return Cann(root, programs[0], programs[1], build, reason)


def compiler_version(cann: Cann, probes: Probes) -> str:
    """The complete output of the CCEC compiler's `--version`.

    Raises:
        Unidentified: it prints nothing, fails, or runs out of time.
    """
    (answer,) = probes([[cann.compiler, "--version"]])
    if answer.status != 0 or not answer.stdout:
        raise Unidentified(f"the CCEC compiler {cann.compiler} reports no version")
    return answer.stdout.decode("utf-8", "surrogateescape")


def build_version(root: str) -> tuple[tuple[str, str] | None, str | None]:
    """((field, value), None) from the one info file, or (None, why there is no build).

    Paths that reach one file count once: `arm64-linux` is a link to `aarch64-linux`.
    """
    files: dict[tuple[int, int], str] = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(root), "*-linux", INFO_FILE))):
        try:
            status = os.stat(path)
        except OSError as error:
            return None, f"{path}: {error.strerror}"
        files.setdefault((status.st_dev, status.st_ino), path)
    if not files:
        return None, f"no {INFO_FILE} in {root}"
    if len(files) > 1:
        return None, f"different info files: {', '.join(sorted(files.values()))}"
    (path,) = files.values()
    try:
        text = read_small(path).decode("utf-8")
    except (Unidentified, UnicodeDecodeError) as error:
        return None, f"{path} cannot be read: {error}"
    values: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        name = name.strip()
        if not equals or name not in _FIELDS:
            continue
        if name in values:
            return None, f"{path} gives {name} twice"
        values[name] = value.strip()
    for field in _FIELDS:
        if field in values:
            if not values[field]:
                return None, f"{path} has an empty {field}"
            return (field, values[field]), None
    return None, f"{path} has neither innerversion nor version"
