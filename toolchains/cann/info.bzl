"""The provider of the CANN tool set."""

load("//toolchains/private:tool_tree.bzl", "tool_tree_init")

def _init(**fields):
    return tool_tree_init("CannInfo", fields)

CannInfo, _new = provider(
    doc = "An Ascend toolkit: the compiler ccec and its linker.",
    fields = {
        "evidence": "File: the record (JSON) of what was verified when the tree was unpacked or found; input of the descriptor.",
        "files": "depset of File: the whole tree, the evidence included; of an installation of the machine, the evidence alone.",
        "folder": "string: where an installation of the machine lies; empty when the tree is the folder of the evidence.",
        "version": "string: the version of the lock entry, or what the installation reports.",
    },
    init = _init,
)
