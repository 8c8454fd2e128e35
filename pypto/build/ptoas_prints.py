"""What ptoas prints while it works, taken apart: the module after each of its passes, and its notes between them."""

from __future__ import annotations

import re

_HEADING = re.compile(r"// === \[PTO(\w+)[^\]]*\] *(.+?) === //")
_SAID = re.compile(r"(Hello|end) PTO ([\w ]+?)!")


def sections(text: str) -> list[tuple[str, str]]:
    """File name and text of each part, in order; a part is a module, or notes under one heading.

    ptoas says ``Hello PTO Infer Mem Scope!`` before a pass, ``end PTO plan Mem!`` after one, and prints the module
    next; so a module has the name of the latest such line.
    """
    parts: list[tuple[str, list[str]]] = []
    name, module = "read", False
    for line in text.splitlines():
        heading = _HEADING.match(line)
        if heading:
            parts.append((f"{_slug(heading.group(1))}_{_slug(heading.group(2))}.txt", [line]))
        elif line.startswith("module"):
            parts.append((f"{name}.mlir", [line]))
            module = True
        elif module:
            parts[-1][1].append(line)
            module = line != "}"
        elif (said := _SAID.fullmatch(line.strip())) is not None:
            name = ("before_" if said.group(1) == "Hello" else "after_") + _slug(said.group(2))
        elif parts and parts[-1][0].endswith(".txt"):
            parts[-1][1].append(line)
        elif line.strip():
            parts.append(("notes.txt", [line]))
    return [(label, "\n".join(lines) + "\n") for label, lines in parts]


def _slug(text: str) -> str:
    return re.sub(r"\W+", "", text.title() if " " in text else text)
