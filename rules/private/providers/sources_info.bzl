"""The provider of a library of kernel sources."""

def _init(*, direct_sources, imports, sources):
    for name, value in (("direct_sources", direct_sources), ("imports", imports), ("sources", sources)):
        if type(value) != "depset":
            fail("PyptoSourcesInfo.{} is a depset, got {}".format(name, type(value)))
    return {"direct_sources": direct_sources, "imports": imports, "sources": sources}

PyptoSourcesInfo, _new = provider(
    doc = "Python sources that kernels are made of.",
    fields = {
        "direct_sources": "depset of File: the files of the target itself.",
        "imports": "depset of string: transitive; folders to import from, as `<repository>/<folder>`.",
        "sources": "depset of File: transitive; the files of the target and of everything it depends on.",
    },
    init = _init,
)
