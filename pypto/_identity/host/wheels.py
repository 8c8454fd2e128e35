"""Installed wheels as evidence: the files that describe them, and that packages really come from them."""

from __future__ import annotations

import csv
import os
import re
from dataclasses import dataclass
from email.parser import HeaderParser
from typing import Any

from pypto._identity.host.files import Unidentified, file_digest, is_elf, native_record, read_small
from pypto._identity.host.records import NativeRecord, WheelRecord

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_MAX_RECORD = 1 << 25
_NEVER_NATIVE = (".py", ".pyi", ".pyc", ".h", ".hpp", ".td", ".txt", ".md", ".json")


@dataclass(frozen=True)
class Wheel:
    """An installed wheel: the folder its packages are in, the folder that describes it, and its files by path."""

    name: str
    site: str
    info: str
    files: frozenset[str]

    def record(self) -> WheelRecord:
        """Digests of its description."""
        return {
            "METADATA": file_digest(os.path.join(self.info, "METADATA")),
            "WHEEL": file_digest(os.path.join(self.info, "WHEEL")),
            "RECORD": file_digest(os.path.join(self.info, "RECORD")),
        }

    def requirements(self) -> list[str]:
        """Normalised names of all dependencies it declares, under whatever condition."""
        text = read_small(os.path.join(self.info, "METADATA")).decode("utf-8", "replace")
        names = []
        for line in HeaderParser().parsestr(text).get_all("Requires-Dist", []):
            match = _REQUIREMENT.match(line)
            names.append(normalised(match[1]) if match else line)
        return sorted(set(names))

    def declares_script(self, script: str, entry: str) -> bool:
        """Whether its entry points have the console script `script` for `entry`."""
        path = os.path.join(self.info, "entry_points.txt")
        if not os.path.lexists(path):
            return False
        section = ""
        for line in read_small(path).decode("utf-8", "replace").splitlines():
            line = line.strip()
            if line.startswith("["):
                section = line
            name, equals, target = line.partition("=")
            if section == "[console_scripts]" and equals and name.strip() == script:
                return target.replace(" ", "") == entry
        return False

    def natives(self, *, whole: bool = False) -> dict[str, NativeRecord]:
        """Evidence of every native file that it installed, by path.

        Raises:
            Unidentified: a listed native file is missing.
        """
        found = {}
        for relative in sorted(self.files):
            name = os.path.basename(relative)
            if name.endswith(_NEVER_NATIVE):
                continue
            path = os.path.normpath(os.path.join(self.site, relative))
            if not os.path.exists(path) and ".so" in name:
                raise Unidentified(f"wheel evidence is missing: {self.name} has lost {path}")
            if is_elf(path):
                found[relative] = native_record(path, whole=whole)
        return found


def wheel_of(package: str, found: Any) -> Wheel:
    """The wheel that the package, as the start-up probe found it, was installed from.

    Raises:
        Unidentified: the package is none that a wheel installed, or the wheel's description is incomplete.
    """
    if found is None:
        raise Unidentified(f"wheel evidence is missing: the launcher's interpreter finds no package {package}")
    origin, search = found["origin"], found["search"]
    if not origin or search is None or os.path.basename(origin) != "__init__.py":
        raise Unidentified(f"{package} is no ordinary package of a wheel: {origin or search or found['loader']}")
    site = os.path.dirname(os.path.dirname(origin))
    try:
        names = os.listdir(site)
    except OSError as error:
        raise Unidentified(f"{site}: cannot be read: {error.strerror}") from None
    described = {name: normalised(name.split("-")[0]) for name in names if name.endswith(".dist-info")}
    infos = [name for name, distribution in described.items() if distribution == package.lower()]
    if len(infos) != 1:
        raise Unidentified(f"wheel evidence is missing: {len(infos)} descriptions of {package} in {site}")
    info = os.path.join(site, infos[0])
    for file in ("METADATA", "WHEEL", "RECORD"):
        if not os.path.isfile(os.path.join(info, file)):
            raise Unidentified(f"wheel evidence is missing: {os.path.join(info, file)}")
    try:
        rows = csv.reader(read_small(os.path.join(info, "RECORD"), _MAX_RECORD).decode("utf-8").splitlines())
        files = frozenset(row[0] for row in rows if row)
    except (UnicodeDecodeError, csv.Error) as error:
        raise Unidentified(f"wheel evidence is missing: RECORD of {package} cannot be read: {error}") from None
    wheel = Wheel(package, site, info, files)
    check_inside(package, found, wheel)
    return wheel


def check_inside(package: str, found: Any, wheel: Wheel) -> None:
    """Check that origin and search path of a package lie in `wheel`; a package that is neither found nor in it passes.

    Raises:
        Unidentified: the package is redirected, or the wheel has lost it.
    """
    listed = f"{package}/__init__.py" in wheel.files
    if found is None:
        if listed:
            raise Unidentified(f"wheel evidence is missing: {package} is in the wheel {wheel.name} but is not found")
        return
    folder = os.path.join(wheel.site, package)
    expected = os.path.join(folder, "__init__.py")
    real = os.path.join(os.path.realpath(wheel.site), package)
    if (
        not listed
        or found["origin"] != expected
        or found["search"] != [folder]
        or os.path.realpath(expected) != os.path.join(real, "__init__.py")
        or os.path.realpath(folder) != real
    ):
        where = found["origin"] or ", ".join(found["search"] or ["?"])
        raise Unidentified(f"{package} does not come from the wheel {wheel.name} alone: {where} {found['search']}")


def normalised(name: str) -> str:
    """A distribution's name as packaging compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
