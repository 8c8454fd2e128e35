"""`host_identity`: the identity of builds with tools of this machine."""

from __future__ import annotations

import sys
import threading

from pypto._identity.host.device import device_inputs
from pypto._identity.host.files import Unidentified
from pypto._identity.host.overrides import compiler_overrides, interpreter_overrides, refuse_unmodelled
from pypto._identity.host.probes import Probes, ProcessProbes
from pypto._identity.host.pto_isa import pto_isa_inputs
from pypto._identity.host.ptoas import ptoas_inputs
from pypto._identity.host.python import pypto_inputs
from pypto._identity.host.runtime import runtime_inputs
from pypto._identity.host.selection import HostSelection
from pypto._identity.identity import COMPONENT_NAMES, ToolchainIdentity
from pypto._identity.installation import InstallationIdentityCache
from pypto._identity.policy import IdentitySettings
from pypto._identity.records import digest_record
from pypto._identity.toolchain_inputs import ComponentInputs, ToolchainInputs

_DEFAULT_SETTINGS = IdentitySettings()
_SELECTING = ("PATH", "HOME", "ASCEND_HOME_PATH", "PTOAS_ROOT", "XDG_CONFIG_HOME")


def host_inputs(
    selection: HostSelection, settings: IdentitySettings = _DEFAULT_SETTINGS, *, probes: Probes | None = None
) -> ToolchainInputs:
    """The evidence of all five components, discovered anew; each that cannot be identified says why.

    Args:
        probes: how programs are asked about themselves; default: as child processes in the project root, with the
            environment in which the build runs its tools, in English.
    """
    if probes is None:
        probes = ProcessProbes({**selection.tool_variables(), "LC_ALL": "C"}, selection.project_root)
    found = {name: component_inputs(name, selection, settings, probes) for name in COMPONENT_NAMES}
    return ToolchainInputs(**found, world="host", settings=settings)


def component_inputs(
    name: str, selection: HostSelection, settings: IdentitySettings, probes: Probes
) -> ComponentInputs:
    """The evidence of one component, by name; arguments as `host_inputs`."""
    if not sys.platform.startswith("linux"):
        return ComponentInputs(unavailable_reason=f"host tools are identified on Linux only, not on {sys.platform}")
    if name == "runtime":
        return runtime_inputs(selection, settings)
    if name == "pto_isa":
        return pto_isa_inputs(selection, settings)
    # Runtime and headers are data; what acts on programs acts on the other components.
    if settings.policy == "content":
        try:
            refuse_unmodelled(selection.variables, selection.flags)
        except Unidentified as error:
            return ComponentInputs(unavailable_reason=str(error))
    makers = {"pypto": pypto_inputs, "ptoas": ptoas_inputs, "device_toolchain": device_inputs}
    return makers[name](selection, settings, probes)


class HostIdentities:
    """Host identities of one process. What was identified is kept; what could not be is tried again.

    A request with another working directory, PATH or other variable that selects a tool or acts on one is discovered
    anew. Installed files must not change while the process lives.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._contents = InstallationIdentityCache()
        self._known: dict[str, ToolchainIdentity] = {}

    def identity(
        self, selection: HostSelection, settings: IdentitySettings = _DEFAULT_SETTINGS, *, probes: Probes | None = None
    ) -> ToolchainIdentity:
        """The identity of a build with `selection`; an unusable one names every component that cannot be identified."""
        key = selection_key(selection, settings)
        with self._lock:
            known = self._known.get(key)
            if known is None:
                known = self._contents.capture(host_inputs(selection, settings, probes=probes))
                if known.usable:
                    self._known[key] = known
            return known


_identities = HostIdentities()


def host_identity(selection: HostSelection, settings: IdentitySettings = _DEFAULT_SETTINGS) -> ToolchainIdentity:
    """The identity of builds with the tools that `selection` (see `capture_selection`) finds on this machine.

    Returns:
        An identity; unusable, with a reason per component, where something that acts on the build cannot be
        identified. The cache is then to be passed by: there is no key to share.
    """
    return _identities.identity(selection, settings)


def selection_key(selection: HostSelection, settings: IdentitySettings) -> str:
    """A digest of everything that decides what is found and how it is identified, files apart."""
    variables = selection.variables
    acting = interpreter_overrides(variables) | compiler_overrides(variables)
    acting |= {name: value for name, value in variables.items() if name in _SELECTING or name.startswith("CCACHE_")}
    isa = selection.pto_isa
    return digest_record(
        {
            "variables": acting,
            "places": [selection.cwd, selection.project_root, selection.package_root, selection.runtime_root],
            "mode": [selection.execution_mode, selection.runtime],
            "names": [selection.compiler, selection.aarch64_compiler],
            "flags": list(selection.flags),
            "pto_isa": [isa.root, isa.revision, isa.remote],
            "settings": settings.record(),
        }
    )
