"""Errors of the toolchain. Each type means one thing; all share `ToolchainError`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class ToolchainError(Exception):
    """Base of all errors about tools, their files and their records.

    Attributes:
        says_all: the message is all that helps, and calls of kernels show no frames of this package with it.
    """

    says_all = False


class ToolchainNotInstalled(ToolchainError):
    """No toolchain is in force: none was chosen and none is installed."""

    says_all = True


class ToolSetMissing(ToolchainError):
    """The toolchain in force lacks a tool set that only some builds need; the message says how to add it."""

    says_all = True


class DescriptorError(ToolchainError):
    """A descriptor, bindings or set record cannot be read or does not mean what it must."""


class LockError(ToolchainError):
    """The lock file cannot be read, or cannot be moved."""


class FetchError(ToolchainError):
    """A locked file could not be fetched."""


class UnpackError(ToolchainError):
    """Fetched files did not unpack into the expected tool set, or the folder cannot be written."""


class ToolError(ToolchainError):
    """A tool started and did not succeed.

    Attributes:
        stage: what was being done, for example "assemble qk".
        argv: the command, relative to its private root.
        returncode: exit status; negative = the signal that ended it; None = it ran out of time.
        lines: the tool's own error lines, at most 20.
        output: everything the tool wrote, at most 1 MiB from its end.
    """

    def __init__(
        self, stage: str, argv: Sequence[str], returncode: int | None, how: str, lines: Sequence[str], output: str
    ) -> None:
        self.stage = stage
        self.argv = tuple(argv)
        self.returncode = returncode
        self.lines = tuple(lines)
        self.output = output
        self._how = how
        said = "".join(f"\n  {line}" for line in lines) or "\n  (it printed nothing)"
        super().__init__(f"{stage}: {argv[0].rsplit('/', 1)[-1]} {how}{said}\n  command: {' '.join(argv)}")

    def renamed(self, places: Mapping[str, str]) -> ToolError:
        """The same error, in whose lines every name that begins with a key of ``places`` begins with its value."""

        def line(text: str) -> str:
            for inside, outside in places.items():
                text = text.replace(inside, outside)
            return text

        lines = [line(text) for text in self.lines]
        return type(self)(self.stage, self.argv, self.returncode, self._how, lines, line(self.output))


class ToolTimeout(ToolError, RuntimeError):
    """A tool ran longer than its limit and was ended together with its children; `returncode` is None."""
