"""Writes a page of the reference: ``render.py EXTRACTED LOAD PAGE``.

EXTRACTED is a message of Bazel's ``stardoc_output.proto``; the fields that a page shows are few, so they are read here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

Message = dict[int, list["bytes | int"]]


def parse(data: bytes) -> Message:
    """The fields of a message by number, in order."""
    fields: Message = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            value: bytes | int = varint()
        elif tag & 7 == 2:
            size = varint()
            value = data[at : at + size]
            at += size
        else:
            raise ValueError(f"a field of the type {tag & 7} is not expected here")
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def text(message: Message, number: int) -> str:
    """A string field; empty when it is absent."""
    value = message.get(number, [b""])[-1]
    assert isinstance(value, bytes)
    return value.decode("utf-8").strip()


def messages(message: Message, number: int) -> Iterator[Message]:
    """The messages of a repeated field."""
    for value in message.get(number, []):
        assert isinstance(value, bytes)
        yield parse(value)


def cell(value: str) -> str:
    """Text for one cell of a table."""
    return " ".join(value.split()).replace("|", "\\|")


KINDS = {
    1: "name", 2: "int", 3: "label", 4: "string", 5: "list of strings", 6: "list of ints", 7: "list of labels",
    8: "bool", 9: "label to string", 10: "dict of strings", 11: "dict of lists", 12: "output", 13: "list of outputs",
}  # fmt: skip


def attributes(owner: Message, number: int) -> Iterator[str]:
    """A table of attributes; those that every rule has are left out."""
    shown = [attribute for attribute in messages(owner, number) if text(attribute, 1) != "name"]
    if not shown:
        return
    yield "\n| attribute | type | meaning |\n| --- | --- | --- |"
    for attribute in sorted(shown, key=lambda attribute: text(attribute, 1)):
        kind = attribute.get(3, [0])[-1]
        mandatory = bool(attribute.get(4, [0])[-1])
        default = text(attribute, 6)
        notes = " **Required.**" if mandatory else f" Default `{default}`." if default not in ("", "None") else ""
        name = KINDS.get(kind, "?") if isinstance(kind, int) else "?"
        yield f"| `{text(attribute, 1)}` | {name} | {cell(text(attribute, 2))}{notes} |"


def function(info: Message) -> Iterator[str]:
    """A function or macro."""
    parameters = list(messages(info, 2))
    signature = ", ".join(text(p, 1) + (f" = {text(p, 3)}" if text(p, 3) else "") for p in parameters)
    yield f"\n## {text(info, 1)}\n\n```starlark\n{text(info, 1)}({signature})\n```\n\n{text(info, 3)}"
    if parameters:
        yield "\n| parameter | meaning |\n| --- | --- |"
        for parameter in parameters:
            yield f"| `{text(parameter, 1)}` | {cell(text(parameter, 2))} |"
    for returned in messages(info, 4):
        yield f"\nReturns: {cell(text(returned, 1))}"


def page(module: Message, load: str) -> str:
    """The whole page."""
    lines = [f"# `{load}`", "", text(module, 5)]
    entries: list[tuple[str, list[str]]] = []
    for rule in messages(module, 1):
        entries.append((text(rule, 1), [f"\n## {text(rule, 1)}\n\n{text(rule, 2)}", *attributes(rule, 3)]))
    for provider in messages(module, 2):
        made = [f"\n## {text(provider, 1)}\n\n{text(provider, 2)}", "\n| field | meaning |\n| --- | --- |"]
        made += [f"| `{text(field, 1)}` | {cell(text(field, 2))} |" for field in messages(provider, 3)]
        entries.append((text(provider, 1), made))
    for info in messages(module, 3):
        entries.append((text(info, 1), list(function(info))))
    for aspect in messages(module, 4):
        entries.append((text(aspect, 1), [f"\n## {text(aspect, 1)}\n\n{text(aspect, 2)}"]))
    for extension in messages(module, 7):
        made = [f"\n## {text(extension, 1)}\n\n{text(extension, 2)}"]
        for tag in messages(extension, 3):
            made += [f"\n### {text(extension, 1)}.{text(tag, 1)}\n\n{text(tag, 2)}", *attributes(tag, 3)]
        entries.append((text(extension, 1), made))
    for _, made in sorted(entries, key=lambda entry: entry[0]):
        lines += made
    lines += ["", "---", "", "Made from the Starlark files: `tools/bazel run //docs/reference:update`.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    extracted, load_path, out = sys.argv[1:]
    Path(out).write_text(page(parse(Path(extracted).read_bytes()), load_path), encoding="utf-8")
