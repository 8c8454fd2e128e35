"""The provider of the ptoas tool set."""

PtoasInfo = provider(
    doc = "The assembler that turns `.pto` into C++, with its libraries, as one relocatable tree.",
    fields = {
        "evidence": "File: the record (JSON) of what was verified when the tree was unpacked; input of the descriptor.",
        "files": "depset of File: the whole tree, the evidence included.",
        "version": "string: the version of the lock entry.",
    },
)
