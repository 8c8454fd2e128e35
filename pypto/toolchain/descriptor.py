"""What the tools are (descriptor) and where they lie (bindings).

A descriptor holds logical paths and evidence only, no place of any machine, so its bytes are the same whether Bazel or
`python -m pypto.toolchain install` made it. Bindings map its root names to folders and never enter an identity.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pypto._identity.records import canonical_json, digest_record, is_digest, parse_canonical_json
from pypto.toolchain.errors import DescriptorError

DESCRIPTOR_SCHEMA = 1
BINDINGS_SCHEMA = 1
SET_SCHEMA = 1

ROOTS = ("gcc", "isa", "ptoas")
"""The names of the tool sets that every toolchain has, which are also the names of their roots."""
OPTIONAL_ROOTS = ("cann", "gcc_aarch64")
"""The names of the sets that only builds for a device use."""
ALL_ROOTS = (*ROOTS, *OPTIONAL_ROOTS)

DESCRIPTOR_FILE = "descriptor.json"
BINDINGS_FILE = "bindings.json"
SET_FILE = "set.json"
"""The record that stands in the root folder of every unpacked set."""


@dataclass(frozen=True)
class ToolFile:
    """One program: its path in its set's root, the SHA-256 of its bytes and its GNU Build-ID (hex, or None)."""

    path: str
    sha256: str
    build_id: str | None


@dataclass(frozen=True)
class ToolSet:
    """One unpacked tool set, as verified when it was unpacked.

    Attributes:
        name: root name, one of `ALL_ROOTS`.
        version: the version that the lock pins; for `cann` the build that the installation reports.
        lock: digest of the set's lock entry; None for `cann`, which is the user's own.
        tree: digest of the sorted listing of all files (path, executable bit, SHA-256); for `cann` of those that builds
            start and the one that reports the build.
        files, size: number of those files and their bytes together.
        tools: programs by name.
        includes: header folders in search order, relative to the root.
        libraries: folders of shared libraries that the programs themselves need, relative to the root.
        facts: further versioned evidence by name, such as the digest of an overlay.
    """

    name: str
    version: str
    lock: str | None
    tree: str
    files: int
    size: int
    tools: Mapping[str, ToolFile]
    includes: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """The set as a plain value; `from_record` turns it back."""
        return {
            "schema": SET_SCHEMA,
            "name": self.name,
            "version": self.version,
            "lock": self.lock,
            "tree": {"digest": self.tree, "files": self.files, "size": self.size},
            "tools": {
                name: {"path": tool.path, "sha256": tool.sha256, "build_id": tool.build_id}
                for name, tool in sorted(self.tools.items())
            },
            "includes": list(self.includes),
            "libraries": list(self.libraries),
            "facts": dict(sorted(self.facts.items())),
        }

    @property
    def digest(self) -> str:
        """SHA-256 of the set's record: equal digests mean the same tools."""
        return digest_record(self.record())

    @classmethod
    def from_record(cls, record: object, what: str) -> ToolSet:
        """Read a record; `what` names the file in errors.

        Raises:
            DescriptorError: a field is missing, unknown, of a wrong type or holds an absolute path.
        """
        fields = _fields(
            record,
            what,
            {
                "schema": int,
                "name": str,
                "version": str,
                "lock": (str, type(None)),
                "tree": dict,
                "tools": dict,
                "includes": list,
                "libraries": list,
                "facts": dict,
            },
        )
        _schema(fields["schema"], SET_SCHEMA, what)
        if fields["name"] not in ALL_ROOTS:
            raise DescriptorError(f"{what}: unknown tool set {fields['name']!r}; known are {', '.join(ALL_ROOTS)}")
        tree = _fields(fields["tree"], f"{what}: tree", {"digest": str, "files": int, "size": int})
        for name, value in (("lock", fields["lock"]), ("tree.digest", tree["digest"])):
            if value is None and fields["name"] == "cann":
                continue
            if not is_digest(value):
                raise DescriptorError(f"{what}: {name} is no SHA-256: {value!r}")
        tools = {}
        for name, entry in sorted(fields["tools"].items()):
            where = f"{what}: tools.{name}"
            read = _fields(entry, where, {"path": str, "sha256": str, "build_id": (str, type(None))})
            if not is_digest(read["sha256"]):
                raise DescriptorError(f"{where}: sha256 is no SHA-256: {read['sha256']!r}")
            tools[name] = ToolFile(logical_path(read["path"], where), read["sha256"], read["build_id"])
        for name, value in fields["facts"].items():
            if type(value) is not str:
                raise DescriptorError(f"{what}: facts.{name} must be a string")
        return cls(
            fields["name"],
            fields["version"],
            fields["lock"],
            tree["digest"],
            tree["files"],
            tree["size"],
            tools,
            tuple(logical_path(p, f"{what}: includes") for p in fields["includes"]),
            tuple(logical_path(p, f"{what}: libraries") for p in fields["libraries"]),
            dict(fields["facts"]),
        )


@dataclass(frozen=True)
class ToolchainDescriptor:
    """All tool sets by root name: those of `ROOTS`, and the optional ones that are there."""

    sets: Mapping[str, ToolSet]

    def record(self) -> dict[str, Any]:
        return {"schema": DESCRIPTOR_SCHEMA, "sets": {name: s.record() for name, s in sorted(self.sets.items())}}

    def to_bytes(self) -> bytes:
        """The one canonical spelling: what the descriptor file holds."""
        return canonical_json(self.record())

    @property
    def digest(self) -> str:
        return digest_record(self.record())

    @classmethod
    def from_bytes(cls, data: bytes, what: str = "the toolchain descriptor") -> ToolchainDescriptor:
        """Read a descriptor's file content; `what` names it in errors.

        Raises:
            DescriptorError: no canonical JSON, another schema, missing or unknown fields.
        """
        fields = _fields(_canonical(data, what), what, {"schema": int, "sets": dict})
        _schema(fields["schema"], DESCRIPTOR_SCHEMA, what)
        sets = {}
        for name, entry in sorted(fields["sets"].items()):
            sets[name] = ToolSet.from_record(entry, f"{what}: sets.{name}")
            if sets[name].name != name:
                raise DescriptorError(f"{what}: sets.{name} describes the set {sets[name].name!r}")
        missing = [name for name in ROOTS if name not in sets]
        if missing:
            raise DescriptorError(f"{what}: no entry for {', '.join(missing)}")
        return cls(sets)


@dataclass(frozen=True)
class Bindings:
    """Absolute folder of each root; never part of an identity."""

    roots: Mapping[str, Path]

    def __post_init__(self) -> None:
        missing = [name for name in ROOTS if name not in self.roots]
        unknown = sorted(set(self.roots) - set(ALL_ROOTS))
        if missing or unknown:
            problem = f"no folder for {', '.join(missing)}" if missing else f"unknown root {', '.join(unknown)}"
            raise DescriptorError(f"toolchain bindings: {problem}; the roots are {', '.join(ALL_ROOTS)}")
        # abspath, not resolve: inside a sandbox a folder's files are links that lead out of it.
        object.__setattr__(self, "roots", {n: Path(os.path.abspath(path)) for n, path in sorted(self.roots.items())})

    def to_bytes(self, beside: Path) -> bytes:
        """File content for a bindings file in the folder `beside`: paths inside that folder become relative."""
        base = Path(os.path.abspath(beside))
        roots = {
            name: str(path.relative_to(base)) if path.is_relative_to(base) else str(path)
            for name, path in self.roots.items()
        }
        return canonical_json({"schema": BINDINGS_SCHEMA, "roots": roots})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Bindings:
        """Read a bindings file; relative folders in it are relative to the file.

        Raises:
            DescriptorError: unreadable, no canonical JSON, a root missing or unknown.
        """
        what = f"toolchain bindings {os.fspath(path)}"
        fields = _fields(_canonical(_read(path, what), what), what, {"schema": int, "roots": dict})
        _schema(fields["schema"], BINDINGS_SCHEMA, what)
        for name, value in fields["roots"].items():
            if type(value) is not str or not value:
                raise DescriptorError(f"{what}: roots.{name} must name a folder")
        base = Path(os.path.abspath(path)).parent
        return cls({name: base / value for name, value in fields["roots"].items()})


@dataclass(frozen=True)
class Toolchain:
    """A descriptor together with the folders where its sets lie on this machine."""

    descriptor: ToolchainDescriptor
    bindings: Bindings

    @classmethod
    def load(
        cls, descriptor: str | os.PathLike[str], bindings: Bindings | str | os.PathLike[str] | None = None
    ) -> Toolchain:
        """Read a descriptor file and its bindings (default: `bindings.json` beside it).

        Raises:
            DescriptorError: either file is unreadable or wrong, or a bound folder is missing.
        """
        path = Path(os.path.abspath(descriptor))
        what = f"toolchain descriptor {os.fspath(descriptor)}"
        read = ToolchainDescriptor.from_bytes(_read(path, what), what)
        if bindings is None:
            bindings = path.parent / BINDINGS_FILE
        bound = bindings if isinstance(bindings, Bindings) else Bindings.load(bindings)
        for name in read.sets:
            if name not in bound.roots:
                raise DescriptorError(f"{what}: the bindings name no folder for root {name!r}")
            if not bound.roots[name].is_dir():
                remedy = "" if name in ROOTS else "; `python -m pypto.toolchain install` goes on without it"
                raise DescriptorError(
                    f"{what}: the folder of root {name!r} does not exist: {bound.roots[name]}{remedy}"
                )
        if "cann" in read.sets:
            from pypto.toolchain.cann import require_unchanged

            require_unchanged(read.sets["cann"], bound.roots["cann"])
        return cls(read, bound)

    def root(self, name: str) -> Path:
        """Absolute folder of the root `name`."""
        return self.bindings.roots[name]


def read_set(folder: str | os.PathLike[str]) -> ToolSet:
    """The record of the set unpacked in `folder`.

    Raises:
        DescriptorError: no complete set is there, or its record is damaged.
    """
    path = Path(folder) / SET_FILE
    what = f"tool set record {path}"
    return ToolSet.from_record(_canonical(_read(path, what), what), what)


def describe(folders: Mapping[str, str | os.PathLike[str]]) -> Toolchain:
    """The toolchain of unpacked sets, by root name, from the sets' own records; CANN is read as it lies.

    Raises:
        DescriptorError: a folder holds no set, or another one than its root name says.
    """
    from pypto.toolchain.cann import read_cann

    bindings = Bindings({name: Path(folder) for name, folder in folders.items()})
    sets = {}
    for name, folder in bindings.roots.items():
        sets[name] = read_cann(folder) if name == "cann" else read_set(folder)
        if sets[name].name != name:
            raise DescriptorError(f"{folder} holds the tool set {sets[name].name!r}, not {name!r}")
    return Toolchain(ToolchainDescriptor(sets), bindings)


def logical_path(value: object, what: str) -> str:
    """Check that `value` is a normalised relative path inside a root ("." is the root itself)."""
    if type(value) is not str or value.startswith("/") or ".." in value.split("/") or os.path.normpath(value) != value:
        raise DescriptorError(f"{what}: not a normalised path inside the set: {value!r}")
    return value


def _read(path: str | os.PathLike[str], what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise DescriptorError(f"{what} cannot be read: {error.strerror}") from None


def _canonical(data: bytes, what: str) -> object:
    try:
        return parse_canonical_json(data, what)
    except ValueError as error:
        raise DescriptorError(str(error)) from None


def _schema(found: int, known: int, what: str) -> None:
    if found != known:
        raise DescriptorError(
            f"{what} has schema {found}, this PyPTO reads schema {known}; make it again with the same PyPTO "
            "(python -m pypto.toolchain install)"
        )


def _fields(value: object, what: str, known: Mapping[str, type | tuple[type, ...]]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DescriptorError(f"{what} is not an object")
    missing = [name for name in known if name not in value]
    unknown = sorted(set(value) - set(known))
    if missing or unknown:
        problem = f"lacks the field {missing[0]!r}" if missing else f"has an unknown field {unknown[0]!r}"
        raise DescriptorError(f"{what} {problem}")
    for name, kind in known.items():
        if type(value[name]) not in (kind if isinstance(kind, tuple) else (kind,)):
            raise DescriptorError(f"{what}: the field {name!r} has the wrong type {type(value[name]).__name__}")
    return value
