"""Targets that make sense in one execution mode only."""

# A Label, since a project need not have a module of that name.
_INCOMPATIBLE = Label("@platforms//:incompatible")

def requires_pypto_device():
    """For `target_compatible_with` of targets that only make sense in the execution mode `device`.

    In mode `sim` such a target is skipped by `//...` and refused when it is named.

    Returns:
      A `select` to give to `target_compatible_with`.
    """
    return select({
        Label("//rules:is_device"): [],
        "//conditions:default": [_INCOMPATIBLE],
    })

def requires_simulator():
    """The opposite, for targets that run kernels on the simulator.

    Returns:
      A `select` to give to `target_compatible_with`.
    """
    return select({
        Label("//rules:is_device"): [_INCOMPATIBLE],
        "//conditions:default": [],
    })
