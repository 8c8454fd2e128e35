"""Which GCC a build runs: the invoked entry, the driver that really runs, and the driver's helper programs."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from pypto._identity.host.files import Unidentified, is_elf, program_record
from pypto._identity.host.probes import Answer, Probes
from pypto._identity.host.records import GccRecord, WrapperRecord
from pypto._identity.host.selection import HostSelection
from pypto._identity.host.wrappers import examine_entry

HELPERS = ("as", "cc1plus", "collect2", "ld")
_UNMODELLED_FLAGS = ("-wrapper", "-fplugin", "-specs", "--specs", "@")


@dataclass(frozen=True)
class Gcc:
    """A GCC that is understood. `entry` is the path to invoke; the others are real paths."""

    entry: str
    wrapper: WrapperRecord | None
    driver: str
    version: str
    target: str
    helpers: tuple[tuple[str, str], ...]

    def record(self, *, whole: bool = False) -> GccRecord:
        """Its evidence; with `whole` the digests of the programs' bytes, too."""
        record: GccRecord = {
            "entry": program_record(self.entry, whole=whole),
            "driver": program_record(self.driver, whole=whole),
            "version": self.version,
            "target": self.target,
            "helpers": {name: program_record(path, whole=whole) for name, path in self.helpers},
        }
        if self.wrapper is not None:
            record["wrapper"] = self.wrapper
        return record


def identify_gcc(entry: str, selection: HostSelection, probes: Probes) -> Gcc:
    """Understand the compiler that `entry` (an absolute path) starts.

    Raises:
        Unidentified: a flag that brings in further programs, a wrapper that is not recognised, a driver that is no ELF
            file, another compiler than GCC, or a helper program that is missing or no ELF file.
    """
    for flag in selection.flags:
        if flag.startswith(_UNMODELLED_FLAGS):
            raise Unidentified(f"the compiler flag {flag} brings in programs or settings that are not identified")
    examined = examine_entry(entry, selection)
    if examined.driver is not None and not is_elf(examined.driver):
        raise _script_driver(examined.driver)
    # Some flags choose another linker, or another folder to look in.
    questions = ([entry, *selection.flags, f"-print-prog-name={helper}"] for helper in HELPERS)
    about, *names = probes([[entry, "-v"], *questions])
    text = about.stderr.decode("utf-8", "replace")
    said = _line(text, r"COLLECT_GCC=(.+)")
    version = _line(text, r"(gcc version .+?)\s*")
    target = _line(text, r"Target: (\S+)")
    if about.status != 0 or not (said and version and target):
        raise Unidentified(f"{entry} does not describe itself as GCC does (-v)")
    driver = os.path.realpath(selection.find(said))
    if not is_elf(driver):
        raise _script_driver(driver)
    if examined.driver is not None and driver != examined.driver:
        raise Unidentified(f"the compiler wrapper {entry} is not recognised: it runs {driver}")
    if os.path.basename(driver) == "ccache":
        raise Unidentified(f"the compiler wrapper {entry} is not recognised: it does not say which compiler it runs")
    helpers = tuple(
        (helper, _helper(entry, helper, answer, selection)) for helper, answer in zip(HELPERS, names, strict=True)
    )
    return Gcc(entry, examined.record, driver, version, target, helpers)


def _helper(entry: str, helper: str, answer: Answer, selection: HostSelection) -> str:
    name = answer.stdout.decode("utf-8", "surrogateescape").strip()
    if answer.status != 0 or not name:
        raise Unidentified(f"{entry} does not say which {helper} it runs")
    try:
        path = os.path.realpath(selection.find(name))
    except Unidentified:
        raise Unidentified(f"the GCC helper program {helper} of {entry} is missing") from None
    if not is_elf(path):
        raise Unidentified(f"the GCC helper program {path} is no ELF file")
    return path


def _script_driver(path: str) -> Unidentified:
    return Unidentified(f"the GCC driver {path} that really runs is a start-up script, no ELF file")


def _line(text: str, pattern: str) -> str | None:
    match = re.search(f"^{pattern}$", text, re.MULTILINE)
    return match[1] if match else None
