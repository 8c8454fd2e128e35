"""The form of the errors that a user has to act on."""

def four_part_message(problem, needed, looked_for, found, paste):
    """An error in four parts, so that nobody has to know Bazel's toolchain resolution to mend it.

    Args:
      problem: string; one sentence that says which target cannot be built.
      needed: string; what the target needed, and why.
      looked_for: list of strings; the places looked at, in order.
      found: string; what was there instead.
      paste: list of strings; the lines to paste, with where they go as the first one's comment.

    Returns:
      The text for `fail`.
    """
    return "\n".join(
        ["", problem, "  needed:     " + needed] +
        [("  looked for: " if i == 0 else "              ") + place for i, place in enumerate(looked_for)] +
        ["  found:      " + found] +
        [("  to mend it: " if i == 0 else "              ") + line for i, line in enumerate(paste)] +
        [""],
    )

def shown_label(label):
    """A label as a user of the main repository or of the module pypto writes it.

    Args:
      label: Label; a target of the main repository, of pypto, or of another module (shown in canonical form).

    Returns:
      The label as text.
    """
    if not label.repo_name:
        return "//{}:{}".format(label.package, label.name)
    if label.repo_name == Label("//:MODULE.bazel").repo_name:
        return "@pypto//{}:{}".format(label.package, label.name)
    return str(label)
