// The on-chip memory that a simulated kernel has: the model of its target, never the simulator's default.
#pragma once

namespace pypto::memory_model {

#if defined(__CPU_SIM)

#if !defined(PYPTO_SIM_ARCH)
#error "PYPTO_SIM_ARCH must name the simulated architecture: A2A3 or A5"
#endif

// The model is one object for each thread and each kernel object, so that every worker thread selects it before its first
// operation. PTO_NPU_ARCH_A5 cannot do that: in the simulator it asks for the headers of the device.
inline void select() {
  auto& model = ::pto::NPUMemoryModel::Instance();
  if (!model.IsInitialized()) model.Initialize(::pto::NPUArch::PYPTO_SIM_ARCH);
#if defined(PYPTO_LANES)
  // Hand-written code that several vector cores run for one call: get_subblockid() and get_subblockdim().
  ::pto::cpu_sim::set_execution_context(0, PYPTO_LANE, PYPTO_LANES);
#endif
}

#else

inline void select() {}

#endif

}  // namespace pypto::memory_model
