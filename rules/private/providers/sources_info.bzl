"""The provider of a library of kernel sources."""

load("//rules/private/providers:values.bzl", "check_fields")

_NAMES = ["direct_sources", "imports", "native_sources", "sources"]

def _init(*, direct_sources, imports, sources, native_sources = depset()):
    fields = {"direct_sources": direct_sources, "imports": imports, "native_sources": native_sources, "sources": sources}
    check_fields("PyptoSourcesInfo", fields, {name: "depset" for name in _NAMES})
    return fields

PyptoSourcesInfo, _new = provider(
    doc = "Python sources that kernels are made of.",
    fields = {
        "direct_sources": "depset of File: the files of the target itself.",
        "imports": "depset of string: transitive; folders to import from, as `<repository>/<folder>`.",
        "native_sources": "depset of File: transitive; hand-written C++ of kernels, with its headers.",
        "sources": "depset of File: transitive; the files of the target and of everything it depends on.",
    },
    init = _init,
)
