"""Every field of the records that a key is made from: where it stands, what it means, in order of importance.

`explain` names differences by this list, and the truth table of the tests is generated from it: a field of a record
that is not listed here, or one that is listed and occurs nowhere, fails there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pypto._identity.identity import COMPONENT_NAMES

SETTINGS = "settings"
SOURCE = "source"
SPECIALIZATION = "specialization"

PARTS = (SOURCE, SPECIALIZATION, "ptoas", "pto_isa", "device_toolchain", "runtime", "pypto")
"""The parts of a key, the one that changes most often first. Settings stand in the record of every component."""

EVIDENCE = "evidence"


@dataclass(frozen=True)
class Field:
    """One field of a part's record.

    Attributes:
        part: name of the part, or `settings`.
        path: where it stands, with dots; `*` is any name. The value there is compared as a whole.
        meaning: a few words for whoever reads the difference.
    """

    part: str
    path: str
    meaning: str

    def matches(self, part: str, path: tuple[str, ...]) -> bool:
        """Whether this is the field at a path of a part's view."""
        return len(self.path.split(".")) == len(path) and self.holds(part, path)

    def holds(self, part: str, path: tuple[str, ...]) -> bool:
        """Whether the path is this field's, or that of something it stands in: an empty mapping has no fields."""
        steps = self.path.split(".")[: len(path)]
        return (
            part == self.part
            and len(steps) == len(path)
            and all(step in ("*", name) for step, name in zip(steps, path, strict=True))
        )


SETTINGS_FIELDS = (
    Field(SETTINGS, "world", "whether a toolchain descriptor is in force (hermetic) or the host's tools are used"),
    Field(SETTINGS, "policy", "PYPTO_CACHE_IDENTITY"),
    Field(SETTINGS, "strict", "PYPTO_CACHE_STRICT"),
    Field(SETTINGS, "epoch", "PYPTO_CACHE_EPOCH"),
)

REQUEST_FIELDS = (
    Field(SOURCE, "order", "the functions that the entry reaches, in order of first use"),
    Field(SOURCE, "functions.*.text", "source text of a function"),
    Field(SOURCE, "functions.*.values.*", "value of a name from outside the function"),
    Field(SOURCE, "functions.*.signature", "parameters as annotated"),
    Field(SOURCE, "functions.*.options", "options of the decorator"),
    Field(SOURCE, "functions.*.kind", "kind of function"),
    Field(SOURCE, "functions.*.order", "the outside names, in order of first use"),
    Field(SOURCE, "extra_sources", "content of extra_source_paths"),
    Field(SOURCE, "extra_fingerprint", "the application's extra_fingerprint"),
    Field(SPECIALIZATION, "entry", "the entry function"),
    Field(SPECIALIZATION, "order", "the entry's parameters, in order"),
    Field(SPECIALIZATION, "parameters.*.shape", "dimensions of a tensor; a name is a dynamic one"),
    Field(SPECIALIZATION, "parameters.*.dtype", "element type"),
    Field(SPECIALIZATION, "parameters.*.direction", "how the entry uses a parameter"),
    Field(SPECIALIZATION, "parameters.*.kind", "tensor or scalar"),
    Field(SPECIALIZATION, "options.*", "compile option"),
    Field(SPECIALIZATION, "schema", "version of the specialization record"),
)


def _set_fields(part: str, name: str) -> Iterator[Field]:
    for path, meaning in (
        ("version", "version that the lock pins"),
        ("lock", "entry of the lock: names and digests of the downloaded files"),
        ("facts.measured", "content of the set's folder, read for this identity"),
        ("facts.*", "recorded when the set was unpacked"),
        ("tools.*.sha256", "bytes of a program"),
        ("tools.*.build_id", "Build-ID of a program"),
        ("tools.*.path", "place of a program in its set"),
        ("includes", "header folders, in search order"),
        ("libraries", "library folders of the programs, in search order"),
        ("tree.digest", "all files of the set"),
        ("tree.files", "number of files"),
        ("tree.size", "bytes of all files"),
        ("name", "name of the set"),
        ("schema", "version of the set's record"),
    ):
        yield Field(part, f"{name}.{path}", meaning)


HERMETIC_FIELDS = (
    *_set_fields("ptoas", "ptoas"),
    *_set_fields("pto_isa", "isa"),
    *(field for name in ("gcc", "gcc_aarch64", "cann") for field in _set_fields("device_toolchain", name)),
    Field("runtime", "content", "sources and headers of pypto/runtime"),
    Field("pypto", "content", "sources and data of the package pypto"),
    Field("pypto", "generated_output_schema", "version of what the generator writes"),
    Field("pypto", "interpreter", "logical name of the interpreter"),
)

FRAME_FIELDS = tuple(
    Field(part, path, meaning)
    for part in COMPONENT_NAMES
    for path, meaning in (
        ("verified_revision", "revision that was proved to be the component's bytes"),
        ("reported_version", "version that the installation claims"),
        ("roots", "content of the listed files and folders"),
        ("schema", "version of the identity records"),
        ("component", "name of the component"),
    )
)


def view(part: str, record: Any) -> dict[str, Any]:
    """A part's record in the form that `Field.path` speaks of: names in place of list positions.

    Complete: two records with equal views are equal.
    """
    if part == SOURCE:
        return _source_view(record)
    if part == SPECIALIZATION:
        return _named(record, "parameters", lambda parameter: parameter)
    if part in COMPONENT_NAMES:
        evidence = record.get(EVIDENCE)
        flat = {name: value for name, value in record.items() if name not in (EVIDENCE, "content")}
        if "content" in record:
            flat["roots"] = record["content"]
        if isinstance(evidence, dict) and not evidence.keys() & flat.keys():
            return {**evidence, **flat}
        return flat if evidence is None else {**flat, EVIDENCE: evidence}
    raise ValueError(f"unknown part {part!r}")


def _source_view(record: Any) -> dict[str, Any]:
    return _named(record, "functions", _function_view)


def _function_view(function: Any) -> Any:
    names = [name for name, _ in function["values"]]
    return {**function, "values": dict(function["values"]), "order": names}


def _named(record: Any, field: str, item_view: Callable[[Any], Any]) -> dict[str, Any]:
    """The record with the list `field` by its items' names, and the order of the names beside it."""
    items = record[field]
    names = [item["name"] for item in items]
    if len(set(names)) != len(names):
        # Kernels of one name in two modules: the position tells them apart.
        names = [f"{name} ({index})" for index, name in enumerate(names)]
    views = ({key: value for key, value in item_view(item).items() if key != "name"} for item in items)
    return {**record, field: dict(zip(names, views, strict=True)), "order": names}
