"""The component `ptoas`: a standalone program, a wheel's launcher, or an installation that `PTOAS_ROOT` names."""

from __future__ import annotations

import os

from pypto._identity.content import ContentRoot
from pypto._identity.host.closure import closure, script_interpreter
from pypto._identity.host.files import Unidentified, is_elf, native_record
from pypto._identity.host.launcher import PACKAGES, Launcher, Startup, probe_startup, read_launcher
from pypto._identity.host.overrides import execution_directory, interpreter_overrides, loader_overrides
from pypto._identity.host.probes import Probes
from pypto._identity.host.records import LauncherRecord, PtoasRecord
from pypto._identity.host.selection import HostSelection
from pypto._identity.host.wheels import Wheel, check_inside, wheel_of
from pypto._identity.policy import IdentitySettings
from pypto._identity.toolchain_inputs import ComponentInputs

_ONLINE = "_online"


def ptoas_inputs(selection: HostSelection, settings: IdentitySettings, probes: Probes) -> ComponentInputs:
    """The component `ptoas`."""
    try:
        path, root = selection.ptoas()
        if settings.policy == "content":
            return _by_version(path, root, settings, probes)
        return _by_build(path, root, selection, settings, probes)
    except Unidentified as error:
        return ComponentInputs(unavailable_reason=str(error))


def _by_build(
    path: str, root: str | None, selection: HostSelection, settings: IdentitySettings, probes: Probes
) -> ComponentInputs:
    whole = settings.strict
    variables = selection.variables
    roots: list[str] = []
    record: PtoasRecord = {
        "path": os.path.realpath(path),
        "overrides": loader_overrides(variables),
        "execution_directory": execution_directory(variables, (selection.cwd, selection.project_root)),
    }
    if is_elf(path):
        record["program"] = native_record(path, whole=whole)
        if whole:
            roots = [*closure([os.path.realpath(path)], probes), *([root] if root else [])]
    else:
        installation = _Installation(read_launcher(path), probes, whole=whole)
        record["launcher"] = installation.record(whole=whole)
        record["overrides"] = interpreter_overrides(variables)
        if whole:
            roots = installation.files(probes)
    return ComponentInputs(roots=tuple(map(ContentRoot, roots)), evidence=dict(record), unavailable_reason=None)


def _by_version(path: str, root: str | None, settings: IdentitySettings, probes: Probes) -> ComponentInputs:
    """What the installation says about itself, else (or when strict, too) its content.

    The version alone rests on the official release being unmodified.
    """
    installation = None
    if root is None and not is_elf(path):
        installation = _Installation(read_launcher(path), probes, whole=True)
    (answer,) = probes([[path, "--version"]])
    version = answer.stdout.decode("utf-8", "surrogateescape") if answer.status == 0 else ""
    if version and not settings.strict:
        return ComponentInputs(reported_version=version, unavailable_reason=None)
    if installation is not None:
        files = installation.files(probes)
    elif is_elf(path):
        files = closure([os.path.realpath(path)], probes)
    else:
        interpreter = script_interpreter(path)
        if interpreter is None or not is_elf(interpreter):
            raise Unidentified(f"the ptoas launcher {path} is not supported: it names no ELF interpreter")
        files = closure([os.path.realpath(interpreter)], probes)
    files += [root] if root is not None else []
    return ComponentInputs(
        roots=tuple(map(ContentRoot, files)), reported_version=version or None, unavailable_reason=None
    )


class _Installation:
    """A ptoas wheel as its launcher's interpreter sees it.

    Raises:
        Unidentified: evidence is missing, a package comes from elsewhere, or a dependency is not supported.
    """

    def __init__(self, launcher: Launcher, probes: Probes, *, whole: bool) -> None:
        self.launcher = launcher
        self.startup: Startup = probe_startup(launcher, probes, whole=whole)
        packages = self.startup.packages
        self.wheel: Wheel = wheel_of("ptoas", packages.get("ptoas"))
        if not self.wheel.declares_script(os.path.basename(launcher.path), launcher.entry):
            raise Unidentified(
                f"the ptoas launcher {launcher.path} is not supported: the wheel declares no such script for "
                f"{launcher.entry}"
            )
        for package in PACKAGES[1:]:
            check_inside(package, packages.get(package), self.wheel)
        for package in PACKAGES:
            online = os.path.join(self.wheel.site, package, _ONLINE)
            if os.path.lexists(online):
                raise Unidentified(f"{online}: local rebuilds of ptoas extensions may not change its reported version")
        self.numpy: Wheel | None = None
        for name in self.wheel.requirements():
            if name != "numpy":
                raise Unidentified(f"the ptoas wheel depends on {name}, which is not supported: only numpy is")
            self.numpy = wheel_of("numpy", packages.get("numpy"))
            if more := self.numpy.requirements():
                raise Unidentified(f"the numpy wheel depends on {more[0]}, which is not supported")

    def record(self, *, whole: bool) -> LauncherRecord:
        """Its evidence under `build`."""
        natives = self.wheel.natives(whole=whole)
        if not natives:
            raise Unidentified(f"wheel evidence is missing: {self.wheel.info} lists no native compiler")
        record: LauncherRecord = {
            "entry": self.launcher.entry,
            "interpreter": self.startup.interpreter,
            "ptoas": self.wheel.record(),
            "natives": natives,
            "startup": self.startup.record,
        }
        if self.numpy is not None:
            record["numpy"] = self.numpy.record()
        return record

    def files(self, probes: Probes) -> list[str]:
        """Everything that it is loaded from, but the interpreter's standard library."""
        found = [self.launcher.path, *closure([self.startup.executable], probes), *self.startup.record["hooks"]]
        for wheel in (self.wheel, self.numpy):
            if wheel is not None:
                tops = {path.split("/")[0] for path in wheel.files if "/" in path and not path.startswith("..")}
                found += [os.path.join(wheel.site, top) for top in sorted(tops - {"__pycache__"})]
        return found
