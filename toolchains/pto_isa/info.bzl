"""The provider of the PTO-ISA tool set."""

PtoIsaInfo = provider(
    doc = "The instruction headers of PTO-ISA, CPU simulator included, as one relocatable tree.",
    fields = {
        "evidence": "File: the record (JSON) of what was verified when the tree was unpacked; input of the descriptor.",
        "files": "depset of File: the whole tree, the evidence included.",
        "version": "string: the version of the lock entry.",
    },
)
