"""The module extension of the pinned wheels."""

load("//third_party/python:repository.bzl", "PYTHONS", "wheels_hub", "wheels_repository")

def _python_wheels_impl(mctx):
    for python in PYTHONS:
        wheels_repository(name = "pypto_wheels_" + python.replace(".", "_"), pythons = [python])
    wheels_repository(name = "pypto_wheels_machine")
    wheels_hub(name = "pypto_wheels")
    return mctx.extension_metadata(reproducible = True)

python_wheels = module_extension(
    implementation = _python_wheels_impl,
    doc = """`@pypto_wheels//:wheels`: NumPy and ml_dtypes for tests that run kernels, for the Python that runs them.

That is the one of this machine, unless `--@pypto//rules:kernel_test_python` names another. A repository is fetched when
such a test is built. `third_party/python/wheels.json` pins every wheel by SHA-256.""",
)
