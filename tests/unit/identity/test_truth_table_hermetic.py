"""The truth table of the hermetic world: whatever must change the key does so and is named; nothing else does."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import itertools
import random
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from truth_table import apply, check, key_of, part_digest, rows

from pypto._identity import IdentitySettings, hermetic_identity
from pypto._identity.explain import ABSENT, IdentityParts, explain, nearest
from pypto._identity.package import default_package_root, package_files
from pypto._identity.schema import FRAME_FIELDS, HERMETIC_FIELDS, PARTS, REQUEST_FIELDS, SETTINGS_FIELDS, Field
from pypto._identity.source import source_digest
from pypto.build.options import CompileOptions
from pypto.build.specialize import ParameterSpec, Specialization, specialize
from pypto.jit.config import CacheConfig, CachePolicy, capture_policy
from pypto.jit.request import Request, capture
from pypto.runtime import RunConfig
from pypto.toolchain import ToolchainDescriptor, ToolFile, ToolSet
from pypto.toolchain.descriptor import ALL_ROOTS

KERNEL = """
import pypto.language as pl

FACTOR = 2.0
WIDTH = 64
N = pl.dynamic("N")


@pl.jit.incore
def scale(x: pl.Tensor[[N, 64], pl.FP32], out: pl.Out[pl.Tensor[[N, 64], pl.FP32]]):
    pl.store(pl.load(x, [0, 0], [16, WIDTH]) * FACTOR, [0, 0], out)


@pl.jit
def scaled(x: pl.Tensor[[N, 64], pl.FP32], count: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor[[N, 64], pl.FP32]]):
    scale(x, out)
    return out
"""


SETTINGS = IdentitySettings("content", True, "first")


@dataclass(frozen=True)
class Inputs:
    """Everything that a key of the hermetic world is made from."""

    descriptor: dict[str, Any]
    package: Path
    cache: CacheConfig
    kernel: str = KERNEL
    device: bool = True
    settings: IdentitySettings = SETTINGS
    config: RunConfig = dataclasses.field(default_factory=RunConfig)


def descriptor() -> ToolchainDescriptor:
    def one(name: str, tools: int) -> ToolSet:
        files = {f"tool{i}": ToolFile(f"bin/tool{i}", f"{i}" * 64, "ab" * 20) for i in range(tools)}
        facts = {"measured": "6" * 64, "overlay": "7" * 64}
        folders = ("include", "usr/include"), ("lib", "lib64")
        return ToolSet(name, "1.0", "8" * 64, "9" * 64, 3, 4, files, *folders, facts)

    return ToolchainDescriptor({name: one(name, 1 + (name == "gcc")) for name in ALL_ROOTS})


@functools.lru_cache(maxsize=64)
def load(text: str, folder: Path) -> ModuleType:
    file = folder / f"kernel_{abs(hash(text))}.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class World:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "extra").mkdir()
        (folder / "extra/a.py").write_text("1")
        self.package = folder / "pypto"
        for _, relative in package_files(default_package_root()):
            (self.package / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(default_package_root() / relative, self.package / relative)
        cache = CacheConfig(enabled=True, extra_source_paths=(folder / "extra",), extra_fingerprint="v1")
        self.inputs = Inputs(descriptor().record(), self.package, cache)

    def request(self, inputs: Inputs) -> Request:
        config = replace(inputs.config, cache_config=inputs.cache)
        return capture(load(inputs.kernel, self.folder).scaled, (), {}, config)

    def parts(self, inputs: Inputs) -> IdentityParts:
        where, settings = inputs.package, inputs.settings
        environment = hermetic_identity(inputs.descriptor, where, device=inputs.device, settings=settings)
        assert environment.usable, environment.explain()
        return self.request(inputs).identity_parts(environment)

    def changed_package(self, relative: str) -> Path:
        root = Path(str(self.package) + "-" + relative.replace("/", "-"))
        shutil.copytree(self.package, root)
        with open(root / relative, "ab") as file:
            file.write(b"\n")
        return root


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def parts(world: World) -> IdentityParts:
    return world.parts(world.inputs)


FIELDS: tuple[Field, ...] = (
    *SETTINGS_FIELDS,
    *REQUEST_FIELDS,
    *HERMETIC_FIELDS,
    *(field for field in FRAME_FIELDS if field.path in ("schema", "component")),
)


def test_every_field_of_every_record(parts: IdentityParts, record_property: Callable[[str, object], None]) -> None:
    """Each value changed alone changes the key and is named; the schema holds every field, and no other."""
    count = check(parts, FIELDS)
    record_property("rows", count)
    assert count > 280


def changes_of_sets(name: str) -> dict[str, Callable[[dict[str, Any]], Any]]:
    """A change of each field of `ToolSet` and `ToolFile`, made in the descriptor."""
    by_field: dict[str, Callable[[dict[str, Any]], Any]] = {
        "name": lambda s: s.update(name="other"),
        "version": lambda s: s.update(version="1.0.1"),
        "lock": lambda s: s.update(lock="a" * 64),
        "tree": lambda s: s["tree"].update(digest="a" * 64),
        "files": lambda s: s["tree"].update(files=4),
        "size": lambda s: s["tree"].update(size=5),
        "tools": lambda s: s["tools"].update(more=s["tools"]["tool0"]),
        "includes": lambda s: s["includes"].reverse(),
        "libraries": lambda s: s["libraries"].pop(),
        "facts": lambda s: s["facts"].update(more="x"),
        "path": lambda s: s["tools"]["tool0"].update(path="bin/other"),
        "sha256": lambda s: s["tools"]["tool0"].update(sha256="a" * 64),
        "build_id": lambda s: s["tools"]["tool0"].update(build_id=None),
    }
    known = {field.name for kind in (ToolSet, ToolFile) for field in dataclasses.fields(kind)}
    assert known == set(by_field), f"a field of the set {name} has no mutator"
    return by_field


COMPONENT_OF_SET = {name: "device_toolchain" for name in ALL_ROOTS} | {"isa": "pto_isa", "ptoas": "ptoas"}
LEAF = {"tree": "tree.digest", "files": "tree.files", "size": "tree.size", "facts": "facts.more"}


@pytest.mark.parametrize(("name", "field"), [*itertools.product(COMPONENT_OF_SET, changes_of_sets("any"))])
def test_fields_of_the_descriptor(world: World, parts: IdentityParts, name: str, field: str) -> None:
    record = descriptor().record()
    changes_of_sets(name)[field](record["sets"][name])
    after = world.parts(replace(world.inputs, descriptor=record))
    assert key_of(after) != key_of(parts)
    found = explain(parts, after)
    assert {difference.part for difference in found} == {COMPONENT_OF_SET[name]}
    if field in ("tools", "path", "sha256", "build_id"):
        where = f"{name}.tools.{'more' if field == 'tools' else 'tool0'}"
        assert found[0].name.startswith(f"{COMPONENT_OF_SET[name]}.{where}")
        assert len(found) == (3 if field == "tools" else 1)
    else:
        assert [d.name for d in found] == [f"{COMPONENT_OF_SET[name]}.{name}.{LEAF.get(field, field)}"]


@pytest.mark.parametrize(
    ("field", "value"), [("policy", "build"), ("strict", False), ("epoch", "second"), ("epoch", None)]
)
def test_settings(world: World, parts: IdentityParts, field: str, value: Any) -> None:
    """CFG-57, CFG-58, IDC-17, INS-29; every field of the settings is named alone, once for all components."""
    assert {f.name for f in dataclasses.fields(IdentitySettings)} == {"policy", "strict", "epoch"}
    after = world.parts(replace(world.inputs, settings=replace(world.inputs.settings, **{field: value})))
    assert key_of(after) != key_of(parts)
    found = explain(parts, after)
    assert [(d.name, d.before, d.after) for d in found] == [
        (f"settings.{field}", getattr(world.inputs.settings, field), value)
    ]
    assert {part for part in PARTS if parts.digests[part] == after.digests[part]} == {"source", "specialization"}


@pytest.mark.parametrize(
    ("relative", "component"),
    [
        ("ir/nodes.py", "pypto"), ("_environment.json", "pypto"), ("toolchain/lock.json", "pypto"),
        ("runtime/config.py", "runtime"), ("runtime/native/include/pypto/kernel.h", "runtime"),
    ],
)  # fmt: skip
def test_files_of_the_package(world: World, parts: IdentityParts, relative: str, component: str) -> None:
    """IDB-38, IDB-39, IDB-54: one byte of a source, of data, of a header."""
    after = world.parts(replace(world.inputs, package=world.changed_package(relative)))
    assert key_of(after) != key_of(parts)
    assert [d.name for d in explain(parts, after)] == [f"{component}.content.{relative}"]


@pytest.mark.parametrize("constant", ["GENERATED_OUTPUT_SCHEMA", "LOGICAL_INTERPRETER"])
def test_constants_of_the_generator(
    world: World, parts: IdentityParts, constant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pypto._identity import hermetic

    monkeypatch.setattr(hermetic, constant, 99 if constant.endswith("SCHEMA") else "other")
    monkeypatch.setattr(hermetic, "_identities", {})
    after = world.parts(world.inputs)
    name = "generated_output_schema" if constant.endswith("SCHEMA") else "interpreter"
    assert [d.name for d in explain(parts, after)] == [f"pypto.{name}"]
    assert key_of(after) != key_of(parts)


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("    return out\n", "    return  out\n", ["source.functions.scaled.text"]),
        ("FACTOR = 2.0", "FACTOR = 2", ["source.functions.scale.values.FACTOR"]),
        ("FACTOR = 2.0", "FACTOR = 2.5", ["source.functions.scale.values.FACTOR"]),
        ("WIDTH = 64", "WIDTH = 32", ["source.functions.scale.values.WIDTH"]),
        (
            'pl.dynamic("N")', 'pl.dynamic("M")',
            ["source.functions.scale.signature", "source.functions.scaled.signature",
             "specialization.parameters.out.shape", "specialization.parameters.x.shape"],
        ),
        (
            "pl.Scalar[pl.INT32]", "pl.Scalar[pl.INT64]",
            ["source.functions.scaled.text", "source.functions.scaled.signature",
             "specialization.parameters.count.dtype"],
        ),
    ],
)  # fmt: skip
def test_source(world: World, parts: IdentityParts, old: str, new: str, names: list[str]) -> None:
    """What the parser reads is in the digest, with its type."""
    assert old in KERNEL
    after = world.parts(replace(world.inputs, kernel=KERNEL.replace(old, new)))
    assert key_of(after) != key_of(parts)
    assert [d.name for d in explain(parts, after)] == names


def test_a_line_elsewhere_in_the_module_does_not_count(world: World, parts: IdentityParts) -> None:
    """Module text, line numbers, unused names and comments outside the functions."""
    text = "'''More.'''\n# lines\n\n" + KERNEL.replace("WIDTH = 64", "UNUSED = 1\nWIDTH = 64  # columns")
    assert key_of(world.parts(replace(world.inputs, kernel=text))) == key_of(parts)


def test_compile_options(world: World, parts: IdentityParts) -> None:
    """Every field of the options, through a record where no second value can be chosen yet."""
    request = world.request(world.inputs)
    for field in dataclasses.fields(CompileOptions):
        options = replace(request.specialization.options, **{field.name: "other"})
        record = replace(request.specialization, options=options).record()
        after = replace(
            parts,
            digests={**parts.digests, "specialization": part_digest("specialization", record)},
            records={**parts.records, "specialization": record},
        )
        assert key_of(after) != key_of(parts)
        assert [d.name for d in explain(parts, after)] == [f"specialization.options.{field.name}"]
    real = world.parts(replace(world.inputs, config=RunConfig(backend_type="Ascend950")))
    assert [d.name for d in explain(parts, real)] == ["specialization.options.backend_type"]


def test_fields_of_specializations_are_in_the_record(world: World) -> None:
    """A new field must be recorded, or be named here as one that does not act on what is built."""
    specialization = world.request(world.inputs).specialization
    record = specialization.record()
    assert {field.name for field in dataclasses.fields(Specialization)} | {"schema"} == set(record)
    assert {field.name for field in dataclasses.fields(ParameterSpec)} | {"kind"} == set(record["parameters"][0])
    assert {field.name for field in dataclasses.fields(CompileOptions)} == set(record["options"])


def test_inputs_of_the_application(world: World, parts: IdentityParts) -> None:
    """CNT-34, CFG-21: extra sources and the extra fingerprint."""
    other = replace(world.inputs, cache=replace(world.inputs.cache, extra_fingerprint="v2"))
    assert [(d.name, d.before, d.after) for d in explain(parts, world.parts(other))] == [
        ("source.extra_fingerprint", "v1", "v2")
    ]
    (world.folder / "extra/a.py").write_text("2")
    try:
        after = world.parts(world.inputs)
    finally:
        (world.folder / "extra/a.py").write_text("1")
    assert [d.name for d in explain(parts, after)] == ["source.extra_sources"]
    assert len({key_of(p) for p in (parts, after, world.parts(other))}) == 3
    policy = {field.name for field in dataclasses.fields(CachePolicy)}
    where_and_how = {"enabled", "root", "readonly"}
    assert policy - where_and_how == {"extra_source_paths", "extra_fingerprint", "identity"}


def test_only_what_is_compiled_counts_of_a_call(world: World, parts: IdentityParts, tmp_path: Path) -> None:
    """Where artifacts are kept and where a kernel runs; `device_id` is the device index."""
    cache = replace(world.inputs.cache, root=tmp_path / "elsewhere", readonly=True)
    for other in (
        replace(world.inputs, cache=cache),
        replace(world.inputs, config=RunConfig(device_id=3)),
        replace(world.inputs, config=RunConfig(rtol=0.5, codegen_only=True, sim_checks=True)),
    ):
        assert key_of(world.parts(other)) == key_of(parts)


def test_sets_of_devices_count_for_devices_alone(world: World) -> None:
    """IDB-113: a build for the simulator does not depend on tools that it does not use."""
    sim = replace(world.inputs, device=False)
    fewer = descriptor().record()
    for name in ("cann", "gcc_aarch64"):
        del fewer["sets"][name]
    assert key_of(world.parts(sim)) == key_of(world.parts(replace(sim, descriptor=fewer)))
    identity = hermetic_identity(fewer, world.package, device=True)
    assert identity.reasons == {"device_toolchain": "the toolchain descriptor has no set 'cann'"}


def test_build_looks_at_no_measurement(world: World) -> None:
    """A measured descriptor and a plain one are the same under `build`; `content` refuses the plain one."""
    plain = descriptor().record()
    for record in plain["sets"].values():
        del record["facts"]["measured"]
    build = replace(world.inputs, settings=IdentitySettings())
    assert key_of(world.parts(build)) == key_of(world.parts(replace(build, descriptor=plain)))
    for settings in (IdentitySettings("content"), IdentitySettings(strict=True)):
        identity = hermetic_identity(plain, world.package, settings=settings)
        assert not identity.usable
        assert set(identity.reasons) == {"ptoas", "pto_isa", "device_toolchain"}
        assert "same policy" in identity.reasons["ptoas"]


def test_several_changes_are_named_in_order_of_importance(parts: IdentityParts) -> None:
    """Any two rows of different parts together: both are named, the more important part first."""
    table = list(rows(parts))
    draw = random.Random(7)
    order = ("settings", *PARTS)
    for _ in range(200):
        one, other = draw.sample(table, 2)
        if one.part == other.part:
            continue
        after = apply(apply(parts, one), other)
        found = explain(parts, after)
        alone = {d.name for row in (one, other) for d in explain(parts, apply(parts, row))}
        assert {d.name for d in found} == alone
        ranks = [order.index(d.part) for d in found]
        assert ranks == sorted(ranks)


def test_equal_identities_have_no_difference(world: World, parts: IdentityParts) -> None:
    assert explain(parts, world.parts(world.inputs)) == ()


def test_a_part_without_record_is_named_by_its_digests(parts: IdentityParts) -> None:
    """A stored entry keeps digests only; a changed schema of digests is in no record."""
    known = replace(parts, records={})
    other = replace(known, digests={**parts.digests, "ptoas": "0" * 64, "source": "1" * 64})
    for before in (known, parts):
        found = explain(before, other)
        assert [(d.name, d.before, d.after) for d in found] == [
            ("source", parts.digests["source"], "1" * 64), ("ptoas", parts.digests["ptoas"], "0" * 64)
        ]  # fmt: skip
    same_records = replace(parts, digests={**parts.digests, "pypto": "2" * 64})
    assert [d.name for d in explain(parts, same_records)] == ["pypto"]


def test_values_are_compared_with_their_types(parts: IdentityParts) -> None:
    record = {**parts.records["pypto"], "evidence": {**parts.records["pypto"]["evidence"], "interpreter": True}}
    more = {**record, "evidence": {**record["evidence"], "interpreter": 1}}
    one, other = (
        replace(parts, digests={**parts.digests, "pypto": d * 64}, records={**parts.records, "pypto": r})
        for d, r in (("1", record), ("2", more))
    )
    assert [(d.name, d.before, d.after) for d in explain(one, other)] == [("pypto.interpreter", True, 1)]


def test_differences_read_well(world: World, parts: IdentityParts) -> None:
    text = KERNEL.replace("[0, 0], out)", "[16, 0], out)").replace("FACTOR = 2.0", "FACTOR = 3.0")
    lines = [str(d) for d in explain(parts, world.parts(replace(world.inputs, kernel=text)))]
    assert lines == [
        "source.functions.scale.text: line 3: 'pl.store(pl.load(x, [0, 0], [16, WIDTH]) * FACTOR, [0, 0], out)' -> "
        "'pl.store(pl.load(x, [0, 0], [16, WIDTH]) * FACTOR, [16, 0], out)' (source text of a function)",
        "source.functions.scale.values.FACTOR: float 2.0 -> float 3.0 (value of a name from outside the function)",
    ]
    added = descriptor().record()
    added["sets"]["ptoas"]["facts"]["note"] = "x" * 300
    found = explain(parts, world.parts(replace(world.inputs, descriptor=added)))
    assert found[0].before is ABSENT
    assert str(found[0]).startswith("ptoas.ptoas.facts.note: absent -> 'xxx")
    assert len(str(found[0])) < 200


def test_the_nearest_entry_shares_most_parts(parts: IdentityParts) -> None:
    def with_other(*changed: str) -> IdentityParts:
        return replace(parts, digests={**parts.digests, **dict.fromkeys(changed, "0" * 64)})

    source, tools = with_other("source"), with_other("ptoas")
    both, all_but_source = with_other("source", "ptoas"), with_other(*(p for p in PARTS if p != "source"))
    assert nearest(parts, []) is None
    assert nearest(parts, [all_but_source, both, tools]) is tools
    for stored in itertools.permutations([all_but_source, both, source, tools]):
        assert nearest(parts, stored) is source, "the part that changes most often differs first"


def test_specializations_of_open_shapes(world: World) -> None:
    """The shape of a sample is the specialization's; the scalar's value is not."""
    text = KERNEL.replace("def scaled(x: pl.Tensor[[N, 64], pl.FP32]", "def scaled(x: pl.Tensor")
    kernel = load(text, world.folder).scaled
    from pypto.build.specialize import parse_tensor_text
    from pypto.language.signature import Signature

    made = [
        specialize(kernel.qualname, Signature.of(kernel).params, {"x": parse_tensor_text("x", shape)}, CompileOptions())
        for shape in ("FP32[16,64]", "FP32[32,64]", "FP16[16,64]")
    ]
    assert len({one.digest() for one in made}) == 3


def test_the_source_digest_is_that_of_the_closure_alone(world: World) -> None:
    request = world.request(replace(world.inputs, cache=CacheConfig(enabled=True)))
    assert request.application_source_digest == request.source_digest == source_digest(request.closure.record())
    assert capture_policy(CacheConfig(enabled=True)).identity == IdentitySettings()
    assert sys.modules["pypto._identity.explain"].explain is explain
