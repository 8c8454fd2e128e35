"""Where tools come from: the tags of the extensions, in a project that depends on pypto. Issue 6."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from workspaces import ROOT, Workspace, load_program, tree

import pypto.toolchain
from pypto.bundle import open_bundle

MODULE = """\
module(name = "acme")
bazel_dep(name = "pypto")
local_path_override(module_name = "pypto", path = {pypto!r})
bazel_dep(name = "rules_python", version = "1.6.3")
"""

EXTENSION = """\
{name} = use_extension("@pypto//toolchains/extensions:{name}.bzl", "{name}")
{name}.{tag}
"""

BUILD = """\
load("@pypto//rules:defs.bzl", "pypto_bundle", "pypto_kernel")
pypto_kernel(name = "twice", src = "twice.py", tags = ["manual"])
pypto_bundle(name = "both", kernels = [":twice"], backend_types = ["Ascend910B", "Ascend950"])
pypto_bundle(name = "a2a3", kernels = [":twice"], backend_types = ["Ascend910B"])
genrule(name = "unrelated", outs = ["unrelated.txt"], cmd = "echo > $@")
"""

KERNEL = """\
import pypto.language as pl


@pl.jit
def twice(x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.muls(pl.load(x, [0, 0], [64, 64]), 2.0), [0, 0], out)
    return out
"""

DEVICE = "--@pypto//rules:execution_mode=device"
UNTESTED = "--@pypto//toolchains:allow_untested_versions"


class Project:
    """A project whose MODULE.bazel each test writes anew; the output base, with what was fetched, is shared."""

    def __init__(self, folder: Path) -> None:
        self.workspace = Workspace(folder / "acme", output_base=folder / "output", flags=("--symlink_prefix=/",))
        self.folder = self.workspace.folder
        self.folder.mkdir()
        shutil.copy2(ROOT / ".bazelrc", self.folder / ".bazelrc")
        rc = (self.folder / ".bazelrc").read_text().replace("//rules:", "@pypto//rules:")
        (self.folder / ".bazelrc").write_text(rc)
        (self.folder / "BUILD.bazel").write_text(BUILD)
        (self.folder / "twice.py").write_text(KERNEL)
        self.use()

    def use(self, **tags: str) -> None:
        """Write MODULE.bazel with one tag for each extension named."""
        text = MODULE.format(pypto=str(ROOT))
        for name, tag in tags.items():
            text += EXTENSION.format(name=name, tag=tag)
        (self.folder / "MODULE.bazel").write_text(text)

    def fails(self, *arguments: str) -> str:
        done = self.workspace.run("build", *arguments)
        assert done.code != 0
        return done.output


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    made = Project(tmp_path_factory.mktemp("acme"))
    yield made
    made.workspace.remove()


@pytest.fixture(scope="module")
def cann(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in for a CANN toolkit that the device tests use, in a folder that Bazel's sandbox shows."""
    module = load_program("tests/integration/device/conftest.py", "device_conftest")
    root = tmp_path_factory.mktemp("ascend") / "toolkit"
    root.mkdir()
    module.make_cann(pypto.toolchain.current(), root)
    return root


def test_device_bundles_with_a_local_and_a_downloaded_toolkit(project: Project, cann: Path, tmp_path: Path) -> None:
    """Both families are built to READY for the device; a toolkit of the machine and the same one from an archive give
    the same bundles."""
    project.use(cann=f'local(path = "{cann}")')
    project.workspace.build(DEVICE, "//:both")
    local = project.workspace.output("both.bundle")
    for family in ("Ascend910B", "Ascend950"):
        bundle = open_bundle(local / family)
        bundle.verify()
        target = bundle.description.target
        assert (target.backend_type, target.execution_mode) == (family, "device")
        (entry,) = bundle.entries
        config = json.loads(entry.ready.read("kernel_config.json"))
        assert all(entry.ready.read(kernel["binary"]).startswith(b"\x7fELF") for kernel in config["kernels"])
    expected = tree(local)
    listed = project.workspace.run("aquery", DEVICE, "--output=jsonproto", "//:both", stdout_only=True).succeeded()
    assert listed.code == 0

    archive = tmp_path / "cann.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(cann, "toolkit")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    project.use(cann=f'download(urls = ["file://{archive}"], sha256 = "{digest}", strip_prefix = "toolkit")')
    project.workspace.build(DEVICE, "//:both")
    assert tree(project.workspace.output("both.bundle")) == expected

    project.use(cann=f'download(urls = ["file://{archive}"], sha256 = "{"0" * 64}", strip_prefix = "toolkit")')
    assert "Checksum was" in project.fails(DEVICE, "//:both")


def test_a_toolkit_that_is_not_complete(project: Project, cann: Path, tmp_path: Path) -> None:
    """Everything that is missing is listed at once; ASCEND_HOME_PATH is exclusive once no path is given."""
    broken = tmp_path / "toolkit"
    shutil.copytree(cann, broken, symlinks=True)
    (broken / "bin/ccec").unlink()
    (broken / "aarch64-linux/ascend_toolkit_install.info").unlink()
    project.use(cann="local()")
    output = project.fails(DEVICE, f"--repo_env=ASCEND_HOME_PATH={broken}", "//:both")
    assert "CANN cannot be used." in output
    told = ("needed:     a CANN toolkit", f"looked for: {broken}/bin/ccec", "no bin/ccec", "no <architecture>-linux/")
    for line in told:
        assert line in output
    assert "no bin/ld.lld" not in output
    output = project.fails(DEVICE, "--repo_env=ASCEND_HOME_PATH=", "//:both")
    assert "path of cann.local" in output and "neither is set" in output


def test_info_files_of_a_toolkit(project: Project, cann: Path, tmp_path: Path) -> None:
    """The build number is the version of the toolkit, whichever line names it; none is an error."""
    toolkit = tmp_path / "toolkit"
    shutil.copytree(cann, toolkit, symlinks=True)
    info = toolkit / "aarch64-linux/ascend_toolkit_install.info"
    info.write_text("version=8.9.9\n")
    project.use(cann=f'local(path = "{toolkit}")')
    project.workspace.build(DEVICE, "--output_groups=manifest", "//:a2a3")
    outputs = project.workspace.output("").parents[1]  # of every configuration
    made = outputs.glob("*/bin/external/*/rules/private/toolchain.json")
    versions = {json.loads(path.read_bytes())["sets"].get("cann", {}).get("version") for path in made}
    assert "8.9.9" in versions
    info.write_text("package_name=Ascend\n")
    assert "has no line innerversion= or version=" in project.fails(DEVICE, "//:a2a3")


@pytest.fixture(scope="module")
def checkout_of_isa(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A git checkout with the headers, and its revision."""
    folder = tmp_path_factory.mktemp("isa") / "pto-isa"
    shutil.copytree(pypto.toolchain.current().root("isa") / "include", folder / "include")
    git = ["git", "-C", str(folder), "-c", "user.name=test", "-c", "user.email=test@example.org"]
    for arguments in (["init", "-q"], ["add", "-f", "."], ["commit", "-q", "-m", "headers"]):
        subprocess.run([*git, *arguments], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    return folder, head


def test_tools_of_the_machine(project: Project, checkout_of_isa: tuple[Path, str]) -> None:
    """ptoas and PTO-ISA of the machine: refused as untested, built when the user has tested them, never remotely."""
    isa, head = checkout_of_isa
    ptoas = pypto.toolchain.current().root("ptoas")
    project.use(ptoas=f'local(path = "{ptoas}")', pto_isa=f'local(path = "{isa}", revision = "{head}")')
    output = project.fails("//:a2a3")
    assert "needed:     tools that were tested together" in output
    assert "the nearest row of the table" in output and f"PTO-ISA {head}" in output
    project.workspace.build(UNTESTED, "//:a2a3")
    open_bundle(project.workspace.output("a2a3.bundle")).verify()
    listed = project.workspace.run(
        "aquery", UNTESTED, "--output=jsonproto", "mnemonic('PyptoAssemble', deps(//:a2a3))", stdout_only=True
    ).succeeded()
    (action,) = json.loads(listed.output)["actions"]
    assert {"no-remote-exec", "block-network"} <= {entry["key"] for entry in action["executionInfo"]}
    assert f"ptoas={ptoas}" in action["arguments"]

    project.use(pto_isa=f'local(path = "{isa}", revision = "{"0" * 40}")')
    output = project.fails(UNTESTED, "//:a2a3")
    assert f"{head} is checked out" in output and f"git -C {isa} checkout {'0' * 40}" in output
    header = isa / "include/pto/pto-inst.hpp"
    before = header.read_bytes()
    header.write_bytes(before + b"\n")
    project.use(pto_isa=f'local(path = "{isa}", revision = "{head}")')
    output = project.fails(UNTESTED, "//:a2a3")
    header.write_bytes(before)
    assert "1 changed files:" in output and "include/pto/pto-inst.hpp" in output


@pytest.mark.long
def test_a_compiler_of_the_machine(project: Project) -> None:
    """GCC of the host, with evidence."""
    if shutil.which("g++", path="/usr/bin") is None:
        pytest.skip("this machine has no g++ in /usr/bin")
    project.use(gcc='local(path = "/usr/bin/g++")')
    project.workspace.build(UNTESTED, "//:a2a3")
    open_bundle(project.workspace.output("a2a3.bundle")).verify()
    project.use(gcc='local(path = "/usr/bin/no-such-g++")')
    output = project.fails(UNTESTED, "//:a2a3")
    assert "looked for: /usr/bin/no-such-g++" in output and "no such program" in output


@pytest.mark.long
def test_a_target_of_the_user(project: Project) -> None:
    """`wrap` takes a folder that the user's own repository holds; the bundle is that of the downloaded tools."""
    project.use()
    project.workspace.build("//:a2a3")
    expected = tree(project.workspace.output("a2a3.bundle"))
    package = project.folder / "isa"
    shutil.copytree(pypto.toolchain.current().root("isa"), package / "root")
    (package / "BUILD.bazel").write_text(
        'load("@pypto//toolchains/pto_isa:toolchain.bzl", "pto_isa_toolchain")\n'
        'pto_isa_toolchain(name = "mine", evidence = "root/set.json", files = glob(["root/**"]), version = "0.1.4",'
        ' visibility = ["//visibility:public"])\n'
    )
    project.use(pto_isa='wrap(toolchain = "//isa:mine")')
    project.workspace.build("//:a2a3")
    assert tree(project.workspace.output("a2a3.bundle")) == expected
    shutil.rmtree(package)


def test_two_tags_are_refused(project: Project) -> None:
    project.use(gcc='local(path = "/a")\ngcc.local(path = "/b")')
    output = project.fails("//:unrelated", "//:a2a3")
    assert "The root module has 2 tags of the extension gcc" in output


def test_the_doctor_explains(project: Project, tmp_path: Path) -> None:
    """What resolves and what does not, and the exit status says whether kernels can be built."""
    project.use(ptoas=f'local(path = "{tmp_path}")')
    done = project.workspace.run("run", "@pypto//toolchains:doctor")
    assert done.code == 1
    assert "gcc: resolves (download, decided by pypto)" in done.output
    assert "ptoas: does not resolve (local, decided by acme)" in done.output
    assert f"looked for: {tmp_path}/ptoas.sh (bundled interpreter)" in done.output
    assert "kernels for sim: cannot be built, for want of ptoas" in done.output
    project.use()
    done = project.workspace.run("run", "@pypto//toolchains:doctor").succeeded()
    assert "kernels for sim: can be built" in done.output
    assert "cann: does not resolve (none, decided by no module)" in done.output


@pytest.mark.parametrize("layout", ["ptoas.sh", "ptoas", "bin/ptoas"])
def test_layouts_of_ptoas(layout: str, tmp_path: Path) -> None:
    """The three generations are found; one that needs the caller's PATH is refused with what it said."""
    probe = load_program("toolchains/probe/probe.py")
    program = tmp_path / "root" / layout
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'ptoas 0.51.3'\n")
    program.chmod(0o755)
    into = tmp_path / "into"
    into.mkdir()
    found = probe.ptoas(into, str(tmp_path / "root"), "")
    assert found.tools.version == "0.51.3"
    assert found.tools.tools["ptoas"].path == layout
    assert found.folder == str(tmp_path / "root")
    program.write_text("#!/bin/sh\nset -e\nhere=$(dirname $0)\necho 'ptoas 0.51.3'\n")
    with pytest.raises(probe.NotFound, match=r"does not start in a closed environment: .*dirname"):
        probe.ptoas(into, str(tmp_path / "root"), "")
