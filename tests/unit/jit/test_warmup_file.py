"""Warmup files: what is accepted, and that everything wrong is found before anything is built."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pypto.jit.cli.errors import WarmupFileError
from pypto.jit.cli.warmup_file import TENSOR_DTYPES, load_warmup
from pypto.runtime.config import RuntimeKind
from pypto.runtime.distributed.config import DistributedConfig


class File:
    """A warmup file in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "warmup.json"

    def load(self, *requests: Any, **top: Any) -> Any:
        document = {"schema_version": 1, "requests": list(requests), **top}
        self.path.write_text(json.dumps(document))
        return load_warmup("sample_kernels", self.path)


@pytest.fixture
def file(tmp_path: Path, kernels: ModuleType, builds: Any) -> File:
    (tmp_path / "configs").mkdir()
    return File(tmp_path / "configs")


TENSORS = {name: {"shape": [16, 64], "dtype": "FP32"} for name in ("x", "out")}


def test_cli_04_14_50_cache_fields_and_paths_relative_to_the_file(file: File) -> None:
    cache = {
        "enabled": True,
        "root": "kernel-cache",
        "readonly": True,
        "extra_source_paths": ["extra"],
        "extra_fingerprint": "v1",
    }
    (loaded,) = file.load({"kernel": "annotated"}, cache=cache)
    policy = loaded.request.policy
    folder = file.path.parent
    assert (policy.enabled, policy.root, policy.readonly) == (True, folder / "kernel-cache", True)
    assert (policy.extra_source_paths, policy.extra_fingerprint) == ((folder / "extra",), "v1")


def test_cli_51_without_cache_the_environment_decides(
    file: File, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYPTO_CACHE", "1")
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path / "environment"))
    (loaded,) = file.load({"kernel": "annotated"})
    assert (loaded.request.policy.enabled, loaded.request.policy.root) == (True, tmp_path / "environment")


def test_cli_06_15_16_28_tensors_may_be_left_out_or_be_huge(file: File) -> None:
    huge = {name: {"shape": [1 << 40, 64], "dtype": "FP32"} for name in ("x", "out")}
    first, second = file.load({"kernel": "annotated"}, {"kernel": "open_shape", "tensors": huge})
    assert first.request.function.name == "annotated"
    assert str(second.request.specialization).startswith("open_shape(x: FP32[1099511627776,64]")


@pytest.mark.parametrize("dtype", TENSOR_DTYPES)
def test_cli_17_to_24_dtypes(file: File, dtype: str) -> None:
    tensors = {name: {"shape": [16, 64], "dtype": dtype} for name in ("x", "out")}
    (loaded,) = file.load({"kernel": "open_shape", "tensors": tensors})
    assert f"x: {dtype}[16,64]" in str(loaded.request.specialization)


@pytest.mark.parametrize("value", [1, 1.5, True])
def test_cli_25_26_scalars_bind_and_do_not_select(file: File, value: Any) -> None:
    (loaded,) = file.load({"kernel": "annotated", "tensors": TENSORS, "scalars": {"count": value}})
    (other,) = file.load({"kernel": "annotated"})
    assert loaded.request.specialization_digest == other.request.specialization_digest


def test_cli_30_32_38_run_config_by_member_names(file: File) -> None:
    (loaded,) = file.load(
        {"kernel": "annotated", "run_config": {"platform": "a5sim", "strategy": "Default", "memory_planner": "PYPTO"}}
    )
    options = loaded.request.specialization.options
    assert (options.backend_type, options.execution_mode) == ("Ascend950", "sim")
    assert loaded.request.config.memory_planner.name == "PYPTO"


def test_cli_34_36_37_diagnostics_and_output_folder(file: File) -> None:
    config = {"dump_passes": True, "save_kernels": True, "save_kernels_dir": "kept"}
    (loaded,) = file.load({"kernel": "annotated", "run_config": config})
    assert loaded.request.config.dump_passes
    assert loaded.request.config.save_kernels_dir == str(file.path.parent / "kept")


def test_cli_07_08_09_11_52_the_example_and_the_new_spelling_of_the_target(file: File, builds: Any) -> None:
    tensors = {name: {"shape": [1, 64], "dtype": "FP32"} for name in ("x", "out")}
    legacy = {"kernel": "annotated", "run_config": {"platform": "a2a3sim"}, "tensors": tensors, "scalars": {"count": 8}}
    modern = {"kernel": "annotated", "run_config": {"backend_type": "Ascend910B", "execution_mode": "SIM"}}
    first, second = file.load(legacy, modern)
    assert first.request.specialization == second.request.specialization
    assert builds.generated == []


@pytest.mark.parametrize("member", ["Default"])
def test_cli_31_strategy(file: File, member: str) -> None:
    (loaded,) = file.load({"kernel": "annotated", "run_config": {"strategy": member}})
    assert loaded.request.config.strategy.name == member


def test_cli_35_dump_ptoas_passes(file: File) -> None:
    (loaded,) = file.load({"kernel": "annotated", "run_config": {"dump_ptoas_passes": True}})
    assert loaded.request.config.dump_ptoas_passes
    assert loaded.request.forced


def test_cli_33_39_to_42_distributed_config(file: File) -> None:
    distributed = {"device_ids": [4, 1], "num_sub_workers": 1, "runtime": "host_build_graph", "aicpu_thread_num": 2}
    (loaded,) = file.load({"kernel": "annotated", "run_config": {"distributed_config": distributed}})
    config = loaded.request.config
    assert config.distributed_config == DistributedConfig((4, 1), 1, "host_build_graph", 2)
    assert config.runtime is RuntimeKind.HOST_BUILD_GRAPH
    for name, value, message in (
        ("device_ids", [0, 0], "names device 0 twice"),
        ("num_sub_workers", -1, "0 or more is expected, got -1"),
        ("runtime", "ring", "'host_build_graph' or 'tensormap_and_ringbuffer'"),
        ("aicpu_thread_num", 0, "1 or more is expected, got 0"),
    ):
        with pytest.raises(WarmupFileError, match=message):
            file.load({"kernel": "annotated", "run_config": {"distributed_config": {**distributed, name: value}}})


GOOD = {"kernel": "annotated"}


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"kernel": "missing"}, "has no 'missing'; its @pl.jit functions: annotated, open_shape"),
        ({"kernel": "scale"}, "has 'scale', but it is no @pl.jit function"),
        ({"kernel": "annotated.compile"}, "has no 'annotated.compile'"),
        ({"kernel": 3}, "kernel is the name of a @pl.jit function, got 3"),
        ({}, "the field 'kernel' is missing"),
        ([], r"requests\[1\] is an object, got \[\]"),
        ({**GOOD, "tensor": {}}, "unknown field 'tensor'; it has kernel, run_config, tensors, scalars"),
        ({**GOOD, "run_config": {"device_id": 1}}, "unknown field 'device_id'"),
        ({**GOOD, "run_config": {"execution_mode": "sim"}}, 'execution_mode is SIM or DEVICE, got "sim"'),
        ({**GOOD, "run_config": {"memory_planner": "pypto"}}, "memory_planner is PYPTO or DSA_RP or PTOAS"),
        ({**GOOD, "run_config": {"dump_passes": 1}}, "dump_passes is true or false, got 1"),
        ({**GOOD, "run_config": {"platform": "a9"}}, "RunConfig.platform is"),
        ({**GOOD, "run_config": {"distributed_config": {"devices": [0]}}}, "unknown field 'devices'"),
        ({**GOOD, "tensors": {"y": {}}}, "annotated has no tensor 'y'; its tensors: x, out"),
        ({**GOOD, "tensors": {"x": {"shape": [True, 64], "dtype": "FP32"}}}, "shape is a list of integers"),
        ({**GOOD, "tensors": {"x": {"shape": [-1], "dtype": "FP32"}}}, "shape is a list of integers"),
        ({**GOOD, "tensors": {"x": {"shape": [1.5], "dtype": "FP32"}}}, "shape is a list of integers"),
        ({**GOOD, "tensors": {"x": {"shape": [1], "dtype": "FP64"}}}, "dtype is FP16 or BF16"),
        ({**GOOD, "tensors": {"x": {"shape": [16, 32], "dtype": "FP32"}}, "scalars": {"count": 1}}, "'x' of annotated"),
        ({**GOOD, "tensors": TENSORS}, "with sample tensors every scalar is needed, and 'count' is missing"),
        ({**GOOD, "scalars": {"count": "1"}}, 'count is a finite number or true or false, got "1"'),
        ({**GOOD, "scalars": {"count": None}}, "count is a finite number or true or false, got null"),
        ({**GOOD, "scalars": {"x": 1}}, "annotated has no scalar 'x'; its scalars: count"),
        ({"kernel": "open_shape"}, "pass a sample tensor"),
    ],
)
def test_cli_12_13_29_48_58_what_is_wrong_is_named_before_any_build(
    file: File, builds: Any, request_: Any, message: str
) -> None:
    with pytest.raises(WarmupFileError, match=message):
        file.load(GOOD, request_)
    assert builds.generated == []


@pytest.mark.parametrize("version", [2, "1", True, 1.0, None])
def test_cli_03_49_schema_version(file: File, version: Any) -> None:
    with pytest.raises(WarmupFileError, match="schema_version is 1, got"):
        file.load(GOOD, schema_version=version)


@pytest.mark.parametrize(
    ("top", "message"),
    [
        ({"kernels": []}, "unknown field 'kernels'"),
        ({"requests": []}, "at least one request"),
        ({"cache": {"path": "x"}}, "unknown field 'path'"),
        ({"cache": {"enabled": 1}}, "CacheConfig.enabled is a bool"),
        ({"cache": {"root": 1}}, "root is a path, got 1"),
        ({"cache": {"extra_source_paths": "x"}}, "extra_source_paths is a list of paths"),
        ({"cache": None}, "cache is an object, got null"),
    ],
)
def test_cli_48_50_the_document(file: File, top: dict[str, Any], message: str) -> None:
    with pytest.raises(WarmupFileError, match=message):
        file.load(GOOD, **top)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ('{"schema_version": 1, "schema_version": 1}', "'schema_version' stands twice"),
        ('{"schema_version": NaN}', "NaN is not a JSON number"),
        ('{"requests": []}', "'schema_version' is missing"),
    ],
)
def test_cli_25_what_is_no_strict_json(file: File, text: str, message: str) -> None:
    file.path.write_text(text)
    with pytest.raises(WarmupFileError, match=message):
        load_warmup("sample_kernels", file.path)


def test_cli_43_a_missing_file_and_modules_that_cannot_be_imported(
    file: File, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(WarmupFileError, match="cannot be read: No such file"):
        load_warmup("sample_kernels", tmp_path / "none.json")
    file.load(GOOD)
    with pytest.raises(WarmupFileError, match="module no_such_module cannot be imported: ModuleNotFoundError"):
        load_warmup("no_such_module", file.path)
    (tmp_path / "failing_module.py").write_text("\nraise KeyError('a')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(WarmupFileError, match=r"KeyError: 'a' \(.*failing_module.py:2\)"):
        load_warmup("failing_module", file.path)
    (tmp_path / "ending_module.py").write_text("import sys\nsys.exit('no licence')\n")
    with pytest.raises(WarmupFileError, match=r"ending_module ended the process when it was imported: .*no licence"):
        load_warmup("ending_module", file.path)
    for name in ("", ".kernels", "kernels.py/x", "a..b"):
        with pytest.raises(WarmupFileError, match="--module is the name of a module as `import` takes it"):
            load_warmup(name, file.path)
