"""Bazel as its users meet it: what is built, what is fetched, and what a failure says. Issue 2, point 8."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from workspaces import ROOT, TOOL_REPOSITORIES, Workspace, tree

from pypto._identity import IdentitySettings, hermetic_identity
from pypto._identity.package import package_files, package_fingerprints
from pypto.bundle import open_bundle
from pypto.toolchain import current
from pypto.toolchain.measured import measured


def test_analysis_tests_pass(checkout: Workspace) -> None:
    """The Starlark tests: actions, error messages, module names."""
    done = checkout.run("test", "//tests/bazel/rules/...").succeeded()
    assert re.search(r"^Executed \d+ out of \d+ tests?: \d+ tests? pass(es)?\.$", done.output, re.M), done.output


def test_nothing_is_fetched_that_is_not_built(tmp_path: Path) -> None:
    """Loading every package, building other targets and failing in device mode leave the tools where they are; a test's
    NumPy is the one for this machine's Python."""
    fresh = Workspace(ROOT, output_base=tmp_path / "output")
    try:
        listed = fresh.run("query", "//... - //tests/bazel/...", stdout_only=True).succeeded()
        assert "//kernels:decode_a2a3" in listed.output.splitlines()
        fresh.build("//pypto", "//rules/private:action_python")
        device = fresh.run("build", "--config=device", "//kernels:all")
        assert device.code != 0
        assert not [name for name in fresh.fetched() if name.endswith(TOOL_REPOSITORIES)]
        assert [name for name in fresh.fetched() if name.endswith("gcc_toolchains")]  # or the names have changed
        fresh.build("--nobuild", "//kernels:add_test")
        wheels = {name.rpartition("pypto_")[2] for name in fresh.fetched() if "pypto_wheels" in name}
        assert wheels == {"wheels", "wheels_machine"}  # and not those of other Pythons
    finally:
        fresh.remove()


@pytest.mark.parametrize("kernel", ["add", "decode"])
def test_device_mode_says_what_is_missing(checkout: Workspace, kernel: str) -> None:
    done = checkout.run("build", "--config=device", f"//kernels:{kernel}_a2a3")
    assert done.code != 0
    message = done.output[done.output.index(f"//kernels:{kernel}_a2a3 cannot be built.") :].splitlines()
    assert [line.split(":")[0].strip() for line in message[1:5]] == ["needed", "looked for", "found", "to mend it"]
    assert "CANN" in message[1] and "Ascend910B" in message[1]
    # The line to paste is a whole command.
    assert f"or: bazel build --//rules:execution_mode=sim //kernels:{kernel}_a2a3 " in "\n".join(message[4:8])


def test_a_wrong_execution_mode_lists_the_right_ones(checkout: Workspace) -> None:
    done = checkout.run("build", "--nobuild", "--//rules:execution_mode=simulator", "//kernels:decode_a2a3")
    assert done.code != 0
    assert "simulator" in done.output and "sim" in done.output and "device" in done.output


def test_bundle_layout(decode_bundle: Path) -> None:
    """One READY and one GENERATED entry under the same key, and the record of the bundle."""
    assert (decode_bundle / "bundle.json").is_file()
    found = decode_bundle.rglob("artifact_manifest.json")
    manifests = sorted(path.relative_to(decode_bundle).as_posix() for path in found)
    assert [path.split("/")[-2] for path in manifests] == ["generated", "ready"]
    environments = {path.split("/")[1] for path in manifests}
    keys = {path.split("/")[2] for path in manifests}
    assert len(environments) == len(keys) == 1
    for digest in environments | keys:
        assert len(digest) == 64 and set(digest) <= set("0123456789abcdef")
    assert [json.loads((decode_bundle / path).read_bytes())["state"] for path in manifests] == ["generated", "ready"]


def test_bundle_verifies(decode_bundle: Path) -> None:
    """`verify` finds no damage and the digest that Bazel wrote beside the bundle."""
    done = subprocess.run(
        [sys.executable, "-m", "pypto.bundle", "verify", str(decode_bundle)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert Path(f"{decode_bundle}.digest").read_text().strip() in done.stdout


def test_a_mistake_in_a_kernel_is_shown_at_its_place(checkout: Workspace) -> None:
    """The place is relative to the workspace, so that an editor finds it; the sandbox is gone by then."""
    done = checkout.run("build", "//tests/bazel/mistakes:unknown_op")
    assert done.code != 0
    (line,) = [line for line in done.output.splitlines() if "error: pl has no" in line]
    assert line.startswith("tests/bazel/mistakes/unknown_op.py:12:")


def test_actions_are_closed(checkout: Workspace) -> None:
    """Every action has the same constant environment, no network, and no absolute path in its command line."""
    done = checkout.run(
        "aquery", "--output=jsonproto", "mnemonic('Pypto.*', //kernels:decode_a2a3)", stdout_only=True
    ).succeeded()
    actions = json.loads(done.output)["actions"]
    assert sorted(action["mnemonic"] for action in actions) == [
        "PyptoAssemble",
        "PyptoCheckSources",
        "PyptoCompile",
        "PyptoGenerate",
        "PyptoSeal",
        "PyptoSelect",
        "PyptoVerify",
    ]
    for action in actions:
        environment = {entry["key"]: entry["value"] for entry in action["environmentVariables"]}
        assert environment == {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin:/usr/local/bin", "TZ": "UTC"}
        requirements = {entry["key"]: entry.get("value", "") for entry in action["executionInfo"]}
        assert "block-network" in requirements
        assert not [word for word in action["arguments"] if word.startswith("/") or "=/" in word or str(ROOT) in word]


def test_output_folders_may_be_mapped(checkout: Workspace) -> None:
    """With path mapping no action names a configuration: those of two configurations are one."""
    command = {}
    for mode in ("fastbuild", "opt"):
        listed = checkout.run(
            "aquery",
            "--experimental_output_paths=strip",
            f"--compilation_mode={mode}",
            "--output=jsonproto",
            "mnemonic('Pypto(Assemble|CheckSources|Compile|Describe|Generate|Seal)', deps(//kernels:add_a2a3))",
            stdout_only=True,
        ).succeeded()
        actions = json.loads(listed.output)["actions"]
        command[mode] = {action["mnemonic"]: action["arguments"] for action in actions}
        for arguments in command[mode].values():
            folders = {word.split("/")[1] for word in arguments if word.startswith("bazel-out/")}
            assert folders == {"cfg"}
    assert len(command["opt"]) == 6
    assert command["fastbuild"] == command["opt"]


def test_output_groups(checkout: Workspace) -> None:
    """`generated` is readable without building further; `objects` holds the binaries."""
    checkout.build("--output_groups=generated,objects,manifest", "//kernels:decode_a2a3")
    made = checkout.output("kernels/decode_a2a3.pypto")
    config = json.loads((made / "generated/kernel_config.json").read_bytes())
    assert config["entry"] == "decode"
    assert config["execution_mode"] == "sim"
    binaries = {config["orchestration"]["binary"], *(kernel["binary"] for kernel in config["kernels"])}
    assert all((made / "ready" / binary).read_bytes().startswith(b"\x7fELF") for binary in binaries)
    assert not list((made / "generated").rglob("*.so"))


def test_bundle_for_two_hardware_families(checkout: Workspace) -> None:
    """One directory with a bundle for each family; one test runs the kernel for both; the digests are beside it."""
    checkout.run("test", "//tests/bazel/bundles:shift_test").succeeded()
    checkout.build("--output_groups=+manifest,+verified", "//tests/bazel/bundles:both")
    bundle = checkout.output("tests/bazel/bundles/both.bundle")
    for family in ("Ascend910B", "Ascend950"):
        opened = open_bundle(bundle / family)
        assert opened.description.target.backend_type == family
        assert [entry.name for entry in opened.entries] == ["shift"]
        assert checkout.output(f"tests/bazel/bundles/both.digests/{family}").read_text() == f"{opened.digest}\n"


def test_kernel_tests(checkout: Workspace) -> None:
    """Every kernel is right, and one that is compared with something else fails with the place and both numbers."""
    checkout.run("test", "//kernels:all").succeeded()
    done = checkout.run("test", "//tests/bazel/bundles:shift_test_that_fails")
    assert done.code != 0
    (line,) = [line for line in done.output.splitlines() if line.startswith("FAILED: out")]
    assert re.match(r"FAILED: out: the error is 0\.25, allowed is .*; the worst is at \[\d+, \d+\]: the kernel", line)


def test_a_kernel_in_cpp(checkout: Workspace) -> None:
    """C++ comes along through libraries, is packed into the generated directory, and gives the right numbers."""
    checkout.run("test", "//tests/bazel/extern:doubled_test").succeeded()
    checkout.build("--output_groups=generated", "//tests/bazel/extern:doubled")
    packed = checkout.output("tests/bazel/extern/doubled.pypto/generated/extern")
    assert sorted(path.name for path in packed.rglob("*.*")) == ["step.h", "step_add.cpp"]


def test_install_into_a_store(checkout: Workspace, decode_bundle: Path, tmp_path: Path) -> None:
    """`.install` publishes in a live store what the bundle holds, with the modes of a store, and once only."""
    store = tmp_path / "store"
    for counts in ("2 artifacts imported, 0 present", "0 artifacts imported, 2 present"):
        done = checkout.run("run", "//kernels:decode_a2a3.install", "--", f"--root={store}").succeeded()
        assert counts in done.output
    assert tree(store / "artifacts") == tree(decode_bundle / "artifacts")
    modes = {path.stat().st_mode & 0o777 for path in store.rglob("kernel_config.json")}
    assert modes == {0o644} or modes == {0o600}


def test_library_with_a_foreign_import(checkout: Workspace) -> None:
    """What a build does not offer is refused where it is imported, without importing anything."""
    done = checkout.run("build", "//tests/bazel/bundles:strange")
    assert done.code != 0
    assert "tests/bazel/bundles/strange.py:3: error: 'numpy' is not in the standard library" in done.output


def test_device_targets_are_skipped_in_sim_mode(checkout: Workspace) -> None:
    done = checkout.run("build", "--nobuild", "//tests/bazel/bundles:for_the_device")
    assert done.code != 0
    assert "is incompatible and cannot be built" in done.output
    found = checkout.run("query", "kind(pypto_bundle, //tests/bazel/bundles:all)", stdout_only=True).succeeded()
    assert "//tests/bazel/bundles:for_the_device" in found.output.split()


def test_every_semantic_cache_setting_has_a_flag(checkout: Workspace) -> None:
    """The registry of environment inputs and the flags of the rules map to each other one to one."""
    registry = json.loads((ROOT / "pypto/_environment.json").read_text())["variables"]
    semantic = {name for name, entry in registry.items() if entry["class"] == "semantic" and name.startswith("PYPTO_")}
    listed = checkout.run("query", 'kind("(string|bool)_flag", //rules:all)', stdout_only=True).succeeded()
    flags = {line.removeprefix("//rules:") for line in listed.output.split()}
    # What a bundle is for is no environment variable: RunConfig says it in a JIT call.
    settings = flags - {"backend_type", "execution_mode", "kernel_test_python", "persistent_workers"}
    assert {f"PYPTO_{flag.upper()}" for flag in settings} == semantic


def test_cache_settings_give_the_keys_of_a_process_with_the_same_settings(checkout: Workspace) -> None:
    """The environment record of a bundle holds what the flags say."""
    flags = ("--//rules:cache_epoch=release-7", "--//rules:cache_identity=content", "--//rules:cache_strict")
    checkout.build(*flags, "//kernels:add_a2a3")
    record = json.loads(checkout.output("kernels/add_a2a3.bundle/bundle.json").read_bytes())
    checkout.build("//kernels:add_a2a3")
    default = json.loads(checkout.output("kernels/add_a2a3.bundle/bundle.json").read_bytes())
    toolchain = current()
    settings = IdentitySettings("content", True, "release-7")
    for found, descriptor, wanted in (
        (record, measured(toolchain, device=False, strict=True), settings),
        (default, toolchain.descriptor, IdentitySettings()),
    ):
        mine = hermetic_identity(descriptor.record(), settings=wanted).components
        for component in ("ptoas", "pto_isa", "device_toolchain"):
            assert found["environment"]["components"][component] == mine[component]
    assert record["environment"] != default["environment"]
    assert [entry["source_digest"] for entry in record["entries"]] == [e["source_digest"] for e in default["entries"]]


def test_actions_see_the_package_that_counts(checkout: Workspace) -> None:
    """The library `//pypto` holds exactly the files of the identity: equal digests in an action and in the checkout."""
    checkout.build("//tests/bazel/identity:package_digests")
    seen = json.loads(checkout.output("tests/bazel/identity/package_digests.json").read_bytes())
    package = ROOT / "pypto"
    assert [tuple(entry) for entry in seen["files"]] == package_files(package)
    assert seen["digests"] == {name: found.digest for name, found in package_fingerprints(package).items()}
    assert all(seen["digests"].values())


def test_the_reference_is_current(checkout: Workspace) -> None:
    """The pages in the source tree are those that the Starlark files give; to mend it, run the update."""
    checkout.build("//docs/reference")
    for made in sorted(checkout.output("docs/reference").glob("*.md")):
        kept = ROOT / "docs/reference" / made.name
        assert kept.read_text() == made.read_text(), "run: tools/bazel run //docs/reference:update"


def test_aspects(checkout: Workspace) -> None:
    """The IR of every kernel of a bundle, before and after the passes; the lint of a py_library names the place."""
    aspect = ("--aspects=//rules:aspects.bzl%pypto_ir", "--output_groups=pypto_ir")
    checkout.build(*aspect, "//kernels:add_a2a3", "//tests/bazel/bundles:both")
    made = checkout.output("kernels/add_a2a3.pypto")
    assert "orchestration @add(" in (made / "parsed.ir").read_text()
    assert (made / "parsed.ir").read_text() != (made / "lowered.ir").read_text()
    lint = ("--aspects=//rules:aspects.bzl%pypto_lint", "--output_groups=pypto_lint")
    done = checkout.run("build", *lint, "//tests/bazel/mistakes:plain")
    assert done.code != 0
    assert "tests/bazel/mistakes/plain.py:3: error: 'numpy' is not in the standard library" in done.output
