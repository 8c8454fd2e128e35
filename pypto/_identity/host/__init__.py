"""The identity of builds in the host world: tools found on PATH or in the environment, without a toolchain descriptor.

`host_identity` is the one door. Everything that acts on such a build enters as it is on this machine: resolved paths,
the interpreter, environment variables. What cannot be identified completely has no digest but a reason.
"""
