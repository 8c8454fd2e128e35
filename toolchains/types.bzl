"""The toolchain types as constants, so that a rule loads no toolchain's implementation to name it."""

CANN_TOOLCHAIN_TYPE = Label("//toolchains/cann:toolchain_type")
GCC_AARCH64_TOOLCHAIN_TYPE = Label("//toolchains/gcc:aarch64_toolchain_type")
GCC_TOOLCHAIN_TYPE = Label("//toolchains/gcc:toolchain_type")
PTOAS_TOOLCHAIN_TYPE = Label("//toolchains/ptoas:toolchain_type")
PTO_ISA_TOOLCHAIN_TYPE = Label("//toolchains/pto_isa:toolchain_type")
