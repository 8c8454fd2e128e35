"""Every field of the host world's records: the part of `pypto._identity.schema` for this world."""

from __future__ import annotations

from collections.abc import Iterator

from pypto._identity.schema import Field


def _native(part: str, path: str, what: str) -> Iterator[Field]:
    yield Field(part, f"{path}.build_id", f"Build-ID of {what}")
    yield Field(part, f"{path}.sha256", f"bytes of {what}")


def _program(part: str, path: str, what: str) -> Iterator[Field]:
    yield Field(part, f"{path}.path", f"place of {what}")
    yield from _native(part, f"{path}.native", what)


def _python(part: str, path: str, what: str) -> Iterator[Field]:
    yield Field(part, f"{path}.version", f"version of {what}")
    yield Field(part, f"{path}.abi", f"ABI of {what}")
    yield from _native(part, f"{path}.native", what)


def _wheel(part: str, path: str, what: str) -> Iterator[Field]:
    for file in ("METADATA", "WHEEL", "RECORD"):
        yield Field(part, f"{path}.{file}", f"{file} of {what}")


def _surroundings(part: str) -> Iterator[Field]:
    yield Field(part, "overrides.*", "environment variable that acts on the tools")
    yield Field(part, "execution_directory", "working folders, which relative library paths are relative to")


def _fields() -> Iterator[Field]:
    part = "ptoas"
    yield Field(part, "path", "place of ptoas")
    yield from _native(part, "program", "ptoas")
    yield Field(part, "launcher.entry", "entry point that the launcher calls")
    yield from _wheel(part, "launcher.ptoas", "the ptoas wheel")
    yield from _native(part, "launcher.natives.*", "a native file of the ptoas wheel")
    yield from _wheel(part, "launcher.numpy", "the numpy wheel that ptoas uses")
    yield from _python(part, "launcher.interpreter", "the interpreter that runs ptoas")
    yield Field(part, "launcher.startup.path", "search path of the interpreter that runs ptoas")
    yield Field(part, "launcher.startup.hooks.*", "start-up hook of the interpreter that runs ptoas")
    yield Field(part, "launcher.startup.modules.*", "module loaded at the start of the interpreter that runs ptoas")
    yield from _surroundings(part)

    yield Field("pto_isa", "pin", "pinned revision of PTO-ISA")

    part = "device_toolchain"
    compiler = "compilers.*"
    yield from _program(part, f"{compiler}.entry", "the invoked compiler")
    yield from _program(part, f"{compiler}.driver", "the GCC driver that really runs")
    yield Field(part, f"{compiler}.version", "version that GCC reports")
    yield Field(part, f"{compiler}.target", "machine that GCC compiles for")
    yield from _program(part, f"{compiler}.helpers.*", "a program that GCC starts")
    yield Field(part, f"{compiler}.wrapper.kind", "kind of compiler wrapper")
    yield Field(part, f"{compiler}.wrapper.files.*", "script or configuration of the compiler wrapper")
    yield Field(part, f"{compiler}.wrapper.variables.*", "environment variable that the compiler wrapper reads")
    yield from _program(part, "cann.compiler", "the CCEC compiler")
    yield Field(part, "cann.compiler_version", "version that the CCEC compiler reports")
    yield from _program(part, "cann.linker", "the device linker")
    yield Field(part, "cann.build", "build that CANN reports")
    yield Field(part, "cann.field", "where CANN reports its build")
    yield Field(part, "entries.*", "place of the invoked compiler")
    yield Field(part, "flags", "further compiler flags")
    yield from _surroundings(part)

    part = "runtime"
    yield Field(part, "revision", "revision of the runtime's clean checkout")
    yield Field(part, "build", "build version of the installed runtime")
    yield Field(part, "content", "sources of the runtime")
    yield from _native(part, "extensions.*", "a native extension of the runtime")
    yield Field(part, "metadata.*", "what the runtime's build left about itself")

    part = "pypto"
    yield Field(part, "content", "sources and data of the package pypto")
    yield from _native(part, "extensions.*", "a native extension of pypto")
    yield Field(part, "python_path", "place of the running interpreter")
    yield from _python(part, "python", "the running interpreter")
    yield from _surroundings(part)


HOST_FIELDS = tuple(_fields())
