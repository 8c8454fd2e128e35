"""What a compile with GCC reads, under the `content` policy: programs with their libraries, resources, headers, link
inputs."""

from __future__ import annotations

import os
import re
import tempfile

from pypto._identity.host.closure import closure
from pypto._identity.host.files import Unidentified, lies_in
from pypto._identity.host.gcc import Gcc
from pypto._identity.host.probes import Answer, Probes
from pypto._identity.host.selection import HostSelection

_INCLUDES = re.compile(
    r"#include \"\.\.\.\" search starts here:\n(.*?)#include <\.\.\.> search starts here:\n(.*?)End of search list",
    re.DOTALL,
)
_OPENED = re.compile(r"^attempt to open (.+) succeeded$", re.MULTILINE)
_LINK_FLAGS = ("-shared", "-fPIC", "-pthread")


def gcc_files(gcc: Gcc, selection: HostSelection, probes: Probes) -> list[str]:
    """Files and folders that decide what this GCC makes of a source: sorted, none inside another.

    Raises:
        Unidentified: GCC does not list its include folders or link inputs, or a library is missing.
    """
    programs = [gcc.driver, *(path for _, path in gcc.helpers)]
    plugin = os.path.join(os.path.dirname(dict(gcc.helpers)["collect2"]), "liblto_plugin.so")
    if os.path.exists(plugin):
        programs.append(plugin)
    if gcc.wrapper is not None and gcc.wrapper["kind"] != "exec":
        programs.append(os.path.realpath(gcc.entry))
    scripts = list(gcc.wrapper["files"]) if gcc.wrapper is not None else []
    with tempfile.TemporaryDirectory(prefix="pypto-inventory-") as folder:
        source = os.path.join(folder, "empty.cpp")
        with open(source, "wb"):
            pass
        includes = [gcc.entry, *selection.flags, "-std=c++23", "-v", "-E", source, "-o", os.devnull]
        link = [gcc.entry, *selection.flags, *_LINK_FLAGS, source, "-o", os.path.join(folder, "out.so")]
        resource = [gcc.entry, *selection.flags, "-print-file-name=include"]
        shown, linked, where = probes([includes, [*link, "-Wl,--verbose"], resource])
        folders = listed_includes(shown)
        if folders is None:
            raise Unidentified(f"{gcc.entry} does not list its include folders")
        opened = _OPENED.findall(linked.stdout.decode("utf-8", "surrogateescape"))
        inputs = [os.path.realpath(selection.resolve(path)) for path in opened]
        # GCC's own temporary object is what it made of the empty source, not an input of the link.
        inputs = [path for path in inputs if os.path.exists(path)]
        if linked.status != 0 or not inputs:
            raise Unidentified(f"{gcc.entry} does not list what it links")
    resources = os.path.dirname(selection.resolve(os.fsdecode(where.stdout).strip()))
    if where.status != 0 or not os.path.isdir(os.path.join(resources, "include")):
        raise Unidentified(f"{gcc.entry} does not name its resource folder")
    libraries = closure(programs, probes)
    headers = [path for path in map(selection.resolve, folders) if not os.path.isdir(path) or os.listdir(path)]
    return outermost([*libraries, *inputs, *scripts, *_resource_files(resources), *headers])


def listed_includes(answer: Answer) -> list[str] | None:
    """The include folders in search order from what GCC says with `-v -E`; None if it says none."""
    match = _INCLUDES.search(answer.stderr.decode("utf-8", "surrogateescape"))
    if answer.status != 0 or match is None:
        return None
    return [line.strip() for part in match.groups() for line in part.splitlines() if line.strip()]


def outermost(paths: list[str]) -> list[str]:
    """The paths, sorted by their real places, without those that lie inside another one."""
    real = sorted({os.path.realpath(path) for path in paths})
    return [path for path in real if not lies_in(path, [other for other in real if other != path])]


def _resource_files(folder: str) -> list[str]:
    """GCC's specs, plug-ins and start files; programs for other languages than C++ do not take part."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise Unidentified(f"{folder}: cannot be read: {error.strerror}") from None
    suffixes = (".o", ".so", ".spec", ".specs")
    return [
        os.path.join(folder, name)
        for name in names
        if name in ("specs", "include", "include-fixed") or name.endswith(suffixes) or ".so." in name
    ]
