"""The downloaded GCC for Bazel's own C and C++ rules."""

load("@rules_cc//cc:action_names.bzl", "ACTION_NAMES", "ALL_CC_COMPILE_ACTION_NAMES", "ALL_CC_LINK_ACTION_NAMES", "ALL_CPP_COMPILE_ACTION_NAMES", "CPP_LINK_STATIC_LIBRARY_ACTION_NAME")
load("@rules_cc//cc:cc_toolchain_config_lib.bzl", "env_entry", "env_set", "feature", "flag_group", "flag_set", "tool_path")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/toolchains:cc_toolchain_config_info.bzl", "CcToolchainConfigInfo")

def _flags(name, actions, flags):
    return feature(
        name = name,
        enabled = True,
        flag_sets = [flag_set(actions = actions, flag_groups = [flag_group(flags = flags)])],
    )

def _isystem(folders):
    return [word for folder in folders for word in ["-isystem", folder]]

def _gcc_cc_toolchain_config_impl(ctx):
    root = ctx.label.workspace_root + "/root"
    extra = ctx.label.workspace_root + "/extra"
    includes = [root + "/" + path for path in ctx.attr.includes]
    of_c = [path for path in includes if "/c++/" not in path]
    programs = root + "/" + ctx.attr.assembler.rpartition("/")[0]

    # As for kernels: nothing of the host is read, and no output holds where the tree lies.
    base = ["--sysroot=" + root, "-B{}/".format(programs), "-B{}/lib/".format(extra), "-no-canonical-prefixes"]
    compile = base + [
        "-fno-canonical-system-headers",
        "-nostdinc",
        "-fPIC",
        "-Wno-builtin-macro-redefined",
        "-D__DATE__=\"redacted\"",
        "-D__TIME__=\"redacted\"",
        "-D__TIMESTAMP__=\"redacted\"",
        "-ffile-prefix-map={}=/toolchain".format(root),
    ]
    features = [
        feature(name = "supports_dynamic_linker", enabled = True),
        feature(name = "supports_pic", enabled = True),
        _flags("pypto_compile", ALL_CC_COMPILE_ACTION_NAMES, compile),
        _flags("pypto_cpp", ALL_CPP_COMPILE_ACTION_NAMES, ["-nostdinc++", "-std=c++17"] + _isystem(includes)),
        # One driver for both: it would take a .c file for C++.
        _flags("pypto_c", [ACTION_NAMES.c_compile], ["-x", "c", "-std=c17"] + _isystem(of_c)),
        _flags("pypto_assemble", [ACTION_NAMES.assemble, ACTION_NAMES.preprocess_assemble], _isystem(of_c)),
        # What is built runs where no C++ library is installed.
        _flags("pypto_link", ALL_CC_LINK_ACTION_NAMES, base + ["-Wl,--build-id=sha1", "-static-libstdc++", "-static-libgcc"]),
        _flags("pypto_libraries", ALL_CC_LINK_ACTION_NAMES, ["-lm"]),
        feature(
            name = "pypto_environment",
            enabled = True,
            env_sets = [env_set(
                actions = ALL_CC_COMPILE_ACTION_NAMES + ALL_CC_LINK_ACTION_NAMES + [CPP_LINK_STATIC_LIBRARY_ACTION_NAME],
                env_entries = [
                    env_entry(key = "LD_LIBRARY_PATH", value = ":".join([root + "/" + path for path in ctx.attr.libraries])),
                    env_entry(key = "PWD", value = "/proc/self/cwd"),
                ],
            )],
        ),
    ]
    driver = "root/" + ctx.attr.driver
    tools = {"ar": "extra/bin/ar", "cpp": driver, "gcc": driver, "gcov": "extra/bin/none", "ld": "root/" + ctx.attr.linker}
    for name in ["nm", "objcopy", "objdump", "strip"]:
        tools[name] = "extra/bin/" + name
    return cc_common.create_cc_toolchain_config_info(
        ctx = ctx,
        abi_libc_version = "glibc",
        abi_version = "gcc",
        compiler = "gcc",
        cxx_builtin_include_directories = includes,
        features = features,
        host_system_name = "x86_64-linux-gnu",
        target_cpu = "k8",
        target_libc = "glibc",
        target_system_name = "x86_64-linux-gnu",
        tool_paths = [tool_path(name = name, path = path) for name, path in sorted(tools.items())],
        toolchain_identifier = "pypto-gcc",
    )

gcc_cc_toolchain_config = rule(
    implementation = _gcc_cc_toolchain_config_impl,
    attrs = {
        "assembler": attr.string(mandatory = True, doc = "Path of `as` in the tree; `ld` lies beside it."),
        "driver": attr.string(mandatory = True, doc = "Path of g++ in the tree."),
        "includes": attr.string_list(mandatory = True, doc = "Header folders in search order."),
        "libraries": attr.string_list(mandatory = True, doc = "Folders of libraries that the programs themselves need."),
        "linker": attr.string(mandatory = True, doc = "Path of `ld` in the tree."),
    },
    doc = "Configures the tree in `root/` of its repository, with what is in `extra/`, for C and C++.",
    provides = [CcToolchainConfigInfo],
)
