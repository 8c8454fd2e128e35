"""The provider of the GCC tool set."""

GccInfo = provider(
    doc = "A C++ compiler with its binutils and sysroot, as one relocatable tree.",
    fields = {
        "evidence": "File: the record (JSON) of what was verified when the tree was unpacked; input of the descriptor.",
        "files": "depset of File: the whole tree, the evidence included.",
        "version": "string: the version of the lock entry.",
    },
)
