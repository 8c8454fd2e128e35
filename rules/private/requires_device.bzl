"""Targets that make sense on the NPU only."""

def requires_pypto_device():
    """For `target_compatible_with` of targets that only make sense in the execution mode `device`.

    In mode `sim` such a target is skipped by `//...` and refused when it is named.

    Returns:
      A `select` to give to `target_compatible_with`.
    """
    return select({
        Label("//rules:is_device"): [],
        "//conditions:default": ["@platforms//:incompatible"],
    })
