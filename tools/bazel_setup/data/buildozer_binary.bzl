"""Stands in for buildozer's own extension, which downloads a binary that nothing here runs."""

def _repository(ctx):
    ctx.file("BUILD.bazel", "")

_empty = repository_rule(_repository)

def _binary(_ctx):
    _empty(name = "buildozer_binary")

buildozer_binary = module_extension(_binary)
