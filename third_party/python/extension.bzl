"""The module extension of the pinned wheels."""

load("//third_party/python:repository.bzl", "wheels_repository")

def _python_wheels_impl(mctx):
    wheels_repository(name = "pypto_wheels")
    return mctx.extension_metadata(reproducible = True)

python_wheels = module_extension(
    implementation = _python_wheels_impl,
    doc = """`@pypto_wheels//:wheels`: NumPy and ml_dtypes for tests that run kernels, for every Python that pypto supports.

The repository is fetched when such a test is built. `third_party/python/wheels.json` pins every wheel by SHA-256.""",
)
