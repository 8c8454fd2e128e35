"""The shapes of the evidence that host components record. What a build does not have is left out of its record."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class NativeRecord(TypedDict):
    """A native file: its Build-ID, or the SHA-256 of its bytes where it has none (both when bytes are asked for)."""

    build_id: str | None
    sha256: str | None


class ProgramRecord(TypedDict):
    """A program and where it is."""

    path: str
    native: NativeRecord


class WrapperRecord(TypedDict):
    """What stands between the invoked name and the compiler.

    kind: `exec` (a script that only starts another program) or `ccache`.
    files: SHA-256 of the script or of each configuration file, by path.
    variables: variables that the wrapper reads.
    """

    kind: str
    files: dict[str, str]
    variables: dict[str, str]


class GccRecord(TypedDict):
    """One GCC: the invoked entry, the driver that really runs, and the programs that the driver starts."""

    entry: ProgramRecord
    wrapper: NotRequired[WrapperRecord]
    driver: ProgramRecord
    version: str
    target: str
    helpers: dict[str, ProgramRecord]


class CannRecord(TypedDict):
    """CANN's compiler and linker, and the build that the installation reports (`field`: innerversion or version)."""

    compiler: ProgramRecord
    compiler_version: str
    linker: ProgramRecord
    field: str
    build: str


class DeviceToolchainRecord(TypedDict):
    """The component `device_toolchain` under `build`.

    compilers: by role: `host` or `aarch64`.
    overrides: variables that act on the tools, with their values.
    execution_directory: where tools and process run, if a relative library path makes that matter.
    """

    compilers: dict[str, GccRecord]
    cann: NotRequired[CannRecord]
    flags: list[str]
    overrides: dict[str, str]
    execution_directory: list[str] | None


class DeviceContentRecord(TypedDict):
    """The component `device_toolchain` under `content`, beside the content of its files.

    entries: the invoked compilers by role.
    """

    entries: dict[str, str]
    flags: list[str]
    overrides: dict[str, str]


class InterpreterRecord(TypedDict):
    """A Python interpreter: `abi` is the cache tag and the suffix of extension modules."""

    version: str
    abi: list[str]
    native: NativeRecord


class WheelRecord(TypedDict):
    """SHA-256 of the three files that describe an installed wheel."""

    METADATA: str
    WHEEL: str
    RECORD: str


class StartupRecord(TypedDict):
    """What the interpreter was seen to load before any program.

    path: its search path.
    hooks: SHA-256 of every `.pth` file and `pyvenv.cfg`, by path.
    modules: SHA-256 of every module outside the standard library, by name.
    """

    path: list[str]
    hooks: dict[str, str]
    modules: dict[str, str]


class LauncherRecord(TypedDict):
    """A ptoas that a wheel's console script starts."""

    entry: str
    interpreter: InterpreterRecord
    ptoas: WheelRecord
    numpy: NotRequired[WheelRecord]
    natives: dict[str, NativeRecord]
    startup: StartupRecord


class PtoasRecord(TypedDict):
    """The component `ptoas` under `build`: a standalone program or a wheel's launcher, exactly one of the two."""

    path: str
    program: NotRequired[NativeRecord]
    launcher: NotRequired[LauncherRecord]
    overrides: dict[str, str]
    execution_directory: list[str] | None


class PyptoRecord(TypedDict):
    """The component `pypto`: the package's content, its imported extensions by name, the running interpreter."""

    content: str
    extensions: dict[str, NativeRecord]
    python: InterpreterRecord
    python_path: str
    overrides: dict[str, str]
    execution_directory: list[str] | None


class RuntimeRecord(TypedDict):
    """The component `runtime`.

    revision: of a clean checkout; build: of an installation; the package's own runtime has neither.
    content: digest of the Python sources (of all files for the package's own runtime).
    extensions, metadata: native extensions and build metadata by path below the runtime's root.
    """

    revision: NotRequired[str]
    build: NotRequired[str]
    content: str
    extensions: dict[str, NativeRecord]
    metadata: dict[str, str]


class PtoIsaRecord(TypedDict):
    """The component `pto_isa` under `build`: the pinned revision. The checkout is made and verified when compiling."""

    pin: str
