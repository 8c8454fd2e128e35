"""The tags that every tool-set extension has."""

DOWNLOAD_TAG = tag_class(
    attrs = {},
    doc = "Takes the tools that pypto's lock file (`pypto/toolchain/lock.json`) pins by name, version and SHA-256.",
)
