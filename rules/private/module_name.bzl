"""From a kernel's source file to the name and the place that its module is imported by."""

load("//rules/private:actions.bzl", "repository_root")

def module_of(src, requested):
    """The module of a source file.

    Args:
      src: File; the `.py` file.
      requested: string; the dotted name that the user wants, or empty.

    Returns:
      A struct of `name` (string) and `import_roots` (list of string: folders that must be searched first).
    """
    root = repository_root(src)
    path = src.path if root == "." else src.path[len(root) + 1:]
    if not requested:
        name = path.removesuffix(".py").replace("/", ".")
        _check_identifiers(name, "the path of src, '{}', is no module name".format(path), "name it by the attribute module")
        return struct(name = name, import_roots = [])
    _check_identifiers(requested, "module = '{}' is no module name".format(requested), "use a dotted name such as kernels.decode")
    suffix = requested.replace(".", "/") + ".py"
    if path != suffix and not path.endswith("/" + suffix):
        fail("module = '{}' needs a src that ends in '{}', but src is '{}'".format(requested, suffix, path))
    return struct(name = requested, import_roots = [src.path.removesuffix(suffix).rstrip("/") or "."])

def _check_identifiers(name, problem, remedy):
    for part in name.split("."):
        valid = part and not part[0].isdigit()
        for character in part.elems():
            valid = valid and (character.isalnum() or character == "_")
        if not valid:
            fail("{}: '{}' is not an identifier; {}".format(problem, part, remedy))
